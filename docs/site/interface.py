"""Docstrings of the package, which are prose with a little Markdown, as Sphinx reads them; signatures without the names of modules."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring

LITERAL = re.compile(r"``.+?``|`[^`\n]+`")
KEY = re.compile(r"\[([A-Z][A-Za-z]+\d{4}[a-z]?)((?:, [^\]]+)?)\]")
PAGE = re.compile(r"\bdocs/([\w/]+)\.md\b")
MODULES = re.compile(r"\b(?:numpy\.typing|collections\.abc|coulomb\.[\w.]*_?\w+|typing|numpy)\.(?=[A-Za-z])")


def prose(line: str) -> str:
    """A line outside of code: signs that mean something to reStructuredText stand for themselves, pages are links."""
    parts = []
    at = 0
    for literal in LITERAL.finditer(line):
        parts.append(plain(line[at : literal.start()]))
        text = literal.group().strip("`")
        parts.append(f"``{text}``")
        at = literal.end()
    parts.append(plain(line[at:]))
    return "".join(parts)


def plain(text: str) -> str:
    text = re.sub(r"[\\*|]", lambda sign: "\\" + sign.group(), text)
    text = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)
    text = KEY.sub(r"[:doc:`\1 </docs/references>`\2]", text)
    return PAGE.sub(r":doc:`\1 </docs/\1>`", text)


def process_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Indented paragraphs are code, lines with a dash are a list, the rest is prose."""
    result: list[str] = []
    in_code = False
    for line in lines:
        indented = line.startswith("    ")
        after_blank = not result or not result[-1].strip()
        is_item = re.match(r"\s*- ", line) is not None
        if indented and (in_code or after_blank) and not is_item:
            if not in_code and "::" not in result[-2:]:
                result += ["::", ""]
            in_code = True
            result.append(line)
            continue
        if line.strip():
            in_code = False
        if is_item and result and result[-1].strip() and not re.match(r"\s*(- |  )", result[-1]):
            result.append("")
        result.append(line if set(line.strip()) == {"-"} else prose(line))
    if any(re.fullmatch("-{3,}", line) for line in result):  # sections as NumPy's: Parameters, Returns, Raises
        result = NumpyDocstring(result, Config(), app, what, name, obj, options).lines()
    lines[:] = result


def skip_what_says_nothing(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Docstrings that Python makes: of classes that nobody constructs, of the fields of named tuples."""
    text = getattr(obj, "__doc__", None) or ""
    return True if text.startswith(("Initialize self", "Alias for field number")) else None


def shorten_signatures(app: Sphinx, doctree: nodes.document) -> None:
    """numpy.typing.ArrayLike is ArrayLike."""
    for signature in doctree.findall(addnodes.desc_signature):
        for text in list(signature.findall(nodes.Text)):
            short = MODULES.sub("", text)
            if short != text:
                text.parent.replace(text, nodes.Text(short))


def setup(app: Sphinx) -> dict:
    app.connect("autodoc-process-docstring", process_docstring)
    app.connect("autodoc-skip-member", skip_what_says_nothing)
    app.connect("doctree-read", shorten_signatures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
