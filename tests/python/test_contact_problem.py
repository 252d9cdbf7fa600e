"""coulomb.ContactProblem by itself: the law, the methods, the derivatives, and what it refuses."""

import numpy as np
import pytest

import coulomb

METHODS = ["auto", "ac_lm", "admm", "pgs"]


def random_problem(seed, singular=False):
    random = np.random.default_rng(seed)
    contacts = int(random.integers(1, 6))
    columns = max(3, 2 * contacts) if singular else 3 * contacts + 3
    J = random.normal(size=(3 * contacts, columns)) * 10 ** random.uniform(-0.5, 0.5, columns)
    g = J @ random.normal(size=columns)  # in the range of G: a motion that the contacts can stop
    return J @ J.T, g, random.choice([0.0, 0.1, 0.5, 1.0, 3.0], size=contacts)


def check_law(G, g, mu, impulse, tolerance=1e-8):
    """The complementarity conditions of Coulomb's law, relative to the largest impulse and speed."""
    c, impulse = (G @ impulse + g).reshape(-1, 3), impulse.reshape(-1, 3)
    force, speed = max(np.abs(impulse).max(), 1e-300), np.abs(g).max()
    for (*tangential, normal), (*slip, gap), friction in zip(impulse, c, mu):
        assert normal >= -tolerance * force and gap >= -tolerance * speed
        assert abs(normal * gap) <= tolerance * force * speed
        assert np.linalg.norm(tangential) <= friction * normal + tolerance * force
        # Slip is opposed by friction at its limit; with less friction there is none.
        assert (
            np.abs(np.multiply(tangential, np.linalg.norm(slip)) + np.multiply(friction * normal, slip)).max()
            <= 10 * tolerance * force * speed
        )


@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_methods_agree_with_the_law(method, singular):
    solved = 0
    for seed in range(40):
        G, g, mu = random_problem(seed, singular)
        s = coulomb.ContactProblem(G, g, mu).solve(method=method, max_iterations=20000)
        assert np.isfinite(s.impulse).all() and s.status in ("solved", "relaxed", "max_iterations", "failed")
        assert np.allclose(s.velocity, G @ s.impulse + g, atol=1e-10 * np.abs(g).max())
        if s.status == "solved":
            solved += 1
            assert s.residual <= 1e-10
            check_law(G, g, mu, s.impulse)
    assert solved >= (40 if method == "auto" else 25)


def solution(G, g, mu):
    s = coulomb.ContactProblem(G, g, mu).solve(tolerance=1e-14)
    assert s.status == "solved"
    return s.impulse


def difference(function, h=1e-5):
    """Richardson-extrapolated central difference of function(step) at 0."""
    central = [(function(x) - function(-x)) / (2 * x) for x in (h, h / 2)]
    return (4 * central[1] - central[0]) / 3


@pytest.mark.parametrize("seed", range(12))
def test_derivatives_against_differences(seed):
    G, g, mu = random_problem(seed)
    n = len(g)
    problem = coulomb.ContactProblem(G, g, mu)
    s = problem.solve(tolerance=1e-13)
    assert s.margin.min() > 1e-4  # no mode changes within the differences
    d = problem.derivatives()
    assert not d.deficient
    by_g = np.array([difference(lambda x, e=e: solution(G, g + x * e, mu)) for e in np.eye(n)]).T
    assert np.linalg.norm(d.dlambda_dg - by_g) <= 1e-6 * max(np.linalg.norm(by_g), 1e-3)
    by_mu = np.zeros((n, len(mu)))
    for i in np.flatnonzero(mu):
        by_mu[:, i] = difference(lambda x, i=i: solution(G, g, mu + x * np.eye(len(mu))[i]))
    rubbing = mu > 0
    assert np.linalg.norm((d.dlambda_dmu - by_mu)[:, rubbing]) <= 1e-6 * max(np.linalg.norm(by_mu), 1e-1)
    dG = np.random.default_rng(seed).normal(size=(n, n))
    dG += dG.T
    by_G = difference(lambda x: solution(G + x * dG, g, mu), 1e-6)
    assert np.linalg.norm(d.dlambda_along_dG(dG) - by_G) <= 1e-5 * max(np.linalg.norm(by_G), 1e-3)


def test_some_derivatives_are_not_zero():
    """Guards the test above: sliding contacts answer to mu, and touching ones to g."""
    problem = coulomb.ContactProblem(np.eye(3), [2.0, 0.0, -1.0], [0.5])
    assert problem.solve().modes == ["sliding"]
    d = problem.derivatives()
    assert d.dlambda_dmu[:, 0] == pytest.approx([-1, 0, 0], abs=1e-12)  # lambda = (-mu, 0, 1)
    assert d.dlambda_dg == pytest.approx(np.array([[0, 0, 0.5], [0, -0.25, 0], [0, 0, -1]]), abs=1e-12)


