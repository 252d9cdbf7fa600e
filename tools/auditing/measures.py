"""What a rule returns, and the list of rules."""

from __future__ import annotations

from dataclasses import dataclass

RULES = {}


@dataclass
class Measure:
    """A value that must not be above its bound. note: where it was, for people."""

    value: float
    bound: float
    note: str = ""

    @property
    def broken(self):
        return not self.value <= self.bound  # NaN is broken, too


def rule(name, words):
    """Registers a function of a Trial that returns a Measure, or None where the rule says nothing."""

    def register(function):
        RULES[name] = (function, words)
        return function

    return register
