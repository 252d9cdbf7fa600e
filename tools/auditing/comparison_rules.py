"""Rules that compare a run with another one that must be the same: beside far company, seen otherwise, at a smaller step, from other memory, in MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import coulomb

from .drafts import IDENTITY, Body, Draft, Joint, Shape, View, any_quaternion, to_mjcf, turn
from .measures import Measure, rule
from .mechanism_scenes import loops
from .trials import HARD, IMPLICIT

FAR = 200.0  # m, to the company
COMPANY_STEPS = 60
SYMMETRY = (
    1e-7  # of the velocity after a step: redundant sliding contacts are known to 1e-10, times the condition of a scene
)
MEMORY = 1e-5  # likewise, that the memory of the step before may change
DERIVATIVE = 1e-5
LARGEST_SLOPE = 1e12  # of a cotangent that is "from_distance"
FALLS = 0.4  # to this share, at a quarter of the step: a quarter, and higher orders
USUAL_HALVINGS = 4  # of a time step, of which three ratios of errors are known
MOST_HALVINGS = 9  # where these do not yet show the order
ROUNDED_ERROR = 1e-9  # of coordinates: the order of less is not asked for
MUJOCO_STEP = 2e-4
MUJOCO_SHARE, MUJOCO_LENGTH = 0.05, 4e-3  # of the way gone, and m: what the order of both steps leaves
MUJOCO_ERRORS = 4.0  # times what half of MuJoCo's step changes: soft contact creeps in proportion to it


def company(random, at):
    """(what it is, draft): a thing that stands, lies, swings, spins, slides, or cannot be solved, far away at a point."""
    at = np.asarray(at)
    choice = str(random.choice(["standing", "pile", "spring", "thrown", "wedged", "loop", "sliding"]))
    draft = Draft()
    if choice == "loop":
        draft = loops(random)
        shift = View(shift=tuple(at))
        for body in draft.bodies:
            body.position = shift.point(body.position)
            body.joint.anchor = shift.point(body.joint.anchor)
            for shape in body.shapes:
                shape.position = shift.point(shape.position)
        draft.connects = [(a, b, shift.point(p)) for a, b, p in draft.connects]
        return choice, draft
    if choice != "thrown":
        draft.fixed.append(Shape("box", (2, 2, 0.1), at - [0, 0, 0.1], friction=0.5, name="slab"))
    if choice == "wedged":
        for side in (1, -1):
            wall = Shape("box", (0.05, 0.5, 0.5), at + [side * 0.14, 0, 0.5], friction=0.5, name=f"wall{side}")
            draft.fixed.append(wall)
        draft.free("ball", "sphere", (0.1,), 1.0, at + [0, 0, 0.4])
    elif choice == "spring":
        bob = at + [0, 0, 0.5]
        joint = Joint("slide", (0, 0, 1), bob, stiffness=100.0, damping=1.0, start=0.1, name="bob")
        draft.bodies.append(Body("bob", [Shape("box", (0.1, 0.1, 0.1), bob, name="bob")], joint, None, bob))
    else:
        spin = random.normal(size=3) * 10 if choice == "thrown" else np.zeros(3)
        velocity = (*(random.normal(size=3) * [1, 1, 0] * (choice in ("thrown", "sliding"))), *spin)
        for k in range(3 if choice == "pile" else 1):
            draft.free(f"box{k}", "box", (0.1, 0.15, 0.05), 1.0, at + [0, 0, 0.05 + 0.1 * k], IDENTITY, velocity)
    return choice, draft


@rule("company", "far company changes no bit")
def bits(trial):
    random = trial.random("company")
    normals = [turn(s.quaternion, (0, 0, 1)) for s in trial.draft.fixed if s.kind == "plane"]
    up = np.sum(normals, axis=0) if normals else np.array([1.0, 0.3, 0.5])
    words, other = company(random, FAR * up / np.linalg.norm(up))
    first = bool(random.random() < 0.3)
    crowd = trial.build(company=other, first=first)  # seen in the same view
    alone, steps = trial.record, min(COMPANY_STEPS, trial.steps)
    sim, q, v = trial.simulator(crowd), crowd.q, crowd.v
    for k in range(1, min(steps, len(alone.q) - 1) + 1):
        q, v = sim.step(q, v, crowd.u)
        if trial.law == "split" and any("far_" in str(impact) for impact in sim.impacts):
            break  # impacts cut the step for all
        here, there = crowd.bits(q, v), trial.built.bits(alone.q[k], alone.v[k])
        if not np.array_equal(here, there):
            size = float(np.abs(here - there).max())
            note = f"{words}{' first' if first else ''}: differs from step {k} on, by {size:.2g} in it"
            return Measure(max(size, 5e-324), 0.0, note)
    return Measure(0.0, 0.0)


def _views(random, trial):
    """Two named views beside the trial's own; pyramids are fixed in space and on one of the two bodies, so that those of `lcp` may only be moved."""
    plain = trial.view
    moved = replace(plain, shift=tuple(random.normal(size=3)))
    if trial.law == "lcp":
        return {"moved": moved}
    views = {
        "moved": moved,
        "in reverse order": replace(plain, reverse=True),
        "turned": replace(plain, quaternion=tuple(any_quaternion(random))),
        "mirrored": replace(plain, mirror=True),
    }
    chosen = random.choice(list(views), 2, replace=False)
    return {words: views[words] for words in chosen}


