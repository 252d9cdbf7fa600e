"""The machinery of tools/mutate.py on a handful of mutations: found, compiled, linked, and killed by the C++ tests beside them. The long form: make mutate."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_cpp")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mutate  # noqa: E402
import mutations  # noqa: E402

CODE = b"""
double f(const double* a, int n, double h) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    if (a[i] > 0 && h != 0) sum += h * a[3 * i + n] - g(a, h);
  }
  return -sum;
}
"""


def test_what_is_found():
    found = {(m.kind, m.before, m.after) for m in mutations.candidates("f.cpp", CODE)}
    product = "h * a[3 * i + n]"
    for kind, before, after in [
        ("edge", "i", "i + 1"),
        ("edge", ">", ">="),
        ("condition", "a[i] > 0 && h != 0", "!(a[i] > 0 && h != 0)"),
        ("condition", "&&", "||"),
        ("sign", "+=", "-="),
        ("term", f"sum += {product} - g(a, h)", "(void)0"),
        ("sign", "-", "+"),
        ("term", f"{product} - g(a, h)", product),
        ("term", f"{product} - g(a, h)", "-(g(a, h))"),
        ("factor", product, "h"),
        ("factor", product, f"2 * {product}"),
        ("swap", "3 * i + n", "3 * (n) + i"),
        ("swap", "(a, h)", "(h, a)"),
        ("sign", "-sum", "sum"),
    ]:
        assert (kind, before, after) in found, (kind, before, after)


def test_the_same_seed_draws_the_same():
    found = mutations.candidates("f.cpp", CODE)
    first = [m.key() for m in mutations.draw(found, "0")]
    assert first == [m.key() for m in mutations.draw(mutations.candidates("f.cpp", CODE), "0")]
    assert sorted(first) == sorted({m.key() for m in found}) and first != [m.key() for m in mutations.draw(found, "1")]


def test_shares_are_proportional():
    shares = mutations.shares({"a": 1000, "b": 500, "c": 1}, 31)
    assert shares == {"a": 20, "b": 10, "c": 1}


# A file, and the tests that look at it.
BESIDE = {
    "dynamics/derivative_pairs.cpp": "unit.dynamics.test_derivatives",
    "dynamics/body_motion.cpp": "unit.dynamics.test_body_motion",
    "solvers/linearization/linearization.cpp": "unit.solvers.linearization.test_linearization",
}


@pytest.mark.parametrize("name", BESIDE)
def test_mutations_are_killed(name, tmp_path):
    """Of the first signs and terms that change the code, with the build of make cpp."""
    build = ROOT / "build" / "release"
    if not (build / "tests" / BESIDE[name]).exists():
        pytest.skip("build/release is not there: make cpp")
    tests = mutate.list_tests(build, f"^{BESIDE[name]}$", python=False)
    judge = mutate.Judge(mutate.Compiler(build), ROOT, tests, tmp_path)
    path = f"src/coulomb/{name}"
    found = [m for m in mutations.candidates(path, (ROOT / path).read_bytes()) if m.kind in ("sign", "term")]

    verdicts = []
    for mutation in mutations.draw(found, "0"):
        verdict = judge.judge(mutation)["verdict"]
        assert verdict in ("killed", "survived", "same code", "does not compile")
        verdicts += [verdict] if verdict in ("killed", "survived") else []
        if len(verdicts) == 2:
            break
    assert "killed" in verdicts

    # What is no mutation survives: the tests fail for what was changed, not for how they are run.
    library = tmp_path / "libcoulomb.so"
    judge.compile(ROOT / path, (ROOT / path).read_bytes(), tmp_path / "same" / "made.o")
    judge.compiler.link({ROOT / path: tmp_path / "same" / "made.o"}, library)
    assert judge.run(tests, library)["verdict"] == "survived"
    assert "LD_PRELOAD" not in os.environ
