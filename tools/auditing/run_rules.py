"""Rules that look at one run: numbers, statuses, energy, momentum, rest, overlaps, the contact law.

Each bound says where it is from. None comes from another simulator or from a smaller step.
"""

from __future__ import annotations

import numpy as np

from .drafts import turn
from .energy import BAUMGARTE, FASTEST_CORRECTION, Energy
from .measures import Measure, rule
from .trials import HARD, IMPLICIT

ROUNDING = 1e-11  # of velocities, relative: thousands of steps of 1e-15 each
CORRECTION_FACTOR = (
    20.0  # times the natural energy that corrections may add: ten times in a step, and what the step before left
)
JOINTED_RISE = 0.03  # of the energy that was turned over: forces that turn with the motion, to the order of the step
QUARTER_RISE = 0.1  # likewise, at a quarter of the step, of an error that falls with the step
FALLS = 0.4  # to this share, at a quarter of the step: a quarter, and higher orders
LOOSE_RISE = 0.05  # likewise, of free bodies: plain steps of cans that wobble were seen to gain .034 at 2 ms
EXPLODED = 2.0  # likewise: more is no error of a step
EXACT_RESIDUAL = 1e-4  # docs/conventions.md, "What a step solves": of all but the worst steps
UNSOLVED_SHARE = 0.01  # of steps of scenes that always have a solution
SPIN = 1e-2  # the error of a spin counts to this share: 1e-9 is allowed
SPIN_IMPLICIT = 1e-5  # of implicit steps its growth alone, of which .01 is allowed: they lose
IMPULSE_FACTOR = 1e4  # times the momentum that a scene has or is asked for: a lever of a hundred at both sides
LAW = 1e-3  # relative to the largest impulse and speed of contacts alone, of the law recomputed from what a simulator reports
KINKS = 4.1e-6  # m, docs/theory/step.md (S7)
LAW_STEPS = 60  # of a run, at which it is
ROUNDED_IMPULSE = 1e-9  # of the largest of a run: less than that is none
ABOUT_TO_LEAVE = 0.1  # of the median force: in three steps of 1 ms a tenth of a weight moves a body by 5 micrometres


@rule("finite", "numbers are finite, and a step that was not solved says why")
def finite(trial):
    record = trial.record
    bad = ~(np.isfinite(record.q).all(axis=1) & np.isfinite(record.v).all(axis=1))
    silent = sum(not s.converged and s.reason in ("", "solved") for s in record.statuses)
    return Measure(float(bad.sum() + silent), 0.0)


@rule("unsolved", "scenes that have a solution are solved")
def unsolved(trial):
    draft = trial.draft
    if draft.jam or any(b.joint is not None and b.joint.limits is not None for b in draft.bodies) or draft.welds:
        return None
    reasons = [s.reason for s in trial.record.statuses if not s.converged]
    if draft.loop:
        # Where the links of a loop lie in line, an error across them is out of reach for some steps.
        reasons = [reason for reason in reasons if "out of reach" not in reason]
    return Measure(len(reasons) / len(trial.record.statuses), UNSOLVED_SHARE, reasons[0] if reasons else "")


@rule("exact_residual", "a step that says solved has a small residual of the problem without compliance")
def exact_residual(trial):
    if trial.law not in HARD:
        return None
    worst = max(((s.exact_residual, k) for k, s in enumerate(trial.record.statuses) if s.converged), default=(0.0, 0))
    return Measure(worst[0], EXACT_RESIDUAL, f"step {worst[1]}")


@rule("impulse", "impulses of steps that say solved are bounded by the momentum that is there or asked for")
def impulse(trial):
    if trial.law not in HARD:
        return None
    record, draft, h = trial.record, trial.draft, trial.draft.timestep
    mass = float(np.sum(trial.built.model.body_mass))
    force = mass * np.linalg.norm(draft.gravity) + sum(s.force or abs(s.u) * max(1.0, s.kp) for s in draft.servos)
    worst = (0.0, 0)
    for k, (status, contacts) in enumerate(zip(record.statuses, record.contacts)):
        if not status.converged or not contacts:
            continue
        speed = np.abs(record.v[k : k + 2]).max() + min(
            BAUMGARTE * max(max(c.depth for c in contacts), 0) / h, FASTEST_CORRECTION
        )
        there = mass * max(speed, 1e-3) + h * force
        worst = max(worst, (max(np.linalg.norm(c.impulse) for c in contacts) / there, k))
    return Measure(worst[0], IMPULSE_FACTOR, f"step {worst[1]}")


