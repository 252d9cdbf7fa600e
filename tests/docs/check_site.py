"""The built site answers: python tests/docs/check_site.py [build/docs/html], after `make docs`; `make test-docs` runs both.

The search of the site finds, for each question that users of other simulators ask, the page that answers it; every page of questions shows
a picture; every public name has its place in the pages of the interface.
"""

import json
import pathlib
import re
import sys

from sphinx.search.en import SearchEnglish

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What one types, and the page that has to be among the first three.
QUESTIONS = {
    "gradient bounce wrong sign": "docs/issues_solved/bounce",
    "NaN jacobian leaving ground": "docs/issues_solved/bounce",
    "elastic collision gradient": "docs/issues_solved/bounce",
    "backpropagate robot step": "docs/issues_solved/differentiable_step",
    "differentiable step pytorch network": "docs/issues_solved/differentiable_step",
    "SHAC legs": "docs/issues_solved/learning_on_legs",
    "gradient by mass": "docs/issues_solved/identify_the_mass",
    "pushed cube mass friction": "docs/issues_solved/identify_the_mass",
    "MPC derivatives slow": "docs/issues_solved/derivatives_for_mpc",
    "iLQR humanoid finite differences": "docs/issues_solved/derivatives_for_mpc",
    "contact force loss": "docs/issues_solved/contact_force_in_the_loss",
    "gradient zero before contact": "docs/issues_solved/before_contact",
    "out of memory long trajectory": "docs/issues_solved/long_horizons",
}

# The weights of Sphinx's search page (searchtools.js): a word in a title, a part of one, a word in a text, a part of one.
TITLE, PARTIAL_TITLE, TERM, PARTIAL_TERM = 15, 7, 5, 2


class SearchIndex:
    """What the search page of a site knows, and how it ranks."""

    def __init__(self, text):
        data = json.loads(text[text.index("{") : text.rindex("}") + 1])
        self.names = data["docnames"]
        self.terms = data["terms"]
        self.title_terms = data["titleterms"]
        self.language = SearchEnglish({})

    def search(self, query):
        """Names of the pages that have all words of the query, best first."""
        scores = {}
        words = [w for w in re.findall(r"\w+", query.lower()) if w not in self.language.stopwords]
        for word in words:
            for page, score in self.pages_of(word).items():
                scores.setdefault(page, []).append(score)
        found = [(sum(s), page) for page, s in scores.items() if len(s) == len(words)]
        return [self.names[page] for _, page in sorted(found, key=lambda item: (-item[0], self.names[item[1]]))]

    def pages_of(self, word):
        """{page: its best score} of a word."""
        stem = self.language.stem(word)
        pages = {}
        for table, whole, part in ((self.title_terms, TITLE, PARTIAL_TITLE), (self.terms, TERM, PARTIAL_TERM)):
            hits = [(stem, whole)] if stem in table else []
            if len(word) > 2 and not any(stem in t for t in (self.terms, self.title_terms)):
                hits = [(term, part) for term in table if stem in term]
            for term, score in hits:
                for page in table[term] if isinstance(table[term], list) else [table[term]]:
                    pages[page] = max(pages.get(page, 0), score)
        return pages


def unanswered(index):
    """A line for every question whose page is not among the first three."""
    lines = []
    for query, page in QUESTIONS.items():
        first = index.search(query)[:3]
        if page not in first:
            lines.append(f"search for {query!r}: {page} is not among the first three, {first}")
    return lines


def without_picture(site):
    """Pages of questions that show nothing."""
    pages = sorted((ROOT / "docs" / "issues_solved").glob("*.md"))
    lines = []
    for page in pages:
        built = site / "docs" / "issues_solved" / (page.stem + ".html")
        if page.stem != "index" and "<img" not in built.read_text():
            lines.append(f"{built}: no picture")
    return lines


def without_place(site):
    """Public names that no page of the interface describes."""
    import coulomb

    text = "".join(page.read_text() for page in (site / "docs" / "interface").glob("*.html"))
    names = [name for name in coulomb.__all__ if not name.startswith("_")]
    return [f"interface: no {name}" for name in names if not re.search(rf'id="coulomb\.(?:[\w.]+\.)?{name}"', text)]


def main():
    site = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs" / "html")
    index = SearchIndex((site / "searchindex.js").read_text())
    missing = unanswered(index) + without_picture(site) + without_place(site)
    for line in missing:
        print(line)
    print(f"site: {len(index.names)} pages, {len(QUESTIONS)} questions, {len(missing)} without an answer")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
