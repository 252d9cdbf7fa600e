"""The picture of identify_tosses.py."""

import numpy as np
from cube_common import ROUNDING
from tosses_common import LONGEST_FLIGHT, PERIOD, Flight, impacts

from coulomb.pictures import COLOURS, STYLE


def parabolas(axis, tosses, gravity, com):
    """The middle of a spinning cube does not fly a parabola: its acceleration beside gravity, over that of a point one metre up the body's z."""
    spin, seen = [], []
    for toss in tosses:
        rows = min(toss.touch, LONGEST_FLIGHT)
        if rows < 12:
            continue
        flight = Flight(toss.q[:rows], gravity, com)
        t = PERIOD * (np.arange(rows) - rows // 2)
        away = np.cross(flight.omega, np.cross(flight.omega, toss.R[rows // 2][:, 2]))
        spin.append(-away)
        seen.append(2 * np.polyfit(t, toss.q[:rows, :3], 2)[0] + [0, 0, gravity])
    spin, seen = np.ravel(spin), np.ravel(seen)
    axis.plot(
        spin, seen, "o", color=COLOURS[0], markersize=2.5, alpha=0.5, label=f"x, y, z of {len(seen) // 3} flights"
    )
    edges = np.array([-45, -20, -10, -5, 5, 10, 20, 45])
    inside = [(spin >= a) & (spin < b) for a, b in zip(edges, edges[1:])]
    deviations = [seen[i].std() / np.sqrt(i.sum()) for i in inside]
    axis.errorbar(
        [spin[i].mean() for i in inside],
        [seen[i].mean() for i in inside],
        deviations,
        fmt="s",
        color=COLOURS[6],
        label="means",
    )
    ends = np.array([spin.min(), spin.max()])
    axis.plot(ends, com[2] * ends, color=COLOURS[1], label=f"centre of mass {1e3 * com[2]:.1f} mm up the body's z")
    axis.set(
        xlabel=r"$-\omega\times(\omega\times z)$ [1/s$^2$]",
        ylabel="acceleration of the middle, less gravity [m/s$^2$]",
        ylim=(-0.6, 0.6),
    )
    axis.set_title("Free flight: the middle is not what flies a parabola")
    axis.legend(loc="upper left")


def turning(axis, tosses, gravity, com):
    """Friction over normal impulse of impacts on one corner, over the angle by which the sliding turned."""
    ratio, angle, *_ = impacts(tosses, gravity, com, ROUNDING).T
    axis.plot(angle, ratio, "o", color=COLOURS[0], markersize=3, alpha=0.6, label=f"{len(ratio)} impacts on one corner")
    edges = np.array([0, 15, 30, 50, 80, 180])
    inside = [(angle >= a) & (angle < b) for a, b in zip(edges, edges[1:])]
    places = [np.median(angle[i]) for i in inside]
    axis.plot(places, [np.median(ratio[i]) for i in inside], "s-", color=COLOURS[1], label="medians")
    axis.set(xlabel="sliding turns in the impact by [degrees]", ylabel="friction / normal impulse", ylim=(0.05, 0.22))
    axis.set_title("Impacts: friction turns with the sliding")
    axis.legend(loc="lower left")


def one_toss(axis, toss, paths):
    t = PERIOD * np.arange(len(toss.q))
    along = toss.q[-1, :2] - toss.q[0, :2]
    along /= np.linalg.norm(along)
    axis.plot(100 * toss.q[:, :2] @ along, 100 * toss.q[:, 2], "o", color="#444444", markersize=3, label="tracked")
    styles = (
        ("centre of mass", "--", COLOURS[1]),
        ("corners and faces", "-.", COLOURS[2]),
        ("lasting impacts", "-", COLOURS[0]),
    )
    for name, style, colour in styles:
        path = paths[name]
        axis.plot(100 * path[:, :2] @ along, 100 * path[:, 2], style, color=colour, label=name)
    axis.set(
        xlabel="along the table [cm]",
        ylabel="height of the middle [cm]",
        title=f"An unseen toss, {t[-1]:.1f} s: the middle of the cube",
    )
    axis.legend()


def bars(axis, rows):
    """Mean errors, with 95 % of bootstrap samples."""
    random = np.random.default_rng(0)
    names = list(rows)
    for k, (what, colour) in enumerate((("position, % of the width", COLOURS[0]), ("rotation, degrees", COLOURS[1]))):
        means = np.array([rows[name][:, k].mean() for name in names])
        draws = [rows[n][random.integers(len(rows[n]), size=(2000, len(rows[n]))), k].mean(axis=1) for n in names]
        ends = np.array([np.percentile(d, [2.5, 97.5]) for d in draws]).T
        places = np.arange(len(names)) + 0.4 * k - 0.2
        axis.barh(places, means, 0.36, color=colour, label=what)
        axis.errorbar(means, places, xerr=np.abs(ends - means), fmt="none", ecolor="#444444", elinewidth=1)
        for x, y, end in zip(means, places, ends[1]):
            axis.annotate(f"{x:.1f}", (end, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set(yticks=range(len(names)), yticklabels=names, title=f"Mean error over {len(rows[names[0]])} unseen tosses")
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.4, -0.06), ncols=2)


def picture(train, gravity, com, rows, unseen, paths, path):
    from matplotlib import pyplot as plt

    # The toss of middling error.
    last = rows["lasting impacts"].sum(axis=1)
    chosen = int(np.argsort(last)[len(last) // 2])
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(11.5, 8.0), layout="constrained")
        parabolas(axes[0, 0], train, gravity, com)
        turning(axes[0, 1], train, gravity, com)
        one_toss(axes[1, 0], unseen[chosen], {name: p[chosen] for name, p in paths.items()})
        bars(axes[1, 1], rows)
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path
