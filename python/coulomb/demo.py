"""``coulomb demo``: a quadruped falls onto the ground and stands; contacts, derivatives, timings beside MuJoCo, pictures."""

from __future__ import annotations

import time
from importlib import metadata
from pathlib import Path

import numpy as np

from . import Scene, Simulator
from .gradients import check_gradients

TIMESTEP = 1e-3
STANDING = np.array([0.0, 0.8, -1.6] * 4)  # hip, thigh, calf of each leg, rad
STIFFNESS, DAMPING = 60.0, 2.0  # N m/rad, N m s/rad
PRESS = 2e-5  # m: the states whose derivatives are checked lie this deep in the ground, off the border of touching
JOSTLE = 0.03  # m/s, rad/s: speed added to the standing robot, off the border of the joints' dry friction


def robot_path(relative):
    """A file of the ``example-robot-data`` package, and the folder where ``package://`` starts. RuntimeError if it is missing."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError as error:
        message = "needs the robots of the 'example-robot-data' package: pip install 'coulomb[demo]'"
        raise RuntimeError(message) from error
    for file in files:
        if str(file).endswith("example-robot-data/robots/" + relative):
            path = Path(file.locate()).resolve()
            return path, path.parents[len(Path(relative).parts) + 1]
    raise RuntimeError(
        f"the installed 'example-robot-data' has no robots/{relative}; version 4 or newer has: pip install -U example-robot-data"
    )


def go1(height=0.42, friction=0.8, **scene_options):
    """Unitree Go1 above the ground: the Model. scene_options: those of Scene."""
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    scene = Scene(timestep=TIMESTEP, **scene_options)
    scene.add_ground(friction=friction)
    scene.add_urdf(path, floating_base=True, position=(0, 0, height), package_dirs=[packages])
    return scene.build()


def joint_targets(model, q, v):
    """The controls of a joint spring and damper that pulls towards STANDING."""
    return STIFFNESS * (STANDING - q[7:]) - DAMPING * v[6:]


def fall_and_stand(model, seconds, report):
    """Simulates; report(time, q, v, sim) after every step. Returns the simulator and the lists of q, v and u."""
    sim = Simulator(model, timestep=TIMESTEP)
    q, v = model.neutral()
    q[7:] = STANDING
    q[3:7] = [np.cos(0.06), np.sin(0.06), 0, 0]  # tilted: one side lands first
    v[0] = 0.6  # m/s forward: the feet slide
    states = []
    for k in range(round(seconds / TIMESTEP)):
        u = joint_targets(model, q, v)
        states.append((q, v, u))
        q, v = sim.step(q, v, u)
        report((k + 1) * TIMESTEP, q, v, sim)
    return sim, states


def _modes(contacts):
    counts = {}
    for contact in contacts:
        counts[contact.mode] = counts.get(contact.mode, 0) + 1
    return ", ".join(f"{count} {mode}" for mode, count in sorted(counts.items())) or "none"


def _microseconds(function, arguments, passes):
    """The fastest pass, per call."""
    best = np.inf
    for _ in range(passes):
        start = time.perf_counter()
        for item in arguments:
            function(*item)
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / len(arguments)


def _coulomb_times(sim, states, passes):
    def step_and_derive(q, v, u):
        sim.step(q, v, u)
        sim.derivatives()

    sim.reset()
    step = _microseconds(sim.step, states, passes)
    return step, _microseconds(step_and_derive, states, passes) - step


def _mujoco_times(model, states, passes):
    """MuJoCo's step and its finite-difference Jacobian on the same states, or None if it is not installed."""
    try:
        import mujoco
    except ImportError:
        return None
    from .mjcf_export import to_mjcf

    mj = mujoco.MjModel.from_xml_string(to_mjcf(model, TIMESTEP))
    data = mujoco.MjData(mj)
    A, B = np.zeros((2 * mj.nv, 2 * mj.nv)), np.zeros((2 * mj.nv, mj.nu))

    def place(q, v, u):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u

    def step(q, v, u):
        place(q, v, u)
        mujoco.mj_step(mj, data)

    def derive(q, v, u):
        place(q, v, u)
        mujoco.mjd_transitionFD(mj, data, 1e-6, False, A, B, None, None)

    return (_microseconds(step, states, passes), _microseconds(derive, states[::8], 1), mujoco.__version__)


