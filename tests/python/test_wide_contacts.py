"""ContactProblem with further tangents (torsional and rolling friction): three to six rows a contact."""

import numpy as np
import pytest

import coulomb

METHODS = ["auto", "ac_lm", "admm", "pgs"]


def random_problem(seed, singular=False):
    random = np.random.default_rng(seed)
    rows = random.integers(3, 7, size=int(random.integers(1, 5)))
    n = int(rows.sum())
    columns = max(4, n // 2) if singular else n + 3
    J = random.normal(size=(n, columns)) * 10 ** random.uniform(-0.5, 0.5, columns)
    g = J @ random.normal(size=columns)  # in the range of G: a motion that the contacts can stop
    return J @ J.T, g, random.choice([0.1, 0.5, 1.0, 3.0], size=len(rows)), rows


def contacts(values, rows):
    """Tangents and normal of every contact."""
    parts = np.split(values, np.cumsum(rows)[:-1])
    return [(np.delete(part, 2), part[2]) for part in parts]


def check_law(G, g, mu, rows, impulse, tolerance=1e-8):
    """The complementarity conditions of the law, relative to the largest impulse and speed."""
    force, speed = max(np.abs(impulse).max(), 1e-300), np.abs(g).max()
    pairs = zip(contacts(impulse, rows), contacts(G @ impulse + g, rows), mu)
    for (tangential, normal), (slip, gap), friction in pairs:
        assert normal >= -tolerance * force and gap >= -tolerance * speed
        assert abs(normal * gap) <= tolerance * force * speed
        assert np.linalg.norm(tangential) <= friction * normal + tolerance * force
        against = tangential * np.linalg.norm(slip) + friction * normal * slip
        assert np.abs(against).max() <= 10 * tolerance * force * speed


@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_methods_agree_with_the_law(method, singular):
    solved = 0
    modes = set()
    for seed in range(40):
        G, g, mu, rows = random_problem(seed, singular)
        s = coulomb.ContactProblem(G, g, mu, rows=rows).solve(method=method, max_iterations=20000)
        assert np.isfinite(s.impulse).all() and s.status in ("solved", "relaxed", "max_iterations", "failed")
        assert np.allclose(s.velocity, G @ s.impulse + g, atol=1e-10 * np.abs(g).max())
        if s.status == "solved":
            solved += 1
            modes.update(s.modes)
            assert s.residual <= 1e-10
            check_law(G, g, mu, rows, s.impulse)
    assert solved >= (40 if method == "auto" else 25)
    assert modes == {"separating", "sticking", "sliding"}


def solution(G, g, mu, rows):
    s = coulomb.ContactProblem(G, g, mu, rows=rows).solve(tolerance=1e-14)
    assert s.status == "solved"
    return s.impulse


def difference(function, h=1e-5):
    """Richardson-extrapolated central difference of function(step) at 0."""
    central = [(function(x) - function(-x)) / (2 * x) for x in (h, h / 2)]
    return (4 * central[1] - central[0]) / 3


@pytest.mark.parametrize("seed", range(16))
def test_derivatives_against_differences(seed):
    G, g, mu, rows = random_problem(seed)
    problem = coulomb.ContactProblem(G, g, mu, rows=rows)
    s = problem.solve(tolerance=1e-13)
    assert s.margin.min() > 1e-4  # no mode changes within the differences
    d = problem.derivatives()
    assert not d.deficient
    by_g = np.array([difference(lambda x, e=e: solution(G, g + x * e, mu, rows)) for e in np.eye(len(g))]).T
    assert np.linalg.norm(d.dlambda_dg - by_g) <= 1e-6 * max(np.linalg.norm(by_g), 1e-3)
    by_mu = np.array([difference(lambda x, e=e: solution(G, g, mu + x * e, rows)) for e in np.eye(len(mu))]).T
    assert np.linalg.norm(d.dlambda_dmu - by_mu) <= 1e-6 * max(np.linalg.norm(by_mu), 1e-1)
    dG = np.random.default_rng(seed).normal(size=G.shape)
    dG += dG.T
    by_G = difference(lambda x: solution(G + x * dG, g, mu, rows), 1e-6)
    assert np.linalg.norm(d.dlambda_along_dG(dG) - by_G) <= 1e-5 * max(np.linalg.norm(by_G), 1e-3)


def test_a_spinning_contact_in_closed_form():
    """Slip and spin at once: the impulse lies on the border of the cone against both."""
    problem = coulomb.ContactProblem(np.eye(4), [3.0, 0.0, -1.0, 4.0], [0.5], rows=[4])
    assert problem.solve().modes == ["sliding"]
    s = problem.solve()
    assert s.impulse == pytest.approx([-0.3, 0, 1, -0.4], abs=1e-12)
    assert problem.derivatives().dlambda_dmu[:, 0] == pytest.approx([-0.6, 0, 0, -0.8], abs=1e-12)


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_the_law_does_not_depend_on_the_axes(size):
    """All tangents together turned by an orthogonal matrix turn the impulse."""
    random = np.random.default_rng(size)
    J = random.normal(size=(size, size + 2))
    tangents = [i for i in range(size) if i != 2]
    turn = np.eye(size)
    turn[np.ix_(tangents, tangents)] = np.linalg.qr(random.normal(size=(size - 1, size - 1)))[0]
    g = J @ random.normal(size=size + 2)
    g[2] = -abs(g[2])
    for mu in (0.1, 1.0, 10.0):
        plain = solution(J @ J.T, g, [mu], [size])
        turned = solution(turn @ J @ J.T @ turn.T, turn @ g, [mu], [size])
        assert turned == pytest.approx(turn @ plain, abs=1e-10 * np.abs(plain).max())


def test_a_further_row_that_nothing_moves_changes_nothing():
    random = np.random.default_rng(1)
    J = random.normal(size=(3, 6))
    g = np.array([1.0, -2.0, -1.0])
    G = np.zeros((4, 4))
    G[:3, :3] = J @ J.T
    wide = solution(G, np.append(g, 0), [0.4], [4])
    assert wide == pytest.approx(np.append(solution(J @ J.T, g, [0.4], [3]), 0), abs=1e-10)


def test_redundant_wide_contacts_share_one_body():
    """Twenty points under one block, each with six rows: rank 6."""
    random = np.random.default_rng(0)
    J = []
    for x, y in random.uniform(-1, 1, (20, 2)):
        linear = np.hstack([np.eye(3), -np.array([[0, 0.5, y], [-0.5, 0, -x], [-y, x, 0]])])
        angular = 0.1 * np.hstack([np.zeros((3, 3)), np.eye(3)[[2, 0, 1]]])
        J += [linear, angular]
    J = np.vstack(J)
    g = J @ [0.1, 0, -1, 0, 0, 0.1]
    problem = coulomb.ContactProblem(J @ J.T, g, [0.5] * 20, rows=[6] * 20)
    s = problem.solve()
    assert s.status == "solved" and s.impulse[2::6].sum() == pytest.approx(1, rel=1e-9)
    check_law(J @ J.T, g, [0.5] * 20, [6] * 20, s.impulse)
    d = problem.derivatives()
    assert d.deficient and np.isfinite(d.dlambda_dg).all()


@pytest.mark.parametrize(
    ("arguments", "rows", "words"),
    [
        ((np.eye(4), np.zeros(4), [1]), [2], r"rows\[0\] = 2"),
        ((np.eye(7), np.zeros(7), [1]), [7], r"rows\[0\] = 7"),
        ((np.eye(4), np.zeros(4), [1]), [3], "g has 4 elements, expected 3"),
        ((np.eye(4), np.zeros(4), [1, 1]), [4], "mu: expected shape"),
        ((np.eye(4), np.zeros(4), [1]), "x", "rows"),
    ],
)
def test_bad_rows(arguments, rows, words):
    with pytest.raises((ValueError, TypeError), match=words):
        coulomb.ContactProblem(*arguments, rows=rows)
