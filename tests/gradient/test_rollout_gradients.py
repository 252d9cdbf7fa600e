"""Derivatives of trajectories: differences of whole rollouts, forward against reverse, the steps one by one."""

import numpy as np
import pytest

import coulomb
from coulomb._differences import noise_of, sizes, slope
from scenes.contacts import CONTACT_SCENES
from scenes.trajectories import TRAJECTORIES, quadruped
from scenes.wedges import solved_or_proved

TOLERANCE = 1e-6
PARAMETERS = {
    "thrown_box": ["mass/box", "com/box", "inertia/box", "friction/box", "gravity", "timestep"],
    "bouncing_balls": ["mass/one", "mass/two", "restitution/ground", "friction/one", "gravity", "timestep"],
    "arm_falls": ["mass/upper", "com/fore", "inertia/fore", "joint_damping/elbow", "joint_stiffness/elbow",
                  "joint_friction/shoulder", "joint_limits/shoulder", "armature/shoulder", "actuator_gain/motor",
                  "joint_placement/elbow", "timestep"],
    "quadruped": ["mass/trunk", "inertia/trunk", "friction/ground", "joint_damping/fl_knee", "armature/fl_hip",
                  "gravity", "geometry_placement/fl_foot", "joint_placement/rr_knee", "size/fl_foot", "timestep"],
}  # fmt: skip

trajectories = pytest.mark.parametrize("build", TRAJECTORIES, ids=lambda f: f.__name__)


def simulator(model, timestep):
    return coulomb.Simulator(
        model.with_parameters({"timestep": timestep})
    )  # the model's own, so that "timestep" moves it


def rollout(build, **options):
    model, q, v, U, h = build()
    sim = simulator(model, h)
    return sim, sim.rollout(q, v, U, **options)


def cotangents(r, seed=0):
    return np.random.default_rng(seed).normal(size=(2, r.steps + 1, r.model.nv))


def gradients_equal(a, b):
    return all(np.array_equal(a[name], b[name]) for name in ("q0", "v0", "u", "tau", *a.parameters))


