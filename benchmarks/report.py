"""The benchmark's table and the files in results/: what was measured, with which versions, on which kind of machine."""

from __future__ import annotations

import datetime
import json
import math
import platform
import re
from importlib import metadata
from pathlib import Path

import coulomb

PACKAGES = ["coulomb", "mujoco", "numpy", "libpinocchio", "libcoal", "gymnasium", "example-robot-data"]
COLUMNS = [  # title, key of "us" or a function of a robot's result
    ("robot", None),
    ("nv", "nv"),
    ("contacts", "contacts"),
    ("MuJoCo pyr", "mujoco_step_pyramidal"),
    ("MuJoCo ell", "mujoco_step_elliptic"),
    ("step", "coulomb_step_warm"),
    ("step cold", "coulomb_step_cold"),
    ("step replay", "coulomb_step_replay"),
    ("+Jacobian", "coulomb_jacobian_warm"),
    ("+J cold", "coulomb_jacobian_cold"),
    ("+J replay", "coulomb_jacobian_replay"),
    ("+vjp", "coulomb_vjp_warm"),
    ("MuJoCo FD", "mujoco_jacobian_fd"),
]
RATIOS = [("step/pyr", "coulomb_step_warm"), ("+J/pyr", "coulomb_jacobian_warm"), ("+vjp/pyr", "coulomb_vjp_warm")]
EXPLANATION = """\
Mean over the states of the per-state median, µs; one Python call per step in both engines, one core.
MuJoCo: Newton, Euler, its warm start; pyr, ell: friction cone; FD: mjd_transitionFD, one-sided, pyramidal.
Coulomb: step alone, with the full Jacobian (+J), with one reverse-mode product (+vjp).
Its memory: of the step before (no word), none (cold), of this very step (replay).
Contacts: Coulomb's / MuJoCo's. Ratios: to MuJoCo pyr."""


def cpu_model():
    """(the processor's name, its family and model numbers)"""
    try:
        text = Path("/proc/cpuinfo").read_text()
        fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+?)\s*$", text, re.M))
    except OSError:
        fields = {}
    name = fields.pop("model name", None) or platform.processor() or platform.machine()
    return name, {key: int(value) for key, value in fields.items() if value.isdigit()}


def compiler():
    """The compiler that built the library, as it signed it in the binary's .comment section."""
    module = Path(coulomb._core.__file__)
    libraries = [*module.parent.glob("lib/libcoulomb.so*"), module]
    for file in libraries:
        signs = sorted(set(re.findall(rb"GCC: \([^)\0]*\) [0-9.]+|clang version [0-9.]+", file.read_bytes())))
        if signs:
            return ", ".join(sign.decode() for sign in signs)
    return "unknown"


def environment(core):
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    name, family = cpu_model()
    versions.setdefault("coulomb", coulomb.__version__)
    return {
        "cpu": name,
        **{"cpu_" + key.removeprefix("cpu "): value for key, value in family.items()},
        "pinned_core": core,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiler": compiler(),
        "versions": versions,
    }


def table(results):
    """The lines of a Markdown table, also easy to read as text."""
    titles = [title for title, _ in COLUMNS + RATIOS]
    rows = []
    for name, result in results.items():
        us = result["us"]
        row = [name, str(result["nv"]), f"{result['contacts']:.1f} / {result['contacts_mujoco']:.1f}"]
        row += [f"{us[key]:.0f}" if us[key] >= 1000 else f"{us[key]:.1f}" for _, key in COLUMNS[3:]]
        row += [f"{us[key] / us['mujoco_step_pyramidal']:.2f}" for _, key in RATIOS]
        rows.append(row)
    return markdown(titles, rows)