def _off_borders(q, v, jostle=0.0):
    lowered = q.copy()
    lowered[2] -= PRESS
    return lowered, v + jostle * np.random.default_rng(0).normal(size=v.size)


def _error_curves(sim, q, v, u):
    """Error of forward and central differences of the state over their step size; the analytic Jacobian is the reference."""
    model = sim.model
    sim.step(q, v, u)
    memory = sim.memory
    sim.freeze_memory(True)
    q1, v1 = sim.step(q, v, u)
    exact = sim.derivatives().A.copy()

    def moved(k, size):
        direction = np.zeros(2 * model.nv)
        direction[k] = size
        a, b = sim.step(model.integrate(q, direction[: model.nv]), v + direction[model.nv :], u)
        return np.concatenate([model.difference(q1, a), b - v1])

    sizes = np.logspace(-2, -10, 33)
    forward, central = [], []
    for size in sizes:
        plus = np.stack([moved(k, size) for k in range(2 * model.nv)], axis=1)
        minus = np.stack([moved(k, -size) for k in range(2 * model.nv)], axis=1)
        forward.append(np.linalg.norm(plus / size - exact) / np.linalg.norm(exact))
        central.append(np.linalg.norm((plus - minus) / (2 * size) - exact) / np.linalg.norm(exact))
    sim.freeze_memory(False)
    sim.memory = memory
    return sizes, forward, central


def _print_jacobians(sim, chosen):
    print("\nJacobian of one step against Richardson-extrapolated central differences (relative Frobenius error)")
    print(f"  {'state':<10} {'contacts':<28} {'dv_dq':>8} {'dv_dv':>8} {'dv_du':>8} {'dv_dtau':>8}   columns compared")
    passed = True
    for label, (q, v, u) in chosen.items():
        check = check_gradients(sim, q, v, u)
        passed = passed and check.passed
        errors = " ".join(f"{check.errors.get(name, np.nan):8.0e}" for name in ("dv_dq", "dv_dv", "dv_du", "dv_dtau"))
        print(f"  {label:<10} {_modes(sim.contacts):<28} {errors}   {check.compared} of {check.columns}")
        for name, index, reason in check.changed[:2]:
            print(f"             left out: {name}[{index}]: {reason}")
    print(
        f"  {'agree to 1e-6' if passed else 'DISAGREE'}"
        f"; states in contact are moved off the borders where two sides differ: {PRESS * 1e6:.0f} µm into the ground, "
        f"standing jostled by {JOSTLE * 100:.0f} cm/s"
    )
    return passed


def _print_times(model, sim, contact_states, passes):
    print(
        f"\nTime per call from Python, µs, over {len(contact_states)} states of the landing and standing (fastest of {passes} passes)"
    )
    step, jacobian = _coulomb_times(sim, contact_states, passes)
    print(f"  {'':<34} {'step':>9} {'Jacobian':>9}")
    print(f"  {'Coulomb, exact cone, analytic':<34} {step:9.1f} {jacobian:9.1f}")
    times = _mujoco_times(model, contact_states, passes)
    if times is None:
        print("  MuJoCo is not installed: pip install mujoco-core")
        return
    print(f"  {'MuJoCo ' + times[2] + ', soft, differences':<34} {times[0]:9.1f} {times[1]:9.1f}")
    print(
        f"  step: {step / times[0]:.2f} of MuJoCo's; step and Jacobian: {(step + jacobian) / times[0]:.2f} of MuJoCo's step; "
        f"Jacobian: {times[1] / jacobian:.0f} times faster than differences"
    )


