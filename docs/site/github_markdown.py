"""What GitHub makes of the pages and Sphinx does not by itself: numbered formulas as they are written, and the first page at the root of the site."""

import pathlib

from docutils import nodes
from sphinx.application import Sphinx

REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>Coulomb</title>
<meta http-equiv="refresh" content="0; url={0}">
<link rel="canonical" href="{0}">
<a href="{0}">Coulomb</a>
"""


def keep_formulas(app: Sphinx, doctree: nodes.document) -> None:
    r"""Sphinx splits formulas at blank lines and wraps what has \\ in `split`, where \tag is an error: each is one equation."""
    for formula in doctree.findall(nodes.math_block):
        text = "\n".join(line for line in formula.astext().splitlines() if line.strip())
        formula.children = [nodes.Text(f"\\begin{{equation*}}\n{text}\n\\end{{equation*}}")]
        formula["no-wrap"] = formula["nowrap"] = True


def redirect_to_first_page(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        (pathlib.Path(app.outdir) / "index.html").write_text(REDIRECT.format(app.config.root_doc + ".html"))


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", keep_formulas)
    app.connect("build-finished", redirect_to_first_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
