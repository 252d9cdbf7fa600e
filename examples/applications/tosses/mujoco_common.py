"""The same cube in MuJoCo, identified on the same tosses: corners and faces with a friction of their own, contact by stiffness and damping in its
own form (solref < 0), time step and regularisation chosen on the validation tosses.

MuJoCo has no derivative through impacts but differences, and its cost is bumpy: least squares on the first impacts by differences, then
Nelder-Mead on what is wanted, the mean error of whole tosses. `python mujoco_common.py` does it again, in half an hour.
"""

import numpy as np
from cube_common import flat_sides, words
from tosses_common import HALF, MASS, PERIOD, SIGNS, between, errors, free_flight, load, split, start

try:
    import mujoco
except ImportError:
    mujoco = None

SCALES = {  # logarithmic, of a first step
    "corner_friction": 0.05, "face_friction": 0.05, "stiffness": 0.2, "damping": 0.1, "face_stiffness": 0.3, "face_damping": 0.2,
    "moment": 0.04, "com x": 0.3, "com y": 0.3, "com z": 0.3, "rounding": 0.1, "impratio": 1.0,
}  # fmt: skip


def xml(p, gravity):
    def ball(point, radius, friction, kind=""):
        return (
            f'<geom type="sphere" size="{radius:.9g}" pos="{words(point)}" friction="{friction:.9g} 0 0" mass="0" priority="1" condim="3" '
            f'solref="{-p[kind + "stiffness"]:.9g} {-p[kind + "damping"]:.9g}" solimp="0.95 0.99 0.001"/>'
        )

    corners = [ball(s * (HALF - p["rounding"]), p["rounding"], p["corner_friction"]) for s in SIGNS]
    small = 0.002
    inward = np.where(np.abs(flat_sides()) > HALF, np.sign(flat_sides()), 0)
    faces = [ball(point, small, p["face_friction"], "face_") for point in flat_sides() - small * inward]
    return (
        f'<mujoco><option gravity="0 0 {-gravity:.9g}" cone="elliptic" timestep="{PERIOD / p["substeps"]:.12g}" impratio="{p["impratio"]:.9g}"/>'
        f'<worldbody><geom type="plane" size="5 5 .1" friction="0 0 0" condim="3"/><body><freejoint/>'
        f'<inertial pos="{words(p["com"])}" mass="{MASS}" diaginertia="{words([p["moment"]] * 3)}"/>{"".join(corners + faces)}'
        "</body></worldbody></mujoco>"
    )


def predict(p, gravity, lengths, starts):
    """Paths (rows, 7) from (q, v): the coordinates are the same as Coulomb's."""
    model = mujoco.MjModel.from_xml_string(xml(p, gravity))
    data, out = mujoco.MjData(model), []
    for rows, (q, v) in zip(lengths, starts):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = q, v
        path = [q]
        for _ in range(rows - 1):
            mujoco.mj_step(model, data, nstep=p["substeps"])
            path.append(data.qpos.copy())
        out.append(np.array(path))
    return out


def predict_tosses(p, gravity, tosses):
    starts = [start(toss, gravity, p["com"]) for toss in tosses]
    return predict(p, gravity, [len(toss.q) for toss in tosses], starts)


def moved(p, z, names):
    """Parameters z scales away: logarithms, and millimetres of the centre of mass up z."""
    out = dict(p)
    for name, x in zip(names, z):
        if name.startswith("com "):
            out["com"] = np.array(out["com"]) + 1e-3 * SCALES[name] * x * np.eye(3)["xyz".index(name[-1])]
        else:
            out[name] = p[name] * np.exp(SCALES[name] * x)
    out["impratio"] = min(max(out["impratio"], 1e-2), 1e4)
    return out


def identify(tosses, gravity, com, substeps, whole_tosses=114, evaluations=90):
    """The parameters of MuJoCo's cube after the first impacts, and after whole tosses."""
    from scipy.optimize import least_squares, minimize

    # First guess: as stiff as Coulomb's table, or as the time step bears.
    step = PERIOD / substeps
    stiffness, damping = min(1.1e6, 0.3 / step**2), min(1150.0, 0.6 / step)
    p = dict(
        corner_friction=0.16,
        face_friction=0.22,
        stiffness=stiffness,
        damping=damping,
        face_stiffness=stiffness,
        face_damping=damping,
    )
    p |= dict(moment=0.00099, com=np.array(com), rounding=0.0035, impratio=10.0, substeps=substeps)

    # First impacts, as Coulomb's are fitted.
    rows, names = 12, ["corner_friction", "stiffness", "damping", "moment", "com x", "com y", "com z", "impratio"]
    used = [toss for toss in tosses[:60] if toss.touch >= 6 and toss.touch - 2 + rows < len(toss.q)]
    starts = [start(toss, gravity, com, toss.touch - 2) for toss in used]

    def residual(z):
        out = []
        for toss, path in zip(used, predict(moved(p, z, names), gravity, [rows + 1] * len(used), starts)):
            seen = toss.q[toss.touch - 2 :][: rows + 1]
            out += [(path[1:, :3] - seen[1:, :3]) / 0.002, between(seen[1:, 3:], path[1:, 3:]) / 0.02]
        return np.concatenate(out).ravel()

    # Differences over a fiftieth of a scale, wide beside the bumps: unknowns count from 10, as their steps are relative.
    options = dict(loss="soft_l1", f_scale=1.345, diff_step=0.002, max_nfev=25)
    r = least_squares(lambda x: residual(x - 10), np.full(len(names), 10.0), **options)
    p = moved(p, r.x - 10, names)
    p["face_stiffness"], p["face_damping"] = p["stiffness"], p["damping"]
    print(f"substeps {substeps}: first impacts, cost {r.cost:.0f}")

    # Whole tosses.
    some, names, best = tosses[:whole_tosses], list(SCALES), [np.inf, None]

    def cost(z):
        away, turn = errors(some, predict_tosses(moved(p, z, names), gravity, some)).mean(axis=0)
        if away + turn < best[0]:
            best[:] = away + turn, moved(p, z, names)
            print(f"  {away:.2f} %, {turn:.2f} degrees")
        return away + turn

    simplex = np.vstack([np.zeros(len(names)), np.eye(len(names))])
    minimize(
        cost, simplex[0], method="Nelder-Mead", options=dict(maxfev=evaluations, initial_simplex=simplex, adaptive=True)
    )
    return p, best[1]


def main():
    parts = split(load())
    gravity, com, _ = free_flight(parts["train"])
    for substeps in (16, 32, 64):
        for p in identify(parts["train"], gravity, com, substeps):
            print({name: np.round(value, 7).tolist() for name, value in p.items()})
            for name in ("train", "validation"):
                print(name, errors(parts[name], predict_tosses(p, gravity, parts[name])).mean(axis=0), flush=True)


if __name__ == "__main__":
    main()