@rule("symmetry", "mirror, turn, translation and order of bodies change a step by rounding")
def symmetry(trial):
    record, random, worst = trial.record, trial.random("symmetry"), (0.0, "")
    plain = trial.simulator(trial.built)
    for words, view in _views(random, trial).items():
        other = trial.build(view=view)
        sim = trial.simulator(other)
        for k, _ in record.samples:
            if k >= len(record.q) or not np.abs(record.v[k]).max(initial=0) < 1e6:
                continue
            plain.reset(), sim.reset()
            q, v = plain.step(record.q[k], record.v[k], trial.built.u)
            if not plain.status.converged or _is_kink(plain, trial.law):
                continue
            q1, v1 = other.state_of(record.q[k], record.v[k], trial.built)
            q1, v1 = sim.step(q1, v1, other.u)
            speeds, speeds1 = trial.built.motion(q, v)[1], other.motion(q1, v1)[1]
            scale = 1 + np.abs(speeds).max(initial=0)
            worst = max(worst, (float(np.abs(speeds - speeds1).max(initial=0)) / scale, f"{words}, row {k}"))
    return Measure(worst[0], SYMMETRY, worst[1])


def _is_kink(sim, law):
    """Whether the step says that it jumps or has no single derivative here: then rounding decides, too."""
    if law in IMPLICIT or law == "penalty":
        return False
    return bool(sim.derivatives().ambiguous)


@rule("memory", "what a step remembers changes it by little")
def memory(trial):
    if trial.law not in HARD:
        return None
    warm, cold, worst = trial.simulator(), trial.simulator(), (0.0, 0)
    for k, remembered in trial.record.samples:
        if k >= len(trial.record.q):
            continue
        warm.memory = remembered
        _, v = warm.step(trial.record.q[k], trial.record.v[k], trial.built.u)
        cold.reset()
        _, v1 = cold.step(trial.record.q[k], trial.record.v[k], trial.built.u)
        if warm.status.converged and cold.status.converged and not _is_kink(cold, trial.law):
            worst = max(worst, (float(np.abs(v - v1).max() / (1 + np.abs(v).max())), k))
    return Measure(worst[0], MEMORY, f"row {worst[1]}")


@rule("order", "halving the step converges at the order of the stepper")
def order(trial):
    draft = trial.draft
    if not draft.smooth or trial.law in ("lcp", "soft", "penalty"):
        return None
    horizon = min(draft.horizon, 0.25)
    bound = 0.45 if trial.law == "bdf2" else 0.7
    ends, errors = [], []
    for halvings in range(MOST_HALVINGS + 1):
        h = draft.timestep / 2**halvings
        record = trial.run(trial.built, round(horizon / h), h)
        ends.append(trial.built.motion(record.q[-1], record.v[-1])[0])
        if halvings == 0:
            continue
        errors.append(float(np.abs(ends[-1] - ends[-2]).max()))

        # The order is that of small steps: stiff springs, which long implicit steps damp, are resolved late.
        ratios = [b / a for a, b in zip(errors, errors[1:]) if a < 0.05 and b > ROUNDED_ERROR]
        if halvings < USUAL_HALVINGS or (len(ratios) >= 2 and min(ratios[-2:]) > bound and errors[-1] > ROUNDED_ERROR):
            continue
        break
    if len(ratios) < 2 or errors[-1] <= ROUNDED_ERROR:
        return None
    return Measure(min(ratios[-2:]), bound, "errors " + ", ".join(f"{e:.2g}" for e in errors))


@rule("twin", "the same scene said otherwise moves the same way")
def twin(trial):
    if trial.draft.twin is None or trial.law not in HARD:
        return None
    other = trial.build(draft=trial.draft.twin)
    record, again = trial.record, trial.run(other, trial.steps)
    rows = min(len(record.v), len(again.v))
    error = np.abs(record.v[:rows] - again.v[:rows]).max(axis=1)
    return Measure(
        float(error.max()),
        trial.draft.twin_tolerance,
        f"first above at row {int((error > trial.draft.twin_tolerance).argmax())}",
    )


