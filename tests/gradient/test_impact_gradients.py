"""Derivatives of steps that are split at impacts: against differences by q, v, u, tau and every kind of parameter, reverse against
forward, with none to many impacts in the step."""

import functools

import numpy as np
import pytest

import coulomb

TOLERANCE = 1e-6
CHANGES = (3e-5, 3e-6)  # of (q1, v1) that a difference aims at: the larger truncates, the smaller rounds
ROUNDING = (
    4e-13  # of (q1, v1), relative to the fastest velocity, after a few impacts: a difference cannot tell it from zero
)
KINDS = {
    "mass", "com", "inertia", "friction", "restitution", "compliance", "joint_placement", "geometry_placement", "size", "vertices",
    "joint_stiffness", "joint_damping", "armature", "joint_friction", "joint_limits", "gravity", "timestep", "actuator_gain",
}  # fmt: skip


def unit(*x):
    return np.array(x) / np.linalg.norm(x)


def ball_between_walls():
    scene = coulomb.Scene()
    for name, x in (("left", -0.3), ("right", 0.3)):
        scene.add_box((0.2, 1, 1), position=(x, 0, 0), friction=0.4, restitution=0.9, fixed=True, name=name)
    scene.add_sphere(0.1, mass=1.0, position=(0.01, 0.02, 0.03), friction=0.2, restitution=0.3, name="ball")
    return scene.build(), [np.array([x, 2, -1, 1, 2, 3]) for x in (5.0, 35.0, 75.0, -95.0)]


def balls_in_a_row():
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for i in range(4):
        scene.add_sphere(
            0.1,
            mass=1 + 0.3 * i,
            position=(0.201 * i, 0.003 * i, 0),
            restitution=0.5 + 0.1 * i,
            friction=0.1 + 0.05 * i,
        )
    v = 0.1 * np.random.default_rng(1).normal(size=24)
    v[0] = 3
    return scene.build(), [v]


def tumbling_box():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.3, restitution=0.4)
    scene.add_box(
        (0.2, 0.3, 0.1),
        mass=1.0,
        position=(0, 0, 0.2),
        quaternion=unit(0.9, 0.2, 0.3, 0.1),
        compliance=1e-5,
        name="box",
    )
    return scene.build(), [np.array([1, 0.5, z, 3, 2, 1]) for z in (-1.0, -8.0, -14.0, -22.0)]


def solids():
    """A vertex of a mesh, a box and a capsule meet in flight."""
    scene = coulomb.Scene()
    corners = [(-0.1, -0.1, -0.1), (0.2, -0.1, -0.1), (0, 0.2, -0.1), (0.03, 0.02, 0.2)]
    scene.add_mesh(corners, mass=1.0, friction=0.4, restitution=0.5, name="tetrahedron")
    scene.add_box((0.2, 0.2, 0.2), mass=2.0, position=(0.05, 0.03, 0.36), quaternion=unit(0.95, 0.2, 0.1, 0.2), friction=0.5,
                  restitution=0.6, name="box")  # fmt: skip
    scene.add_capsule(
        0.05, 0.3, mass=0.5, position=(0.3, 0.05, 0.1), quaternion=unit(0.8, 0.5, 0.3, 0.1), restitution=0.3, name="rod"
    )
    random = np.random.default_rng(2)
    states = []
    for k in range(3):
        v = random.normal(size=18)
        v[2], v[8], v[12] = 4 * k + 4, -4 * k, -6 * k
        states.append(v)
    return scene.build(), states


