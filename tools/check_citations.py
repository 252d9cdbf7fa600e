"""Every citation leads somewhere: python tools/check_citations.py [ROOT], part of `make test`.

In comments, docstrings and pages these have to exist:

    docs/theory.md (L3)              the equation: \\tag{L3} in docs/theory/*.md, once
    [Werling2021, appendix E]        the key: a heading of docs/references.md
    docs/conventions.md "Ties"       the page, and a heading of it that begins so
    [text](page.md#anchor)           the file and, in pages, the heading
    `stepping/semi_implicit/semi_implicit.cpp`     in pages: the file

And nobody cites what readers do not have: documents known by a word in capitals ("OLDPAPER section 3"), equations, sections or appendices of a paper known
by its name alone, authors with "et al.".
"""

import io
import pathlib
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACES = [
    "*.md",
    "Makefile",
    "CMakeLists.txt",
    "docs/**/*.md",
    "docs/**/*.py",
    "examples/**/*.md",
    "tests/**/*.md",
    "cmake/**/*.cmake",
]
PLACES += [
    f"{folder}/**/*.{kind}"
    for folder in ("include", "src", "python", "tests", "examples", "scenes", "benchmarks", "tools")
    for kind in ("hpp", "cpp", "py", "pyi")
]

LABEL = re.compile(r"\\tag\{([A-Z]\d+)\}")
CITED_LABELS = re.compile(r"(docs/theory\.md )?\(([A-Z][1-9]\d*)\)")
OLD_LETTERS = {"T"}  # of documents that were never here
KEY = re.compile(r"(?<![\w\])])\[([A-Z][A-Za-z]+\d{4}[a-z]?)(?:, [^\]\n]+)?\]")
PAGE = re.compile(
    r"(?<![\w/.])((?:\.\./)*(?:docs|examples|benchmarks|tests)/[\w/.-]+?\.md|[A-Z]{4,}\.md)\b(?:,? \"([^\"\n]+)\")?"
)
LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)\)")
SOURCE = re.compile(r"`([\w/]+\.(?:cpp|hpp|py))`")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

# Words in capitals that are no documents although a number or a quotation may follow.
WORDS = set(
    "COULOMB MUJOCO MJCF URDF ADMM BDF SDIRK SIMD IPOPT DART OSQP SIGGRAPH LICENSE CHANGELOG README ARCHITECTURE CONTRIBUTING".split()
)
CITES = (
    r"sections? \d|rows? \d|choices? \d|eqs?\b|\(?[A-Z]\d|\(\(?[A-Z]\d|\d+(?:\.\d+)?(?=[),;:.']|$| and \d| to \d)|\""
)
SHOUTED = re.compile(
    rf"(?<![\w:./'-])(?<!(?<!\"\")\")([A-Z]{{4,}}\d?)(?:'s\b|,? (?:{CITES}))|\(([A-Z]{{5,}})\)", re.MULTILINE
)
BY_NAME = re.compile(
    r"\b(Simple|Nimble|Jade|DiffRedMax|RedMax)(?:'s)?,? \(?(?:eqs?|equations?|section|appendix|table|figure)\b|\b([A-Z]\w+) et al\b"
)


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.replace("`", "").lower()).replace(" ", "-")


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def only(text, spans):
    """The text with everything but the spans blanked."""
    out, at = [], 0
    for start, end in spans:
        out += [blank(text[at:start]), text[start:end]]
        at = end
    return "".join(out) + blank(text[at:])


