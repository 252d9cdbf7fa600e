"""coulomb.identify: what it finds lies within the standard errors that it states, and it says what the data do not determine."""

import sys

import numpy as np
import pytest

import coulomb
from coulomb.identify import Inertia, Unknown, Window, fit
from coulomb.identify.problem import Problem
from coulomb.identify.trajectories import Trajectories
from coulomb.identify.unknowns import Unknowns
from coulomb.identify.windows import BoundWindow

scipy_stats = pytest.importorskip("scipy.stats")

ARM = """<mujoco><option timestep="0.005"{gravity}/><worldbody>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping=".1"/>
    <geom type="capsule" size=".04" fromto="0 0 0 0 0 -.4"/>
    <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".1"/>
      <geom name="rod" type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/></body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator></mujoco>"""
PUSH = """<mujoco><option timestep="0.004"/><worldbody><geom name="ground" type="plane" size="5 5 1" friction=".5"/>
  <body name="hand" pos="{hand} 0 .1"><joint name="push" type="slide" axis="1 0 0" damping="1"/>
    <geom name="hand" size=".05" mass=".5" friction="0"/></body>
  <body name="box" pos="0 0 .0999"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1" friction=".5"/></body></worldbody>
  <actuator><motor joint="push"/></actuator></mujoco>"""
