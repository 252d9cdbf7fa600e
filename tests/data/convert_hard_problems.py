"""Writes hard_problems.bin, which tests/unit/solvers/test_hard_problems.cpp reads, from an archive of problems.

python tests/data/convert_hard_problems.py hard_problems.npz

README.md, beside this file, describes both.
"""

import sys
from pathlib import Path

import numpy as np

TRAJECTORIES = ["atlas_rand", "atlas_zero", "go1_rand", "go1_zero", "h1_rand", "h1_zero", "hopper_rand", "hopper_zero"]
TRAJECTORIES += ["humanoid_rand", "humanoid_zero", "pile20", "stack5", "stack10"]


def trees_of(trajectory, nv):
    """Degrees of freedom of each tree: free bodies in the heaps, elsewhere one robot."""
    return [6] * (nv // 6) if trajectory.startswith(("pile", "stack")) else [nv]


def numbers(archive, index):
    """One problem as a list of arrays of float64."""
    get = {key: archive[f"{index}/{key}"] for key in ("Y", "g", "R", "blocks", "warm", "meta")}
    Y, blocks, meta = get["Y"], get["blocks"], get["meta"]
    trajectory = str(meta[0]).removesuffix("_m1").removesuffix("_m4")
    assert not get["R"].any(), "the format has no compliance"

    # Only trees that constraints touch, numbered anew.
    sizes = trees_of(trajectory, Y.shape[1])
    columns = np.split(np.arange(Y.shape[1]), np.cumsum(sizes)[:-1])
    touched = [tree for tree in columns if Y[:, tree].any()]
    out = [[TRAJECTORIES.index(trajectory), int(meta[1]), len(get["g"]), len(blocks), len(touched)]]
    out.append([len(tree) for tree in touched])

    for kind, row, size, mu, bound, speculative, known, mode, *_ in blocks:
        rows = Y[int(row) : int(row + size)]
        own = [i for i, tree in enumerate(touched) if rows[:, tree].any()]
        assert len(own) <= 2, "a constraint has two sides"
        own += [-1] * (2 - len(own))
        out.append([kind, size, mu, bound, speculative, known, mode, *own])
        for tree in own:
            if tree >= 0:
                out.extend(sparse(row) for row in rows[:, touched[tree]])
    return [*out, get["g"], get["warm"]]


def sparse(row):
    """The columns that are not zero, as the bits of a number, and their entries."""
    (columns,) = np.nonzero(row)
    return [float(sum(1 << int(column) for column in columns)), *row[columns]]


def main():
    archive = np.load(sys.argv[1])
    count = int(archive["count"])
    parts = [[count]]
    for index in range(count):
        parts.extend(numbers(archive, index))
    path = Path(__file__).with_name("hard_problems.bin")
    np.concatenate([np.asarray(part, dtype="<f8") for part in parts]).astype("<f8").tofile(path)
    print(f"{path}: {count} problems, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
