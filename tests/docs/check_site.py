"""The built site answers: python tests/docs/check_site.py [build/docs/html], after `make docs`; `make test-docs` runs both.

Whoever types one of the questions below finds the page that answers it: it has all the words, and, where a Chromium is installed, the site's search has it among the
first three. Every page of questions shows a picture; every public name has its place in the pages of the interface.
"""

import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse

from sphinx.search.en import SearchEnglish

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = "docs/issues_solved/"
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")

# What one types, and the page that answers.
QUESTIONS = {
    "gradient bounce wrong sign": "bounce",
    "NaN jacobian leaving ground": "bounce",
    "elastic collision gradient": "bounce",
    "backpropagate through robot": "differentiable_step",
    "differentiable step pytorch network": "differentiable_step",
    "SHAC legs": "learning_on_legs",
    "gradient by mass": "identify_the_mass",
    "mass of a pushed cube": "identify_the_mass",
    "MPC derivatives slow": "derivatives_for_mpc",
    "iLQR humanoid finite differences": "derivatives_for_mpc",
    "contact force in loss": "contact_force_in_the_loss",
    "gradient zero before contact": "before_contact",
    "out of memory long trajectory": "long_horizons",
}


class SearchIndex:
    """Which words are on which pages of a site, as its search knows them: the text of searchindex.js."""

    def __init__(self, text):
        data = json.loads(text[text.index("{") : text.rindex("}") + 1])
        self.names = data["docnames"]
        self.tables = data["terms"], data["titleterms"]
        self.language = SearchEnglish({})

    def pages_with(self, query):
        """Names of the pages that have all words of the query, in any form."""
        pages = set(range(len(self.names)))
        for word in re.findall(r"\w+", query.lower()):
            if word not in self.language.stopwords:
                pages &= self.pages_of(self.language.stem(word))
        return {self.names[page] for page in pages}

    def pages_of(self, stem):
        found = set()
        for table in self.tables:
            pages = table.get(stem, [])
            found |= set(pages if isinstance(pages, list) else [pages])
        return found


def unanswered(index):
    """A line for every question whose page has not all of its words."""
    return [
        f"search for {query!r}: no {PAGES}{page}"
        for query, page in QUESTIONS.items()
        if PAGES + page not in index.pages_with(query)
    ]


def not_among_the_first(site, browser):
    """A line for every question whose page is not among the first three that the site's own search shows."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lines = []
    for query, page in QUESTIONS.items():
        address = f"http://127.0.0.1:{server.server_port}/search.html?q={urllib.parse.quote_plus(query)}"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
        shown = subprocess.run([browser, *options, address], capture_output=True, text=True, timeout=120).stdout
        results = re.findall(r'<li[^>]*><a href="([^"?#]+)\.html', shown.partition('id="search-results"')[2])
        first = list(dict.fromkeys(results))[:3]
        if PAGES + page not in first:
            lines.append(f"search for {query!r}: {PAGES}{page} is not among the first three: {first}")
    server.shutdown()
    return lines


def without_picture(site):
    """Pages of questions that show nothing."""
    pages = sorted(page for page in (site / PAGES).glob("*.html") if page.stem != "index")
    assert len(pages) >= 8
    return [f"{page}: no picture" for page in pages if "<img" not in page.read_text()]


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
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        missing += not_among_the_first(site, browser)
    for line in missing:
        print(line)
    how = "asked in a browser" if browser else "looked up in the index; no Chromium to ask"
    print(f"site: {len(index.names)} pages, {len(QUESTIONS)} questions {how}, {len(missing)} wrong")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
