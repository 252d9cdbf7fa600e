"""Small wrong changes of C++ code, found in its syntax tree: what tools/mutate.py tries.

`candidates(text)` lists all of a file, each a piece of the text and what stands there instead; `draw` takes some, the same ones for a seed.
"""

from __future__ import annotations

import collections
import hashlib
import random
import re
from dataclasses import dataclass

import tree_sitter
import tree_sitter_cpp

# How often a kind is drawn where a file has all of them. Edges of comparisons rarely matter: most are equalities of real numbers.
WEIGHTS = {"sign": 4, "term": 4, "factor": 3, "swap": 3, "condition": 2, "edge": 1}

# Nothing is changed below these: messages, types, sizes, and what the compiler checks.
LEFT_ALONE = {
    "throw_statement",
    "template_argument_list",
    "array_declarator",
    "static_assert_declaration",
    "preproc_if",
}

# What a line of coverage belongs to: the smallest of these around a change.
STATEMENTS = {"expression_statement", "declaration", "return_statement", "condition_clause", "field_initializer"}

# Arguments of these are text for people; those of the others may change places and nothing changes.
MESSAGES = re.compile(rb"(fail|refuse\w*|to_string|invalid_argument|runtime_error)$")
SYMMETRIC = re.compile(rb"\b(hypot|min|max|dot3)$")

EDGES = {b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">"}


