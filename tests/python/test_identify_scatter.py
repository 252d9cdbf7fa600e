"""Standard errors of coulomb.identify where channels are quieter or louder than was stated, or have outliers: over many fits, the errors that are made are
those that are stated. A pooled scale would take a quiet channel's silence for knowledge of another one."""

import numpy as np
import pytest

import coulomb
from coulomb.identify import Unknown, Window, fit

scipy_stats = pytest.importorskip("scipy.stats")

FITS = 100
CART = """<mujoco><option timestep=".02" gravity="0 0 0"/><worldbody><body name="cart"><joint name="x" type="slide" axis="1 0 0" damping="{}"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""
TRUTH, STATED, ROWS = 0.5, 1e-3, 40


def measured(rng, noise, outliers=0.0):
    """Positions (ROWS + 1, 3) of the cart, of which it moves along the first alone."""
    r = coulomb.Simulator(coulomb.load(CART.format(TRUTH))).rollout([0.0], [0.3], steps=ROWS)
    errors = STATED * rng.normal(size=(ROWS + 1, 3))
    errors *= np.where(rng.random(errors.shape) < outliers, 10.0, 1.0)
    return r.output("position/cart") + errors * noise


def window(rng, noise, outliers=0.0, known=True):
    deviation = {"position/cart": STATED} if known else {}
    tau = np.zeros((ROWS, 1))
    return Window(
        outputs={"position/cart": measured(rng, noise, outliers)},
        output_deviation=deviation,
        tau=tau,
        start=([0.0], [0.3]),
    )


def scores(seed, loss, make, prior=np.inf, **options):
    """Errors of FITS fits in stated ones, the last fit."""
    rng, found = np.random.default_rng(seed), []
    model = coulomb.load(CART.format(0.3))
    for _ in range(FITS):
        mean = TRUTH + (prior * rng.normal() if np.isfinite(prior) else 0.0)
        unknown = Unknown("joint_damping/x", mean=mean, deviation=prior) if np.isfinite(prior) else "joint_damping/x"
        result = fit(model, make(rng), [unknown], loss=loss, **options)
        assert result.converged
        found.append((result.x[0] - TRUTH) / np.sqrt(result.covariance[0, 0]))
    return np.array(found), result


def assert_honest(z):
    low, high = scipy_stats.chi2.ppf([0.001, 0.999], len(z)) / len(z)
    assert low < np.mean(z**2) < high
    fewest, most = scipy_stats.binom.ppf([0.001, 0.999], len(z), 0.95)
    assert fewest <= np.sum(np.abs(z) < 1.96) <= most


@pytest.mark.parametrize("loss", ["huber", "soft_l1", "cauchy"])
@pytest.mark.parametrize("noise", [(1, 0, 0), (1, 0.05, 1), (3, 1, 0)], ids=["quiet", "mixed", "loud"])
def test_errors_by_channel(loss, noise):
    if loss == "cauchy" and noise[0] == 3:
        pytest.skip("noise far above the stated one has several minima with this loss (docs/identify.md)")
    z, _ = scores(1, loss, lambda rng: window(rng, noise), initial_states=False)
    assert_honest(z)


def test_errors_with_outliers_beside_a_quiet_channel():
    z, result = scores(2, "huber", lambda rng: window(rng, (1, 0, 0), outliers=0.1), initial_states=False)
    assert_honest(z)

    # What remains is told by column.
    noise = result.noise[0]["position/cart"]
    assert 0.5 * STATED < noise[0] < 3 * STATED and noise[1] < 1e-9 and noise[2] < 1e-9


def test_errors_of_windows_with_cameras_of_their_own():
    z, _ = scores(3, "huber", lambda rng: [window(rng, (0.1, 0, 0)), window(rng, (2, 0, 1))], initial_states=False)
    assert_honest(z)


def test_errors_with_unknown_starts_and_a_prior():
    """Starts take one of the moving channel's degrees of freedom each; a prior that says as much as the data shares in the error."""
    z, result = scores(4, "huber", lambda rng: window(rng, (1, 0, 0)), prior=0.02)
    assert_honest(z)
    assert 0.3 < np.sqrt(result.covariance[0, 0]) / 0.02 < 0.95


@pytest.mark.parametrize("loss", ["linear", "huber"])
@pytest.mark.parametrize("noise", [(1, 1, 1), (1, 0.01, 0.01)], ids=["alike", "quiet"])
def test_errors_where_the_noise_is_not_known(loss, noise):
    z, result = scores(5, loss, lambda rng: window(rng, noise, known=False), initial_states=False)
    assert_honest(z)
    assert 0.7 * STATED < result.noise[0]["position/cart"][0] < 1.4 * STATED


def test_given_noise_and_squares_take_the_stated_deviations():
    """loss="linear" with given deviations believes them, whatever remains."""
    _, result = scores(6, "linear", lambda rng: window(rng, (0, 0, 0)), initial_states=False)
    _, loud = scores(6, "linear", lambda rng: window(rng, (1, 1, 1)), initial_states=False)
    assert np.isclose(result.covariance[0, 0], loud.covariance[0, 0], rtol=0.05)
    assert result.noise[0]["position/cart"].tolist() == [STATED] * 3
