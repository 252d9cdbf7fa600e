"""coulomb.solve_lcp: solutions from the definition, derivatives against differences, no solution, bad input."""

import itertools

import numpy as np
import pytest

import coulomb

METHODS = ["auto", "newton", "dantzig", "lemke", "pgs"]


def violation(A, b, lo, hi, index, r):
    """Worst violation of the definition, relative to the sizes of b and x."""
    x, w = r.x, A @ r.x + b
    lo, hi = np.array(lo, float), np.array(hi, float)
    for i, j in enumerate(index):
        if j >= 0:
            lo[i], hi[i] = -hi[i] * x[j], hi[i] * x[j]
    size_x, size_w = max(np.abs(x).max(), 1e-300), max(np.abs(b).max(), 1e-300)
    worst = max((lo - x).max() / size_x, (x - hi).max() / size_x)
    worst = max(worst, np.where(x > lo + 1e-9 * size_x, w, -np.inf).max() / size_w)
    return max(worst, np.where(x < hi - 1e-9 * size_x, -w, -np.inf).max() / size_w)


def contacts(random, n):
    """n frictional contacts of a body of 6 degrees of freedom: rows (normal, t1, t2) each."""
    J = random.normal(size=(3 * n, 6))
    A, b = J @ J.T, J @ random.normal(size=6)
    hi, index = np.full(3 * n, np.inf), np.full(3 * n, -1)
    for k in range(n):
        hi[3 * k + 1 : 3 * k + 3], index[3 * k + 1 : 3 * k + 3] = 0.1 + 0.6 * random.random(), 3 * k
    return A, b, np.zeros(3 * n), hi, index


@pytest.mark.parametrize("method", METHODS)
def test_random_problems(method):
    solved = 0
    for seed in range(60):
        problem = contacts(np.random.default_rng(seed), 1 + seed % 2)
        r = coulomb.solve_lcp(*problem, method=method, max_iterations=20000)
        if r.status.converged:
            solved += 1
            assert violation(*problem, r) <= 1e-8
            assert np.allclose(r.w, problem[0] @ r.x + problem[1])
            assert r.status.residual <= 1e-10 and r.status.reason == "solved"
        elif method in (
            "auto",
            "dantzig",
        ):  # strong friction between few contacts may leave none: then all classes were tried
            assert r.status.no_solution or r.status.reason.startswith("failed")
    assert solved >= 50


def test_defaults_are_the_plain_lcp():
    r = coulomb.solve_lcp([[2.0, 1.0], [1.0, 2.0]], [-1.0, 3.0])
    assert np.allclose(r.x, [0.5, 0]) and np.allclose(r.w, [0, 3.5])
    assert r.classes == ["clamped", "lower"] and r.status and r.status.unique


def test_same_solution_by_every_method():
    for seed in range(30):
        random = np.random.default_rng(seed)
        n = 5
        A = random.normal(size=(n, n)) + 2 * n * np.eye(n)  # not symmetric, one solution
        b, lo, hi = 5 * random.normal(size=n), np.full(n, -0.3), np.full(n, 0.2)
        reference = coulomb.solve_lcp(A, b, lo, hi).x
        for method in METHODS[1:]:
            assert np.allclose(coulomb.solve_lcp(A, b, lo, hi, method=method).x, reference, rtol=0, atol=1e-9), method


def test_least_norm_of_redundant_contacts():
    """Nimble's example: two contacts under one mass that cannot turn share its weight; x_C = -A_CC^+ b_C."""
    for method in METHODS:
        r = coulomb.solve_lcp(np.ones((2, 2)), [-9.81, -9.81], method=method)
        assert np.allclose(r.x, 4.905) and not r.status.unique and r.status.canonical
    J = np.random.default_rng(0).normal(size=(8, 4))
    A, b = J @ J.T, -np.abs(J) @ np.ones(4)
    r = coulomb.solve_lcp(A, b, lo=np.full(8, -np.inf))
    if r.status:
        assert np.allclose(r.x, -np.linalg.pinv(A) @ b, atol=1e-9)


