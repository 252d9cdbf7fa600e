"""What the site's pages promise without building it: `make docs` executes and links them, `make test-docs` asks the site's search."""

import ast
import importlib.util
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
QUESTIONS = sorted(page for page in (DOCS / "issues_solved").glob("*.md") if page.stem != "index")
NOTEBOOKS = sorted(page for page in DOCS.rglob("*.md") if "```{code-cell}" in page.read_text())
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def cells(page):
    """The code of a notebook's cells, without their options."""
    return [re.sub(r"^:\w+:.*\n", "", code, flags=re.MULTILINE) for code in CELL.findall(page.read_text())]


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_notebooks_are_text_that_is_executed(page):
    """Without its header a page is no notebook, and its cells would be shown and not run."""
    text = page.read_text()
    assert text.startswith("---\njupytext:") and "format_name: myst" in text and "name: python3" in text
    assert text.count("```{code-cell}") == len(cells(page))
    for code in cells(page):
        ast.parse(code)


TUTORIALS = sorted(page for page in (DOCS / "tutorials").glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_is_short_checks_itself_and_is_linked(page):
    text, code = page.read_text(), "\n".join(cells(page))
    body = text.split("---\n", 2)[2]
    assert body.count("\n") < 150 and page in NOTEBOOKS
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code)))
    assert f"({page.name})" in (page.parent / "index.md").read_text()


def test_six_tutorials():
    names = {"install", "my_robot", "identify_it", "plan_for_it", "teach_it", "design_it"}
    assert {page.stem for page in TUTORIALS} == names


def test_no_outputs_are_committed():
    assert not list(DOCS.rglob("*.ipynb"))


def test_eight_questions_at_least():
    assert len(QUESTIONS) >= 8 and set(QUESTIONS) <= set(NOTEBOOKS)


@pytest.mark.parametrize("page", QUESTIONS, ids=lambda page: page.stem)
def test_a_question_has_its_thread_its_check_and_its_picture(page):
    text, code = page.read_text(), "\n".join(cells(page))
    assert re.search(r"\[[\w./-]*#\d+\]\(https://github\.com/[\w.-]+/[\w.-]+/issues/\d+\)", text)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code)))
    assert "difference" in code or "check_gradients" in code
    assert "plt.subplots" in code
    assert f"({page.name})" in (page.parent / "index.md").read_text()


@pytest.mark.parametrize("page", QUESTIONS, ids=lambda page: page.stem)
def test_links_name_the_thread_that_they_lead_to(page):
    for name, number, address in re.findall(r"\[([\w./-]*)#(\d+)\]\((https://github\.com/[^)]+)\)", page.read_text()):
        repository, _, thread = address.removeprefix("https://github.com/").rpartition("/issues/")
        assert thread == number and repository.endswith(name)


def test_a_search_that_misses_a_page_is_noticed():
    pytest.importorskip("sphinx")
    check_site = module(pathlib.Path(__file__).with_name("check_site.py"))
    names = [check_site.PAGES + name for name in dict.fromkeys(check_site.QUESTIONS.values())]
    stem = check_site.SearchEnglish({}).stem
    words = {}
    for query, page in check_site.QUESTIONS.items():
        for word in query.lower().split():
            words.setdefault(stem(word), set()).add(names.index(check_site.PAGES + page))
    terms = {word: sorted(pages) if len(pages) > 1 else min(pages) for word, pages in words.items()}

    def index(terms):
        return check_site.SearchIndex(
            f"Search.setIndex({json.dumps({'docnames': names, 'terms': terms, 'titleterms': {}})})"
        )

    assert check_site.unanswered(index(terms)) == []
    del terms[stem("memory")]
    (line,) = check_site.unanswered(index(terms))
    assert "long_horizons" in line


def test_tables_of_results_are_read(monkeypatch, tmp_path):
    monkeypatch.setenv("COULOMB_ROOT", str(tmp_path))
    results = module(DOCS / "site" / "results.py")
    (tmp_path / "a.md").write_text(
        "# T\n\n2026-01-02, a machine.\n\n| x | y |\n|---|--:|\n| p | 2 |\n| q | 8 |\n\ntext\n\n| y |\n|---|\n| |\n| 5 |\n"
    )
    assert results.columns("a.md", "y") == [2, 8] and results.geometric_mean([2, 8]) == pytest.approx(4)
    assert results.sum_of("a.md", "y") == 15
    assert results.tables("a.md")[0] == [["x", "y"], ["p", "2"], ["q", "8"]]
    with pytest.raises(FileNotFoundError, match="no results b"):
        results.page_of("b*.md")


def test_what_the_page_of_results_reads_is_there(monkeypatch):
    monkeypatch.setenv("COULOMB_ROOT", str(ROOT))
    results = module(DOCS / "site" / "results.py")
    text = (DOCS / "performance.md").read_text()
    for pattern, table in re.findall(r'show\("([^"]+)", table=(\d+)', text):
        assert len(results.tables(pattern)[int(table)]) > 1
    assert results.sum_of("tests/gradient/random_scenes.md", "known") > 100_000