class Differences:
    """The trajectory from moved inputs, as a tangent vector at the unmoved one; the contacts that act at each step."""

    def __init__(self, build):
        self.model, self.q, self.v, self.U, h = build()
        self.model = self.model.with_parameters({"timestep": h})
        self.sim = coulomb.Simulator(self.model)
        self.tau = np.zeros((len(self.U), self.model.nv))
        self.Q, self.V, self.active = self.run(self.sim, self.q, self.v, self.U, self.tau)

    @staticmethod
    def run(sim, q, v, U, tau):
        sim.reset()
        Q, V, active = [q], [v], []
        for u, t in zip(U, tau):
            before = q
            q, v = sim.step(q, v, u, tau=t)
            assert solved_or_proved(sim, before), sim.status
            active.append([(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts if c.mode != "separating"])
            Q.append(q)
            V.append(v)
        return np.array(Q), np.array(V), active

    def moved(self, size, dq0=None, dv0=None, dU=None, dtau=None, dparameters=None):
        """(T + 1, 2 nv) change of the trajectory; None where another contact acts."""
        sim = self.sim
        if dparameters:
            known = self.model.parameters()
            values = {name: known[name].value + size * np.asarray(d) for name, d in dparameters.items()}
            sim = coulomb.Simulator(self.model.with_parameters(values))
        q = self.q if dq0 is None else self.model.integrate(self.q, size * dq0)
        v = self.v if dv0 is None else self.v + size * dv0
        U = self.U if dU is None else self.U + size * dU
        tau = self.tau if dtau is None else self.tau + size * dtau
        Q, V, active = self.run(sim, q, v, U, tau)
        if active != self.active:
            return None
        return np.hstack([[self.model.difference(a, b) for a, b in zip(self.Q, Q)], V - self.V])

    def noise(self):
        """(T + 1, 2 nv) of what rounding does to the trajectory."""
        tiny = 1e-9 * np.random.default_rng(0).normal(size=(8, 2, self.model.nv))
        return np.maximum(noise_of(lambda d: self.moved(1.0, dq0=d[0], dv0=d[1]), tiny), 1e-16)

    def directional(self, noise, **tangent):
        """(derivative, its error) along a tangent; error inf: contacts change within the least differences."""
        return slope(lambda h: self.moved(h, **tangent), noise, sizes(2.5e-8, 2e-3), 0.1 * TOLERANCE)[:2]


def directions(differences, names, random):
    model, steps = differences.model, len(differences.U)
    yield "q0", {"dq0": random.normal(size=model.nv)}
    yield "v0", {"dv0": random.normal(size=model.nv)}
    if model.nu:
        yield "u", {"dU": random.normal(size=(steps, model.nu))}
    yield "tau", {"dtau": random.normal(size=(steps, model.nv))}
    known = model.parameters()
    for name in names:
        value = known[name].value
        direction = random.normal(size=value.size) * np.maximum(np.abs(value), 0.01)
        yield name, {"dparameters": {name: direction}}


@trajectories
def test_derivatives_against_differences(build):
    """Every state of the trajectory, contacts beginning, sliding, sticking and ending on the way."""
    differences = Differences(build)
    changes = sum(a != b for a, b in zip(differences.active[:-1], differences.active[1:]))
    assert changes >= 3
    r = differences.sim.rollout(differences.q, differences.v, differences.U)
    assert np.array_equal(r.q, differences.Q) and np.array_equal(r.v, differences.V)
    w = np.hstack(cotangents(r))
    errors, unresolved, noise = {}, {}, differences.noise()
    for name, tangent in directions(differences, PARAMETERS[build.__name__], np.random.default_rng(2)):
        forward = np.hstack(r.jvp(**tangent))
        assert np.linalg.norm(forward) > 1e-3, name
        g = r.vjp(*np.hsplit(w, 2), wrt=list(tangent.get("dparameters", {})))
        inputs = {"dq0": g.q0, "dv0": g.v0, "dU": g.u, "dtau": g.tau}
        value = sum(np.sum(inputs[k] * d) for k, d in tangent.items() if k in inputs)
        value += sum(np.sum(g[k] * d) for k, d in tangent.get("dparameters", {}).items())
        assert abs(value - np.sum(w * forward)) <= 1e-10 * np.linalg.norm(w) * np.linalg.norm(forward), name
        numeric, error = differences.directional(noise, **tangent)
        size, off, unknown = np.linalg.norm(numeric), np.linalg.norm(forward - numeric), np.linalg.norm(error)
        if unknown > TOLERANCE * size:
            unresolved[name] = unknown / size if size else np.inf
            assert off <= max(unknown, TOLERANCE * size), name
        else:
            errors[name] = off / size
    print(f"\n{build.__name__}, {changes} changes:", {name: f"{e:.1e}" for name, e in errors.items()}, unresolved)
    assert len(unresolved) <= 2, unresolved
    assert max(errors.values()) <= TOLERANCE, errors


@trajectories
def test_the_remainder_is_of_second_order(build):
    differences = Differences(build)
    r = differences.sim.rollout(differences.q, differences.v, differences.U)
    random = np.random.default_rng(3)
    tangent = {"dq0": random.normal(size=r.model.nv), "dv0": random.normal(size=r.model.nv)}
    linear = np.hstack(r.jvp(**tangent))
    sizes, remainders = [], []
    for h in 10.0 ** np.arange(-5, -7.6, -0.25):
        moved = differences.moved(h, **tangent)
        if moved is None:
            continue
        remainder = np.linalg.norm(moved - h * linear)
        if remainder > 1e-11 * (1 + np.linalg.norm(differences.V[-1])):
            sizes.append(h)
            remainders.append(remainder)
    assert len(sizes) >= 4
    assert np.polyfit(np.log(sizes), np.log(remainders), 1)[0] == pytest.approx(2.0, abs=0.1), list(
        zip(sizes, remainders)
    )


@trajectories
def test_jacobian_holds_the_columns_of_jvp_and_the_rows_of_vjp(build):
    _, r = rollout(build)
    nv, nu, T = r.model.nv, r.model.nu, r.steps
    name = PARAMETERS[build.__name__][2]
    J = r.jacobian(wrt=["q0", name, "v0", "tau"])
    assert list(J) == ["q0", name, "v0", "tau"]
    size = r.model.parameters()[name].size
    assert J["q0"].shape == J["v0"].shape == (T + 1, 2 * nv, nv) and J[name].shape == (T + 1, 2 * nv, size)
    assert J["tau"].shape == (T + 1, 2 * nv, T * nv)
    last = r.jacobian(wrt=["u", "q0", name, "v0", "tau"], all_states=False)
    assert last["u"].shape == (2 * nv, T * nu) and np.array_equal(last["q0"], J["q0"][-1])
    assert np.array_equal(last[name], J[name][-1]) and np.array_equal(last["tau"], J["tau"][-1])
    random = np.random.default_rng(0)
    dq0, dv0, dtau, dtheta = (
        random.normal(size=nv),
        random.normal(size=nv),
        random.normal(size=(T, nv)),
        random.normal(size=size),
    )
    forward = np.hstack(r.jvp(dq0=dq0, dv0=dv0, dtau=dtau, dparameters={name: dtheta}))
    columns = J["q0"] @ dq0 + J["v0"] @ dv0 + J["tau"] @ dtau.ravel() + J[name] @ dtheta
    assert np.linalg.norm(forward - columns) <= 1e-10 * np.linalg.norm(columns)
    w = cotangents(r)
    g, rows = r.vjp(*w, wrt=[name]), np.concatenate(w, axis=1)
    for key in ("q0", "v0", "tau", name):
        expected = np.einsum("tr,trk->k", rows, J[key])
        assert np.linalg.norm(g[key].ravel() - expected) <= 1e-10 * np.linalg.norm(expected), key
    end = np.zeros_like(w)
    end[:, -1] = w[:, -1]
    expected = rows[-1] @ last["u"]
    size = max(np.linalg.norm(expected), 1e-5)  # an arm that has come to lie does not know its controls any more
    assert np.linalg.norm(r.vjp(*end).u.ravel() - expected) <= 1e-10 * size


GRADIENTS = [(build, "exact") for build in CONTACT_SCENES] + [
    (CONTACT_SCENES[0], gradient) for gradient in ("complementarity_aware", "smoothed_collision", "smoothed_step")
]


@pytest.mark.parametrize("build, gradient", GRADIENTS, ids=lambda x: getattr(x, "__name__", x))
def test_products_are_those_of_the_steps(build, gradient):
    """vjp and jvp of single steps, chained by hand: the same bits."""
    random = np.random.default_rng(4)
    model, q, v = build(random)
    samples = {"gradient_samples": 4} if "smoothed" in gradient else {}
    sim = coulomb.Simulator(model, timestep=2e-3, gradient=gradient, **samples)
    T, wrt = 40, [name for name in model.parameters() if name.startswith(("mass/", "friction/", "gravity"))]
    U, tau = 0.3 * random.normal(size=(T, model.nu)), 0.1 * random.normal(size=(T, model.nv))
    r = sim.rollout(q, v, U, tau=tau, checkpoint_every=7)
    dQ, dV = cotangents(r)
    dq, dv, (tU, ttau) = (
        *random.normal(size=(2, model.nv)),
        (random.normal(size=U.shape), random.normal(size=tau.shape)),
    )
    tangents, memories, ambiguous = [np.r_[dq, dv]], [], 0
    start = dq, dv
    sim.reset()
    for t in range(T):
        memories.append(sim.memory)
        q1, v1 = sim.step(r.q[t], r.v[t], U[t], tau=tau[t])
        assert np.array_equal(q1, r.q[t + 1]) and np.array_equal(v1, r.v[t + 1])
        ambiguous += sim.derivatives().ambiguous
        dq, dv = sim.jvp(dq=dq, dv=dv, du=tU[t], dtau=ttau[t])
        tangents.append(np.r_[dq, dv])
    assert np.array_equal(np.hstack(r.jvp(*start, dU=tU, dtau=ttau)), tangents)
    gq, gv, du, dtau = dQ[-1], dV[-1], np.zeros_like(U), np.zeros_like(tau)
    sums = {name: np.zeros(model.parameters()[name].size) for name in wrt}
    for t in reversed(range(T)):
        sim.memory = memories[t]
        sim.step(r.q[t], r.v[t], U[t], tau=tau[t])
        g = sim.vjp(gq, gv, wrt=wrt)
        gq, gv, du[t], dtau[t] = g.q + dQ[t], g.v + dV[t], g.u, g.tau
        for name in wrt:
            sums[name] += g[name]
    g = r.vjp(dQ, dV, wrt=wrt)
    for name, value in {"q0": gq, "v0": gv, "u": du, "tau": dtau, **sums}.items():
        assert np.array_equal(g[name], value), name
    assert g.ambiguous == ambiguous and g.parameters == wrt


@trajectories
def test_checkpoints_change_no_bit(build):
    sim, r = rollout(build, checkpoint_every=1)
    wrt = PARAMETERS[build.__name__][:2]
    w = cotangents(r)
    reference = r.vjp(*w, wrt=wrt)
    assert np.linalg.norm(reference.q0) > 0
    for options in (
        {"checkpoint_every": 7},
        {"checkpoint_every": 64},
        {"checkpoint_every": 1000},
        {},
        {"memory_budget": 4e6},
    ):
        other = rollout(build, **options)[1]
        assert np.array_equal(other.q, r.q) and np.array_equal(other.v, r.v)
        assert other.checkpoint_every == options.get("checkpoint_every", other.checkpoint_every)
        assert gradients_equal(other.vjp(*w, wrt=wrt), reference), options


@trajectories
def test_gradients_change_no_bit_of_what_follows(build):
    model, q, v, U, h = build()
    sim = simulator(model, h)
    r = sim.rollout(q, v, U)
    w = cotangents(r)
    first = r.vjp(*w)
    end = sim.step(r.q[-1], r.v[-1], U[-1] if len(U[-1]) else None)
    again = sim.rollout(q, v, U)
    assert np.array_equal(again.q, r.q) and np.array_equal(again.v, r.v)
    again.vjp(*w)
    again.jvp(dq0=np.ones(model.nv))
    again.jacobian(["q0"])
    following = sim.step(again.q[-1], again.v[-1], U[-1] if len(U[-1]) else None)
    assert np.array_equal(following[0], end[0]) and np.array_equal(following[1], end[1])
    assert gradients_equal(r.vjp(*w), first) and gradients_equal(again.vjp(*w), first)


def test_a_rollout_outlives_its_simulator_and_controls():
    model, q, v, U, h = quadruped()
    sim = simulator(model, h)
    r = sim.rollout(q, v, U)
    w = cotangents(r)
    first = r.vjp(*w)
    U[:] = 7.0
    del sim, model
    assert gradients_equal(r.vjp(*w), first)


def test_frozen_memory_is_replayed_too():
    model, q, v, U, h = quadruped()
    sim = simulator(model, h)
    sim.freeze_memory(True)
    r = sim.rollout(q, v, U)
    w = cotangents(r)
    first = r.vjp(*w)
    sim.freeze_memory(False)
    assert gradients_equal(r.vjp(*w), first)


def test_no_steps():
    model, q, v, U, h = quadruped()
    r = simulator(model, h).rollout(q, v, U[:0])
    w = cotangents(r)
    g = r.vjp(*w, wrt=["mass/trunk"])
    assert np.array_equal(g.q0, w[0, 0]) and np.array_equal(g.v0, w[1, 0]) and np.array_equal(g["mass/trunk"], [0.0])
    assert g.u.shape == (0, 8) and g.tau.shape == (0, 14) and g.converged
    J = r.jacobian(["u", "q0"])
    assert np.array_equal(J["q0"][0, :14], np.eye(14)) and J["u"].shape == (1, 28, 0)


def test_steps_that_did_not_converge_are_told():
    model, q, v, U, h = quadruped()
    sim = coulomb.Simulator(model, timestep=h, solver="pgs", max_iterations=2)
    r = sim.rollout(q, v, U)
    assert not r.converged
    g = r.vjp(*cotangents(r))
    assert not g.converged and not g.status.converged and "max_iterations" in g.status.reason
    assert np.all(np.isfinite(g.q0)) and np.all(np.isfinite(g.u))
    good = rollout(quadruped)[1]
    assert good.vjp(*cotangents(good)).converged


def test_a_gradient_beyond_the_range_is_refused():
    """A pendulum that stands on its pivot for more than a thousand of its time constants."""
    model = coulomb.load(
        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.01' pos='0 0 .01' mass='1'/></body></worldbody>"
        "</mujoco>"
    )
    r = coulomb.Simulator(model, timestep=0.01).rollout([0.0], [0.0], steps=6000)
    dQ = np.zeros((6001, 1))
    dQ[-1] = 1
    with pytest.raises(OverflowError, match="vjp.*step"):
        r.vjp(dQ)
    with pytest.raises(OverflowError, match="jvp.*step"):
        r.jvp(dq0=[1.0])
    with pytest.raises(OverflowError, match="jacobian.*step"):
        r.jacobian(["q0"])


def test_a_step_whose_numbers_overflow_has_no_derivative():
    model = coulomb.load(
        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.01' pos='0 0 .01' mass='1'/></body></worldbody>"
        "</mujoco>"
    )
    tau = np.zeros((5, 1))
    tau[2] = 1e307
    r = coulomb.Simulator(model).rollout([0.0], [0.0], tau=tau)
    assert not r.converged and "overflow" in r.status[2].reason
    for call in (r.vjp, r.jvp, r.jacobian):
        with pytest.raises(RuntimeError, match="step 2"):
            call()


def bad_rows(shape, at, value):
    out = np.zeros(shape)
    out[at] = value
    return out


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda r: r.vjp(bad_rows((11, 14), (3, 2), np.nan), None), r"dQ\[3, 2\] is nan"),
        (lambda r: r.vjp(None, bad_rows((11, 14), (10, 0), -np.inf)), r"dV\[10, 0\] is -inf"),
        (lambda r: r.vjp(np.zeros((10, 14)), None), r"dQ: expected shape \(11, 14\), got \(10, 14\)"),
        (lambda r: r.vjp(None, None, wrt=["mass/nobody"]), "mass/nobody"),
        (lambda r: r.vjp(None, None, wrt=["mass/trunk", "mass/trunk"]), "mass/trunk"),
        (lambda r: r.jvp(dq0=np.full(14, np.nan)), r"dq0\[0\] is nan"),
        (lambda r: r.jvp(dU=bad_rows((10, 8), (1, 0), np.inf)), r"dU\[1, 0\] is inf"),
        (lambda r: r.jvp(dtau=np.zeros((9, 14))), r"dtau: expected shape \(10, 14\)"),
        (lambda r: r.jvp(dparameters={"mass/nobody": 1.0}), "mass/nobody"),
        (lambda r: r.jvp(dparameters={"mass/trunk": [1.0, 2.0]}), "mass/trunk"),
        (lambda r: r.jvp(dparameters={"mass/trunk": np.nan}), "mass/trunk.* is nan"),
        (lambda r: r.jacobian(["q0", "q0"]), "q0"),
        (lambda r: r.jacobian(["q1"]), "q1"),
    ],
)
def test_bad_input_of_derivatives(call, message):
    model, q, v, U, h = quadruped(10)
    with pytest.raises(ValueError, match=message):
        call(simulator(model, h).rollout(q, v, U))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"q0": bad_rows(15, 0, np.nan)}, r"q0\[0\]"),
        ({"v0": bad_rows(14, 0, np.nan)}, r"v0\[0\] is nan"),
        ({"U": bad_rows((10, 8), (1, 0), np.inf)}, r"U\[1, 0\] is inf"),
        ({"tau": bad_rows((10, 14), (9, 13), np.nan)}, r"tau\[9, 13\] is nan"),
        ({"tau": np.zeros((9, 14))}, "tau has 9 rows"),
        ({"steps": 9}, "steps: got 9, but U has 10 rows"),
        ({"checkpoint_every": 0}, "checkpoint_every: got 0"),
        ({"checkpoint_every": -3}, "checkpoint_every: got -3"),
        ({"memory_budget": -1}, "memory_budget: got -1"),
        ({"memory_budget": np.nan}, "memory_budget: got nan"),
        ({"memory_budget": 1000}, "memory_budget: got 1000 bytes, the states"),
        ({"memory_budget": 20000}, "memory_budget: got 20000 bytes, 10 steps with their checkpoints need"),
        ({"memory_budget": 1e9, "checkpoint_every": 5}, "memory_budget.*checkpoint_every"),
        ({"progress": 3}, "progress"),
    ],
    ids=str,
)
def test_bad_input_of_a_rollout_leaves_the_simulator_alone(change, message):
    model, q, v, U, h = quadruped(10)
    sim = simulator(model, h)
    sim.step(q, v, U[0])
    A = sim.derivatives().A.copy()
    with pytest.raises((ValueError, TypeError), match=message):
        sim.rollout(**{"q0": q, "v0": v, "U": U, **change})
    if "need" not in message:  # known after the first steps only
        assert np.array_equal(sim.derivatives().A, A)


