"""One-sided derivatives of a function by differences that know their own error.

  D(h) = (f(h) - f(0)) / h = f'(0+) + O(h),   R_0 = D,   R_j(h) = (4^j R_(j-1)(h) - R_(j-1)(4 h)) / (4^j - 1)

at sizes h that grow by 4. The error of R_j(h) is 5 |R_j(h) - R_(j-1)(h)| + noise of the difference; the
answer is the R_j of the smallest sizes whose error is small enough, since kinks further away are none of this point's. Everything comes from
f alone: what is compared with the answer has no part in it.
"""

import numpy as np

SIZES = [4e-8 * 4**k for k in range(9)]


def _ladder(f, sizes, noise, enough):
    """(R, error) of the smallest sizes whose error is small enough; without one the best, whose error may be inf. f may be None."""
    best = (None, np.inf)
    row = []
    for size in sizes:
        value = f(size)
        if value is None:
            row = []
            continue
        higher = [value / size]
        for j, lower in enumerate(row[:3]):
            power = 4 ** (j + 1)
            higher.append((power * lower - higher[j]) / (power - 1))
            error = 5 * np.max(np.abs(higher[-1] - lower), initial=0) + 2 * power * noise / abs(size)
            if error < best[1]:
                best = higher[-1], error
        row = higher
        if best[1] <= enough:
            break
    return best


def one_sided(f, sign, noise, enough):
    """(derivative, error) of the vector function f, f(0) = 0, for h of this sign; error: of its largest entry.

    Two ladders of sizes, which have to agree: one by itself may be deceived by a kink among its sizes. And the smallest difference must be one
    of that slope, up to its noise: else the answer is that of beyond a kink, and the error is inf.
    """
    first = _ladder(f, [sign * size for size in SIZES], noise, enough)
    second = _ladder(f, [2 * sign * size for size in SIZES], noise, enough)
    if not first[1] + second[1] < np.inf:
        return None, np.inf
    nearest = f(sign * SIZES[0])
    if nearest is not None:
        off = np.max(np.abs(nearest / (sign * SIZES[0]) - first[0]), initial=0)
        if off > 4 * noise / SIZES[0] + 0.01 * np.max(np.abs(first[0]), initial=0):
            return None, np.inf
    return first[0], max(first[1], second[1], np.max(np.abs(first[0] - second[0]), initial=0))
