"""COULOMB_SIMD: the instruction set that a process uses is the one that is asked for, or the import says why not."""

import os
import subprocess
import sys

import pytest

import coulomb

SETS = ["baseline", "avx2", "avx512"]

STEP = """
import numpy as np
import coulomb
scene = coulomb.Scene()
scene.add_ground(friction=0.5)
for i in range(4):
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0.3 * i, 0, 0.0999))
model = scene.build()
sim = coulomb.Simulator(model, timestep=1e-3)
q, v = model.neutral()
v = v + 0.3 * np.random.default_rng(0).normal(size=model.nv)
for _ in range(20):
    q, v = sim.step(q, v)
print(coulomb.instruction_set(), *[x.hex() for x in np.r_[v, sim.derivatives().A.ravel()].tolist()])
"""


def run(code, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "COULOMB_SIMD"} | variables
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def available():
    """Those that this processor and this build have; the last one is used if nothing is asked for."""
    return [name for name in SETS if run("import coulomb", COULOMB_SIMD=name).returncode == 0]


def test_what_is_asked_for_is_used():
    sets = available()
    assert sets == SETS[: len(sets)] and sets
    results = {}
    for name in sets:
        found = run(STEP, COULOMB_SIMD=name)
        used, *numbers = found.stdout.split()
        assert used == name, found.stderr
        results[name] = [float.fromhex(x) for x in numbers]

    # Other code ran: sums are rounded otherwise without fused multiply-adds. The motion is the same.
    base = results["baseline"]
    assert all(results[name] != base for name in sets[1:])
    for name in sets[1:]:
        assert results[name] == pytest.approx(base, rel=1e-9, abs=1e-9)


def test_unset_and_empty_are_the_best():
    best = available()[-1]
    for variables in ({}, {"COULOMB_SIMD": ""}):
        assert run("import coulomb; print(coulomb.instruction_set())", **variables).stdout.strip() == best


def test_what_a_program_sets_before_the_import_counts():
    code = "import os; os.environ['COULOMB_SIMD'] = 'baseline'; import coulomb; print(coulomb.instruction_set())"
    assert run(code).stdout.strip() == "baseline"
    # Variables whose names or values look like it.
    found = run(
        "import coulomb; print(coulomb.instruction_set())",
        COULOMB_SIMD_="avx1024",
        XCOULOMB_SIMD="avx1024",
        AAA="x=COULOMB_SIMD=avx1024",
        COULOMB_SIMD="baseline",
    )
    assert found.stdout.strip() == "baseline", found.stderr


@pytest.mark.parametrize("value", ["avx", "AVX2", "avx2 ", "avx512f", "x" * 4000])
def test_an_unknown_name_is_refused(value):
    found = run("import coulomb", COULOMB_SIMD=value)
    assert found.returncode == 1
    message = f"ValueError: COULOMB_SIMD = '{value}' is not an instruction set: use 'baseline', 'avx2' or 'avx512'"
    assert message in found.stderr


def test_what_the_processor_lacks_is_refused():
    missing = SETS[len(available()) :]
    if not missing:
        pytest.skip("this processor has them all")
    for name in missing:
        found = run("import coulomb", COULOMB_SIMD=name)
        assert f"ValueError: COULOMB_SIMD = '{name}': this processor does not have" in found.stderr
        assert f"'{available()[-1]}' is the best that it has" in found.stderr


def test_it_is_told():
    assert coulomb.instruction_set() in SETS
    assert coulomb.instruction_set() == os.environ.get("COULOMB_SIMD") or available()[-1] == coulomb.instruction_set()