def test_without_friction_mu_has_a_one_sided_derivative():
    G, g, _ = random_problem(3)
    g[2::3] = -1
    mu = np.zeros(len(g) // 3)
    problem = coulomb.ContactProblem(G, g, mu)
    problem.solve(tolerance=1e-13)
    found, h = problem.derivatives().dlambda_dmu, 1e-6
    by_mu = np.array([(solution(G, g, mu + h * e) - solution(G, g, mu)) / h for e in np.eye(len(mu))]).T
    assert found == pytest.approx(by_mu, abs=1e-4 * np.abs(by_mu).max()) and np.abs(by_mu).max() > 1e-3


def test_redundant_contacts_share_one_body():
    """Fifty points under one block: rank 6. The impulses are not unique, their sum and the velocities are."""
    random = np.random.default_rng(0)
    J = []
    for x, y in random.uniform(-1, 1, (50, 2)):
        J.append(np.hstack([np.eye(3), -np.array([[0, 0.5, y], [-0.5, 0, -x], [-y, x, 0]])]))
    J = np.vstack(J)
    problem = coulomb.ContactProblem(J @ J.T, J @ [0.1, 0, -1, 0, 0, 0.1], [0.5] * 50)
    s = problem.solve()
    assert s.status == "solved" and s.impulse[2::3].sum() == pytest.approx(1, rel=1e-9)
    d = problem.derivatives()
    assert d.deficient and np.isfinite(d.dlambda_dg).all()


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("speed", [1e-6, 1e6])
def test_units_do_not_matter(scale, speed):
    G, g, mu = random_problem(5)
    reference = coulomb.ContactProblem(G, g, mu).solve()
    s = coulomb.ContactProblem(scale * G, speed * g, mu).solve()
    assert s.status == "solved" and s.modes == reference.modes
    assert s.impulse * scale / speed == pytest.approx(reference.impulse, abs=1e-8 * np.abs(reference.impulse).max())


def test_no_contacts():
    problem = coulomb.ContactProblem(np.zeros((0, 0)), [], [])
    s = problem.solve()
    assert s.status == "solved" and s.impulse.shape == (0,) and s.modes == [] and problem.num_contacts == 0
    assert problem.derivatives().dlambda_dg.shape == (0, 0)


def test_a_contact_that_nothing_can_stop_is_reported():
    s = coulomb.ContactProblem(np.zeros((3, 3)), [0, 0, -1.0], [1.0]).solve()
    assert s.status == "relaxed" and s.relaxation > 0 and np.isfinite(s.impulse).all()


I3, g3 = np.eye(3), [0.0, 0.0, -1.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((I3 * np.nan, g3, [1]), r"G\[0"),
        ((I3, [0, 0, np.inf], [1]), r"g\[2"),
        ((I3, g3, [np.nan]), r"mu\[0"),
        ((I3, g3, [-1]), r"mu\[0"),
        ((I3 + np.eye(3, k=1), g3, [1]), "G must be symmetric"),
        ((-I3, g3, [1]), "G must be positive"),
        ((I3, g3, [1], [-1, 0, 0]), r"R\[0"),
        ((I3, g3, [1], [0, 0]), "R: expected shape"),
        ((I3, g3, [1, 1]), "mu: expected shape"),
        ((I3, g3, [[1]]), "mu: expected shape"),
        ((np.eye(4), np.zeros(4), [1]), "g: expected 3 entries"),
        (("text", g3, [1]), "G: "),
        ((None, g3, [1]), "G: "),
        ((I3, None, [1]), "g: "),
        ((I3, g3, None), "mu: "),
    ],
)
def test_bad_problems(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        coulomb.ContactProblem(*arguments)


@pytest.mark.parametrize(
    ("option", "value"),
    [("method", "x"), ("tolerance", 0), ("tolerance", np.nan), ("max_iterations", 0), ("warm", [1, 2]), ("warm", [np.nan] * 3)],
)  # fmt: skip
def test_bad_options(option, value):
    with pytest.raises(ValueError, match=option):
        coulomb.ContactProblem(I3, g3, [1]).solve(**{option: value})


@pytest.mark.parametrize("dG", [np.zeros((2, 2)), np.full((3, 3), np.nan), None, "text"])
def test_bad_changes_of_G(dG):
    with pytest.raises((ValueError, TypeError), match="dG"):
        coulomb.ContactProblem(I3, g3, [1]).derivatives().dlambda_along_dG(dG)