def test_an_item_that_was_not_asked_for():
    r = rollout(quadruped)[1]
    with pytest.raises(KeyError, match="mass/trunk: not among the parameters of wrt"):
        r.vjp()["mass/trunk"]


def test_a_derivative_that_overflows_is_refused_whatever_its_column():
    """A pendulum that stays upright, beside a slide that nothing moves: only the derivative by the pendulum grows, by what e^(3.1 t) grows."""
    body = "<geom size='.1' pos='0 0 1' contype='0' conaffinity='0'/>"
    slide = f"<body><joint name='slide' type='slide' axis='1 0 0'/>{body}</body>"
    upright = f"<body><joint name='upright' axis='0 1 0'/>{body}</body>"
    for first, second, free in ((slide, upright, "slide"), (upright, slide, "slide")):
        model = coulomb.load(f"<mujoco><worldbody>{first}{second}</worldbody></mujoco>")
        r = coulomb.Simulator(model, timestep=0.1).rollout(*model.neutral(), steps=2600)
        assert not r.v.any() and not r.q.any()
        for wrt in ("q0", "v0", "tau"):
            with pytest.raises(
                OverflowError, match="jacobian: the derivative grows beyond the range of double at step"
            ):
                r.jacobian(wrt=[wrt], all_states=False)
        d = model.joint_v[model.joint_names.index(free)]
        weights = np.zeros((2601, 2))
        weights[-1, d] = 1
        assert r.vjp(dV=weights).v0[d] == 1
        with pytest.raises(OverflowError, match="vjp: the derivative grows"):
            r.vjp(dV=weights[:, ::-1])
