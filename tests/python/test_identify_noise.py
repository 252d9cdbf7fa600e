"""coulomb.identify where the noise is not known, and where unknowns start at their bounds: errors are right, and fits get away from there."""

import numpy as np
import pytest
from test_identify import ARM_TRUTH, ARM_UNKNOWNS, arm, arm_motion, distance

import coulomb
from coulomb.identify import Unknown, Window, fit

scipy_stats = pytest.importorskip("scipy.stats")


def test_standard_errors_with_priors_and_readings_of_several_units():
    # Nothing is known of the noise of angles and velocities, a hundred times apart in their numbers; a prior on the damping, drawn anew for each
    # fit, says about as much as the data do, and its share in the errors is right only if the data are weighed by their own noise.
    truth, weight = np.array([np.log(1.3), 0.3, 0.2]), 1e-3
    distances, noises, rng = [], [], np.random.default_rng(7)
    for seed in range(20):
        Q, U = arm_motion(seed)
        clean = coulomb.Simulator(arm().with_parameters(ARM_TRUTH)).rollout([0.3, -0.2], [0, 0], U)
        V = clean.v + 0.1 * rng.normal(size=clean.v.shape)
        prior = Unknown("joint_damping/shoulder", mean=0.3 + weight * rng.normal(), deviation=weight)
        window = Window(q=Q, v=V, u=U)
        found = fit(arm(), window, [ARM_UNKNOWNS[0], prior, ARM_UNKNOWNS[2]], loss="linear")
        assert found.converged and found.estimated == [("q", "rad"), ("v", "rad/s")]
        distances.append(distance(found, truth))
        noises.append([found.noise[0]["q"][0], found.noise[0]["v"][0]])
    assert 0.3 < found.errors["joint_damping/shoulder"] / weight < 0.9
    low, high = scipy_stats.chi2.ppf([0.001, 0.999], 60)
    assert low < sum(distances) < high
    assert np.allclose(np.mean(noises, axis=0), [1e-3, 0.1], rtol=4 / np.sqrt(2 * 300 * 20))
    assert "noise of q, estimated: 0.00" in str(found)


def test_a_prior_is_outweighed_by_data_of_unknown_noise():
    # The truth lies 25 of the deviations of the prior away, and the data know it to a small part of one of them.
    Q, U = arm_motion()
    prior = Unknown("mass/lower", mean=0.8, deviation=0.02)
    known, unknown = (
        fit(arm(), Window(q=Q, u=U, deviation=deviation), [prior, *ARM_UNKNOWNS[1:]]) for deviation in (1e-3, None)
    )
    assert abs(known.values["mass/lower"][0] - 1.3) < 4 * known.errors["mass/lower"]
    assert abs(unknown.values["mass/lower"][0] - known.values["mass/lower"][0]) < known.errors["mass/lower"]
    assert np.isclose(unknown.errors["mass/lower"], known.errors["mass/lower"], rtol=0.15)


def test_a_known_start_is_weighed_against_unknown_noise():
    # A velocity that is guessed wrongly, and said to be: the angles know better.
    Q, U = arm_motion()
    found = fit(arm(), Window(q=Q, u=U, start=([0.3, -0.2], [0.5, 0.5]), start_deviation=0.5), ARM_UNKNOWNS)
    assert np.allclose(found.starts[0][1], 0, atol=0.01)


def test_given_deviations_stay_as_they_are():
    # Velocities of which nothing is said, however bad, take nothing from what the angles know.
    Q, U = arm_motion()
    V = np.random.default_rng(3).normal(size=Q.shape)
    alone = fit(arm(), Window(q=Q, u=U, deviation=1e-3), ARM_UNKNOWNS, loss="linear")
    both = fit(arm(), Window(q=Q, v=V, u=U, deviation=1e-3), ARM_UNKNOWNS, loss="linear")
    assert both.noise[0]["q"].tolist() == [1e-3, 1e-3] and both.noise[0]["v"][0] > 0.5
    assert all(np.isclose(both.errors[label], alone.errors[label], rtol=0.01) for label in alone.labels)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("names", [["shoulder"], ["shoulder", "elbow"]])
def test_damping_is_found_from_a_model_that_has_none(names, known):
    # Its start is its lower bound, of all unknowns.
    model = arm().with_parameters({f"joint_damping/{name}": 0.0 for name in names} | {"mass/lower": 1.3})
    if len(names) == 1:
        model = model.with_parameters({"joint_damping/elbow": 0.2})
    Q, U = arm_motion()
    window = Window(q=Q, u=U, deviation=1e-3 if known else None)
    found = fit(model, window, [f"joint_damping/{name}" for name in names])
    assert found.converged and not found.held and found.evaluations < 40
    assert distance(found, np.array([0.3, 0.2])[: len(names)]) < scipy_stats.chi2.ppf(0.999, len(names))


@pytest.mark.parametrize("lower, held", [(0.5, True), (0.25, False)])
def test_a_start_at_a_bound_is_held_only_if_the_cost_falls_beyond_it(lower, held):
    # The truth is 0.3.
    Q, U = arm_motion()
    model = arm().with_parameters({**ARM_TRUTH, "joint_damping/shoulder": lower})
    found = fit(model, Window(q=Q, u=U, deviation=1e-3), Unknown("joint_damping/shoulder", lower=lower))
    assert found.converged and found.held == ({"joint_damping/shoulder": "lower"} if held else {})
    assert np.isclose(found.values["joint_damping/shoulder"][0], 0.5 if held else 0.3, atol=2e-3)

    # Even where nothing has moved yet.
    found = fit(
        model, Window(q=Q, u=U, deviation=1e-3), Unknown("joint_damping/shoulder", lower=lower), max_evaluations=1
    )
    assert not found.converged and bool(found.held) == held


def test_noise_that_is_not_known_weighs_readings_as_known_noise_does():
    # Velocities so bad that they count for little: the first guess of the noise, which trusts them, is not the last.
    Q, U = arm_motion()
    clean = coulomb.Simulator(arm().with_parameters(ARM_TRUTH)).rollout([0.3, -0.2], [0, 0], U)
    V = clean.v + np.random.default_rng(7).normal(size=clean.v.shape)
    known = fit(arm(), Window(q=Q, v=V, u=U, deviation=1e-3, v_deviation=1.0), ARM_UNKNOWNS)
    unknown = fit(arm(), Window(q=Q, v=V, u=U), ARM_UNKNOWNS)
    assert np.all(np.abs(unknown.x - known.x) < 0.1 * np.sqrt(np.diag(known.covariance)))
