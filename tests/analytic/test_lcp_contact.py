"""contact='lcp' on scenes with known answers, beside the cone, by every solver."""

import numpy as np
import pytest

import coulomb
from scenes import robots

G, MU, DT = 9.81, 0.3, 1e-3


def slide(angle, steps=1000, **options):
    """A box that slides from rest at 2 m/s on friction 0.3, heading `angle` from x: where it stops."""
    scene = coulomb.Scene(gravity=(0, 0, -G))
    scene.add_ground(friction=MU)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1), friction=MU)
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=DT, **options)
    q, v = model.neutral()
    v[:2] = 2 * np.cos(angle), 2 * np.sin(angle)
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged
    return q


def test_diamond_at_45_degrees():
    """Inscribed polygon of two directions: friction between mu and mu / sqrt(2)."""
    q = slide(np.pi / 4, contact="lcp", friction_polygon="inscribed")
    assert 0.679579 < np.hypot(*q[:2]) < 0.961069
    assert abs(q[0] - q[1]) <= 1e-8
    assert np.hypot(*q[:2]) == pytest.approx(2**2 / (2 * MU / np.sqrt(2) * G) - 2 * DT / 2, abs=1e-6)


def test_boxed_friction_at_45_degrees():
    """Circumscribed: each tangent has mu of its own, together mu sqrt(2)."""
    q = slide(np.pi / 4, contact="lcp")
    assert np.hypot(*q[:2]) == pytest.approx(2**2 / (2 * MU * np.sqrt(2) * G) - 2 * DT / 2, abs=1e-6)


@pytest.mark.parametrize("polygon", ["circumscribed", "inscribed"])
def test_along_an_axis_friction_is_coulombs(polygon):
    q = slide(0.0, contact="lcp", friction_polygon=polygon)
    assert q[0] == pytest.approx(0.678579, abs=1e-6) and abs(q[1]) <= 1e-8


def test_more_directions_come_near_the_cone():
    cone = slide(0.3)
    errors = [np.linalg.norm(slide(0.3, contact="lcp", friction_directions=d)[:3] - cone[:3]) for d in (2, 4, 8, 16)]
    assert all(b < 0.6 * a for a, b in zip(errors, errors[1:])), errors
    assert errors[-1] < 0.01


def test_velocity_falls_by_mu_g_dt():
    scene = coulomb.Scene(gravity=(0, 0, -G))
    scene.add_ground(friction=MU)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1), friction=MU)
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=DT, contact="lcp")
    q, v = model.neutral()
    v[0] = 0.05
    while v[0] > MU * G * DT:
        before = v[0]
        q, v = sim.step(q, v)
        assert before - v[0] == pytest.approx(MU * G * DT, abs=1e-12)
        assert {c.mode for c in sim.contacts} == {"sliding"} and {c.facet for c in sim.contacts} <= {0, 4}
    q, v = sim.step(q, v)
    # The step that stops it needs nearly all friction: corners that carry less reach its border, the others hold.
    assert np.abs(v).max() <= 1e-12
    assert {c.mode for c in sim.contacts} == {"sliding", "sticking"}
    assert all((c.facet == -1) == (c.mode == "sticking") for c in sim.contacts)
    q, v = sim.step(q, v)
    assert np.abs(v).max() <= 1e-12
    assert {(c.mode, c.facet) for c in sim.contacts} == {("sticking", -1)}


def pushed(force, **options):
    scene = coulomb.Scene(gravity=(0, 0, -G))
    scene.add_ground(friction=MU)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1), friction=MU, name="box")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=DT, **options)
    q, v = model.neutral()
    for _ in range(20):
        q, v = sim.step(q, v, tau=[force[0], force[1], 0, 0, 0, 0])
    return np.r_[q, v], sim