def markdown(titles, rows):
    """The lines of a Markdown table of strings, with columns of equal width: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    lines = []
    for row in [titles, *rows]:
        cells = [cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("| " + " | ".join(cells) + " |")
    lines.insert(1, "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|")
    return lines


class Criteria:
    """What a benchmark promises: each a measured value and the most that it may be."""

    def __init__(self):
        self.entries = []

    def at_most(self, name, value, bound):
        """value None: could not be measured, which does not pass."""
        value = None if value is None else float(value)
        self.entries.append(
            {"name": name, "value": value, "bound": bound, "passed": value is not None and value <= bound}
        )

    def lines(self):
        """Of a Markdown table."""
        rows = []
        for e in self.entries:
            measured = "not reached" if e["value"] is None else f"{e['value']:.3g}"
            rows.append([e["name"], measured, f"{e['bound']:g}", "pass" if e["passed"] else "FAIL"])
        passed = sum(e["passed"] for e in self.entries)
        return [*markdown(["criterion", "measured", "at most", ""], rows), "", f"{passed} of {len(rows)} pass."]


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def notes(results):
    unsolved = [
        f"{name}, {count} of {r['states']}: {reason}"
        for name, r in results.items()
        for reason, count in r["status"].items()
        if reason != "solved"
    ]
    sources = sorted({r["source"] for r in results.values()})
    lines = ["Robots: " + ", ".join(sources) + "."]
    left_out = []
    for name, r in results.items():
        if r["pairs_left_out"]:
            left_out.append(f"{name} {r['pairs_left_out']}")
            if "mujoco_step_same_pairs" in r["us"]:
                left_out[-1] += f" (without them MuJoCo pyr takes {r['us']['mujoco_step_same_pairs']:.1f} µs)"
    if left_out:
        lines.append("Pairs that overlap in the neutral pose, kept by MuJoCo only: " + "; ".join(left_out) + ".")
    slow = []
    for name, r in results.items():
        mean, worst = r["us"]["coulomb_step_warm"], r["us_slowest_state"]["coulomb_step_warm"]
        if worst > 4 * mean:
            slow.append(f"{name} {worst:.0f} (mean {mean:.1f}, median {r['us_median_state']['coulomb_step_warm']:.1f})")
    if slow:
        lines.append("Steps whose slowest state takes more than four times the mean, µs: " + "; ".join(slow) + ".")
    if unsolved:
        lines.append("Coulomb's steps with another status than 'solved': " + ". ".join(unsolved) + ".")
    return lines


def machine_line(env):
    versions = ", ".join(f"{name} {version}" for name, version in env["versions"].items())
    return f"{env['compiler']}; Python {env['python']}; {versions}."


def write_study(folder, name, title, env, lines, data):
    """<name>.md from lines, <name>.json from data; returns their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    date = datetime.date.today().isoformat()
    text = [f"# {title}", "", f"{date}, {env['cpu']}.", "", *lines, "", machine_line(env), ""]
    paths = [folder / f"{name}.json", folder / f"{name}.md"]
    paths[0].write_text(json.dumps({"date": date, "environment": env, **data}, indent=1) + "\n")
    paths[1].write_text("\n".join(text))
    return paths


def write(folder, date, quick, env, results, section=({}, ())):
    """<date>-<cpu>.json and .md; returns their paths. section: more entries of the one, more lines of the other."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cpu = re.sub(r"[^a-z0-9]+", "-", env["cpu"].lower()).strip("-")
    stem = folder / (f"{date}-{cpu}" + ("-quick" if quick else ""))
    data = {"date": date, "quick": quick, "unit": "us", "environment": env, "robots": results, **section[0]}
    stem.with_suffix(".json").write_text(json.dumps(data, indent=2) + "\n")
    machine = machine_line(env)
    if quick:
        machine += " Quick run: few repetitions."
    text = [
        f"# {date}, {env['cpu']}",
        "",
        *table(results),
        "",
        EXPLANATION,
        "",
        *notes(results),
        *section[1],
        "",
        machine,
        "",
    ]
    stem.with_suffix(".md").write_text("\n".join(text))
    return [stem.with_suffix(".json"), stem.with_suffix(".md")]
