"""Citations lead somewhere (tools/check_citations.py): in this repository all of them, and one that does not is found."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_citations", ROOT / "tools" / "check_citations.py")
check_citations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_citations)

THEORY = """# Theory

```math
a = b \\tag{L1}
```
```math
b = c \\tag{L2}
```
"""
REFERENCES = "# References\n\n### Werling2021\n\nNimble, by its authors.\n"
CONVENTIONS = "# Which?\n\n## Ties: contacts on a border\n\nSee [theory](theory/linear.md), `solver.cpp`.\n"
# What all of these lead to exists.
SOURCE = """// docs/theory.md (L1), (L2); [Werling2021]; [Werling2021, appendix E]; docs/conventions.md "Ties".
// Of the rows (S1 in the paper is another one), of Nimble, of a robot (H1).
int a = x[Index2021], THEORY = f(L7);
"""


@pytest.fixture
def violations(tmp_path):
    """Violations of a small repository; change: what is written over its files."""

    def find(change=()):
        files = {
            "docs/theory.md": "# Theory\n",
            "docs/theory/linear.md": THEORY,
            "docs/references.md": REFERENCES,
            "docs/conventions.md": CONVENTIONS,
            "src/solver.cpp": SOURCE,
            **dict(change),
        }
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check_citations.Repository(tmp_path).check()

    return find


def test_every_citation_of_this_repository_leads_somewhere():
    repository = check_citations.Repository(ROOT)
    assert repository.check() == []
    assert len(repository.files) > 300 and len(repository.labels) > 80 and len(repository.keys) > 30


def test_what_exists_may_be_cited(violations):
    assert violations() == []


@pytest.mark.parametrize(
    "comment, what",
    [
        ("// The matrix of docs/theory.md (L7).", "no equation (L7)"),
        ("// The matrix (L1), (L9).", "no equation (L9)"),
        ("// The matrix (T4).", "no equation (T4)"),
        ("// docs/theory.md (X1)", "no equation (X1)"),
        ("// As in [Euler1750].", "no key Euler1750"),
        ("// As in [Euler1750, section 3].", "no key Euler1750"),
        ('// docs/conventions.md "Kinks"', "no heading"),
        ("// docs/nowhere.md says why.", "no page docs/nowhere.md"),
        ("// The rule (THEORY 5).", "no document THEORY"),
        ("// (THEORY 3 and 9.1)", "no document THEORY"),
        ("// THEORY 2's law", "no document THEORY"),
        ("// The general pair (COLLISION).", "no document COLLISION"),
        ("// THEORY's matrix.", "no document THEORY"),
        ('// (COLLISION "The rule")', "no document COLLISION"),
        ('// (KERNELS, "Factor")', "no document KERNELS"),
        ("// DESIGN section 2", "no document DESIGN"),
        ("// Nimble, appendix E", "cite Nimble by its key"),
        ("// Simple eq. 10", "cite Simple by its key"),
        ("// Montaut et al. 2023", "cite Montaut by its key"),
    ],
)
def test_a_comment_that_leads_nowhere_is_found(violations, comment, what):
    (found,) = set(violations({"src/other.hpp": f"int a;\n{comment}\n"}))
    assert found.startswith("src/other.hpp:2: ") and what in found


@pytest.mark.parametrize(
    "line, what",
    [
        ("See [theory](theory/nothing.md).", "no theory/nothing.md"),
        ("See [ties](#kinks).", "no heading #kinks"),
        ("See [key](references.md#euler1750).", "no heading #euler1750"),
        ("In `stepping/gone.cpp`.", "no file stepping/gone.cpp"),
        ("By (L9).", "no equation (L9)"),
    ],
)
def test_a_page_that_leads_nowhere_is_found(violations, line, what):
    (found,) = violations({"docs/conventions.md": CONVENTIONS + line + "\n"})
    assert found.startswith("docs/conventions.md:6: ") and what in found


def test_docstrings_are_read_and_code_is_not(violations):
    text = '"""By docs/theory.md (L9)."""\n\nx = f(L9)\ny = "DESIGN section 2"\n'
    assert violations({"python/module.py": text}) == ["python/module.py:1: no equation (L9) in docs/theory"]


def test_an_equation_has_one_label(violations):
    again = "```math\nc = d \\tag{L1}\n```\n"
    (found,) = violations({"docs/theory/other.md": again})
    assert "(L1) is an equation of docs/theory/linear.md already" in found


def test_it_fails_as_make_calls_it(violations, tmp_path, monkeypatch, capsys):
    violations({"src/other.hpp": "// THEORY 5\n"})
    monkeypatch.setattr("sys.argv", ["check_citations.py", str(tmp_path)])
    assert check_citations.main() == 1
    assert "src/other.hpp:1: no document THEORY" in capsys.readouterr().out