ARM = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom name="floor" type="plane" size="5 5 1" friction="{friction}"/>
  <body name="upper" pos="0 0 .5">
    <joint name="shoulder" axis="0 1 0" damping=".1" stiffness="2" limited="true" range="-60 60"/>
    <geom name="upper" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".5"/>
    <body name="fore" pos=".3 0 0">
      <joint name="elbow" axis="0 1 0" armature=".01" frictionloss=".02" limited="true" range="-90 90"/>
      <geom name="fore" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".4"/>
      <body name="hand" pos=".3 0 0"><joint name="wrist" type="ball" limited="true" range="0 50"/>
        <geom name="hand" type="box" pos=".05 0 0" size=".05 .03 .02" mass=".2"/></body></body></body></worldbody>
  <actuator><motor name="motor" joint="shoulder" gear="2"/></actuator></mujoco>"""


def arm(friction, shoulder, elbow, rates):
    scene = coulomb.Scene()
    scene.add_mjcf(ARM.format(friction=friction))
    model = scene.build().with_parameters({"restitution/hand": [0.5]})
    q = model.integrate(model.neutral()[0], np.array([shoulder, elbow, 0.1, 0.2, 0.05]))
    return model, [np.array(rate) for rate in rates], q


def arm_hits_the_floor():
    return arm(0.4, 0.5, 0.45, [(1, 1, 0.3, 0.2, 0.1), (4, 4, 0.3, 0.2, 0.1), (2, 6, 0.3, 4, 2)])


def arm_slips_on_the_floor():
    return arm(0.05, 0.5, 0.45, [(3, 3, 0.3, 0.2, 0.1)])


def arm_at_its_limits():
    return arm(0.4, np.radians(59), -np.radians(80), [(4, 4, 0.3, 6, 0.1), (-3, -25, 1, 2, 3)])


def ball_on_a_turning_wall():
    """Held at its velocity, the ball sinks into the wall that turns under it, hops, and comes back."""
    scene = coulomb.Scene()
    scene.add_box((1, 0.1, 0.6), mass=200.0, friction=0.3, restitution=0.0, name="wall")
    scene.add_sphere(0.1, mass=1.0, position=(0.25, 0.151, 0.02), friction=0.2, restitution=0.0, name="ball")
    turns = [np.array([0, 0, 0, 0.1, 0.2, w, -0.15 * w + 1, 0.25 * w - 1.5, 0, 1, 2, 3]) for w in (10.0, 16.0, 30.0)]
    return scene.build(), turns


def hand_at_its_limit():
    model, states, q = arm(0.4, 0, 0, [(0.1, 0.1, 1.3, 16.2, 0.1)])
    return model, states, model.integrate(q, np.array([0, 0, 0, 0.6, 0]))


SCENES = [ball_between_walls, balls_in_a_row, tumbling_box, solids, arm_hits_the_floor, arm_slips_on_the_floor, arm_at_its_limits,
          ball_on_a_turning_wall, hand_at_its_limit]  # fmt: skip
STATES = [(build, k) for build in SCENES for k in range(len(build()[1]))]


def signature(sim):
    return sim.status.reason, [(round(i.approach, 2) > 0, i.geometry_a, i.geometry_b, i.joint) for i in sim.impacts]


class Step:
    """One step as a function of its inputs and parameters, from a frozen memory."""

    def __init__(self, model, q, v, contact):
        self.model, self.q, self.v = model, q, v
        random = np.random.default_rng(5)
        self.u, self.tau = random.normal(size=model.nu), 0.1 * random.normal(size=model.nv)
        self.options = {"continuous_collision": True, "contact": contact}
        self.sim = coulomb.Simulator(model, **self.options)
        self.sim.step(q, v, self.u, tau=self.tau)
        self.memory = self.sim.memory
        self.sim.freeze_memory(True)
        self.q1, self.v1 = self.sim.step(q, v, self.u, tau=self.tau)
        assert self.sim.status.converged, self.sim.status
        self.active = signature(self.sim)

    def result(self, sim, dq, dv, du, dtau):
        q1, v1 = sim.step(self.model.integrate(self.q, dq), self.v + dv, self.u + du, tau=self.tau + dtau)
        return None if signature(sim) != self.active else np.r_[self.model.difference(self.q1, q1), v1 - self.v1]

    def by_input(self, name, k):
        def moved(size):
            change = {
                "q": np.zeros(self.model.nv),
                "v": np.zeros(self.model.nv),
                "u": np.zeros(self.model.nu),
                "tau": np.zeros(self.model.nv),
            }
            change[name][k] = size
            return self.result(self.sim, *change.values())

        return moved

    def by_parameter(self, name, value, k):
        def moved(size):
            changed = value.copy()
            changed[k] += size
            try:
                sim = coulomb.Simulator(self.model.with_parameters({name: changed}), **self.options)
            except ValueError:  # a value at the edge of what is physical
                return None
            sim.memory = self.memory
            sim.freeze_memory(True)
            return self.result(sim, np.zeros(self.model.nv), np.zeros(self.model.nv), 0 * self.u, 0 * self.tau)

        return moved


def differs(moved, column, change, largest, noise):
    """Relative error of a column against the Richardson difference of `moved`; None where the step is not smooth there."""
    h = min(change / max(np.linalg.norm(column), 1e-12), largest)
    at = [moved(size) for size in (h, -h, h / 2, -h / 2)]
    if any(x is None for x in at):
        return None
    numeric = (4 * (at[2] - at[3]) / h - (at[0] - at[1]) / (2 * h)) / 3
    bend, half_bend = np.linalg.norm(at[0] + at[1]), np.linalg.norm(at[2] + at[3])
    if bend > 1e-10 and half_bend > 0.4 * bend:
        return None  # a kink within the differences
    return np.linalg.norm(column - numeric) / max(np.linalg.norm(numeric), noise / TOLERANCE / h)


def check(moved, column, largest, noise, what):
    errors = [differs(moved, column, change, largest, noise) for change in CHANGES]
    if all(e is None for e in errors):
        return False
    assert min(e for e in errors if e is not None) < TOLERANCE, (what, errors)
    return True


@functools.cache
def compared(build, k, contact):
    """Differentiates a split step and compares: the kinds of parameters with an effect, and its number of impacts."""
    model, states, *q = build()
    model = model.with_parameters({"timestep": [0.01]})
    step = Step(model, q[0] if q else model.neutral()[0], states[k].astype(float), contact)
    values = {name: p.value for name, p in model.parameters().items()}
    d = step.sim.derivatives(wrt=list(values))
    kinds, impacts = set(), len({i.time for i in step.sim.impacts})

    w = np.random.default_rng(6).normal(size=(2, model.nv))
    g = step.sim.vjp(*w, wrt=list(values))
    pairs = [(g.q, d.A[:, : model.nv]), (g.v, d.A[:, model.nv :]), (g.u, d.B), (g.tau, d.B_tau)]
    for reverse, forward in pairs + [(g[name], d[name]) for name in values]:
        expected = w.ravel() @ forward
        assert reverse == pytest.approx(expected, rel=1e-10, abs=1e-10 * max(1, np.abs(forward).max(initial=0)))

    smooth, noise = 0, ROUNDING * (1 + np.abs(step.v1).max())
    if build is ball_on_a_turning_wall:  # columns that are zero, after five impacts
        noise *= 4
    for name, J in (("q", d.A[:, : model.nv]), ("v", d.A[:, model.nv :]), ("u", d.B), ("tau", d.B_tau)):
        for column in range(J.shape[1]):
            smooth += check(
                step.by_input(name, column), J[:, column], 1e-3 if name in "qv" else 10, noise, (name, column)
            )
    assert smooth >= 2 * model.nv  # most of q, v and tau
    for name, value in values.items():
        for column in range(d[name].shape[1]):
            size = max(abs(value[column]), 1e-2 * np.abs(value).max(), 1e-4 if name == "timestep" else 1e-3)
            if check(step.by_parameter(name, value, column), d[name][:, column], 0.02 * size, noise, (name, column)):
                if np.abs(d[name][:, column]).max() > 1e-9:
                    kinds.add(name.split("/")[0])
    return kinds, impacts


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize(("build", "k"), STATES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_split_step_is_differentiated(build, k, contact):
    compared(build, k, contact)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_every_kind_was_compared_and_every_number_of_impacts(contact):
    kinds, impacts = zip(*(compared(build, k, contact) for build, k in STATES))
    assert set().union(*kinds) >= KINDS - {"vertices"}
    assert set(impacts) >= {0, 1, 2, 3, 4}


def test_an_impact_that_grazes_is_reported_and_has_a_finite_derivative():
    """A ball that turns just as it touches the floor: the time of impact has no derivative there."""
    scene = coulomb.Scene(gravity=(0, 0, 10))
    scene.add_ground(friction=0, restitution=0.5)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + 0.05))  # falls upward: 1 m/s down just reaches the floor
    sim = coulomb.Simulator(scene.build(), timestep=0.2, continuous_collision=True)
    q, v = sim.model.neutral()
    found = []
    for lower in (0.0, 1e-16, 1e-15, 1e-14):
        sim.step(q - [0, 0, lower, 0, 0, 0, 0], v - [0, 0, 1, 0, 0, 0])
        found += [i.grazing for i in sim.impacts]
        assert np.isfinite(sim.derivatives().A).all() and np.abs(sim.derivatives().A).max() < 10
        assert np.isfinite(sim.vjp(np.ones(6), np.ones(6)).q).all()
    assert any(found)
    sim.step(q - [0, 0, 1e-3, 0, 0, 0, 0], v - [0, 0, 1, 0, 0, 0])
    assert [i.grazing for i in sim.impacts] == [False]


@pytest.mark.parametrize("timestep", [0.01])
def test_rollouts_and_impulses(timestep):
    """A trajectory with impacts in many of its steps: reverse against differences; impulses of the last smooth phase."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.3, restitution=0.7)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.3), name="one")
    scene.add_sphere(0.1, mass=2.0, position=(0.05, 0.02, 0.8), restitution=0.6, name="two")
    sim = coulomb.Simulator(scene.build(), timestep, continuous_collision=True)
    q, v = sim.model.neutral()
    v = v + [0.1, 0.2, 0, 1, 2, 3, 0.1, 0, -1, 0, 0, 1]
    r = sim.rollout(q, v, steps=60)
    random = np.random.default_rng(0)
    dQ, dV = random.normal(size=(2, 61, 12))
    g = r.vjp(dQ, dV, wrt=["mass/one", "restitution/two", "size/one", "friction/ground"])

    def loss(dq, dv):
        at = sim.rollout(sim.model.integrate(q, dq), v + dv, steps=60)
        return sum(dQ[t] @ sim.model.difference(r.q[t], at.q[t]) + dV[t] @ (at.v[t] - r.v[t]) for t in range(61))

    for gradient, is_v in ((g.q0, 0), (g.v0, 1)):
        direction = random.normal(size=12)
        best = np.inf
        for h in (1e-5, 1e-6, 1e-7):
            moved = [
                loss(*((0 * direction, s * direction) if is_v else (s * direction, 0 * direction)))
                for s in (h, -h, h / 2, -h / 2)
            ]
            numeric = (4 * (moved[2] - moved[3]) / h - (moved[0] - moved[1]) / (2 * h)) / 3
            best = min(best, abs(gradient @ direction - numeric) / abs(numeric))
        assert best < 1e-6