def test_friction_sticks_and_slides():
    A = np.eye(2)
    stick = coulomb.solve_lcp(A, [-1.0, 0.2], hi=[np.inf, 0.5], friction_index=[-1, 0])
    slide = coulomb.solve_lcp(A, [-1.0, 0.9], hi=[np.inf, 0.5], friction_index=[-1, 0])
    assert stick.classes == ["clamped", "clamped"] and np.allclose(stick.x, [1, -0.2])
    assert (
        slide.classes == ["clamped", "lower"] and np.allclose(slide.x, [1, -0.5]) and slide.w[1] == pytest.approx(0.4)
    )


def problem_with_everything(seed):
    random = np.random.default_rng(seed)
    A, b, lo, hi, index = contacts(random, 2)
    A = A + np.eye(6) * 0.5 + (0.02 * random.normal(size=(6, 6)) if seed % 2 else 0)
    return random, A, b, lo, hi, index


def test_derivatives_against_differences():
    used, sliding = 0, 0
    for seed in range(60):
        random, A, b, lo, hi, index = problem_with_everything(seed)
        r = coulomb.solve_lcp(A, b, lo, hi, index, tolerance=1e-13)
        if not r.status:
            continue
        d = r.derivatives()
        dA, db, dhi = random.normal(size=(6, 6)), random.normal(size=6), np.where(index >= 0, random.normal(size=6), 0)
        dx = d.dx_along_dA(dA) + d.dx_db @ db + d.dx_dhi @ dhi

        def move(e, A=A, b=b, hi=hi, dA=dA, db=db, dhi=dhi, lo=lo, index=index):
            return coulomb.solve_lcp(A + e * dA, b + e * db, lo, hi + e * dhi, index, tolerance=1e-13)

        h = 1e-5
        results = [move(e) for e in (h, -h, h / 2, -h / 2)]
        if any(not s.status or s.classes != r.classes for s in results):
            continue
        used += 1
        sliding += sum(c != "clamped" and i >= 0 for c, i in zip(r.classes, index))
        plus, minus, half_plus, half_minus = (s.x for s in results)
        numeric = (4 * (half_plus - half_minus) / h - (plus - minus) / (2 * h)) / 3
        assert np.linalg.norm(dx - numeric) <= 1e-6 * max(np.linalg.norm(numeric), 1e-6)
        x_bar = random.normal(size=6)
        A_bar, b_bar, lo_bar, hi_bar = d.vjp(x_bar)
        reverse = (A_bar * dA).sum() + b_bar @ db + hi_bar @ dhi
        assert reverse == pytest.approx(x_bar @ dx, rel=1e-10, abs=1e-12)
        assert np.allclose(lo_bar, x_bar @ d.dx_dlo)
    assert used > 30 and sliding > 20


