"""Derivatives of the contact impulses (StepDerivatives.dlambda) against differences of what `contacts` reports."""

import numpy as np
import pytest

import coulomb
from scenes.contacts import CONTACT_SCENES, OCTAHEDRON

STEP = 1e-6


def ball():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.4)
    scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.0999), friction=0.3, name="ball")
    scene.add_mesh(OCTAHEDRON, mass=1.0, position=(1, 0, 0.1299), friction=0.2, name="gem")
    model = scene.build()
    q, v = model.neutral()
    v[:3] = 1.0, 0.2, -0.5
    v[6:9] = 0.01, 0.0, -0.2
    return model, q, v


def impulses(sim):
    """(normal, size of the tangential part) of every contact: what does not depend on the frame."""
    out = []
    for c in sim.contacts:
        normal = c.impulse @ c.normal
        out += [normal, np.linalg.norm(c.impulse - normal * c.normal)]
    return np.array(out)


def predicted(sim, d, wrt):
    """The same two of dlambda."""
    J = d.dlambda(wrt)
    rows = []
    for i, c in enumerate(sim.contacts):
        local = c.frame @ c.impulse
        size = np.linalg.norm(local[:2])
        tangent = local[:2] / size if size > 0 else np.zeros(2)
        rows += [J[3 * i + 2], tangent @ J[3 * i : 3 * i + 2]]
    return np.array(rows)


def differences(sim, model, q, v, tau, wrt):
    base = [c.mode for c in sim.contacts]
    columns = []
    for k in range(model.nv):
        values = []
        for size in (STEP, -STEP):
            e = np.zeros(model.nv)
            e[k] = size if wrt != "tau" else size / sim.timestep
            sim.step(
                *(model.integrate(q, e), v) if wrt == "q" else (q, v + e) if wrt == "v" else (q, v),
                tau=tau + e if wrt == "tau" else tau,
            )
            if [c.mode for c in sim.contacts] != base:
                return None
            values.append(impulses(sim))
        columns.append((values[0] - values[1]) / (2 * STEP / (1 if wrt != "tau" else sim.timestep)))
    return np.array(columns).T


@pytest.mark.parametrize("wrt", ["q", "v", "tau"])
def test_by_state_and_forces(wrt):
    model, q, v = ball()
    sim = coulomb.Simulator(model, timestep=2e-3)
    tau = np.zeros(model.nv)
    sim.step(q, v)
    sim.freeze_memory(True)
    sim.step(q, v)
    assert {"sliding", "sticking"} <= {c.mode for c in sim.contacts}
    analytic = predicted(sim, sim.derivatives(), wrt)
    numeric = differences(sim, model, q, v, tau, wrt)
    assert numeric is not None and np.abs(numeric).max() > 0
    assert np.abs(analytic - numeric).max() <= 1e-6 * max(1.0, np.abs(numeric).max())


@pytest.mark.parametrize("name", ["mass/ball", "friction/ground", "gravity", "timestep", "com/gem"])
def test_by_parameters(name):
    model, q, v = ball()
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    analytic = predicted(sim, sim.derivatives(), name)
    value = np.array(model.parameters()[name].value)
    step = 1e-8 if name == "timestep" else STEP
    for k in range(len(value)):
        at = []
        for size in (step, -step):
            changed = value.copy()
            changed[k] += size
            other = coulomb.Simulator(model.with_parameters({name: changed}))
            other.step(q, v)
            at.append(impulses(other))
        numeric = (at[0] - at[1]) / (2 * step)
        assert np.abs(analytic[:, k] - numeric).max() <= 1e-5 * max(1.0, np.abs(numeric).max()), k


def test_by_controls_and_errors():
    model, q, v = CONTACT_SCENES[4](np.random.default_rng(0))  # an arm with actuators pushes a box
    sim = coulomb.Simulator(model, timestep=2e-3)
    sim.step(q, v, np.zeros(model.nu))
    d = sim.derivatives()
    assert d.dlambda("u").shape == (3 * len(sim.contacts), model.nu)
    with pytest.raises(ValueError, match="nothing"):
        d.dlambda("nothing")
    sim.step(q, v, np.zeros(model.nu))
    with pytest.raises(RuntimeError, match="stepped since"):
        d.dlambda("q")
