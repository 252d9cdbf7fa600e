"""Tables of committed results, for pages that show them: docs/performance.md."""

import math
import os
import pathlib
import re

ROOT = pathlib.Path(os.environ["COULOMB_ROOT"])


def page_of(pattern):
    """The text of the newest page that the pattern names."""
    pages = sorted(ROOT.glob(pattern))
    if not pages:
        raise FileNotFoundError(f"no results {pattern}")
    return pages[-1].read_text()


def tables(pattern):
    """Every table of a page: a list of rows, each a list of cells; the first row is the head."""
    found, rows = [], []
    for line in [*page_of(pattern).splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            found.append([row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)])
            rows = []
    return found


def first_table(pattern):
    return tables(pattern)[0]


def numbers(table, name):
    at = table[0].index(name)
    return [float(row[at].replace(" ", "")) for row in table[1:] if row[at]]


def columns(pattern, name):
    """The numbers of the column of that name, in the first table of the page that has it."""
    return numbers(next(table for table in tables(pattern) if name in table[0]), name)


def sum_of(pattern, name):
    """The sum of that column over all tables of the page that have it."""
    return round(sum(sum(numbers(table, name)) for table in tables(pattern) if name in table[0]))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def show(pattern, table=0, keep=None):
    """A table of a page, with the line that says when and where it was measured; keep: names of columns, in order."""
    from IPython.display import Markdown

    rows = tables(pattern)[table]
    if keep:
        at = [rows[0].index(name) for name in keep]
        rows = [[row[k] for k in at] for row in rows]
    when = re.search(r"\b(20\d\d-\d\d-\d\d[^.\n|`]*)", page_of(pattern))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return Markdown("\n".join([*lines, "", f"*{when.group(1).rstrip(' ,')}*" if when else ""]))