def test_agrees_with_the_cone_where_friction_holds():
    for force in ((0.5 * MU * G, 0), (0.3 * MU * G, 0.5 * MU * G)):
        ncp, _ = pushed(force)
        lcp, _ = pushed(force, contact="lcp")
        assert np.abs(ncp - lcp).max() <= 1e-8


@pytest.mark.parametrize("solver", ["dantzig", "pgs", "admm", "ac_lm"])
def test_solvers_agree(solver):
    for force in ((2.0, 0.5), (5.0, 4.0), (0.0, 8.0)):
        reference, _ = pushed(force, contact="lcp")
        other, sim = pushed(force, contact="lcp", solver=solver)
        assert sim.status.converged, sim.status
        assert np.abs(reference - other).max() <= 1e-8


@pytest.mark.parametrize("name", robots.NAMES)
def test_robots_agree_with_the_cone_where_nothing_slides(name):
    """Cone and pyramid have the same compliance. Pivots have none, and differ by what it leaves (`exact_residual`)."""
    model, qs, vs = robots.load(name)
    cone, boxed, by_pivots = (
        coulomb.Simulator(model, **options)
        for options in ({}, {"contact": "lcp"}, {"contact": "lcp", "solver": "dantzig"})
    )
    compared = 0
    for k, (q, v) in enumerate(zip(qs, vs)):
        for sim in (cone, boxed, by_pivots):
            sim.reset()
        v1, v2 = cone.step(q, v)[1], boxed.step(q, v)[1]
        scale = 1 + np.abs(v1).max()
        if all(s.status.converged and all(c.mode != "sliding" for c in s.contacts) for s in (cone, boxed)):
            compared += 1
            assert np.abs(v1 - v2).max() <= 1e-8 * scale, f"state {k}"
        if k % 10 == 0:
            v3 = by_pivots.step(q, v)[1]
            unique = boxed.status.converged and not boxed.derivatives().ambiguous
            if unique and by_pivots.status.converged and all(c.margin > 1e-6 for c in boxed.contacts):
                left = boxed.status.exact_residual
                assert left <= 1e-5 and np.abs(v2 - v3).max() <= (1e-8 + 10 * left) * scale, f"state {k}"
    print(f"{name}: {compared} of {len(qs)} states without sliding agree")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(contact="boxed"), "contact"),
        (dict(contact="lcp", friction_directions=1), "friction_directions: got 1"),
        (dict(contact="lcp", friction_directions=17), "friction_directions: got 17"),
        (dict(contact="lcp", friction_polygon="square"), "friction_polygon"),
        (dict(solver="dantzig"), "dantzig"),
        (dict(contact="lcp", friction_directions=3, solver="dantzig"), "dantzig"),
    ],
)
def test_options_are_checked(options, message):
    scene = coulomb.Scene()
    scene.add_sphere(0.1, mass=1.0)
    with pytest.raises(ValueError, match=message):
        coulomb.Simulator(scene.build(), **options)


POINT = """<mujoco><option gravity="0 0 -9.81" timestep="0.001"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.25"/>
  <body name="point" pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="1" friction="0.25"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("direction", [(1, 0), (1, 1)], ids=["side", "vertex"])
def test_gradient_at_a_tie_takes_the_better_side(direction):
    """Pushed as hard as friction holds: sticking, whose gradient is zero, or sliding, whose is not."""
    scene = coulomb.Scene()
    scene.add_mjcf(POINT)
    model = scene.build()
    q, v = model.neutral()
    force = 0.25 * G * np.array([*direction, 0])
    found = {}
    for gradient in ("exact", "complementarity_aware"):
        sim = coulomb.Simulator(model, contact="lcp", gradient=gradient)
        sim.step(q, v, tau=force)
        assert sim.contacts[0].mode == "sticking" and sim.contacts[0].tie
        found[gradient] = sim.vjp(np.zeros(3), [*direction, 0]).v[:2]
    assert np.abs(found["exact"]).max() <= 1e-12
    assert np.allclose(found["complementarity_aware"], direction, atol=1e-9)
