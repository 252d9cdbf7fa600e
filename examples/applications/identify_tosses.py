"""A cube that was really tossed: what 456 recorded tosses say of it, found by gradients, and how well tosses that nobody has looked at are predicted.

Free flight shows gravity and a centre of mass 5.5 mm off the middle, by linear least squares. coulomb.identify fits moment of inertia, centre
of mass, friction, and restitution or the table's stiffness and damping to the 0.2 s about the first impact of some tosses, with exact
derivatives through the impacts; friction of the faces comes from slides. What helps is shown step by step: a known start, the
centre of mass, corners apart from faces, and impacts that take a millisecond, in which friction turns with the sliding. MuJoCo is identified
on the same tosses (tosses/mujoco_common.py); docs/tosses.md tells the story.

    python examples/applications/identify_tosses.py [--quick] [--output FOLDER]
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent / "tosses")]
from cube_common import identify, model, predict, sliding_friction, starts_of  # noqa: E402
from plot_common import arguments  # noqa: E402
from toss_pictures_common import picture  # noqa: E402
from tosses_common import HALF, errors, free_flight, load, mean_of, paired_bootstrap, resting_height, split  # noqa: E402

PUBLISHED = {"friction/table": 0.18, "restitution/table": 0.125}
PUBLISHED_MOMENT, PUBLISHED_HALF = 0.00081, 0.0524  # kg m^2, m
NAMES = ("published constants", "start from the flight", "centre of mass", "corners and faces", "lasting impacts")
SCATTER = {
    "friction/table": 0.07,
    "contact_dashpot/table": 0.1,
    "pair_friction/table:faces": 0.07,
}  # of one toss beside another
# The best on the validation tosses of nine fits of the kinds of tosses/mujoco_common.py (docs/tosses.md).
MUJOCO = {
    "corner_friction": 0.16526, "face_friction": 0.22, "stiffness": 768595.0, "damping": 1306.38, "face_stiffness": 768595.0,
    "face_damping": 1306.38, "moment": 0.00098598, "com": [0.00027892, -0.00009122, 0.00556635], "rounding": 0.0035,
    "impratio": 0.044117, "substeps": 32,
}  # fmt: skip


def published(tosses):
    """Constants, lengths and first velocities as they were published."""
    cube = model("box", 9.81, np.zeros(3), PUBLISHED_MOMENT, PUBLISHED_HALF).with_parameters(PUBLISHED)
    return predict(cube, tosses, [(toss.q[0], toss.v0) for toss in tosses])


def fits(tosses, gravity, com, rows):
    """{name: (Fit, centre of mass)} of NAMES[1:], and the Fit of the friction of faces."""
    out = {}
    clock = time.perf_counter()
    faces = sliding_friction(tosses, gravity, com)
    pair = "pair_friction/table:faces"
    face_friction = float(faces.values[pair][0])
    print(f"faces slide with {face_friction:.4f} +- {faces.errors[pair]:.4f}; {time.perf_counter() - clock:.1f} s")
    for name, kind, middle in zip(NAMES[1:], ("box", "box", "rounded", "lasting"), (None, com, com, com)):
        clock = time.perf_counter()
        known = {pair: face_friction} if kind in ("rounded", "lasting") else {}
        fit = identify(kind, tosses, gravity, middle, known, rows)
        centre = np.array(fit.model.parameters()["com/cube"].value)
        out[name] = fit, centre
        print(f"\n{name}: {time.perf_counter() - clock:.1f} s\n{fit}")
    return out, faces


def ensemble(cube, tosses, starts, count=8):
    """The mean of predictions whose friction and damping scatter as they do from toss to toss."""
    from scipy.stats import norm, qmc

    parameters, paths = cube.parameters(), []
    for z in norm.ppf(qmc.Sobol(len(SCATTER), seed=1).random(count)):
        values = {name: parameters[name].value * np.exp(s * x) for (name, s), x in zip(SCATTER.items(), z)}
        paths.append(predict(cube.with_parameters(values), tosses, starts))
    return mean_of(paths)


def mujoco_rows(tosses, gravity, count):
    """Errors of MuJoCo's cube, and of the mean of `count` predictions."""
    import mujoco_common
    from scipy.stats import norm, qmc

    out = {"MuJoCo": errors(tosses, mujoco_common.predict_tosses(MUJOCO, gravity, tosses))}
    if not count:
        return out
    paths = []
    for z in norm.ppf(qmc.Sobol(len(SCATTER), seed=1).random(count)):
        scattered = dict(MUJOCO)
        for name, s, x in zip(("corner_friction", "damping", "face_friction"), SCATTER.values(), z):
            scattered[name] = MUJOCO[name] * np.exp(s * x)
        paths.append(mujoco_common.predict_tosses(scattered, gravity, tosses))
    return out | {"MuJoCo, mean of 8": errors(tosses, mean_of(paths))}


