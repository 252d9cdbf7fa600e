"""A trial: a random scene, a contact law and a stepper; and the record of its run, which rules look at."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import coulomb

from . import loose_scenes, mechanism_scenes
from .drafts import View, any_quaternion, build

KINDS = {
    "tiles": loose_scenes.tiles,
    "near_misses": loose_scenes.near_misses,
    "rolling": loose_scenes.rolling,
    "heaps": loose_scenes.heaps,
    "terrain": loose_scenes.terrain,
    "fields": loose_scenes.fields,
    "stacks": loose_scenes.stacks,
    "thrown": loose_scenes.thrown,
    "collisions": loose_scenes.collisions,
    "sliding": loose_scenes.sliding,
    "balls_on_balls": loose_scenes.balls_on_balls,
    "overlaps": loose_scenes.overlaps,
    "loops": mechanism_scenes.loops,
    "servos": mechanism_scenes.servos,
    "springs": mechanism_scenes.springs,
    "limits": mechanism_scenes.limits,
    "couplings": mechanism_scenes.couplings,
    "grippers": mechanism_scenes.grippers,
    "hands": mechanism_scenes.hands,
    "legs": mechanism_scenes.legs,
    "jams": mechanism_scenes.jams,
    "fingers": mechanism_scenes.fingers,
    "planar_joints": mechanism_scenes.planar_joints,
    "pendulums": mechanism_scenes.pendulums,
}

#: Contact law and stepper: arguments of Simulator.
LAWS = {
    "ncp": {},
    "lcp": {"contact": "lcp"},
    "split": {"continuous_collision": True},
    "soft": {},
    "penalty": {"contact": "penalty"},
    "bdf1": {"contact": "penalty", "stepper": "bdf1"},
    "bdf2": {"contact": "penalty", "stepper": "bdf2"},
}
HARD = ("ncp", "lcp", "split")
SEMI_IMPLICIT = ("ncp", "lcp", "soft", "penalty")
IMPLICIT = ("bdf1", "bdf2")
SOFT_SURFACE = {"contact_stiffness": 2e4, "contact_dashpot": 200.0}
SAMPLES = 4  # states of a run that rules look at more closely


def laws_of(kind):
    """The laws that a kind of scene has."""
    return list(LAWS)


@dataclass
class Record:
    """q, v: rows of states, the start first. contacts, statuses: of every step. samples: (row, memory before the step that starts there)."""

    q: np.ndarray
    v: np.ndarray
    contacts: list = field(default_factory=list)
    statuses: list = field(default_factory=list)
    samples: list = field(default_factory=list)


@dataclass
class Trial:
    """kind, law and seed name it: the same three, the same trial."""

    kind: str
    law: str
    seed: int

    @cached_property
    def draft(self):
        return KINDS[self.kind](self.random("scene"))

    def random(self, purpose):
        """A generator of numbers of its own for each purpose, so that rules do not disturb one another."""
        return np.random.default_rng([self.seed, zlib.crc32(f"{self.kind} {purpose}".encode())])

    @property
    def surface(self):
        return SOFT_SURFACE if self.law == "soft" else None

    @cached_property
    def view(self):
        """Every other seed is turned as a whole: nothing then lies along an axis."""
        if self.seed % 2 == 0 or self.draft.urdf:
            return View()
        return View(quaternion=tuple(any_quaternion(self.random("view"))))

    @cached_property
    def built(self):
        return self.build()

    def build(self, draft=None, view=None, **options):
        return build(draft or self.draft, view or self.view, soft=self.surface, **options)

    def simulator(self, built=None, timestep=None, **options):
        built = built or self.built
        return coulomb.Simulator(built.model, timestep or self.draft.timestep, **{**LAWS[self.law], **options})

    @property
    def steps(self):
        return max(8, round(self.draft.horizon / self.draft.timestep))

    @cached_property
    def record(self):
        return self.run(self.built, self.steps)

    def run(self, built, steps, timestep=None):
        sim, q, v = self.simulator(built, timestep), built.q, built.v
        record = Record([q], [v])
        rows = set(np.linspace(1, steps - 1, SAMPLES, dtype=int))
        for k in range(steps):
            if k in rows:
                record.samples.append((k, sim.memory))
            q, v = sim.step(q, v, built.u)
            record.q.append(q), record.v.append(v)
            record.contacts.append(sim.contacts), record.statuses.append(sim.status)
            if not (np.isfinite(q).all() and np.isfinite(v).all()) or np.abs(v).max(initial=0) > 1e12:
                break
        record.q, record.v = np.array(record.q), np.array(record.v)
        return record

    @property
    def command(self):
        return f"python tools/audit.py --kind {self.kind} --law {self.law} --seed {self.seed}"
