"""Writes docs/options.md from the table that Simulator itself is made of: python docs/options_table.py."""

import pathlib

from coulomb import _core

PAGE = pathlib.Path(__file__).parent / "options.md"
HEAD = """# Options of a simulator

`coulomb.Simulator(model, timestep=None, *, ...)`, and `coulomb.BatchSimulator`, which takes the same. An option that
has no influence on the simulator that is asked for is refused by name, unless it is as it is by default; `sim.options`
has them all. This page is written by [options_table.py](options_table.py) from the table that the keywords, their
signature and their docstring are made of.
"""


def page():
    text, last = HEAD, None
    for group, name, kind, default, bounds, words in _core._simulator_options():
        if group != last:
            text += f"\n## {group}\n\n| option | type | default | range | |\n|---|---|---|---|---|\n"
        last = group
        text += f"| `{name}` | {kind.replace('|', 'or')} | `{default!r}` | {bounds} | {words} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
