"""What an autodiff framework returns as the Jacobian of a function of arrays, against differences that know their own error."""

import numpy as np

from coulomb._differences import noise_of, sizes, slope

SIZES = sizes(1e-6, 5e-3)
EPSILON = 1.1e-16


def check_jacobian(value, jacobians, arguments, atol=1e-6, rtol=1e-5):
    """value(*arguments): (n,). jacobians: lists of one (n, size) matrix per argument, each from another mode of the framework.

    Every entry that the differences know to atol + rtol |entry| agrees to that; nine of ten have to be known so well.
    """
    arguments = [np.asarray(x, dtype=float) for x in arguments]
    start = value(*arguments)
    ends = np.cumsum([x.size for x in arguments])
    units = np.concatenate([np.full(x.size, np.abs(x).max() or 1.0) for x in arguments])

    def change(dx):
        parts = np.split(dx, ends[:-1])
        return value(*(x + part.reshape(x.shape) for x, part in zip(arguments, parts))) - start

    rounding = EPSILON * (1 + np.abs(start))
    tiny = 1e-9 * units * np.random.default_rng(0).normal(size=(8, ends[-1]))
    noise = np.maximum(noise_of(change, tiny), rounding)
    columns = [slope(lambda h, e=e: change(h * e), noise, SIZES, 1e-8, untouched=rounding) for e in np.diag(units)]
    numeric, error = (np.array([column[i] for column in columns]).T / units for i in (0, 1))

    bound = atol + rtol * np.abs(numeric)
    known = error <= bound
    assert known.mean() >= 0.9, f"{known.mean():.0%} known"
    for blocks in jacobians:
        analytic = np.hstack(blocks)
        assert analytic.shape == numeric.shape
        off = np.abs(analytic - numeric)
        worst = np.unravel_index(np.argmax(np.where(known, off / bound, 0)), off.shape)
        assert off[worst] <= bound[worst], (worst, analytic[worst], numeric[worst], error[worst])
        assert np.all(off <= np.maximum(bound, error))
