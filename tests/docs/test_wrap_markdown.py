"""tools/wrap_markdown.py changes where lines end, and nothing else."""

import importlib.util
from pathlib import Path

SPEC = importlib.util.spec_from_file_location(
    "wrap_markdown", Path(__file__).resolve().parents[2] / "tools" / "wrap_markdown.py"
)
wrap = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(wrap)

LONG = "word " * 40
PAGE = f"""---
title: {LONG}
---
# A heading {LONG}

A paragraph {LONG}with [a link of some words](page.md#anchor) and `some code of words` {LONG}.

- An item {LONG}
  that goes on.
- Another, short.
  1. One inside {LONG}- with a dash {LONG}

| a | {LONG} |
|---|---|

```python
code = "{LONG}"
```

    indented {LONG}

Short lines
stay as they are.
"""


def test_only_paragraphs_and_items_are_filled():
    new = wrap.wrapped(PAGE)
    assert new.split() == PAGE.split()
    assert wrap.wrapped(new) == new

    # What stays as it is, and what is no longer too wide.
    kept = [
        line
        for line in PAGE.split("\n")
        if line.startswith(("title", "#", "|", "code", "    indented", "Short", "stay"))
    ]
    lines = new.split("\n")
    assert all(line in lines for line in kept)
    assert all(len(line) <= wrap.WIDTH for line in lines if line not in kept)

    # No line becomes an item, and nothing is broken that has to stay together.
    items = [[line.split()[0] for line in text.split("\n") if wrap.ITEM.match(line)] for text in (PAGE, new)]
    assert items[0] == items[1]
    assert "[a link of some words](page.md#anchor)" in new and "`some code of words`" in new