def test_no_solution_has_a_reason():
    for A, b in (([[-1.0]], [-1.0]), ([[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0])):
        r = coulomb.solve_lcp(A, b)
        assert not r.status and r.status.no_solution and r.status.reason.startswith("no solution exists")
        assert np.isfinite(r.x).all()
        with pytest.raises(RuntimeError, match="not solved"):
            r.derivatives()


def blocks_apart(seed):
    """[(A, b, hi)] of two to four independent problems: demands of 1 to 1e12, and for odd seeds A of 1e-6 to 1e6."""
    random = np.random.default_rng(seed)
    blocks = []
    for _ in range(2 + seed % 3):
        n = random.integers(1, 5)
        B = random.normal(size=(n, random.integers(1, n + 1)))
        demand, size = 10.0 ** random.uniform(0, 12), 10.0 ** (seed % 2 * random.uniform(-6, 6))
        ends = demand / size * np.abs(random.normal(size=n))
        hi = np.where(random.random(n) < 0.25, ends, np.inf)
        blocks.append((size * B @ B.T, demand * B @ random.normal(size=B.shape[1]), hi))
    return blocks


def together(blocks):
    """(A, b, lo, hi) of all, and where each of them begins and ends."""
    ends = np.cumsum([0, *(len(b) for _, b, _ in blocks)])
    A = np.zeros((ends[-1], ends[-1]))
    for (part, _, _), i, j in zip(blocks, ends, ends[1:]):
        A[i:j, i:j] = part
    b, hi = (np.concatenate([block[k] for block in blocks]) for k in (1, 2))
    return (A, b, np.zeros(len(b)), hi), list(zip(ends, ends[1:]))


@pytest.mark.parametrize("method", METHODS)
def test_each_block_is_solved_by_its_own_measure(method):
    """What is asked of rows that a row does not depend on changes nothing: w of every block is what it is alone."""
    solved = 0
    for seed in range(60):
        blocks = blocks_apart(seed)
        problem, places = together(blocks)
        r = coulomb.solve_lcp(*problem, method=method, max_iterations=20000)
        if not r.status.converged:
            continue
        solved += 1
        for (A, b, hi), (i, j) in zip(blocks, places):
            alone = coulomb.solve_lcp(A, b, np.zeros(j - i), hi)
            assert alone.status.converged
            assert np.abs(r.w[i:j] - alone.w).max() <= 1e-8 * np.abs(b).max(), f"seed {seed}: {r.status}"
    assert solved == 60 if method == "auto" else solved >= 50


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("big", [1.0, 1e6, 1e8, 1e10, 1e12, 1e200, 1e300])
def test_a_row_without_a_solution_is_not_hidden(method, big):
    """The second row, -2 x - .84 >= 0 with x >= 0, has none, whatever the first row asks, which may depend on it."""
    for A in ([[1.0, 0.0], [0.0, -2.0]], [[1.42, big], [0.0, -2.0]]):
        r = coulomb.solve_lcp(A, [big, -0.84], method=method)
        assert not r.status.converged and r.status.reason != "solved"
        assert r.status.no_solution or method in ("newton", "pgs")


def test_one_block_without_a_solution_among_others():
    for seed in range(30):
        blocks = blocks_apart(seed)
        none = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, -1.0]), np.full(2, np.inf)
        blocks.insert(seed % len(blocks), none)
        problem, _ = together(blocks)
        r = coulomb.solve_lcp(*problem)
        assert not r.status.converged and r.status.no_solution, f"seed {seed}: {r.status}"