@dataclass(frozen=True)
class Mutation:
    """`before` at `start` becomes `after`; `first` to `last` are the lines of the statement around it."""

    file: str
    kind: str
    start: int
    before: str
    after: str
    line: int
    first: int
    last: int
    context: str  # the line as it is: with it a mutation is found again when the file has changed elsewhere
    nth: int = 0  # of those of the file that look the same
    idle: bool = False  # in a message, or without effect: never drawn

    def apply(self, text: bytes) -> bytes:
        end = self.start + len(self.before.encode())
        return text[: self.start] + self.after.encode() + text[end:]

    def key(self) -> str:
        said = "\n".join([self.file, self.context, squeeze(self.before), squeeze(self.after), str(self.nth)])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def candidates(file: str, text: bytes) -> list[Mutation]:
    """All mutations of one file, in the order of its text."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
    lines = text.decode().splitlines()
    found = []
    seen = collections.Counter()

    def visit(node, statement, message):
        if node.type in LEFT_ALONE:
            return
        if node.type in STATEMENTS:
            statement = node
        called = node.child_by_field_name("function").text if node.type == "call_expression" else b""
        message = message or bool(MESSAGES.search(called))
        idle = (
            message or bool(SYMMETRIC.search(called)) and len(node.child_by_field_name("arguments").named_children) == 2
        )
        around = statement or node
        for kind, target, after in changes_of(node):
            line = target.start_point[0] + 1
            looks = (lines[line - 1].strip(), squeeze(target.text.decode()), squeeze(after.decode()))
            found.append(
                Mutation(
                    file=file,
                    kind=kind,
                    start=target.start_byte,
                    before=target.text.decode(),
                    after=after.decode(),
                    line=line,
                    first=min(around.start_point[0] + 1, line),
                    last=max(around.end_point[0] + 1, target.end_point[0] + 1),
                    context=lines[line - 1].strip(),
                    nth=seen[looks],
                    idle=idle,
                )
            )
            seen[looks] += 1
        for child in node.children:
            visit(child, statement, message)

    visit(parser.parse(text).root_node, None, False)
    return found


def changes_of(node):
    """(kind, node that is replaced, its new text) of one node."""
    if node.type == "binary_expression":
        yield from changes_of_binary(node)
    elif node.type == "assignment_expression":
        yield from changes_of_assignment(node)
    elif node.type == "unary_expression" and node.child_by_field_name("operator").text == b"-":
        yield "sign", node, node.child_by_field_name("argument").text
    elif node.type == "subscript_expression":
        yield from changes_of_subscript(node)
    elif node.type == "call_expression":
        yield from changes_of_call(node)
    elif node.type == "if_statement":
        condition = node.child_by_field_name("condition")
        value = condition.child_by_field_name("value") if condition else None
        if value is not None and value.type != "declaration":
            for after in (b"!(" + value.text + b")", b"true", b"false"):
                yield "condition", value, after


def changes_of_binary(node):
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    said = operator.text
    if said in (b"+", b"-"):
        yield "sign", operator, b"-" if said == b"+" else b"+"
        yield "term", node, left.text
        yield "term", node, right.text if said == b"+" else b"-(" + right.text + b")"
    elif said in (b"*", b"/"):
        yield "factor", node, left.text
        if said == b"*":
            yield "factor", node, right.text
        yield "factor", node, b"2 * " + node.text
    elif said in EDGES:
        # The end of a loop moves inwards: outwards it would read what is not there.
        loop = node.parent is not None and node.parent.type == "for_statement"
        if not loop:
            yield "edge", operator, EDGES[said]
        elif said in (b"<", b"<="):
            yield "edge", left, left.text + b" + 1"
    elif said in (b"&&", b"||"):
        yield "condition", operator, b"||" if said == b"&&" else b"&&"


def changes_of_assignment(node):
    operator = node.child_by_field_name("operator")
    if operator.text in (b"+=", b"-="):
        yield "sign", operator, b"-=" if operator.text == b"+=" else b"+="
        if node.parent.type == "expression_statement":
            yield "term", node, b"(void)0"
    elif operator.text == b"*=" and node.parent.type == "expression_statement":
        yield "factor", node, b"(void)0"


def changes_of_subscript(node):
    """a[i][j] and a[3 * i + j] with i and j swapped."""
    inner = node.child_by_field_name("argument")
    index = node.child_by_field_name("indices")
    if inner.type == "subscript_expression":
        other = inner.child_by_field_name("indices")
        if other.text != index.text:
            yield "swap", node, inner.child_by_field_name("argument").text + index.text + other.text

    # Row and column of a flat array: n * i + j.
    sum_of = index.named_children[0] if index.named_children else None
    if sum_of is None or sum_of.type != "binary_expression" or sum_of.child_by_field_name("operator").text != b"+":
        return
    row, column = sum_of.child_by_field_name("left"), sum_of.child_by_field_name("right")
    if row.type == "binary_expression" and row.child_by_field_name("operator").text == b"*":
        width, number = row.child_by_field_name("left"), row.child_by_field_name("right")
        if number.text != column.text:
            yield "swap", sum_of, width.text + b" * (" + column.text + b") + " + number.text


def changes_of_call(node):
    """f(a, b, c) with neighbours swapped. What they are the compiler knows: those of different types do not compile."""
    arguments = node.child_by_field_name("arguments")
    if arguments is None:
        return
    given = arguments.named_children
    for k in range(len(given) - 1):
        texts = [argument.text for argument in given]
        if texts[k] == texts[k + 1]:
            continue
        texts[k], texts[k + 1] = texts[k + 1], texts[k]
        yield "swap", arguments, b"(" + b", ".join(texts) + b")"


def draw(found: list[Mutation], seed: str):
    """The candidates of one file in random order: first a kind by its weight, then one of that kind."""
    source = random.Random(seed)
    kinds = {}
    for mutation in found:
        kinds.setdefault(mutation.kind, []).append(mutation)
    for of_kind in kinds.values():
        source.shuffle(of_kind)
    while kinds:
        kind = source.choices(list(kinds), [WEIGHTS[kind] for kind in kinds])[0]
        mutation = kinds[kind].pop()
        if not mutation.idle:
            yield mutation
        if not kinds[kind]:
            del kinds[kind]


def shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    """`count` shared out in proportion to sizes, at least one each: the largest remainders get what is left."""
    total = sum(sizes.values())
    exact = {name: count * size / total for name, size in sizes.items()}
    given = {name: max(1, int(share)) for name, share in exact.items()}
    for name in sorted(sizes, key=lambda name: (int(exact[name]) - exact[name], name)):
        if sum(given.values()) >= count:
            break
        given[name] += 1
    return given