def python_prose(text):
    """Spans of comments and docstrings."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    begins = True  # a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins):
            yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def prose(path, text):
    """What of a file can cite: pages without their code, comments, docstrings (of bindings: strings)."""
    if path.suffix == ".md":
        return FENCE.sub(lambda m: blank(m.group()), text)
    if path.suffix in (".py", ".pyi"):
        return only(text, python_prose(text))
    if path.suffix in (".cpp", ".hpp"):
        parts = r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\""
        strings = "bindings" in path.parts
        return only(text, [m.span() for m in re.finditer(parts, text) if strings or m.group().startswith("//")])
    return only(text, [m.span() for m in re.finditer(r"#[^\n]*", text)])


class Repository:
    def __init__(self, root):
        self.root = root
        self.files = sorted({p for place in PLACES for p in root.glob(place) if p.is_file()})
        self.texts = {p: p.read_text() for p in self.files}
        self.names = [p.relative_to(root).as_posix() for p in self.files]
        self.violations = []
        self.labels = self.find_labels()
        references = root / "docs" / "references.md"
        self.keys = set(HEADING.findall(self.texts.get(references, "")))

    def find_labels(self):
        found = {}
        for path, text in self.texts.items():
            if path.is_relative_to(self.root / "docs"):
                for hit in LABEL.finditer(text):
                    if hit.group(1) in found:
                        self.say(
                            path, text, hit.start(), f"({hit.group(1)}) is an equation of {found[hit.group(1)]} already"
                        )
                    found[hit.group(1)] = path.relative_to(self.root).as_posix()
        return found

    def say(self, path, text, at, what):
        self.violations.append(f"{path.relative_to(self.root).as_posix()}:{text.count(chr(10), 0, at) + 1}: {what}")

    def headings(self, path):
        return HEADING.findall(FENCE.sub("", self.texts.get(path, "")))

    def check(self):
        for path, text in self.texts.items():
            where = prose(path, text)
            self.check_labels(path, where)
            self.check_keys(path, where)
            self.check_pages(path, where)
            self.check_names(path, where)
            if path.suffix == ".md":
                self.check_links(path, text)
                if not path.is_relative_to(self.root / "benchmarks"):
                    self.check_sources(path, text)
        return self.violations

    def check_labels(self, path, text):
        letters = OLD_LETTERS | {label[0] for label in self.labels}
        for hit in CITED_LABELS.finditer(text):
            named, label = hit.groups()
            if label not in self.labels and (named or label[0] in letters):
                self.say(path, text, hit.start(), f"no equation ({label}) in docs/theory")

    def check_keys(self, path, text):
        for hit in KEY.finditer(text):
            if hit.group(1) not in self.keys:
                self.say(path, text, hit.start(), f"no key {hit.group(1)} in docs/references.md")

    def check_pages(self, path, text):
        for hit in PAGE.finditer(text):
            name, heading = hit.groups()
            page = next((p for p in (self.root / name, path.parent / name) if p.is_file()), None)
            if page is None:
                self.say(path, text, hit.start(), f"no page {name}")
            elif heading and not any(h.startswith(heading) for h in self.headings(page)):
                self.say(path, text, hit.start(), f'{name} has no heading "{heading}"')

    def check_names(self, path, text):
        if path == self.root / "docs" / "references.md":
            return
        for hit in SHOUTED.finditer(text):
            word = hit.group(1) or hit.group(2)
            if word.rstrip("0123456789") not in WORDS:
                self.say(path, text, hit.start(), f"no document {word}: cite docs/")
        for hit in BY_NAME.finditer(text):
            self.say(path, text, hit.start(), f"cite {hit.group(1) or hit.group(2)} by its key in docs/references.md")

    def check_links(self, path, text):
        for hit in LINK.finditer(prose(path, text)):
            target, _, anchor = hit.group(1).partition("#")
            if re.match(r"\w+:", hit.group(1)):
                continue
            page = (path.parent / target).resolve() if target else path
            if not page.exists():
                self.say(path, text, hit.start(), f"no {target}")
            elif anchor and anchor not in {slug(h) for h in self.headings(page)}:
                self.say(path, text, hit.start(), f"no heading #{anchor} in {page.name}")

    def check_sources(self, path, text):
        for hit in SOURCE.finditer(text):
            name = hit.group(1)
            if not any(n == name or n.endswith("/" + name) for n in self.names):
                self.say(path, text, hit.start(), f"no file {name}")


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    repository = Repository(root)
    violations = repository.check()
    for line in violations:
        print(line)
    print(
        f"citations: {len(repository.files)} files, {len(repository.labels)} equations, {len(violations)} that lead nowhere"
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
