"""Deep overlaps: contacts are as deep as the shapes are in each other, by a computation of its own, and take the shortest way out."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from test_degenerate import PAIRS, TwoBodies

import coulomb

POLYTOPES = {"box", "mesh"}
SHARES = (0.05, 0.2, 0.5, 0.9)  # of the way from the border to the centre of the smaller body
PER_PAIR = 480  # of 21 pairs of shapes: 10,080 overlaps
RELATIVE = 1e-5

# A face that is nearly normal gives its own normal: 2.9 degrees, whose cosine is 1 - 1.2e-3.
LEAN = 1.3e-3


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


DIRECTIONS = unit(np.random.default_rng(5).normal(size=(4000, 3)))


def support_points(pair, body, directions):
    """(n, 3): the points of a body that are farthest along directions (n, 3), from its centre."""
    kind = pair.kinds[body]
    size = pair.sizes[body]
    local = directions @ pair.rotations[body]
    ends = [0, 0, size[1]] * np.sign(local[:, 2:])
    if kind == "sphere":
        points = size[0] * local
    elif kind == "capsule":
        points = size[0] * local + ends
    elif kind == "cylinder":
        across = np.maximum(np.hypot(local[:, 0], local[:, 1]), 1e-300)
        points = local * [1, 1, 0] * (size[0] / across)[:, None] + ends
    elif kind == "ellipsoid":
        points = size**2 * local / np.linalg.norm(size * local, axis=1, keepdims=True)
    else:
        points = size * np.sign(local)
    return points @ pair.rotations[body].T


def overlaps(pair, directions):
    """(n,): how far the second body must move along each direction to touch no more."""
    difference = support_points(pair, 0, directions) - support_points(pair, 1, -directions) - pair.offset
    return np.einsum("ij,ij->i", difference, directions)


def hull_depth(pair):
    """The nearest facet of the hull of all differences of corners."""
    cube = 2.0 * np.array(list(np.ndindex(2, 2, 2))) - 1
    first, second = (cube * pair.sizes[body] @ pair.rotations[body].T for body in range(2))
    differences = (first[:, None] - second[None] - pair.offset).reshape(-1, 3)
    return -ConvexHull(differences).equations[:, 3].max()


def least_overlap(pair):
    """Of many directions, the best ones turned at random by ever less: no shorter way out is known."""
    axes = [sign * rotation.T for rotation in pair.rotations for sign in (-1, 1)]
    directions = np.vstack([DIRECTIONS, *axes])
    values = overlaps(pair, directions)
    best = np.argsort(values)[:40]
    directions = directions[best]
    values = values[best]
    spread = np.full(len(best), 0.05)
    random = np.random.default_rng(0)
    for k in range(60):
        # The best turn of each, which is tried further where it was one.
        trials = unit(directions[:, None] + spread[:, None, None] * random.normal(size=(len(directions), 24, 3)))
        found = overlaps(pair, trials.reshape(-1, 3)).reshape(len(directions), -1)
        choice = found.argmin(axis=1)
        rows = np.arange(len(directions))
        better = found[rows, choice] < values
        directions[better] = trials[rows, choice][better]
        values[better] = found[rows, choice][better]
        spread *= np.where(better, 1.3, 0.6)

        # Most of them have met.
        if k == 15:
            kept = np.argsort(values)[:10]
            directions, values, spread = directions[kept], values[kept], spread[kept]
    return values.min()


def what_is_wrong(kinds, seed, decades, share):
    """With the deepest contact of a random pair; empty if nothing is."""
    pair = TwoBodies(kinds, np.random.default_rng(seed), decades, share)
    sim = coulomb.Simulator(pair.model, timestep=1e-3)
    sim.step(*pair.model.neutral())
    deepest = max(sim.contacts, key=lambda contact: contact.depth)

    # Round shapes: what is known of the least overlap is an upper bound, and the normal of the contact is one more.
    polytopes = set(kinds) <= POLYTOPES
    least = hull_depth(pair) if polytopes else min(least_overlap(pair), pair.overlap(-deepest.normal))
    rounding = 1e-9 * pair.scale
    told = f"{kinds}, seed {seed}, {decades} decades, share {share}: depth {deepest.depth}, least overlap {least}"
    if not deepest.depth >= (1 - RELATIVE) * least - rounding:
        return f"too shallow: {told}"
    if not deepest.depth <= (1 + LEAN) * least + rounding:
        return f"not the shortest way out: {told}"
    return ""


@pytest.mark.parametrize(
    "kinds, seed, decades, share",
    [
        (("cylinder", "cylinder"), 1956022268, 1.0, 0.2),
        (("cylinder", "cylinder"), 1392595703, 1.0, 0.2),
        (("capsule", "cylinder"), 1292694002, 1.0, 0.5),
        (("capsule", "cylinder"), 1648827754, 1.0, 0.9),
        (("capsule", "cylinder"), 809610401, 3.0, 0.5),
    ],
)
def test_a_line_across_the_rim_of_a_cap(kinds, seed, decades, share):
    """Its point over the cap is not the deepest place: that is of the rim and the line, along their own normal."""
    assert what_is_wrong(kinds, seed, decades, share) == ""


@pytest.mark.parametrize(
    "kinds, seed, decades, share",
    [
        (("cylinder", "mesh"), 502646935, 1.0, 0.05),
        (("cylinder", "mesh"), 137047499, 1.0, 0.2),
        (("cylinder", "cylinder"), 1317737452, 1.0, 0.05),
        (("box", "cylinder"), 900859381, 3.0, 0.05),
        (("cylinder", "cylinder"), 1207535419, 3.0, 0.05),
        (("cylinder", "mesh"), 702655138, 3.0, 0.9),
        (("box", "cylinder"), 8077, 1.0, 0.2),
    ],
)
def test_two_ways_out_of_nearly_the_same_length(kinds, seed, decades, share):
    """The polytope is exact enough to tell which is the shorter one."""
    assert what_is_wrong(kinds, seed, decades, share) == ""


@pytest.mark.slow
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_ten_thousand_overlaps(kinds):
    seeds = 1000 * PAIRS.index(kinds) + np.arange(PER_PAIR)
    found = [what_is_wrong(kinds, seed, 1.0, SHARES[seed % len(SHARES)]) for seed in seeds]
    assert [text for text in found if text] == []
