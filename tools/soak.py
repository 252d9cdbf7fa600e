"""Long runs: robots under random controls, a heap that is stirred, a conveyor of bodies that are set back. What must not drift is watched.

python tools/soak.py [--steps 10000000] [--only go1 heap conveyor] [--report FILE]

Every scene runs in pieces. After each piece: memory of the process, the deepest overlap, the fastest body, statuses of the steps. Broken
promises end it with code 1: numbers that are not finite, memory that grows, overlaps of the last quarter that are deeper than those of the second.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import resource
import sys
import time
from pathlib import Path

import numpy as np

import coulomb
from coulomb.demo import STANDING, robot_path
from coulomb.progress import Bar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scenes.pit import TIMESTEP, pit  # noqa: E402

PIECES = 40
NUM_ENVS = 8
SUBSTEPS = 10  # of one control step
MEMORY = 1.1  # times, that the process may grow in its last quarter: workspaces have seen the largest problem by then, or nearly
DEEPER = 2.0  # times, that overlaps may grow


class Go1:
    """Servos jump to random targets; who has fallen lies and flails until it is set on its feet again."""

    def __init__(self, random):
        self.random = random
        scene = coulomb.Scene()
        scene.add_ground(friction=0.8)
        path, packages = robot_path("go1_description/urdf/go1.urdf")
        servos = {"actuators": "position", "kp": 35.0, "kd": 1.0}
        scene.add_urdf(path, floating_base=True, package_dirs=[packages], **servos)
        self.model = scene.build()
        self.options = {"timestep": 2e-3}
        self.q, self.v = self.model.neutral()
        self.q[2], self.q[7:] = 0.35, STANDING

    def start(self):
        return np.tile(self.q, (NUM_ENVS, 1)), np.zeros((NUM_ENVS, self.model.nv))

    def controls(self):
        return STANDING + 0.5 * self.random.normal(size=(NUM_ENVS, self.model.nu))

    def disturb(self, Q, V):
        """Rows that begin anew, by where they begin."""
        over = self.random.random(NUM_ENVS) < 0.01
        Q[over], V[over] = self.q, 0.0
        return over


class Bodies:
    """Scenes that nothing drives: they begin as their models are, in every environment."""

    def start(self):
        q, v = self.model.neutral()
        return np.tile(q, (NUM_ENVS, 1)), np.tile(v, (NUM_ENVS, 1))

    def controls(self):
        return np.zeros((NUM_ENVS, 0))


class Heap(Bodies):
    """Boxes, capsules and balls in a pit, thrown up now and then."""

    def __init__(self, random):
        self.random = random
        self.model = pit()
        self.options = {"timestep": TIMESTEP}

    def disturb(self, Q, V):
        thrown = self.random.random(NUM_ENVS) < 0.05
        V[thrown] += self.random.normal(size=V[thrown].shape) * np.tile([1, 1, 2, 5, 5, 5], self.model.nv // 6)
        return np.zeros(NUM_ENVS, bool)


class Conveyor(Bodies):
    """Boxes slide down a chute and are set back to its upper end, each environment at times of its own."""

    def __init__(self, random):
        self.random = random
        scene = coulomb.Scene()
        scene.add_ground(friction=0.5)
        tilt = np.radians(30) / 2
        chute = {"quaternion": (np.cos(tilt), 0, np.sin(tilt), 0), "fixed": True, "friction": 0.2}
        scene.add_box((2.0, 0.5, 0.1), position=(0, 0, 0.7), name="chute", **chute)
        for k in range(5):
            scene.add_box((0.15, 0.1, 0.08), position=(-0.7 + 0.25 * k, 0, 1.25 - 0.14 * k), mass=0.5, friction=0.3)
        self.model = scene.build()
        self.options = {"timestep": 4e-3, "continuous_collision": True}

    def disturb(self, Q, V):
        over = self.random.random(NUM_ENVS) < 0.02
        Q[over], V[over] = self.model.neutral()
        V[over] += 0.1 * self.random.normal(size=V[over].shape)
        return over


SCENES = {"go1": Go1, "heap": Heap, "conveyor": Conveyor}
SHARES = {"go1": 0.6, "heap": 0.3, "conveyor": 0.1}  # of all steps; those that are split at impacts take longest


def memory_now():
    """MB of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def deepest(probes, Q, V):
    """m: the deepest overlap of any environment, by a step of a simulator of its own."""
    depths = [0.0]
    for probe, q, v in zip(probes, Q, V):
        probe.reset()
        probe.step(q, v)
        depths += [contact.depth for contact in probe.contacts]
    return max(depths)


