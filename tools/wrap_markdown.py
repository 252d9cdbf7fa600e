"""Lines of pages are at most 120 columns wide: python tools/wrap_markdown.py [--check] [FILE ...], part of `make format` and `make lint`.

Paragraphs and list items with a longer line are filled anew, without a change of what they say. Tables, headings, code, formulas, HTML and
directives stay as they are; so do reports that programs write. Links, code spans and short formulas are not broken.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 120

#: Written by programs, as they are.
REPORTS = re.compile(
    r"^benchmarks/results/|^tests/(gradient/random_\w+|robustness/(audit|mutations|soak)|coverage)\.md$"
)

FENCE = re.compile(r"\s*(```+|~~~+)")
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)]) +")
AS_IT_IS = re.compile(r"\s*(\||#{1,6} |<|:::|\[[^\]]+\]: |---|===|\$\$|$)")
#: What stays on one line: images and links, code spans, formulas between dollars.
ATOM = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\([^)]*\)|(`+)(?:(?!\1).)+\1|\$[^$\s][^$]*\$")
#: A line that begins so would be something else.
BEGINS = re.compile(r"([-*+>#|=]|\d+[.)]|~~~|```|:::)")


def words(text):
    """The parts of a paragraph between which lines may end."""
    held = []

    def hold(match):
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    parts = ATOM.sub(hold, text).split()
    return [re.sub(r"\0(\d+)\0", lambda m: held[int(m[1])], part) for part in parts]


def filled(lines, first, rest):
    """The paragraph in lines of WIDTH columns; first, rest: what its first line and the others begin with."""
    out, line = [], first
    empty = True
    for word in words(" ".join(lines)):
        # A word that may not begin a line takes the one before it along.
        if not empty and len(line) + 1 + len(word) > WIDTH:
            carried = [word]
            while BEGINS.match(carried[0]) and " " in line.strip():
                line, _, last = line.rpartition(" ")
                carried.insert(0, last)
            out.append(line)
            line = rest + " ".join(carried)
        else:
            line += word if empty else " " + word
        empty = False
    return [*out, line]


def wrapped(text):
    lines, out, at, fence = text.split("\n"), [], 0, ""
    if lines and lines[0] == "---":  # front matter
        at = lines.index("---", 1) + 1
        out = lines[:at]
    while at < len(lines):
        line = lines[at]
        mark = FENCE.match(line)
        if mark or fence:
            fence = ("" if mark[1].startswith(fence) else fence) if mark and fence else mark[1] if mark else fence
            out.append(line)
            at += 1
            continue
        indented = line.startswith("    ") and not ITEM.match(line) and (not out or not out[-1].strip())
        if AS_IT_IS.match(line) or indented:
            out.append(line)
            at += 1
            continue

        # To its end: an empty line, another item, or what stays as it is.
        item = ITEM.match(line)
        end = at + 1
        while end < len(lines) and not (
            lines[end - 1].endswith(("  ", "\\"))
            or ITEM.match(lines[end])
            or FENCE.match(lines[end])
            or AS_IT_IS.match(lines[end])
        ):
            end += 1
        paragraph = lines[at:end]
        hard = paragraph[-1].endswith(("  ", "\\"))
        if any(len(x) > WIDTH for x in paragraph) and not hard:
            first = item[0] if item else line[: len(line) - len(line.lstrip())]
            rest = " " * len(first) if item else first
            if len(paragraph) > 1 and item:
                rest = paragraph[1][: len(paragraph[1]) - len(paragraph[1].lstrip())]
            paragraph = filled([line[len(first) :], *paragraph[1:]], first, rest)
        out += paragraph
        at = end
    return "\n".join(out)


def main(arguments):
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"]
    if not names:
        listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
        names = [name for name in listed.stdout.split("\n") if name and not REPORTS.search(name)]
    wrong = []
    for name in names:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        new = wrapped(text)
        if new != text:
            wrong.append(name)
            if not check:
                path.write_text(new, encoding="utf-8")
    for name in wrong if check else []:
        print(f"{name}: lines of more than {WIDTH} columns; make format wraps them")
    return int(check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
