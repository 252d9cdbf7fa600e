"""Every robot file of some folders: does it load, move as in MuJoCo, step, differentiate, and at what price?

python tools/models.py [FOLDER ...] [--steps 200] [--jobs 2] [--every 1] [--report FILE]

Without folders: those of the packages that are installed here and bring models (gymnasium, gymnasium_robotics, dm_control, ...). Nothing is
fetched. Files that another one includes, and MJCF files that MuJoCo itself does not compile, do not count. Ctrl-C reports what was seen.
Exit code 1: a file that loads moves otherwise than in MuJoCo, or has a wrong derivative.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import multiprocessing
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import coulomb
from coulomb.mjcf import compile_mjcf, root_of
from coulomb.progress import Bar

PACKAGES = (
    "gymnasium gymnasium_robotics dm_control robosuite robosuite_models mujoco_playground metaworld example_robot_data mujoco mujoco_warp "
    "brax newton gym_aloha gym_xarm"
).split()
LONGEST = 120  # s, of one file
OPTIONS = ({"balance_inertia": True}, {"link_density": 1000.0}, {"balance_inertia": True, "link_density": 1000.0})
SAME = 1e-9  # of the accelerations, relative to the forces over the inertias
SAME_GRADIENT = 1e-5


@dataclass
class Result:
    """What was seen of one file."""

    file: str
    kind: str  # "MJCF" or "URDF"
    refused: str = ""  # why it does not load
    option: str = ""  # which of OPTIONS it needs, and why
    error: str = ""  # what went wrong afterwards
    acceleration: float | None = None  # difference from MuJoCo's, relative
    solved: int = 0  # steps
    steps: int = 0
    reason: str = ""  # of the first step that was not solved
    fastest: float = 0.0  # largest |v| here
    fastest_there: float = 0.0
    gradient: bool | None = None  # passed
    step_time: float | None = None  # over MuJoCo's
    load_time: float | None = None  # over MuJoCo's
    changed: list = field(default_factory=list)  # Model.deviations


def model_files(folder):
    """The robot files below a folder that no other file includes, sorted."""
    files = sorted(p for ext in ("xml", "urdf", "mjcf") for p in folder.rglob(f"*.{ext}"))
    included, found = set(), []
    for path in files:
        text = path.read_text(errors="replace")
        for name in re.findall(r'<include\s+file="([^"]+)"', text):
            included.update(p.resolve() for p in (path.parent / name, folder / name) if p.exists())
        try:
            if root_of(str(path)) in ("mujoco", "robot"):
                found.append(path)
        except ValueError:
            continue
    return [path for path in found if path.resolve() not in included]


def _set_activations(compiled, data, u):
    """u is what acts: of actuators that have an activation, that. An integrator without control keeps it, also where it acts early."""
    import mujoco

    for k, address in enumerate(compiled.actuator_actadr):
        if address < 0:
            continue
        data.act[address] = u[k]
        if compiled.actuator_dyntype[k] == mujoco.mjtDyn.mjDYN_INTEGRATOR:
            data.ctrl[k] = 0


def _accelerations(model, compiled, rng):
    """Largest relative difference of three accelerations without constraints. None: MuJoCo's version has no such state."""
    import mujoco

    flags = int(compiled.opt.disableflags)
    compiled.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(compiled)
    worst = 0.0
    for _ in range(3):
        q = model.normalize(model.integrate(model.neutral()[0], 0.3 * rng.normal(size=model.nv)))
        v = rng.normal(size=model.nv)
        low, high = (
            np.array([a.control_range if a.control_limited else (-1, 1) for a in model.actuators]).reshape(-1, 2).T
        )
        u = low + (high - low) * rng.uniform(size=model.nu)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        _set_activations(compiled, data, u)
        mujoco.mj_forward(compiled, data)
        mass = model.mass_matrix(q)
        force = model.actuator_forces(q, v, u) + model.passive_forces(q, v) - model.bias(q, v)
        here = np.linalg.solve(mass, force)
        scale = np.abs(data.qacc).max() + np.abs(np.linalg.solve(mass, np.abs(force))).max() + 1e-3
        worst = max(worst, float(np.abs(here - data.qacc).max() / scale))
    compiled.opt.disableflags = flags
    return worst


