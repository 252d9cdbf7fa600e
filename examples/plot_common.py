"""What the examples of papers' experiments share: the command line, and scenes drawn as seen along an axis."""

import argparse
from pathlib import Path

import numpy as np

from coulomb.pictures import COLOURS


def arguments(text, quick, numbers=None, **switches):
    """--quick, --output, `numbers` (name: (default, help)) and `switches` (name=help) of an example whose docstring is `text`; the folder exists then."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    for name, words in switches.items():
        parser.add_argument(f"--{name}", action="store_true", help=words)
    for name, (default, words) in (numbers or {}).items():
        parser.add_argument(f"--{name}", type=float, default=default, help=f"{words} (default: %(default)s)")
    parser.add_argument("--output", default="output/examples", help="folder of the plot (default: %(default)s)")
    options = parser.parse_args()
    options.output = Path(options.output)
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def _points(model, g):
    """Points whose convex hull is the geometry g, in its frame; a sphere is drawn round from any side."""
    kind, size = model.geometry_types[g], model.geometry_size[g]
    if kind == "box":
        return np.array(np.meshgrid(*([-1, 1],) * 3)).reshape(3, -1).T * size
    if kind == "mesh":
        return np.asarray(model.mesh_vertices(model.geometry_mesh[g]))
    arc = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    ring = np.c_[np.cos(arc), np.sin(arc), 0 * arc]
    if kind == "sphere":
        return size[0] * np.concatenate([ring, ring[:, [0, 2, 1]], ring[:, [2, 0, 1]]])
    if kind in ("cylinder", "capsule"):
        ends = [size[0] * ring + [0, 0, side * size[1]] for side in (-1, 1)]
        if kind == "capsule":
            ends += [
                size[0] * ring[:, order] + [0, 0, side * size[1]]
                for side in (-1, 1)
                for order in ([0, 2, 1], [2, 0, 1])
            ]
        return np.concatenate(ends)
    return np.zeros((0, 3))


def outlines(model, q, axes=(0, 1)):
    """(name, polygon (n, 2)) of every geometry but half-spaces at q, projected on two world axes."""
    from scipy.spatial import ConvexHull

    places, turns = model.geometry_placements(q)
    for g in range(model.num_geometries):
        points = _points(model, g)
        if len(points):
            flat = (points @ turns[g].T + places[g])[:, list(axes)]
            yield model.geometry_names[g], flat[ConvexHull(flat).vertices]


def strobe(axes, model, configurations, scenery=("floor",), colours=None, limits=None, along=(0, 1), shift=0.0):
    """The configurations one over the other (each `shift` m to the right of the one before), the later the darker; scenery once, in grey.

    colours: of geometries, by name. along: the world axes of the picture.
    """
    from matplotlib.patches import Polygon

    for k, q in enumerate(configurations):
        strength = 1.0 if shift else 0.12 + 0.88 * ((k + 1) / len(configurations)) ** 2
        for name, polygon in outlines(model, q, along):
            if name not in scenery:
                colour = (colours or {}).get(name, COLOURS[0])
                style = {
                    "facecolor": colour,
                    "edgecolor": "black",
                    "linewidth": 0.5,
                    "alpha": strength,
                    "zorder": 2 + k,
                }
                polygon = polygon + [k * shift, 0]
            elif k == 0:
                style = {"facecolor": "#dddddd", "edgecolor": "#999999", "zorder": 0}
            else:
                continue
            axes.add_patch(Polygon(polygon, **style))
    axes.set(aspect="equal", xlabel="xyz"[along[0]] + " [m]", ylabel="xyz"[along[1]] + " [m]")
    axes.grid(False)
    if limits:
        axes.set(xlim=limits[:2], ylim=limits[2:])


def finish(figure, path):
    from matplotlib import pyplot as plt

    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(path)
