"""A command line whose options are the fields of a dataclass."""

from __future__ import annotations

import argparse
import dataclasses


def given_options(program, description, fields_of, arguments=None):
    """The options that were given, by name: those of a dataclass, and "resume", a folder."""
    parser = argparse.ArgumentParser(program, description=description)
    for field in dataclasses.fields(fields_of):
        kind = type(field.default)
        if kind is bool:
            parser.add_argument(f"--{field.name}", action=argparse.BooleanOptionalAction)
        elif kind is tuple:
            parser.add_argument(f"--{field.name}", type=type(field.default[0]), nargs="+")
        else:
            parser.add_argument(f"--{field.name}", type=kind)
    parser.add_argument("--resume", help="the output folder of a run to go on from")
    return {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