def main():
    options = arguments(__doc__, "fewer tosses")
    clock = time.perf_counter()
    parts = split(load())
    train, unseen = parts["train"], parts["validation" if options.quick else "test"]

    # What flights and rest say.
    gravity, com, deviations = free_flight(train)
    height = resting_height(train)
    print(
        f"gravity {gravity:.3f} +- {deviations[0]:.3f} m/s^2, height at rest {1e3 * height:.2f} mm: lengths are 2 % short"
    )
    print(f"centre of mass {np.round(1e3 * com, 2)} +- {np.round(1e3 * deviations[1:], 2)} mm off the middle")
    assert abs(gravity - 9.6) < 0.02 and abs(height - HALF) < 1e-4 and np.linalg.norm(com - [0, 0, 0.0055]) < 1e-3

    # What impacts and slides say.
    found, faces = fits(train[: 60 if options.quick else 114], gravity, com, 12 if options.quick else 30)
    seconds = time.perf_counter() - clock
    print(f"\nall of it found in {seconds:.0f} s")

    # Tosses that no choice has seen.
    rows = {NAMES[0]: errors(unseen, published(unseen))}
    paths = {}
    for name, (fit, centre) in found.items():
        starts = starts_of(unseen, gravity, centre)
        paths[name] = predict(fit.model, unseen, starts)
        rows[name] = errors(unseen, paths[name])
    last = NAMES[-1]
    if not options.quick:
        rows["mean of 8"] = errors(unseen, ensemble(found[last][0].model, unseen, starts))
    try:
        rows |= mujoco_rows(unseen, gravity, 0 if options.quick else 8)
    except ImportError:
        print("MuJoCo is not installed and left out")
    print(f"\n{len(unseen)} tosses that were not used: mean error of position [% of the width], of rotation [degrees]")
    for name, e in rows.items():
        print(
            f"  {name:<24} {e[:, 0].mean():5.2f} {e[:, 1].mean():6.2f}   medians {np.median(e[:, 0]):5.2f} {np.median(e[:, 1]):6.2f}"
        )
    if "MuJoCo" in rows:
        for k, what in enumerate(("position [%]", "rotation [degrees]")):
            better, low, high = paired_bootstrap(rows[last][:, k], rows["MuJoCo"][:, k])
            print(f"  MuJoCo's less ours, {what}: {better:.2f}, 95 % of bootstrap samples in {low:.2f} to {high:.2f}")
    print(picture(parts["train"], gravity, com, rows, unseen, paths, options.output / "identify_tosses.png"))
    check(found, faces, rows, options.quick)


def check(found, faces, rows, quick):
    fit, centre = found[NAMES[-1]]
    assert 5e-3 < centre[2] < 6.5e-3 and np.abs(centre[:2]).max() < 1e-3, centre
    assert 0.15 < fit.values["friction/table"][0] < 0.17
    assert 0.20 < faces.values["pair_friction/table:faces"][0] < 0.235
    means = [rows[name].mean(axis=0) for name in NAMES]
    away, turn = means[-1]
    assert away < (7.5 if quick else 7.0) and turn < 8.0, means[-1]
    assert away < means[0][0] - 4 and means[2][1] < means[1][1] - 2, means


if __name__ == "__main__":
    main()
