"""Split steps that begin with an impact: its time moves with the state as that of any other, on both sides of the gap 0.

A gap that is closed where the step begins has closed at a time T <= 0; the motion and its derivative are those of an impact at T, so that
the step is smooth where a gap passes through 0, and differences across it tell the truth.
"""

import numpy as np
import pytest

import coulomb

GRAVITY = 9.81
TIMESTEP = 0.01
GAPS = [0.0, 1e-12, -1e-12, 1e-9, -1e-9, 5e-9, 5e-8, -5e-8, 1e-6, -1e-6, 1e-5, -1e-5, -1e-3]


def split(model, timestep=TIMESTEP, **options):
    return coulomb.Simulator(model, timestep=timestep, continuous_collision=True, **options)


def ball(gap, restitution, friction=0.0):
    scene = coulomb.Scene()
    scene.add_ground(friction=friction, restitution=restitution)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + gap), name="ball")
    return scene.build()


def bounced(gap, speed, e, gravity=GRAVITY, timestep=TIMESTEP):
    """(gap, velocity) after a step with one impact, for complex numbers too."""
    hit = (speed + np.sqrt(speed * speed + 2 * gravity * gap)) / gravity
    up, rest = -e * (speed - gravity * hit), timestep - hit
    return (0 * gap, 0 * gap) if e == 0 else (up * rest - 0.5 * gravity * rest * rest, up - gravity * rest)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("gap", GAPS)
def test_a_ball_that_touches_and_falls(gap, e, contact):
    """dz+/dz is -e (and what gravity adds), not +1."""
    sim = split(ball(gap, e), contact=contact)
    q, v = sim.model.neutral()
    v[2] = -1.0
    names = ["size/ball", "gravity", "timestep"]
    q1, v1 = sim.step(q, v)
    d = sim.derivatives(wrt=names)
    g = [sim.vjp(row[:6], row[6:], wrt=names) for row in np.eye(12)[[2, 8]]]
    assert len(sim.impacts) == 1 and 0 <= sim.impacts[0].time < 2e-5

    step = 1e-30j
    z, speed = bounced(gap, v[2], e)
    assert (q1[2] - 0.1, v1[2]) == pytest.approx((z, speed), abs=2e-11)
    changed = {
        "z": bounced(gap + step, v[2], e),
        "v": bounced(gap, v[2] + step, e),
        "g": bounced(gap, v[2], e, GRAVITY + step),
        "h": bounced(gap, v[2], e, timestep=TIMESTEP + step),
    }
    for row, column in ((0, 2), (1, 8)):
        exact = {k: np.imag(x[row]) * 1e30 for k, x in changed.items()}
        assert d.A[column, [2, 8]] == pytest.approx([exact["z"], exact["v"]], abs=2e-8)
        assert d["gravity"][column, 2] == pytest.approx(-exact["g"], abs=1e-8)
        assert d["timestep"][column, 0] == pytest.approx(exact["h"], abs=1e-8)
        assert d["size/ball"][column, 0] == pytest.approx((row == 0) - exact["z"], abs=2e-8)
        assert np.r_[g[row].q, g[row].v] == pytest.approx(d.A[column], abs=1e-12)
        for name in names:
            assert g[row][name] == pytest.approx(d[name][column], abs=1e-11)
    if e > 0:
        assert d.A[2, 2] == pytest.approx(-e, abs=0.25)


def test_gravity_alone_makes_the_difference_to_restitution():
    """Without gravity dz+/dz is -e to rounding, whatever the gap."""
    for e in (0.25, 0.5, 1.0):
        for gap in GAPS:
            model = ball(gap, e).with_parameters({"gravity": [0, 0, 0]})
            sim = split(model)
            q, v = model.neutral()
            v[2] = -2.0
            q1, v1 = sim.step(q, v)
            A = sim.derivatives().A
            assert (A[2, 2], A[8, 8]) == pytest.approx((-e, -e), abs=1e-11)
            assert q1[2] - 0.1 == pytest.approx(2 * e * TIMESTEP - e * gap, abs=1e-13)