def soak(name, steps, seed=0):
    """Rows of what was watched, one a piece, and a count of the words that statuses began with."""
    scene = SCENES[name](np.random.default_rng(seed))
    batch = coulomb.BatchSimulator(scene.model, NUM_ENVS, **scene.options)
    probes = [coulomb.Simulator(scene.model, **scene.options) for _ in range(NUM_ENVS)]
    Q, V = scene.start()
    rounds = max(1, steps // (PIECES * NUM_ENVS * SUBSTEPS))
    statuses, rows = collections.Counter(), []
    bar = Bar(name)
    begin = time.perf_counter()
    for piece in range(PIECES):
        fastest = 0.0
        for _ in range(rounds):
            over = scene.disturb(Q, V)
            if over.any():
                batch.reset(over, Q, V)
            Q, V, record = batch.control_step(Q, V, scene.controls(), substeps=SUBSTEPS)
            Q, V = Q.copy(), V.copy()
            if not (np.isfinite(Q).all() and np.isfinite(V).all()):
                raise FloatingPointError(f"{name}: a state is not finite")
            statuses.update(str(reason).split(":")[0][:60] for reason in record.status.reason)
            fastest = max(fastest, float(np.abs(V).max()))
        depth = deepest(probes, Q, V)
        rows.append({"memory": memory_now(), "depth": depth, "fastest": fastest})
        bar(piece + 1, PIECES)
    bar.close()
    done = rounds * PIECES * NUM_ENVS * SUBSTEPS
    return rows, statuses, done, time.perf_counter() - begin


def broken_promises(rows):
    """Sentences, of what drifted."""
    quarter = len(rows) // 4
    said = []
    before, after = rows[-quarter - 1]["memory"], rows[-1]["memory"]
    if after > MEMORY * before:
        said.append(f"memory grew from {before:.1f} to {after:.1f} MB in the last quarter")
    second = max(row["depth"] for row in rows[quarter : 2 * quarter])
    last = max(row["depth"] for row in rows[-quarter:])
    if last > DEEPER * max(second, 1e-3):
        said.append(f"overlaps grew from {second:.2e} m in the second quarter to {last:.2e} m in the last one")
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=10_000_000, help="over all scenes and environments")
    parser.add_argument("--only", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--report", type=Path, help="Markdown; without it, none is written")
    options = parser.parse_args()

    head = [
        "scene",
        "steps",
        "minutes",
        "memory after 1, 2, 3, 4 quarters, MB",
        "deepest in the 2nd, last quarter, mm",
    ]
    lines = [
        "| " + " | ".join([*head, "fastest, m/s or rad/s", "control steps"]) + " |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    failed = []
    for name in options.only:
        rows, statuses, steps, seconds = soak(name, int(options.steps * SHARES[name]))
        quarter = len(rows) // 4
        depths = [1e3 * max(row["depth"] for row in part) for part in (rows[quarter : 2 * quarter], rows[-quarter:])]
        total = sum(statuses.values())
        told = ", ".join(f"{reason} {100 * count / total:.3g} %" for reason, count in statuses.most_common())
        memories = ", ".join(f"{rows[k * quarter - 1]['memory']:.0f}" for k in (1, 2, 3, 4))
        cells = [name, str(steps), f"{seconds / 60:.1f}", memories]
        cells += [f"{depths[0]:.3g}, {depths[1]:.3g}", f"{max(row['fastest'] for row in rows):.0f}", told]
        lines.append("| " + " | ".join(cells) + " |")
        failed += [f"{name}: {sentence}" for sentence in broken_promises(rows)]
    print(*lines, *failed, sep="\n")
    if options.report:
        text = [
            "# Soak",
            "",
            f"{datetime.date.today()}, `python tools/soak.py --steps {options.steps}`.",
            "",
            *lines,
            "",
        ]
        options.report.write_text("\n".join([*text, *(failed or ["Nothing drifted."]), ""]))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
