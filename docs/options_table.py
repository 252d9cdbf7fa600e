"""Writes docs/options.md from the table that defines the options of Simulator: python docs/options_table.py."""

import pathlib

from coulomb import _core

PAGE = pathlib.Path(__file__).parent / "options.md"
HEAD = """# Options of a simulator

These are the options of `coulomb.Simulator(model, timestep=None, *, ...)` and of `coulomb.BatchSimulator`. An option
that has no effect on the requested simulator is refused by name, unless it has its default value; `sim.options` has all
of them. [options_table.py](options_table.py) writes this page from the table behind the keywords, their signature and
their docstring.
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