def test_a_deep_overlap_is_let_out_where_it_is():
    """Deeper than a step at this speed: it did not come from outside within a step, and the derivative is that of a bounce on the spot."""
    sim = split(ball(-0.011, 0.5))
    q, v = sim.model.neutral()
    v[2] = -1.0
    q1, v1 = sim.step(q, v)
    assert q1[2] - q[2] == pytest.approx(0.5 * TIMESTEP, abs=1e-3)
    assert sim.derivatives().A[2, 2] == pytest.approx(1, abs=1e-9)


# --- several bodies, each with a time of its own


def balls(height, friction, restitutions=(0.0, 0.5, 1.0, 0.8)):
    """Side by side, all at one height."""
    scene = coulomb.Scene()
    scene.add_ground(friction=friction)
    for i, e in enumerate(restitutions):
        place = (0.5 * i, 0, 0.1 + height)
        scene.add_sphere(0.1, mass=1.0 + i, position=place, friction=friction, restitution=e, name=f"ball {i}")
    return scene.build()


def leg(height):
    """Two links on a slide."""
    scene = coulomb.Scene()
    scene.add_mjcf(f"""<mujoco><worldbody><body pos="0 0 {0.75 + height}"><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.3" size=".02" mass="1" contype="0" conaffinity="0"/>
      <body pos=".3 0 -.3"><joint axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 -.1 0 -.4" size=".02" mass=".5" contype="0" conaffinity="0"/>
      <geom name="foot" type="sphere" pos="-.1 0 -.4" size=".05" mass=".2" friction=".8"/></body></body></worldbody></mujoco>""")
    scene.add_ground(friction=0.9)
    return scene.build()


def rod(height):
    """On its end."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.3)
    place = {"position": (0, 0, 0.03 + 0.2 + height), "quaternion": (np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0)}
    scene.add_capsule(0.03, 0.4 * np.sqrt(2), mass=1.0, friction=0.3, restitution=0.5, **place)
    return scene.build()


def limited(joint, bound, height):
    """A link at its joint's limit, less height."""
    scene = coulomb.Scene()
    scene.add_mjcf(
        f"""<mujoco><compiler angle="radian"/><worldbody><body pos="0 0 2"><joint {joint} limited="true" range="{bound + height}"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1" contype="0" conaffinity="0"/></body></worldbody></mujoco>""".replace(
            'range="', 'range="-1 ' if "hinge" in joint else 'range="0 '
        )
    )
    return scene.build()


def state(kind, height):
    """(model, q, v) of what hits, all at once if height is 0."""
    if kind == "leg":
        model = leg(height)
        return model, model.neutral()[0], np.array([-1.0, 0.5, -0.7])
    if kind == "rod":
        model = rod(height)
        return model, model.neutral()[0], np.array([0.4, 0.2, -1.1, -1.5, 0.2, 0.1])
    if kind == "hinge":
        return limited('type="hinge" axis="0 1 0"', 0.2, height), np.array([0.2]), np.array([2.0])
    if kind == "ball joint":
        q = np.array([np.cos(0.25), np.sin(0.25) * 0.6, 0, np.sin(0.25) * 0.8])
        return limited('type="ball"', 0.5, height), q, np.array([1.2, 0.1, 1.6])
    model = balls(height, {"smooth balls": 0.0, "rough balls": 0.4}[kind])
    v = np.random.default_rng(0).normal(size=24)
    v[2::6] = -1, -2, -0.7, -3
    return model, model.neutral()[0], v


KINDS = ["smooth balls", "rough balls", "leg", "rod", "hinge", "ball joint"]


def moved(sim, q, v, tau, at, dq=0.0, dv=0.0, dtau=0.0):
    n = sim.model.nv
    q1, v1 = sim.step(sim.model.integrate(q, dq + np.zeros(n)), v + dv, tau=tau + dtau + np.zeros(n))
    assert sim.status.converged
    return np.r_[sim.model.difference(at[0], q1), v1 - at[1]]