@rule("mujoco", "MuJoCo with stiff contact and small steps ends near")
def in_mujoco(trial):
    draft = trial.draft
    if not draft.compare or trial.law not in ("ncp", "split"):
        return None
    # With contact this stiff some boxes chatter in MuJoCo: then its results at different time steps disagree.
    runs = [_ended_in_mujoco(trial, MUJOCO_STEP / part) for part in (1, 2, 4)]
    *coarser, finer = (end for end, _ in runs)
    rows = min(round(draft.compare / draft.timestep), len(trial.record.q) - 1)
    if any(lifted for _, lifted in runs) and all(trial.record.contacts[:rows]):
        return None  # MuJoCo's convex cone adds normal force to what slides, and throws it off

    path = [trial.built.motion(q, v)[0] for q, v in zip(trial.record.q[: rows + 1 : 5], trial.record.v)]
    here, _ = trial.built.motion(trial.record.q[rows], trial.record.v[rows])
    way = np.abs(np.diff(path, axis=0)).sum(axis=0).max(initial=0)
    own = max(float(np.abs(_same_side(there, finer) - finer).max()) for there in coarser)
    error = float(np.abs(_same_side(here, finer) - finer).max())
    bound = MUJOCO_SHARE * way + MUJOCO_LENGTH + MUJOCO_ERRORS * own
    note = f"way {way:.2g}, MuJoCo's own error {own:.2g}"
    if error <= bound:
        return Measure(error, bound, note)

    # Of the step's own error, too, only what does not fall with the step counts.
    record = trial.run(trial.built, round(4 * draft.compare / draft.timestep), draft.timestep / 4)
    here, _ = trial.built.motion(record.q[-1], record.v[-1])
    quarter = float(np.abs(_same_side(here, finer) - finer).max())
    return Measure(
        quarter if quarter < FALLS * error else error, bound, f"{note}; at a quarter of the step {quarter:.2g}"
    )


def _ended_in_mujoco(trial, step):
    """(coordinates after draft.compare seconds, whether at some time nothing touched)."""
    import mujoco

    stiff = 'integrator="implicitfast" cone="elliptic" impratio="100" iterations="200"'
    model = mujoco.MjModel.from_xml_string(to_mjcf(trial.draft, trial.view, stiff))
    model.opt.timestep = step
    solref, solimp = [2 * step, 1], [0.99, 0.9999, 0.001, 0.5, 2]
    for kind in ("eq", "jnt", "geom"):
        getattr(model, f"{kind}_solref")[:], getattr(model, f"{kind}_solimp")[:] = solref, solimp
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = trial.built.q, trial.built.v, trial.built.u
    lifted = False
    for _ in range(round(trial.draft.compare / step)):
        mujoco.mj_step(model, data)
        lifted = lifted or data.ncon == 0
    return trial.built.motion(data.qpos, data.qvel)[0], lifted


def _same_side(here, there):
    """Quaternions and their opposites are the same attitude; a difference of two in any entry is one of these."""
    return np.where(np.abs(here - there) > np.abs(here + there) + 0.5, -here, here)


@rule("derivative", "derivatives are those of the step, in a sample of states")
def derivative(trial):
    if trial.seed % 4 or trial.built.model.nv > 14 or not trial.record.samples:
        return None
    k, remembered = trial.record.samples[trial.seed // 4 % len(trial.record.samples)]
    if k >= len(trial.record.q) or not np.abs(trial.record.v[k]).max(initial=0) < 1e6:
        return None
    sim = trial.simulator(tolerance=1e-13)
    q, v, u = trial.record.q[k], trial.record.v[k], trial.built.u
    sim.step(q, v, u)
    if not sim.status.converged or _is_kink(sim, trial.law):
        return None
    sim.reset()
    check = coulomb.check_gradients(sim, q, v, u if len(u) else None, tolerance=DERIVATIVE)
    return Measure(check.max_error, DERIVATIVE, f"row {k}, {check.compared} of {check.columns} columns compared")


@rule("from_distance", "gradients that feel gaps are finite and bounded")
def from_distance(trial):
    if trial.law != "ncp":
        return None
    sim, worst = trial.simulator(gradient="from_distance", gradient_scale=0.1), 0.0
    for k, _ in trial.record.samples:
        if k >= len(trial.record.q) or not np.abs(trial.record.v[k]).max(initial=0) < 1e6:
            continue
        sim.reset()
        q, v = sim.step(trial.record.q[k], trial.record.v[k], trial.built.u)
        g = sim.vjp(np.ones(len(v)), np.ones(len(v)))
        numbers = np.concatenate([g.q, g.v, g.u, g.tau])
        worst = max(worst, float(np.abs(numbers).max(initial=0)) if np.isfinite(numbers).all() else np.inf)
    return Measure(worst, LARGEST_SLOPE)