def run(output, quick=False):
    """The whole demo; pictures into the folder output. Returns 0, or 1 if the robot does not stand or the Jacobian is wrong."""
    start = time.perf_counter()
    model = go1()
    seconds = 1.0 if quick else 2.0
    weight = float(np.sum(model.body_mass) * 9.81)
    print(
        f"Unitree Go1: {model.nv} degrees of freedom, {model.nu} motors, {model.num_geometries} geometries, {model.num_pairs} pairs that may "
        f"touch\nfalls from {model.neutral()[0][2]} m, tilted, at 0.6 m/s; joint springs hold it; step {TIMESTEP * 1e3:g} ms\n"
    )
    print(f"  {'time s':>6} {'height m':>9} {'speed m/s':>9} {'support N':>10}  {'residual':>8}  contacts")
    show = {round(t, 3) for t in (0.001, 0.1, 0.16, 0.18, 0.2, 0.25, 0.3, 0.5, 1.0, 1.5, 2.0)}
    failures, sliding = [], []

    def report(t, q, v, sim):
        modes = [c.mode for c in sim.contacts]
        if not sim.status.converged:
            failures.append((t, sim.status.reason))
        if modes.count("sliding") >= 2:
            sliding.append(round(t / TIMESTEP) - 1)
        if round(t, 3) in show:
            support = sum(abs(c.impulse[2]) for c in sim.contacts) / TIMESTEP
            print(
                f"  {t:6.3f} {q[2]:9.4f} {np.linalg.norm(v[:3]):9.4f} {support:10.1f}  {sim.status.residual:8.0e}  {_modes(sim.contacts)}",
                flush=True,
            )

    sim, states = fall_and_stand(model, seconds, report)
    support = sum(abs(c.impulse[2]) for c in sim.contacts) / TIMESTEP
    stands = abs(support / weight - 1) < 0.05 and states[-1][0][2] > 0.2
    print(
        f"  weight {weight:.1f} N: {'it stands' if stands else 'IT DOES NOT STAND'}; steps not solved as posed: {len(failures)} of {len(states)}"
    )
    for t, reason in failures[:3]:
        print(f"    at {t:.3f} s: {reason}")

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    middle = sliding[len(sliding) // 2] if sliding else len(states) // 5
    chosen = {"in the air": states[50]}
    for label, k, jostle in (("sliding", middle, 0.0), ("standing", len(states) - 1, JOSTLE)):
        q, v, u = states[k]
        chosen[label] = (*_off_borders(q, v, jostle), u)
    # An exact solver, so that differences see the step and not its tolerance.
    exact = Simulator(model, timestep=TIMESTEP, tolerance=1e-14)
    right = _print_jacobians(exact, chosen)
    _print_times(model, sim, states[200:1000], 2 if quick else 5)
    _draw(model, exact, states, middle, chosen, folder)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return 0 if stands and right else 1


def _draw(model, sim, states, middle, chosen, folder):
    try:
        from .pictures import error_picture, scene_picture
    except ImportError as error:
        print(f"\nno pictures: {error}")
        return
    print("\ndrawing ...", flush=True)
    paths = []
    for label, k in (("sliding", middle), ("standing", len(states) - 1)):
        sim.reset()
        for q, v, u in states[max(0, k - 3) : k + 1]:
            sim.step(q, v, u)
        name = folder / f"go1_{label}.png"
        paths.append(scene_picture(model, q, sim.contacts, TIMESTEP, name, f"Go1 {label}, {k * TIMESTEP:.3f} s"))
    curves = {}
    for label in ("sliding", "standing"):
        sizes, forward, central = _error_curves(sim, *chosen[label])
        curves[f"{label}, central"] = (sizes, central)
        if label == "sliding":
            curves[f"{label}, forward"] = (sizes, forward)
    note = (
        f"Above {PRESS * 1e6:.0f} µm the differences step across the border of touching and are wrong;\n"
        "small steps drown in rounding."
    )
    paths.append(
        error_picture(
            curves,
            folder / "jacobian_error.png",
            "Finite differences against the analytic Jacobian of one step",
            "relative difference, Frobenius",
            note,
        )
    )
    for path in paths:
        print(f"  {path}")