def test_impulses_are_differentiated():
    """A box comes to rest on the floor within the step: the force it rests with afterwards."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5, restitution=0)
    scene.add_sphere(0.1, mass=1.5, position=(0, 0, 0.105), name="ball")
    sim = coulomb.Simulator(scene.build(), 0.01, continuous_collision=True)
    q, v = sim.model.neutral()
    v = v + [0.3, 0.1, -1.0, 0.2, 0.3, 0.4]
    tau = np.array([0.1, 0.2, 0.3, 0.01, 0.02, 0.03])
    sim.step(q, v, tau=tau)
    assert len(sim.impacts) == 1 and len(sim.contacts) == 1 and sim.contacts[0].mode != "separating"
    sim.freeze_memory(True)

    def impulse(dq, dv, dtau):
        sim.step(sim.model.integrate(q, dq), v + dv, tau=tau + dtau)
        c = sim.contacts[0]
        return c.frame @ c.impulse

    for k, name in enumerate(("q", "v", "tau")):
        sim.step(q, v, tau=tau)
        analytic = sim.derivatives().dlambda(name)
        numeric = np.empty((3, 6))
        for d in range(6):
            inputs = np.zeros((2, 3, 6))
            inputs[:, k, d] = 1e-5, -1e-5
            numeric[:, d] = (impulse(*inputs[0]) - impulse(*inputs[1])) / 2e-5
        assert analytic == pytest.approx(numeric, abs=1e-6 * max(1, np.abs(numeric).max()))


def test_options_are_checked():
    scene = coulomb.Scene()
    scene.add_sphere(0.1, mass=1.0)
    model = scene.build()
    for name, bad in (("max_impacts", 0), ("penetration_tolerance", 0.0), ("penetration_tolerance", float("nan"))):
        with pytest.raises(ValueError, match=name):
            coulomb.Simulator(model, continuous_collision=True, **{name: bad})
    with pytest.raises(ValueError, match="smoothed_step"):
        coulomb.Simulator(model, continuous_collision=True, gradient="smoothed_step")
    sim = coulomb.Simulator(model, continuous_collision=True, max_impacts=7, penetration_tolerance=1e-6)
    again = coulomb.Simulator(model, **sim.options)
    assert (again.options["continuous_collision"], again.options["max_impacts"]) == (True, 7)
    assert again.options["penetration_tolerance"] == 1e-6


def test_a_step_that_ends_in_impacts_which_nothing_follows():
    """After more than twice max_impacts bodies wait where they are: the last impact, of two balls at the same time, ends the step."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5, restitution=0.5)
    for k, height in enumerate((0.001, 0.002, 0.004, 0.004)):
        scene.add_sphere(0.1, mass=1.0, position=(k, 0, 0.1 + height))
    model = scene.build()
    q, v = model.neutral()
    v[:] = np.tile([0.3, 0.1, -1.0, 0, 0, 0], 4)
    sim = coulomb.Simulator(model, timestep=0.01, continuous_collision=True, max_impacts=1)
    sim.step(q, v)
    assert sim.status.reason.startswith("impact_limit") and len(sim.impacts) == 4
    assert sim.impacts[2].time == sim.impacts[3].time

    # Whichever came first would end the step, so there is no one Jacobian; reverse products are products with the one that there is.
    d = sim.derivatives()
    assert d.ambiguous
    nv = model.nv
    for w in np.random.default_rng(0).normal(size=(8, 2 * nv)):
        g = sim.vjp(w[:nv], w[nv:])
        assert np.r_[g.q, g.v] == pytest.approx(w @ d.A, rel=1e-9, abs=1e-9)
