"""The picture of docs/design.md: python docs/pictures/design_cages.py."""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "papers" / "diffredmax"))
import codesign_common as common

from coulomb.pictures import COLOURS

STRETCHED = {
    "length 0": 1.5,
    "length 1": 0.7,
    "joint 1 width": 0.6,
    "joint 2 width": 1.8,
    "neck width": 1.3,
    "tip width": 0.6,
}


def main():
    chain = common.finger()
    morphology = common.morphology(common.build([chain], 1, gravity=0, timestep=1e-3), [chain])
    names = morphology.design.names
    figure = plt.figure(figsize=(9.6, 3.8))
    for k, (title, scales) in enumerate((("at rest: all scales 1", {}), ("six scales changed", STRETCHED))):
        x = np.array([scales.get(name, 1.0) for name in names])
        axes = figure.add_axes((-0.24, (-1.03, -1.54)[k], 1.4, 3.5), projection="3d", computed_zorder=False)
        model = morphology.model_of(x)
        q = model.neutral()[0]
        common.draw(axes, model, q, alpha=0.45)
        places, turns = model.body_placements(q)
        handles = morphology.design.handles(x)
        first = 0
        for cage, piece in zip(chain.cages, chain.pieces):
            body = model.body_names.index(piece.body)
            points = handles[first : first + 14] @ turns[body].T + places[body]
            axes.scatter(*points.T, s=9, color=COLOURS[1], depthshade=False, zorder=5)
            first += len(cage.handles)
        for body in ("knuckle", "p0", "p1", "p2"):
            place = places[model.body_names.index(body)]
            axes.scatter(*place, s=36, marker="x", color="black", depthshade=False, zorder=6)
        tip = morphology.points(x)["p2"] + places[model.body_names.index("p2")]
        axes.scatter(*tip, s=60, marker="*", color="#b2182b", depthshade=False, zorder=7)
        axes.set(xlim=(0, 0.23), ylim=(-0.03, 0.03), zlim=(-0.03, 0.03))
        axes.set_box_aspect((0.23, 0.06, 0.06), zoom=0.6)
        axes.view_init(25, -78)
        axes.set_axis_off()
        axes.patch.set_alpha(0)  # the two overlap
        figure.text(0.98, (0.92, 0.42)[k], title, fontsize=10.5, ha="right")
    path = pathlib.Path(__file__).with_suffix(".png")
    figure.savefig(path, dpi=130)
    print(path)


if __name__ == "__main__":
    main()
