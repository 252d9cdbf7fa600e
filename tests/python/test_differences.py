"""Differences that know their own error: smooth functions, rounding, kinks at 0 and beside it, numbers and arrays."""

import numpy as np
import pytest

from coulomb._differences import noise_of, sizes, slope

STEPS = sizes(8e-7, 4e-3)


def test_sizes():
    assert sizes(1e-6, 1.6e-5) == pytest.approx([1e-6, 4e-6, 1.6e-5], rel=1e-14)


@pytest.mark.parametrize("noise", [1e-16, 1e-13, 1e-10])
def test_errors_are_within_what_is_told(noise):
    """And not much less: differences whose bar is a thousand times the error are no use."""
    random, bars, off = np.random.default_rng(0), [], []
    for _ in range(300):
        a, b, c = random.normal(size=3)
        f = lambda h: a * h + b * h**2 + c * np.sin(10 * h) + noise * random.normal()  # noqa: E731, B023
        found, error, _ = slope(f, noise, STEPS)
        bars.append(error), off.append(abs(found - a - 10 * c))
    assert np.all(np.array(off) <= bars) and np.median(bars) <= 100 * np.median(off)
    assert np.median(bars) < max(1e-8, 1e5 * noise)


def test_kinks():
    at_0 = slope(lambda h: h + 1e-3 * abs(h), 1e-16, STEPS)
    assert at_0[1] >= 1e-3 and at_0[2] == pytest.approx(2e-3)
    for where in np.geomspace(1e-7, 1e-2, 41):
        for side in (1, -1):
            found, error, _ = slope(lambda h: h + max(0.0, side * h - where), 1e-16, STEPS)  # noqa: B023
            assert abs(found - 1) <= error or error > 0.01, (where, side, found, error)


def test_what_is_not_smooth_ends_the_growth():
    seen = []

    def f(h):
        seen.append(h)
        return np.array([h, 2 * h]) if abs(h) < 1e-4 else None

    found, error, _ = slope(f, 1e-16, STEPS)
    assert found == pytest.approx([1, 2], rel=1e-9) and np.all(error < 1e-8) and max(seen) < 5e-4
    assert slope(lambda h: None, 1e-16, STEPS)[1] == np.inf
    assert slope(lambda h: h if abs(h) < 1e-6 else None, 1e-16, STEPS)[1] == np.inf


def test_noise():
    random = np.random.default_rng(1)
    f = lambda x: np.array([x @ x, x[0] + 1e-12 * random.normal()])  # noqa: E731
    noise = noise_of(f, 1e-9 * random.normal(size=(200, 3)))
    assert noise[0] < 1e-16 and noise[1] == pytest.approx(1e-12, rel=0.2)
    assert noise_of(lambda x: None, np.ones((4, 3))) is None


def test_entries_that_nothing_touches_are_known_to_their_own_rounding():
    f = lambda h: np.array([h, 0.0])  # noqa: E731
    assert slope(f, 1e-10, STEPS)[1][1] > 1e-8
    assert slope(f, 1e-10, STEPS, untouched=1e-16)[1][1] < 1e-12