@pytest.mark.parametrize("height", [0.0, 1e-3, -1e-3, 2e-9, -2e-9])
@pytest.mark.parametrize("kind", KINDS)
def test_all_hit_at_once(kind, height):
    """Bodies that do not touch each other know nothing of each other's times. Differences move them apart, and through 0."""
    model, q, v = state(kind, height)
    sim = split(model)
    tau = np.zeros(model.nv) if "balls" in kind else 0.1 * np.random.default_rng(1).normal(size=model.nv)
    at = sim.step(q, v, tau=tau)
    assert len(sim.impacts) == (4 if "balls" in kind else 1)
    d = sim.derivatives(wrt=["gravity", "timestep"])
    columns = {"dq": d.A[:, : model.nv], "dv": d.A[:, model.nv :], "dtau": d.B_tau}

    w = np.random.default_rng(2).normal(size=2 * model.nv)
    g = sim.vjp(w[: model.nv], w[model.nv :], wrt=["gravity", "timestep"])
    for reverse, J in [(g.q, columns["dq"]), (g.v, columns["dv"]), (g.tau, columns["dtau"])] + [
        (g[k], d[k]) for k in ("gravity", "timestep")
    ]:
        assert reverse == pytest.approx(w @ J, rel=1e-10, abs=1e-10 * max(1, np.abs(J).max()))

    sim.freeze_memory(True)
    for name, J in columns.items():
        for k in range(model.nv):
            unit = np.eye(model.nv)[k]
            h = 1e-5 if name != "dtau" else 1e-2
            numeric = [
                (moved(sim, q, v, tau, at, **{name: s * unit}) - moved(sim, q, v, tau, at, **{name: -s * unit}))
                / (2 * s)
                for s in (h, h / 2)
            ]
            best = (4 * numeric[1] - numeric[0]) / 3
            assert J[:, k] == pytest.approx(best, rel=1e-6, abs=2e-7 * (1 + np.abs(J).max())), (name, k)


@pytest.mark.parametrize("kind", KINDS)
def test_the_remainder_is_of_second_order_through_zero(kind):
    """Of a step from gap 0, in directions that open some gaps and close others."""
    model, q, v = state(kind, 0.0)
    sim = split(model)
    at = sim.step(q, v)
    A = sim.derivatives().A
    sim.freeze_memory(True)
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=2 * model.nv)
        dq, dv = np.split(direction, 2)
        sizes = np.array([1e-3, 3e-4, 1e-4, 3e-5])
        rest = [np.linalg.norm(moved(sim, q, v, 0.0, at, s * dq, s * dv) - s * A @ direction) for s in sizes]
        slope = np.polyfit(np.log(sizes), np.log(rest), 1)[0]
        assert slope == pytest.approx(2, abs=0.1), rest


def test_balls_dropped_from_one_height_within_the_step():
    """Two impacts at one time in the middle of a step: each ball has -e, and nothing of the other."""
    model = balls(0.004, 0.0, (0.5, 1.0))
    sim = split(model)
    q, v = model.neutral()
    v[2::6] = -1.0
    sim.step(q, v)
    assert len(sim.impacts) == 2 and len({i.time for i in sim.impacts}) == 1
    A = sim.derivatives().A
    for i, e in enumerate((0.5, 1.0)):
        z = bounced(0.004 + 1e-30j, -1.0, e)
        assert A[6 * i + 2, 6 * i + 2] == pytest.approx(np.imag(z[0]) * 1e30, abs=1e-9)
        assert A[12 + 6 * i + 2, 6 * i + 2] == pytest.approx(np.imag(z[1]) * 1e30, abs=1e-9)
        assert A[6 * i + 2, 6 * (1 - i) + 2] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("height", [2.90, 2.95, 3.00])
def test_a_round_number_of_steps_to_the_floor(height):
    """Published: a ball thrown from 3 m at 1 m/s or so touches the floor just where a step ends. dz/dz0 is -e there as beside it."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0, restitution=0.75)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + height))
    sim = split(scene.build(), 0.05)
    q, v = sim.model.neutral()
    v[2] = -10.0
    r = sim.rollout(q, v, steps=10)
    dQ, dV = np.zeros((2, 11, 6))
    dQ[-1, 2] = 1
    g = r.vjp(dQ, dV)
    assert r.q[-1, 2] - 0.1 == pytest.approx(0.75 * (5.0 - height), abs=1e-9)
    assert (g.q0[2], g.v0[2]) == pytest.approx((-0.75, -0.75 * 0.5), abs=1e-9)
