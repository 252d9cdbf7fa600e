"""Counts what an audit measured, and says it in Markdown."""

from __future__ import annotations

import collections
import datetime
import math

import coulomb

from .measures import RULES
from .trials import KINDS, LAWS, Trial

SHOWN = 3  # findings of one rule, kind and law that are listed; all are counted


class Tally:
    """Trials by kind and law; of every rule how often it was asked, its worst measure, and what broke it."""

    def __init__(self):
        self.counts = collections.Counter()
        self.asked = collections.Counter()
        self.worst = {}
        self.findings = collections.defaultdict(list)
        self.seconds, self.interrupted = 0.0, False

    @property
    def trials(self):
        return sum(self.counts.values())

    @property
    def broken(self):
        return sum(len(found) for found in self.findings.values())

    def add(self, kind, law, seed, measures):
        self.counts[kind, law] += 1
        for name, measure in measures.items():
            self.asked[name] += 1
            share = (
                measure.value / measure.bound if measure.bound > 0 else float(measure.value > 0) * (1 + measure.value)
            )
            if math.isnan(share) or share > self.worst.get(name, (-math.inf,))[0]:
                self.worst[name] = (share, measure, (kind, law, seed))
            if measure.broken:
                self.findings[name, kind, law].append((seed, measure))

    def text(self, command):
        seen = "interrupted after" if self.interrupted else "for"
        lines = [
            "# Audit",
            "",
            f"{datetime.date.today()}, coulomb {coulomb.__version__}, `{command}`, {seen} {self.seconds:.0f} s: {self.trials} trials, "
            f"{sum(self.asked.values())} rules asked, {self.broken} findings.",
            "",
            "Trials by kind of scene, contact law and stepper:",
            "",
            *self._trials(),
            "",
            "Rules. The worst value is the one nearest to its bound, or farthest beyond it:",
            "",
            *self._rules(),
            "",
            *self._found(),
        ]
        return "\n".join(lines)

    def _trials(self):
        laws = [law for law in LAWS if any(self.counts[kind, law] for kind in KINDS)]
        lines = ["| kind | " + " | ".join(laws) + " |", "|---|" + "--:|" * len(laws)]
        for kind in KINDS:
            if any(self.counts[kind, law] for law in laws):
                lines.append(f"| {kind} | " + " | ".join(str(self.counts[kind, law]) for law in laws) + " |")
        return lines

    def _rules(self):
        lines = [
            "| rule | what must hold | asked | broken | worst value | bound | trial |",
            "|---|---|--:|--:|--:|--:|---|",
        ]
        for name, (_, words) in RULES.items():
            if name in self.worst:
                _, measure, (kind, law, seed) = self.worst[name]
                broken = sum(len(found) for key, found in self.findings.items() if key[0] == name)
                numbers = f"{measure.value:.2g} | {measure.bound:.2g}"
                lines.append(
                    f"| {name} | {words} | {self.asked[name]} | {broken} | {numbers} | {kind}, {law}, {seed} |"
                )
        return lines

    def _found(self):
        if not self.findings:
            return ["Nothing was found."]
        lines = ["Findings, the first of each rule, kind and law:", ""]
        for (name, kind, law), found in sorted(self.findings.items()):
            lines.append(f"- **{name}**, {kind}, {law}: {len(found)} of {self.counts[kind, law]}")
            for seed, measure in found[:SHOWN]:
                note = f" ({measure.note})" if measure.note else ""
                lines.append(
                    f"  - {measure.value:.3g} > {measure.bound:.3g}{note}: `{Trial(kind, law, seed).command} --rule {name}`"
                )
        return lines