def test_painleve_rod_has_none():
    """A rod that slides on its tip with strong friction: every set of classes of this pair (normal, tangent) fails."""
    A, b = np.array([[0.2, -1.5], [-1.5, 4.0]]), np.array([-1.0, 6.0])
    r = coulomb.solve_lcp(A, b, [0, 0], [np.inf, 1.0], [-1, 0])
    found = []
    for normal, tangent in itertools.product(("clamped", "lower"), ("clamped", "lower", "upper")):
        x = np.zeros(2)
        slope = {"lower": -1.0, "upper": 1.0}.get(tangent)
        if normal == "clamped" and slope is None:
            x = np.linalg.solve(A, -b)
        elif normal == "clamped":
            x[0] = -b[0] / (A[0, 0] + A[0, 1] * slope)
            x[1] = slope * x[0]
        w = A @ x + b
        ok = x[0] >= 0 and abs(x[1]) <= x[0] + 1e-12 and (w[0] >= -1e-12 if x[0] == 0 else abs(w[0]) < 1e-12)
        ok = ok and (x[1] <= -x[0] or w[1] <= 1e-12) and (x[1] >= x[0] or w[1] >= -1e-12)
        found.append(ok)
    assert bool(r.status) == any(found)
    assert r.status.no_solution == (not any(found))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(A=[[1.0, 2.0]], b=[1.0]), "A"),
        (dict(A=[[1.0]], b=[np.nan]), r"b\[0\] = nan"),
        (dict(A=[[np.inf]], b=[1.0]), r"A\[0, 0\]"),
        (dict(A=np.eye(2), b=[0, 0], lo=[0, 1], hi=[1, 0]), r"lo\[1\] = 1 and hi\[1\] = 0"),
        (dict(A=np.eye(2), b=[0, 0], lo=[0, np.nan]), r"lo\[1\] is nan"),
        (dict(A=np.eye(2), b=[0, 0], hi=[1]), "hi"),
        (dict(A=np.eye(2), b=[0, 0], friction_index=[-1, 2], hi=[np.inf, 0.5]), r"friction_index\[1\] = 2"),
        (dict(A=np.eye(2), b=[0, 0], friction_index=[-1, 0.5], hi=[np.inf, 0.5]), r"friction_index\[1\] = 0.5"),
        (dict(A=np.eye(2), b=[0, 0], friction_index=[-1, np.nan], hi=[np.inf, 0.5]), r"friction_index\[1\] = nan"),
        (dict(A=np.eye(2), b=[0, 0], friction_index=[-1, 1], hi=[np.inf, 0.5]), r"friction_index\[1\] = 1"),
        (dict(A=np.eye(2), b=[0, 0], friction_index=[-1, 0], hi=[np.inf, -0.5]), r"hi\[1\] = -0.5"),
        (dict(A=np.eye(2), b=[0, 0], friction_index=[-1, 0], lo=[-1, 0], hi=[np.inf, 0.5]), r"lo\[0\] = -1"),
        (dict(A=np.eye(2), b=[0, 0], method="simplex"), "method"),
        (dict(A=np.eye(2), b=[0, 0], tolerance=0.0), "tolerance"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        coulomb.solve_lcp(**arguments)


def sizes(seed, n, rank, kind):
    """n rows of rank `rank`: plain, boxes with and without ends, or contacts; b in the range of A or any."""
    random = np.random.default_rng(seed)
    J = random.normal(size=(n, rank))
    A, lo, hi, index = J @ J.T, np.zeros(n), np.full(n, np.inf), np.full(n, -1)
    b = J @ random.normal(size=rank) if kind != "any" else random.normal(size=n)
    if kind == "boxes":
        lo, hi = -random.random(n), random.random(n)
        lo[::3], hi[1::3] = -np.inf, np.inf
    if kind == "contacts":
        for i in range(n):
            if i % 3:
                hi[i], index[i] = random.random(), i - i % 3
    return A, b, lo, hi, index


@pytest.mark.parametrize("kind", ["plain", "boxes", "contacts", "any"])
@pytest.mark.parametrize(("n", "rank"), [(1, 1), (2, 1), (6, 3), (30, 12), (90, 40), (200, 70)])
def test_semidefinite_problems_are_decided(n, rank, kind):
    """A solution, or a proof that there is none."""
    without = 0
    for seed in range(3 if n > 50 else 20):
        problem = sizes(seed, n, rank, kind)
        r = coulomb.solve_lcp(*problem)
        assert r.status or r.status.no_solution, r.status
        without += not r.status
        if r.status:
            assert violation(*problem, r) <= 1e-8
            assert np.abs(r.x).max() < 1e8 * np.abs(problem[1]).max()
    assert kind == "any" or without == 0


def test_numbers_beyond_double_precision():
    r = coulomb.solve_lcp(1e-300 * np.eye(2), [-1e300, 1])
    assert not r.status and not r.status.no_solution and np.isfinite(r.x).all() and (r.x >= 0).all()
    r = coulomb.solve_lcp(1e-300 * np.eye(2), [-1e-300, 1e-300])
    assert r.status and np.allclose(r.x, [1, 0])


def test_empty_problem():
    r = coulomb.solve_lcp(np.zeros((0, 0)), np.zeros(0))
    assert r.status and r.x.shape == (0,) and r.derivatives().dx_db.shape == (0, 0)