def _controls(model, steps, rng):
    """Random controls within their ranges, held for ten steps."""
    low, high = np.array([a.control_range if a.control_limited else (-1, 1) for a in model.actuators]).reshape(-1, 2).T
    held = rng.uniform(size=(steps // 10 + 1, model.nu))
    return np.repeat(low + (high - low) * held, 10, axis=0)[:steps]


def _run(model, compiled, steps, result, rng):
    """Steps from the first keyframe, beside MuJoCo's own."""
    import mujoco

    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    if model.keyframes:
        q, v = model.keyframes[0].q, model.keyframes[0].v
    U = _controls(model, steps, rng)
    checked, begin = None, time.thread_time()
    for u in U:
        try:
            q1, v1 = sim.step(q, v, u)
        except ValueError as error:
            result.error = str(error)[:200]
            return
        result.steps += 1
        if sim.status.converged:
            result.solved += 1
        elif not result.reason:
            result.reason = str(sim.status.reason)
        if checked is None and result.steps > 5 and len(sim.contacts):
            checked = q, v, u
        q, v = q1, v1
        result.fastest = max(result.fastest, float(np.abs(v).max(initial=0)))
    here = time.thread_time() - begin
    q, v, u = checked or (q, v, U[-1])
    check = coulomb.check_gradients(coulomb.Simulator(model), q, v, u)
    result.gradient = bool(check.passed) if check.smooth else None
    if compiled is None:
        return

    data = mujoco.MjData(compiled)
    if compiled.nkey:
        mujoco.mj_resetDataKeyframe(compiled, data, 0)
    begin = time.thread_time()
    for u in U:
        data.ctrl[:] = u
        mujoco.mj_step(compiled, data)
        result.fastest_there = max(result.fastest_there, float(np.abs(data.qvel).max(initial=0)))
    result.step_time = here / max(time.thread_time() - begin, 1e-9)


def _load(path, is_mjcf, result):
    """The model; of a URDF floating, or fixed where its root has no mass, and with options if it needs them. None: it is refused."""
    bases = [{}] if is_mjcf else [{"ground": True, "floating_base": True}, {"ground": True}]
    for options, base in itertools.product(({}, *(() if is_mjcf else OPTIONS)), bases):
        try:
            model = coulomb.load(str(path), **base, **options)
        except (ValueError, FileNotFoundError, ImportError) as error:
            result.refused = result.refused or str(error)
            continue
        if options:
            result.option = f"{', '.join(options)}: {result.refused}"
        result.refused = ""
        return model
    return None


def look_at(path, steps):
    """The Result of one file; None: MuJoCo does not compile it, or it has no robot."""
    rng = np.random.default_rng(0)
    is_mjcf = root_of(str(path)) == "mujoco"
    result, compiled = Result(str(path), "MJCF" if is_mjcf else "URDF"), None
    begin = time.thread_time()
    if is_mjcf:
        try:
            compiled = compile_mjcf(str(path))
        except (ValueError, FileNotFoundError):
            return None
    there, begin = time.thread_time() - begin, time.thread_time()
    model = _load(path, is_mjcf, result)
    if model is None:
        return result
    if compiled is not None:
        result.load_time = (time.thread_time() - begin) / max(there, 1e-9)
    result.changed = list(model.deviations)
    if model.nv == 0:
        return result
    try:
        if compiled is not None:
            result.acceleration = _accelerations(model, compiled, rng)
        if steps:
            _run(model, compiled, steps, result, rng)
    except Exception as error:  # whatever it is, it is reported with its file
        result.error = f"{type(error).__name__}: {error}"[:200]
    return result


def _too_long(*_):
    raise TimeoutError(f"took more than {LONGEST} s")


def _job(task):
    path, steps = task
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST)
    try:
        return look_at(path, steps)
    except TimeoutError as error:
        return Result(str(path), "?", error=str(error))
    finally:
        signal.alarm(0)


def installed_folders():
    """{package: its folder} of the packages above that are installed here."""
    found = {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[name] = Path(next(iter(spec.submodule_search_locations)))
    return found


def kind_of_refusal(why):
    """A refusal without the names of its elements."""
    why = re.sub(r"^MJCF: |'[^']*'", "", why.split("\n")[0])
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", why))[:110].strip()


def _short(file):
    return "/".join(Path(file).parts[-2:])


def _row(name, results):
    loaded = [r for r in results if not r.refused]
    compared = [r for r in loaded if r.acceleration is not None]
    run = [r for r in loaded if r.steps]
    judged = [r for r in run if r.gradient is not None]
    times = sorted(r.step_time for r in run if r.step_time is not None)
    median = f"{times[len(times) // 2]:.2f}" if times else "–"
    return (
        f"| {name} | {len(results)} | {len(loaded)} | {sum(bool(r.option) for r in loaded)} | {sum(r.acceleration < SAME for r in compared)} of {len(compared)} "
        f"| {sum(r.solved == r.steps for r in run)} of {len(run)} | {sum(r.gradient for r in judged)} of {len(judged)} | {median} |"
    )


def report(results, commit=""):
    """A Markdown page of {collection: [Result]}."""
    lines = [
        "# Public models: what loads, moves and differentiates",
        "",
        f"Made by `make models`{commit}. A file is counted if MuJoCo compiles it and no other file includes it.",
        "",
        "| collection | files | load | with an option | acceleration as MuJoCo's | all steps solved | gradient right | step time / MuJoCo's, median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(name, found) for name, found in results.items()]
    everything = [r for found in results.values() for r in found]
    lines += [_row("**all**", everything), "", "## Refused", "", "| reason | files | for example |", "|---|---|---|"]
    reasons: dict = {}
    for r in everything:
        if r.refused:
            reasons.setdefault(kind_of_refusal(r.refused), []).append(_short(r.file))
    for reason, files in sorted(reasons.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {reason} | {len(files)} | {files[0]} |")
    for title, chosen, said in (
        ("Load with an option", lambda r: r.option, lambda r: kind_of_refusal(r.option)),
        (
            "Moves otherwise",
            lambda r: r.acceleration is not None and r.acceleration >= SAME,
            lambda r: f"{r.acceleration:.1e}",
        ),
        (
            "Not all steps solved",
            lambda r: r.steps and r.solved < r.steps,
            lambda r: f"{r.steps - r.solved} of {r.steps}: {r.reason}",
        ),
        ("Derivative not confirmed", lambda r: r.gradient is False, lambda r: ""),
        (
            "More than twice as fast as MuJoCo's",
            lambda r: r.step_time is not None and r.fastest > 2 * r.fastest_there + 20,
            lambda r: f"{r.fastest:.3g} against {r.fastest_there:.3g}",
        ),
        ("More than five times MuJoCo's time", lambda r: (r.step_time or 0) > 5, lambda r: f"{r.step_time:.1f}"),
        ("Errors", lambda r: r.error, lambda r: r.error),
    ):
        rows = [f"| {_short(r.file)} | {said(r)} |" for r in everything if chosen(r)]
        lines += ["", f"## {title}", "", *(["| file | |", "|---|---|", *rows] if rows else ["None."])]
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--steps", type=int, default=200, help="of every model; 0: load and compare accelerations only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="every n-th file only")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args(arguments)
    folders = {f.name: f for f in options.folders} if options.folders else installed_folders()
    for folder in folders.values():
        if not folder.is_dir():
            parser.error(f"{folder} is no folder")

    tasks = [(name, path) for name, folder in folders.items() for path in model_files(folder)[:: options.every]]
    results = {name: [] for name in folders}
    bar = Bar("file")
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=20) as pool:
        try:
            jobs = [(name, pool.apply_async(_job, ((path, options.steps),))) for name, path in tasks]
            for k, (name, job) in enumerate(jobs):
                found = job.get()
                if found is not None:
                    results[name].append(found)
                bar(k + 1, len(jobs))
        except KeyboardInterrupt:
            pool.terminate()
    bar.close()
    text = report(results)
    print(text)
    if options.report:
        options.report.write_text(text)
    everything = [r for found in results.values() for r in found]
    wrong = [r for r in everything if (r.acceleration or 0) >= SAME or r.gradient is False]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
