"""Points, normals and depths of contacts as functions of q and of the parameters that move shapes, against differences of what
`contacts` reports, separating contacts included."""

import functools

import numpy as np
import pytest
from test_parameters import bouncing, mixed, on_a_mesh

import coulomb
from scenes.contacts import CONTACT_SCENES

H = 1e-5
TOLERANCE = 1e-6
MOVING = {"joint_placement", "geometry_placement", "size", "vertices"}


def geometry(sim):
    """(n, 7): point, normal, depth."""
    return np.array([[*c.point, *c.normal, c.depth] for c in sim.contacts]).reshape(-1, 7)


def pairs(sim):
    return [(c.geometry_a, c.geometry_b) for c in sim.contacts]


def analytic(sim, wrt):
    d = sim.derivatives()
    n = len(sim.contacts)
    point, normal, depth = d.dpoint(wrt), d.dnormal(wrt), d.ddepth(wrt)
    k = point.shape[1]
    assert point.shape == normal.shape == (3 * n, k) and depth.shape == (n, k)
    return np.concatenate([point.reshape(n, 3, k), normal.reshape(n, 3, k), depth[:, None]], axis=1)


def richardson(function, base):
    """Contacts (n, 7) per unit, NaN where the list of contacts changes."""
    values = []
    for size in (H, -H, H / 2, -H / 2):
        sim = function(size)
        if sim is None or pairs(sim) != base:
            return None
        values.append(geometry(sim))
    plus, minus, half_plus, half_minus = values
    return (4 * (half_plus - half_minus) / H - (plus - minus) / (2 * H)) / 3, np.abs(
        plus + minus - half_plus - half_minus
    ).max(axis=1)


def compare(J, column, k, what):
    """Contacts whose feature changes within the differences show it in the second difference."""
    numeric, bend = column
    smooth = bend < 1e-8
    error = np.abs(J[smooth, :, k] - numeric[smooth]).max(initial=0)
    assert error <= TOLERANCE * max(1.0, np.abs(numeric[smooth]).max(initial=0)), (what, k, error)
    return smooth.sum()


FREE = ["joint_at_limit", "equalities"]  # nothing touches there
SCENES = [*(build for build in CONTACT_SCENES if build.__name__ not in FREE), mixed, bouncing, on_a_mesh]


@functools.cache
def kinds_compared(build):
    """Compares the derivatives by q and by parameters in a scene: the kinds of parameters that move something."""
    model, q, v = build(np.random.default_rng(1))
    sim = coulomb.Simulator(model)
    u = np.zeros(model.nu)
    sim.step(q, v, u)
    memory = sim.memory
    sim.freeze_memory(True)
    sim.step(q, v, u)
    base, frozen = pairs(sim), [c.frozen for c in sim.contacts]
    assert base and not any(frozen)
    names = [name for name in model.parameters() if name.split("/")[0] in MOVING]
    values = {name: np.array(model.parameters()[name].value) for name in names}
    J = {name: analytic(sim, name) for name in ["q", *names]}

    def moved_q(k, size):
        e = np.zeros(model.nv)
        e[k] = size
        sim.step(model.integrate(q, e), v, u)
        return sim

    def moved_parameter(name, k, size):
        value = values[name].copy()
        value[k] += size
        try:
            other = coulomb.Simulator(model.with_parameters({name: value}))
        except ValueError:
            return None
        other.memory = memory
        other.freeze_memory(True)
        other.step(q, v, u)
        return other

    total = 0
    for k in range(model.nv):
        column = richardson(lambda size, k=k: moved_q(k, size), base)
        total += compare(J["q"], column, k, "q") if column else 0
    assert total > 0
    kinds = set()
    for name in names:
        for k in range(min(J[name].shape[2], 12)):
            column = richardson(lambda size, name=name, k=k: moved_parameter(name, k, size), base)
            if column and compare(J[name], column, k, name) and np.abs(J[name]).max() > 0:
                kinds.add(name.split("/")[0])
    return kinds


@pytest.mark.parametrize("build", SCENES, ids=lambda f: f.__name__)
def test_by_q_and_by_parameters(build):
    kinds_compared(build)


def test_every_kind_was_compared():
    assert set().union(*map(kinds_compared, SCENES)) == MOVING


def test_everything_else_leaves_contacts_where_they_are():
    model, q, v = mixed(np.random.default_rng(0))
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    d, n = sim.derivatives(), len(sim.contacts)
    others = [name for name in model.parameters() if name.split("/")[0] not in MOVING]
    for wrt in ["v", "u", "tau", *others]:
        k = {"v": model.nv, "u": model.nu, "tau": model.nv}.get(wrt) or model.parameters()[wrt].size
        for J, rows in ((d.dpoint(wrt), 3 * n), (d.dnormal(wrt), 3 * n), (d.ddepth(wrt), n)):
            assert J.shape == (rows, k) and not J.any()
    with pytest.raises(ValueError, match="nobody"):
        d.ddepth("mass/nobody")
    sim.step(q, v)
    with pytest.raises(RuntimeError, match="stepped since"):
        d.dpoint("q")