@rule(
    "energy",
    "nothing but motors adds energy: kinetic + potential + servos + springs never rises, at a quarter of the step at least",
)
def energy(trial):
    if trial.kind in ("overlaps", "jams") and trial.law not in HARD:
        return None  # overlaps of the start are energy of springs
    share, note = _rise(trial, trial.record, trial.draft.timestep)
    loose = all(b.joint.kind == "free" for b in trial.draft.bodies)
    bound = LOOSE_RISE if loose else JOINTED_RISE
    if share <= bound or (loose and trial.law in HARD) or share > EXPLODED:
        return Measure(share, bound, note)

    # Of joints and springs, the error of a step falls with it, and then may be larger; what does not fall is no such error.
    finer = trial.run(trial.built, 4 * trial.steps, trial.draft.timestep / 4)
    quarter, _ = _rise(trial, finer, trial.draft.timestep / 4)
    falls = quarter < FALLS * share
    note = f"{note}; at a quarter of the step {quarter:.2g} of it"
    return Measure(quarter, QUARTER_RISE, note) if falls else Measure(share, bound, note)


def _rise(trial, record, h):
    """(share, words): by how much of what was turned over the energy rose above its least value before, beyond what corrections may bring."""
    account = Energy(trial.built)
    euler = trial.law not in ("split", *IMPLICIT)
    springs = trial.law in ("penalty", *IMPLICIT)  # limits and equalities are some: what they take they give back
    natural, start, turnover, lowest, worst = 0.0, None, 1e-9, (np.inf, 0.0), (-np.inf, 0, 0.0)
    stride = max(1, len(record.statuses) // 250)
    for k in range(len(record.q)):
        if k > 0:
            natural = max(natural, account.natural(record.q[k - 1], record.contacts[k - 1], h))
        if k % stride and k != len(record.q) - 1:
            continue
        kinetic, potential = account.parts(record.q[k], record.v[k])
        potential += account.stored(record.q[k]) if springs else 0.0
        power = account.power(record.q[k], record.v[k])
        total = kinetic + potential + (0.5 * h * power if euler else 0.0)
        start = kinetic + potential if start is None else start
        turnover = max(turnover, kinetic if k == 0 else 0.0, start - potential)
        lowest = min(lowest, (total, power))
        order = 0.0 if euler else 0.55 * h * (abs(power) + abs(lowest[1]))
        allowed = order + CORRECTION_FACTOR * natural + account.brought() * k * h + 1e-9
        worst = max(worst, ((total - lowest[0] - allowed) / turnover, k, total - lowest[0]))
    note = (
        f"{worst[2]:.3g} J gained by step {worst[1]}, turned over {turnover:.3g} J, natural correction {natural:.2g} J"
    )
    return worst[0], note


def _free(trial, name):
    """First index in q and in v of a free body."""
    model = trial.built.model
    j = model.joint_names.index(f"{name}_free")
    return model.joint_q[j], model.joint_v[j]


@rule("untouched", "what never touches anything keeps its momentum, minus gravity")
def untouched(trial):
    if not trial.draft.untouched:
        return None
    record, worst, gravity = trial.record, (0.0, ""), trial.view.vector(trial.draft.gravity)
    times = trial.draft.timestep * np.arange(len(record.q))[:, None]
    tolerance = 1e-7 if trial.law in IMPLICIT else ROUNDING
    for name in trial.draft.untouched:
        _, d = _free(trial, name)
        linear = record.v[:, d : d + 3] - record.v[0, d : d + 3] - times * gravity
        scale = 1 + np.abs(record.v[:, d : d + 3]).max()
        worst = max(worst, (np.abs(linear).max() / scale, f"{name}, velocity"))
        spin = record.v[:, d + 3 : d + 6]
        if not spin[0].any():
            worst = max(worst, (np.abs(spin).max(), f"{name}, spin"))
        else:
            changed, grown = _spin_errors(trial, trial.record, name)
            part = SPIN_IMPLICIT * grown if trial.law in IMPLICIT else SPIN * changed

            # bdf2 grows by the third power of the angle in a step: at a quarter of it there is next to nothing left.
            if trial.law == "bdf2" and part > tolerance:
                finer = trial.run(trial.built, 4 * (len(record.q) - 1), trial.draft.timestep / 4)
                changed, grown = _spin_errors(trial, finer, name)
                part = SPIN_IMPLICIT * grown
            worst = max(worst, (part, f"{name}, energy or angular momentum of the spin: {changed:.2g} of it"))
    return Measure(worst[0], tolerance, worst[1])


def _inertia(model, body):
    xx, xy, yy, xz, yz, zz = model.body_inertia[body]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _spin_errors(trial, record, name):
    """Relative changes of energy and of the size of the angular momentum: the largest, and the largest growth."""
    model, (_, d) = trial.built.model, _free(trial, name)
    inertia = _inertia(model, model.body_names.index(name))
    spin = record.v[:, d + 3 : d + 6]
    momentum = spin @ inertia
    ratios = np.array([(spin * momentum).sum(axis=1), np.linalg.norm(momentum, axis=1)])
    changes = ratios / ratios[:, :1] - 1
    return float(np.abs(changes).max()), float(changes.max())


@rule("momentum", "bodies in empty space keep their momentum together; balls their angular momentum, too")
def momentum(trial):
    if not trial.draft.isolated:
        return None
    model, record = trial.built.model, trial.record
    linear, angular, size = np.zeros((len(record.q), 3)), np.zeros((len(record.q), 3)), 1e-9
    for body in trial.draft.bodies:
        a, d = _free(trial, body.name)
        b = model.body_names.index(body.name)
        p = model.body_mass[b] * record.v[:, d : d + 3]
        own = record.v[:, d + 3 : d + 6] @ _inertia(model, b)
        linear += p
        arms = np.cross(record.q[:, a : a + 3], p)
        angular += arms + [turn(q[a + 3 : a + 7], x) for q, x in zip(record.q, own)]
        size += np.abs(arms).max() + np.abs(own).max()
    drift = np.abs(linear - linear[0]).max() / (np.sum(model.body_mass) * np.abs(record.v).max())
    tolerance = 1e-7 if trial.law in IMPLICIT else 1e-9
    tied = trial.draft.connects or trial.draft.welds
    if trial.law in (*HARD, "soft") and not tied and all(b.shapes[0].kind == "sphere" for b in trial.draft.bodies):
        # Of others, attitudes belong half a step later than spins, and springs push where bodies are at the end of the step: to the order of the step.
        drift = max(drift, np.abs(angular - angular[0]).max() / size)
    return Measure(float(drift), tolerance)


@rule("plane", "a link on a planar joint moves in the plane of its axis")
def plane(trial):
    if trial.draft.plane_axis is None:
        return None
    axis, gravity = np.array(trial.draft.plane_axis), np.array(trial.draft.gravity)
    h, steps = trial.draft.timestep, len(trial.record.q) - 1
    positions, _ = trial.built.model.body_placements(trial.record.q[-1])
    fallen = 0.5 * (gravity - (gravity @ axis) * axis) * (h * steps) ** 2
    return Measure(float(np.abs(positions[-1] - fallen).max()), 2 * h * 9.81 * h * steps, f"axis {axis.round(3)}")


@rule("still", "what stands stays")
def still(trial):
    if not trial.draft.still or trial.law not in HARD:
        return None
    speed = np.abs(trial.record.v[len(trial.record.v) // 4 :]).max(axis=1)
    return Measure(float(speed.max()), 1e-8, f"row {int(speed.argmax())}")


@rule("depth", "bodies end no deeper in one another than the kind allows, at a quarter of the step at least")
def depth(trial):
    draft, record = trial.draft, trial.record
    if trial.law not in HARD or draft.jam:
        return None
    if draft.probes:
        return Measure(_probed(trial), draft.deepest, "of all pairs, those too that the simulator leaves out")
    worst = _deepest_at_the_end(record)
    if worst <= draft.deepest or worst > EXPLODED * draft.deepest:
        return Measure(worst, draft.deepest, "in the last quarter")

    # A coin that falls flat goes round faster than any step follows: its depth falls with the step, what is held wrong does not.
    quarter = _deepest_at_the_end(trial.run(trial.built, 4 * trial.steps, draft.timestep / 4))
    note = f"in the last quarter; at a quarter of the step {quarter:.2g}"
    return Measure(quarter if quarter < FALLS * worst else worst, draft.deepest, note)


def _deepest_at_the_end(record):
    last = record.contacts[3 * len(record.contacts) // 4 :]
    return max((c.depth for contacts in last for c in contacts), default=0.0)


def _probed(trial):
    """The deepest overlap of any pair after the start, by a simulator that leaves out none."""
    probe = trial.simulator(exclude_neutral_overlaps=False, continuous_collision=False, contact="ncp")
    worst = 0.0
    for q in trial.record.q[len(trial.record.q) // 4 :: 4]:
        probe.reset()
        probe.step(q, np.zeros(trial.built.model.nv), trial.built.u)
        worst = max([worst, *(c.depth for c in probe.contacts)])
    return worst


@rule("flicker", "what touches pushes in every step until it leaves")
def flicker(trial):
    if not trial.draft.steady_contact or trial.law not in HARD:
        return None
    force = np.array([sum(c.impulse @ c.normal for c in contacts) for contacts in trial.record.contacts])
    gone = np.flatnonzero(force > 1e-3 * force.max(initial=0))
    if len(gone) == 0:
        return Measure(0.0, 0.0)
    touched = force[: gone[-1] + 1]

    # From pressing to nothing at once. What is about to leave presses with next to nothing, and within the tolerances of a contact it may be
    # without for some steps.
    median = np.median(touched)
    missing = np.flatnonzero((touched[1:] < 1e-3 * median) & (touched[:-1] > ABOUT_TO_LEAVE * median)) + 1
    first = f"first at step {missing[0]} of {len(touched)} in contact" if len(missing) else ""
    return Measure(float(len(missing)), 0.0, first)


@rule("law", "impulses and velocities that are reported obey the contact law")
def law(trial):
    if trial.law not in ("ncp", "lcp"):
        return None
    worst = (0.0, "")
    stride = max(1, len(trial.record.contacts) // LAW_STEPS)
    impulses = [np.linalg.norm(c.impulse) for contacts in trial.record.contacts for c in contacts]
    momentum = trial.built.model.body_mass.sum() * np.abs(trial.record.v[0]).max(initial=0)
    rounding = max(ROUNDED_IMPULSE * max(impulses, default=0), ROUNDING * momentum, 1e-12)
    for k in range(0, len(trial.record.contacts), stride):
        status, contacts = trial.record.statuses[k], trial.record.contacts[k]
        if status.converged and contacts:
            value, words = _law_error(contacts, trial.draft.timestep, trial.law == "lcp", rounding)
            worst = max(worst, (value, f"step {k}: {words}"))
    return Measure(worst[0], LAW, worst[1])


def _law_error(contacts, h, pyramid, rounding):
    """(error, words): the worst of the law's conditions, relative to the largest impulse, at least `rounding`, and the largest speed.

    Corrections may ask for less than the share of the depth, never for more. Of gaps up to KINKS the bias has its kinks: they count as touching.
    """
    largest = max(max(np.linalg.norm(c.impulse) for c in contacts), rounding)
    asked = max(min(BAUMGARTE * max(c.depth, 0) / h, FASTEST_CORRECTION) for c in contacts)
    speed = max(max(np.linalg.norm(c.velocity) for c in contacts), asked, 1e-3)
    wide = 2**0.5 if pyramid else 1.0  # a pyramid around the cone
    worst = (0.0, "")
    for c in contacts:
        pair = f"{c.geometry_a} on {c.geometry_b}"
        normal, parts = c.impulse @ c.normal, c.velocity @ c.normal
        tangential, slip = c.impulse - normal * c.normal, c.velocity - parts * c.normal
        gap = max(-c.depth, 0.0)
        correction = min(BAUMGARTE * max(c.depth, 0) / h, FASTEST_CORRECTION)
        band = KINKS / h if gap <= KINKS else 0.0
        errors = [
            (-normal / largest, "pulls"),
            ((-parts - gap / h - 1e-9) / speed, "closes more than its gap"),
            ((np.linalg.norm(tangential) - wide * c.friction * normal) / largest, "leaves the cone"),
            ((tangential @ slip) / (largest * speed), "friction drives"),
            (normal / largest * (parts + gap / h - correction - band - 1e-9) / speed, "pushes what parts"),
        ]
        if not pyramid:
            left = c.friction * normal * np.linalg.norm(slip) + tangential @ slip
            errors.append((left / (largest * speed), "slips with less than its friction"))
        worst = max(worst, *((value, f"{pair} {words}") for value, words in errors))
    return worst
