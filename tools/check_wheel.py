"""What a user gets of a wheel: installs it in an empty environment from a folder of wheels, and tries it there. check_wheel.py WHEEL

Prints seconds and megabytes; ends with an error where the environment is heavier than it may be, brings what it should not, or does not work.
The environment is left in build/clean_env.
"""

import pathlib
import shutil
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = ROOT / "build" / "clean_env"
MOST_MEGABYTES = 60  # beside NumPy
UNWANTED = ("pinocchio", "coal", "boost", "cmeel", "assimp")

TRIAL = """
import time
begin = time.perf_counter()
import numpy
numpy_alone = time.perf_counter()
import coulomb
imported = time.perf_counter()
scene = coulomb.Scene()
scene.add_ground()
scene.add_box((1, 1, 1), position=(0, 0, 0.5))
scene.add_urdf("<robot name='r'><link name='a'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/>"
               "</inertial></link></robot>", floating_base=True, position=(9, 0, 9))
scene.add_mjcf("<mujoco><worldbody><body pos='5 0 1'><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
sim = coulomb.Simulator(scene.build())
sim.step(*sim.model.neutral())
assert sim.status.converged and sim.derivatives().A.shape == (36, 36)
print(f"import {imported - numpy_alone:.2f} s after numpy's {numpy_alone - begin:.2f} s; first gradient {time.perf_counter() - begin:.2f} s")
print("coulomb", coulomb.__version__, "in", coulomb.cmake_prefix())
"""


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, **options)


def megabytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink()) / 1e6


def main(wheel):
    shutil.rmtree(CLEAN, ignore_errors=True)
    venv.create(CLEAN, with_pip=True)
    python = CLEAN / "bin" / "python"
    index = ROOT / "build" / "index"
    quiet = ["-m", "pip", "--quiet", "--disable-pip-version-check"]

    # A local index: what is needed is fetched first, so that the network is not measured.
    shutil.rmtree(index, ignore_errors=True)
    run(python, *quiet, "download", "--dest", index, wheel)
    begin = time.perf_counter()
    run(python, *quiet, "install", "--no-index", "--find-links", index, wheel)
    seconds = time.perf_counter() - begin

    # What it brings.
    site = next((CLEAN / "lib").glob("python*/site-packages"))
    brought = {
        f.name: megabytes(f) for f in site.iterdir() if f.is_dir() and not f.name.startswith(("pip", "setuptools"))
    }
    beside_numpy = sum(size for name, size in brought.items() if not name.startswith("numpy"))
    heavy = ", ".join(f"{name} {size:.1f}" for name, size in sorted(brought.items(), key=lambda x: -x[1]) if size > 0.5)
    print(f"installed in {seconds:.1f} s; {beside_numpy:.0f} MB beside NumPy ({heavy})")
    unwanted = [name for name in brought if any(word in name.lower() for word in UNWANTED)]
    if unwanted or beside_numpy > MOST_MEGABYTES:
        sys.exit(f"too much: {unwanted or ''} {beside_numpy:.0f} MB, at most {MOST_MEGABYTES}")

    # From a folder without sources.
    run(python, "-c", TRIAL, cwd=CLEAN)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