ROPE = """<mujoco><option timestep="0.004"/><worldbody><geom name="ground" type="plane" size="5 5 1"/>
  <body name="ball" pos="0 0 2"><joint name="ball" type="ball" damping=".05"/>
    <geom name="ball" type="capsule" size=".03" fromto="0 0 0 .2 .1 -.5"/></body>
  <body name="box" pos="1 0 .0999"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""


def arm(gravity=True):
    return coulomb.load(ARM.format(gravity="" if gravity else ' gravity="0 0 0"'))


ARM_TRUTH = {"mass/lower": 1.3, "joint_damping/shoulder": 0.3, "joint_damping/elbow": 0.2}
ARM_UNKNOWNS = [Unknown("mass/lower", log=True), "joint_damping/shoulder", "joint_damping/elbow"]


def arm_motion(seed=0, noise=1e-3, rows=150):
    """Noisy angles of the arm with ARM_TRUTH under torques."""
    U = np.sin(0.05 * np.arange(rows)[:, None] + np.array([0, 1])) * [3.0, 1.6]
    r = coulomb.Simulator(arm().with_parameters(ARM_TRUTH)).rollout([0.3, -0.2], [0, 0], U)
    return r.q + noise * np.random.default_rng(seed).normal(size=r.q.shape), U


def distance(found, truth):
    """Squared, of the unknowns as they are fitted, in the covariance that is stated: chi-square of as many degrees of freedom."""
    error = found.x - truth
    return float(error @ np.linalg.solve(found.covariance, error))


@pytest.mark.parametrize("hand, continuous_collision", [(-0.15, False), (-0.2, True)], ids=["touching", "with a blow"])
def test_mass_friction_and_damping_in_contact_within_their_errors(hand, continuous_collision):
    # A hand pushes a box over the ground with a known force. Where it has to reach the box first, the time of the blow is part of the step:
    # on the grid of steps it comes in jumps, and one of these twenty fits ends far from the truth (half of them with noise of 1 mm).
    model = coulomb.load(PUSH.format(hand=hand))
    options = {"continuous_collision": continuous_collision}
    names = ["mass/box", "friction/box", "joint_damping/push"]
    truth, noise, every = np.array([1.4, 0.35, 2.0]), 3e-4, 5
    unknowns = [Unknown("mass/box", log=True), Unknown("friction/box", start=0.5), "joint_damping/push"]
    model = model.with_parameters({"friction/ground": 0.05})
    q, v = model.neutral()
    U = 8.0 + 4.0 * np.sin(0.1 * np.arange(100))[:, None]
    r = coulomb.Simulator(model.with_parameters(dict(zip(names, truth))), **options).rollout(q, v, U)
    assert r.q[-1, 1] - r.q[0, 1] > 0.1  # the box slid
    exact = {name: r.output(name)[::every] for name in ("joint_position/push", "position/box")}

    # Twenty times measured: the distances from the truth are distributed as the stated covariance says.
    distances, rng = [], np.random.default_rng(1)
    for _ in range(20):
        noisy = {name: x + noise * rng.normal(size=x.shape) for name, x in exact.items()}
        window = Window(outputs=noisy, output_deviation=dict.fromkeys(noisy, noise), u=U, every=every, start=(q, v))
        found = fit(model, window, unknowns, initial_states=False, loss="linear", **options)
        assert found.converged and not found.undetermined and not found.held
        distances.append(distance(found, [np.log(truth[0]), *truth[1:]]))
    low, high = scipy_stats.chi2.ppf([0.001, 0.999], 60)
    assert low < sum(distances) < high
    assert found.errors["mass/box"] < 0.1 and found.errors["friction/box"] < 0.05


@pytest.mark.parametrize("loss, known", [("linear", True), ("huber", True), ("linear", False), ("huber", False)])
def test_standard_errors_with_unknown_starts(loss, known):
    truth = np.array([np.log(1.3), 0.3, 0.2])
    distances, noises = [], []
    for seed in range(20):
        Q, U = arm_motion(seed)
        found = fit(arm(), Window(q=Q, u=U, deviation=1e-3 if known else None), ARM_UNKNOWNS, loss=loss)
        assert found.converged
        distances.append(distance(found, truth))
        noises.append(found.noise[0]["q"][0])
    low, high = scipy_stats.chi2.ppf([0.001, 0.999], 60)
    assert low < sum(distances) < high
    if not known:
        # The noise that remains: 302 residuals, 7 unknowns; huber knows it to 1/sqrt(0.95) less.
        assert abs(np.mean(noises) / 1e-3 - (1 if loss == "linear" else 1.026)) < 4 / np.sqrt(2 * 295 * 20) + 0.01


def problem(model, windows, unknowns, segment=None, initial_states=True, **options):
    unknowns = Unknowns(model, unknowns)
    bound = [BoundWindow(f"windows[{w}]", x, model, model.timestep, segment) for w, x in enumerate(windows)]
    runs = Trajectories(bound, model, unknowns.names, options)
    return Problem(unknowns, bound, runs, np.full(2 * model.nv, 1e-2), initial_states)


def whole_jacobian(p, x):
    J = np.zeros((p.num_rows, p.size))
    for w, block in enumerate(p.jacobian(x)):
        rows = slice(p.ends[w], p.ends[w + 1])
        J[rows, : p.p], J[rows, p.state_columns(w)] = block[:, : p.p], block[:, p.p :]
    J[np.arange(p.ends[-1], p.num_rows), p.prior] = 1 / p.unknowns.deviation[p.prior]
    return J


def spinning(sizes=(30, 30)):
    """Measurements, far from what is simulated, of a ball joint and a box that slides; the errors of rotations are large."""
    model = coulomb.load(ROPE)
    rng, windows = np.random.default_rng(0), []
    q, v = model.neutral()
    v[:3], v[3:5] = [1.0, 2.0, -1.5], [1.5, 0.4]
    sim = coulomb.Simulator(model)
    for rows in sizes:
        r = sim.rollout(q, v, steps=rows)
        far = [
            model.integrate(x, np.r_[0.6 * rng.normal(size=3), 0.1 * rng.normal(size=3), 0.5 * rng.normal(size=3)])
            for x in r.q
        ]
        names = ["position/box", "orientation/box", "contact_force/box"]
        outputs = {name: r.output(name) + 0.3 * rng.normal(size=r.output(name).shape) for name in names}
        sd = np.r_[np.full(6, 0.5), np.full(3, np.inf)]
        sd[3:6] = 0
        known = np.concatenate([[0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0, np.inf]])
        windows.append(
            Window(q=far, v=r.v, outputs=outputs, substeps=1, deviation=0.1, start=(q, v), start_deviation=known)
        )
    return model, windows


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf2"])
@pytest.mark.parametrize("segment", [None, 11])
def test_the_jacobian_of_residuals(stepper, segment):
    if stepper == "semi_implicit":
        model, windows = spinning()
        unknowns = [Unknown("friction/ground", log=True, deviation=0.5), Inertia("ball"), "joint_placement/ball"]
        p = problem(model, windows, unknowns, segment)
    else:
        Q, U = arm_motion(rows=60)
        windows = [Window(q=Q[::2], u=U[::2], substeps=2), Window(q=Q[:41], u=U[:40], substeps=1)]
        p = problem(
            arm(), windows, [Unknown("mass/lower", log=True), Inertia("upper", diagonal=True)], segment, stepper=stepper
        )
    rng = np.random.default_rng(3)
    x = p.start + 0.02 * p.scale * np.where(np.arange(p.size) < p.p, 1, 5) * rng.normal(size=p.size)
    free = [k for (w, s), place in p.places.items() if s > 0 for k in range(place.start, place.stop)]
    x[free] = 1e-5 * rng.normal(size=len(free))  # boxes stay on the ground
    J = whole_jacobian(p, x)

    # Central differences, extrapolated once. Segments within which contacts change with h have none: they are counted.
    def central(k, h):
        e = np.zeros(p.size)
        e[k] = h
        return (p.residual(x + e) - p.residual(x - e)) / (2 * h)

    compared = 0
    for k in range(p.size):
        h = 2e-6 if k >= p.p else 1e-5
        fine, coarse = central(k, h), central(k, 2 * h)
        numeric = (4 * fine - coarse) / 3
        if np.linalg.norm(fine - coarse) > 1e-5 * (1 + np.linalg.norm(fine)):
            continue  # a kink
        compared += 1
        assert np.linalg.norm(J[:, k] - numeric) < 1e-5 * (1 + np.linalg.norm(numeric)), (k, p.size)
    assert compared > 0.6 * p.size


def test_segments_end_where_the_whole_does():
    Q, U = arm_motion()
    window = Window(q=Q, u=U, deviation=1e-3)
    whole = fit(arm(), window, ARM_UNKNOWNS, tolerance=1e-12)
    parts = fit(arm(), window, ARM_UNKNOWNS, segment=40, continuity=1e-7, tolerance=1e-12)
    assert whole.converged and parts.converged
    errors = np.sqrt(np.diag(whole.covariance))
    assert np.all(np.abs(whole.x - parts.x) < 1e-3 * errors)
    assert np.allclose(np.sqrt(np.diag(parts.covariance)), errors, rtol=1e-3)
    for a, b in zip(whole.starts[0], parts.starts[0]):
        assert np.allclose(a, b, atol=1e-6)


def test_what_the_data_do_not_determine_is_named():
    # Without gravity and torques only damping over inertia is seen, of a single joint.
    model = coulomb.load("""<mujoco><option gravity="0 0 0"/><worldbody><body name="link"><joint name="hinge" axis="0 1 0" damping=".02"/>
        <geom name="rod" type="capsule" size=".04" fromto="0 0 0 .4 0 0"/></body></worldbody></mujoco>""")
    r = coulomb.Simulator(model).rollout([0.0], [3.0], steps=200)
    unknowns = [Inertia("link", diagonal=True), Unknown("joint_damping/hinge", log=True, start=0.03)]
    found = fit(model, Window(q=r.q, deviation=1e-4), unknowns)
    ratio = found.values["joint_damping/hinge"][0] / found.model.mass_matrix(np.zeros(1))[0, 0]
    assert np.isclose(ratio, 0.02 / model.mass_matrix(np.zeros(1))[0, 0], rtol=1e-5)
    assert np.count_nonzero(found.singular_values) == 1 and len(found.undetermined) == 4
    assert all(direction.singular_value == 0 for direction in found.undetermined)

    # Moved in such a direction, the motion stays: damping and inertia change together, or nothing of the inertia about the hinge.
    def motion(x):
        parameters = Unknowns(model, unknowns)
        return coulomb.Simulator(parameters.at(x)).rollout([0.0], [3.0], steps=200).q

    def change(direction):
        return np.abs(motion(found.x + 1e-5 * direction) - motion(found.x)).max()

    damping_alone = change(np.array([0.0, 0, 0, 0, 1]))
    for direction in found.undetermined:
        moved = np.array([direction.components.get(label, 0.0) for label in found.labels])
        assert np.isclose(np.linalg.norm(moved), 1) and change(moved) < 1e-3 * damping_alone
    assert np.isinf(found.errors["joint_damping/hinge"])
    assert "joint_damping/hinge" in str(found) and "not determined" in str(found)

    # One of them known, the others are measured: a prior is enough.
    unknowns = [Unknown("joint_damping/hinge", log=True, start=0.03)]
    assert not fit(model, Window(q=r.q, deviation=1e-4), unknowns).undetermined


def test_friction_that_never_slides_is_named():
    model = coulomb.load(PUSH.format(hand=-0.15))
    q, v = model.neutral()
    window = Window(
        outputs={"position/box": np.tile(q[1:4], (31, 1))}, output_deviation={"position/box": 1e-3}, start=(q, v)
    )
    found = fit(model, window, ["friction/box"], initial_states=False)
    (direction,) = found.undetermined
    assert direction.components == {"friction/box": 1.0}
    assert "not determined: friction/box: nothing that was measured depends on it, unknown starts aside" in str(found)
    assert found.values["friction/box"] == 0.5 and np.isinf(found.errors["friction/box"])

    # A prior then decides by itself.
    prior = Unknown("friction/box", mean=0.7, deviation=0.1)
    found = fit(model, window, [prior], initial_states=False)
    assert np.isclose(found.values["friction/box"][0], 0.7, atol=1e-3)
    assert np.isclose(found.errors["friction/box"], 0.1) and found.undetermined


def test_outliers():
    Q, U = arm_motion()
    bad = np.random.default_rng(5).choice(len(Q), 10, replace=False)
    Q[bad] += 0.2
    truth = np.array([np.log(1.3), 0.3, 0.2])
    window = Window(q=Q, u=U, deviation=1e-3)
    squares = fit(arm(), window, ARM_UNKNOWNS, loss="linear")
    for loss in ("huber", "soft_l1", "cauchy"):
        robust = fit(arm(), window, ARM_UNKNOWNS, loss=loss)
        assert robust.converged and distance(robust, truth) < scipy_stats.chi2.ppf(0.999, 3)
        assert np.abs(robust.x - truth).max() < 0.1 * np.abs(squares.x - truth).max()
        assert set(bad) == set(np.flatnonzero(np.abs(robust.residuals[0]["q"]).max(1) > 50))
    assert distance(squares, truth) > 100


def test_every_kind_that_refuses_negative_values_is_bounded():
    """So that a fit does not try what the model refuses."""
    from coulomb.identify.unknowns import _NOT_NEGATIVE

    text = """<mujoco><option density="1.2" viscosity=".1"/><worldbody><geom name="floor" type="plane" size="1 1 1" friction=".5"/><body pos="0 0 .1">
      <joint name="a" axis="0 1 0" range="-1 1" stiffness="1" damping=".1" armature=".1" frictionloss=".1"/><geom name="g" size=".1" pos=".1 0 0"/></body></worldbody>
      <tendon><fixed name="t" range="-1 1" stiffness="1" damping="1" frictionloss=".1" armature=".1"><joint joint="a" coef="1"/></fixed></tendon>
      <actuator><position joint="a" kp="3" kv=".1"/><velocity joint="a" kv=".1"/><muscle joint="a" lengthrange="0 1"/></actuator></mujoco>"""
    seen = set()
    for model in (coulomb.load(text), coulomb.load(text, softness="file")):
        for name, parameter in model.parameters().items():
            kind = name.split("/")[0]
            if parameter.size > 1 or kind in ("restitution", "pair_restitution"):
                continue
            try:
                model.with_parameters({name: -1.0})
            except ValueError as error:
                assert "must be" in str(error) and kind in _NOT_NEGATIVE, name
                seen.add(kind)
    assert {
        "tendon_armature",
        "muscle_force",
        "joint_limit_dashpot",
        "actuator_kd",
        "viscosity",
        "pair_inertia",
    } <= seen


def test_a_bound_holds():
    Q, U = arm_motion()
    bounded = [Unknown("mass/lower", log=True), Unknown("joint_damping/shoulder", upper=0.25), "joint_damping/elbow"]
    found = fit(arm(), Window(q=Q, u=U, deviation=1e-3), bounded)
    assert found.held == {"joint_damping/shoulder": "upper"} and "at its upper bound" in str(found)
    assert np.isclose(found.values["joint_damping/shoulder"][0], 0.25) and np.isnan(
        found.errors["joint_damping/shoulder"]
    )
    assert 0 < found.errors["mass/lower"] < 0.01


def test_starts_in_the_air_are_refined():
    # A thrown box with a spin, positions and orientations measured, velocities not; its friction acts when it has landed.
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.4)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.5), name="box")
    model = scene.build()
    q, v = model.neutral()
    v[:] = [1, 0.3, 0.5, 1.0, -2.0, 3.0]
    r = coulomb.Simulator(model).rollout(q, v, steps=100)
    rng = np.random.default_rng(0)
    Q = np.array([model.integrate(x, 2e-3 * rng.normal(size=6)) for x in r.q])
    found = fit(model, Window(q=Q, deviation=2e-3), [Unknown("gravity", elements=[2], start=-9.0)])
    assert found.labels == ["gravity[2]"] and abs(found.values["gravity"][2] + 9.81) < 4 * found.errors["gravity[2]"]
    expected = 2e-3 * np.sqrt(720 / 101) / 0.2**2  # of the second derivative of 101 samples of a parabola over 0.2 s
    assert np.isclose(found.errors["gravity[2]"], expected, rtol=0.05) and 0.9 < found.rms < 1.1
    assert np.allclose(found.starts[0][1], v, atol=0.05)


def test_times_inputs_and_forces_agree_with_every_sample():
    # Samples that are missing, and a torque as tau instead of u.
    Q, U = arm_motion()
    kept = np.sort(np.random.default_rng(2).choice(np.arange(1, len(Q)), 60, replace=False))
    kept = np.r_[0, kept]
    by_times = fit(arm(), Window(q=Q[kept], u=U, times=0.005 * kept, deviation=1e-3), ARM_UNKNOWNS)
    by_tau = fit(arm(), Window(q=Q[kept], tau=U, times=0.005 * kept, deviation=1e-3), ARM_UNKNOWNS)
    assert by_times.converged and np.array_equal(by_times.x, by_tau.x)
    assert distance(by_times, [np.log(1.3), 0.3, 0.2]) < scipy_stats.chi2.ppf(0.999, 3)

    # A mass by the force of the ground alone.
    model = coulomb.load(PUSH.format(hand=-0.15))
    q, v = model.neutral()
    r = coulomb.Simulator(model.with_parameters({"mass/box": 1.7})).rollout(q, v, steps=10)
    window = Window(
        outputs={"contact_force/box": r.output("contact_force/box")},
        output_deviation={"contact_force/box": 0.1},
        start=(q, v),
    )
    found = fit(model, window, "mass/box", initial_states=False, segment=4)
    assert np.isclose(found.values["mass/box"][0], 1.7, rtol=1e-6)


def test_same_bits_on_any_number_of_threads():
    Q, U = arm_motion()
    windows = [Window(q=Q[k : k + 51], u=U[k : k + 50], deviation=1e-3) for k in (0, 50, 100)]
    one, two = (fit(arm(), windows, ARM_UNKNOWNS, num_threads=n) for n in (1, 2))
    assert np.array_equal(one.x, two.x) and np.array_equal(one.covariance, two.covariance)


def test_progress_interruption_and_the_last_evaluation():
    Q, U = arm_motion()
    window, told = Window(q=Q, u=U, deviation=1e-3), []
    fit(arm(), window, ARM_UNKNOWNS, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (1, 100) and [done for done, _ in told] == sorted(done for done, _ in told)

    def stop(done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        fit(arm(), window, ARM_UNKNOWNS, progress=stop)
    assert raised.value.fit.status.startswith("interrupted") and not raised.value.fit.converged
    assert raised.value.fit.cost <= raised.value.fit.history[0]

    found = fit(arm(), window, ARM_UNKNOWNS, max_evaluations=2)
    assert not found.converged and "max_evaluations" in found.status and found.evaluations == 2


def test_a_bar_can_be_shown(capsys):
    Q, U = arm_motion()
    fit(arm(), Window(q=Q, u=U, deviation=1e-3), ARM_UNKNOWNS, progress=True)
    assert "evaluation" in capsys.readouterr().err


GOOD = dict(q=np.zeros((11, 2)), u=np.zeros((10, 2)), deviation=1e-3)
NAN = np.zeros((11, 2))
NAN[3, 1] = np.nan


@pytest.mark.parametrize(
    "window, parameters, more, told",
    [
        (GOOD, ["mass/lowr"], {}, "did you mean 'mass/lower'"),
        (GOOD, ["masses"], {}, "masses"),
        (GOOD, [], {}, "names nothing"),
        (GOOD, [3], {}, r"parameters\[0\]: got int"),
        (GOOD, ["mass/lower", "mass/lower"], {}, "'mass/lower' appears twice"),
        (GOOD, ["mass/lower", Inertia("lower")], {}, "same body"),
        (GOOD, [Unknown("mass/lower", lower=5.0)], {}, "starts at 0.96.*outside its bounds 5 to inf"),
        (GOOD, [Unknown("mass/lower", lower=2.0, upper=1.0)], {}, "lower bound 2 is not below the upper 1"),
        (GOOD, [Unknown("gravity", log=True)], {}, "no logarithm"),
        (GOOD, [Unknown("mass/lower", deviation=0.0)], {}, "deviation 0 is not positive"),
        (GOOD, [Unknown("mass/lower", start=np.nan)], {}, "start is"),
        (GOOD, [Unknown("gravity", elements=[3])], {}, r"elements \[3\]"),
        ({**GOOD, "q": NAN}, ["mass/lower"], {}, r"windows\[0\].q\[3, 1\] is nan"),
        (
            {**GOOD, "q": np.zeros((11, 3))},
            ["mass/lower"],
            {},
            r"windows\[0\].q: expected shape \(samples, 2\), got \(11, 3\)",
        ),
        ({**GOOD, "v": np.zeros((5, 2))}, ["mass/lower"], {}, r"windows\[0\].v: expected shape \(11, 2\)"),
        ({**GOOD, "u": np.zeros((9, 2))}, ["mass/lower"], {}, "11 samples reach to row 10, but u has 9"),
        ({**GOOD, "tau": np.zeros((9, 2))}, ["mass/lower"], {}, "u has 10 rows and tau 9"),
        ({**GOOD, "deviation": -1.0}, ["mass/lower"], {}, r"windows\[0\].deviation: got -1.0"),
        ({**GOOD, "every": 0}, ["mass/lower"], {}, "every: got 0"),
        (
            {**GOOD, "times": 0.004 * np.arange(11)},
            ["mass/lower"],
            {},
            r"times\[1\] is 0.004, expected growing multiples of 0.005",
        ),
        ({**GOOD, "start_deviation": -1}, ["mass/lower"], {}, "start_deviation: got -1"),
        ({"u": np.zeros((10, 2))}, ["mass/lower"], {}, r"windows\[0\]: has no data"),
        ({"outputs": {"position/hand": np.zeros((11, 3))}}, ["mass/lower"], {}, "position/hand"),
        ({"outputs": {"position/lower": np.zeros((11, 3))}}, ["mass/lower"], {}, r"windows\[0\].start: is needed"),
        ({**GOOD, "output_deviation": {"position/lower": 1}}, ["mass/lower"], {}, "none of its outputs"),
        (GOOD, ["mass/lower"], {"loss": "squares"}, "loss: got 'squares'"),
        (GOOD, ["mass/lower"], {"threshold": 0}, "threshold: got 0"),
        (GOOD, ["mass/lower"], {"segment": 0}, "segment: got 0"),
        (GOOD, ["mass/lower"], {"continuity": -1}, "continuity: got -1"),
        (GOOD, ["mass/lower"], {"steper": "bdf1"}, "steper"),
        (GOOD, ["timestep"], {"timestep": 1e-3}, "timestep: is one of the parameters"),
        (GOOD, ["mass/lower"], {"timestep": "a"}, "timestep: got 'a', expected a positive number"),
        (GOOD, ["mass/lower"], {"threshold": None}, "threshold: got None"),
        (GOOD, ["mass/lower"], {"tolerance": "a"}, "tolerance: got 'a'"),
        (GOOD, ["mass/lower"], {"continuity": "a"}, "continuity: got 'a', expected positive"),
        ({**GOOD, "deviation": "a"}, ["mass/lower"], {}, r"windows\[0\].deviation: got 'a'"),
        ({**GOOD, "start_deviation": "a"}, ["mass/lower"], {}, r"windows\[0\].start_deviation: got 'a'"),
        ({**GOOD, "times": "a"}, ["mass/lower"], {}, r"windows\[0\].times: got 'a'"),
        ({**GOOD, "q": "a"}, ["mass/lower"], {}, r"windows\[0\].q: got 'a'"),
        ({**GOOD, "start": [0.3]}, ["mass/lower"], {}, r"windows\[0\].start: got \[0.3\], expected a pair"),
        ({**GOOD, "start": ([0, 0], [0, "b"])}, ["mass/lower"], {}, r"windows\[0\].start\[1\]: got .*b"),
        ({**GOOD, "start": ([0, 0], [0])}, ["mass/lower"], {}, r"windows\[0\].start\[1\]: .*\(2,\)"),
        ({**GOOD, "outputs": [1]}, ["mass/lower"], {}, r"windows\[0\].outputs: got list, expected a dict"),
        ({**GOOD, "output_deviation": 1}, ["mass/lower"], {}, r"windows\[0\].output_deviation: got int"),
        (GOOD, [Unknown("mass/lower", start="a")], {}, "unknown 'mass/lower': start: got 'a'"),
        (GOOD, [Unknown(3)], {}, "unknown: got 3, expected the name"),
        (GOOD, [Unknown("gravity", elements=[])], {}, r"unknown 'gravity': elements \[\]"),
        (GOOD, [Unknown("gravity", elements=[0.5])], {}, r"unknown 'gravity': elements \[0.5\]"),
        (GOOD, [Unknown("gravity", elements=["a"])], {}, r"unknown 'gravity': elements \['a'\]"),
        (GOOD, [Inertia("lower", deviation="x")], {}, "unknown 'inertia/lower': deviation: got 'x'"),
    ],
)
def test_bad_input_is_named(window, parameters, more, told):
    with pytest.raises((ValueError, TypeError), match=told):
        fit(arm(), Window(**window), parameters, **more)


def test_nothing_measured_and_things_that_are_no_windows():
    with pytest.raises(ValueError, match="windows is empty"):
        fit(arm(), [], ["mass/lower"])
    with pytest.raises(TypeError, match=r"windows\[0\]: got ndarray"):
        fit(arm(), [np.zeros((3, 2))], ["mass/lower"])
    with pytest.raises(TypeError, match="model: got Simulator"):
        fit(coulomb.Simulator(arm()), Window(**GOOD), ["mass/lower"])


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match=r"pip install 'coulomb\[identify\]'"):
        fit(arm(), Window(**GOOD), ["mass/lower"])


def test_a_simulation_that_overflows_says_so():
    window = Window(q=np.zeros((11, 2)), deviation=1e-3, start=(np.zeros(2), np.full(2, 1e250)))
    with pytest.raises(OverflowError, match=r"windows\[0\]"):
        fit(arm(), window, ["mass/lower"])
