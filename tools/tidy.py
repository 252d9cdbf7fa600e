"""clang-tidy with the checks of .clang-tidy on C++ sources: python tools/tidy.py [--jobs N] [--required] [FILE ...]

Without files: those of the rooms that are clean, ROOMS. A finding there is an error. It reads how files are compiled from build/release
(make cpp), and says so if clang-tidy or that folder is missing; with --required (make lint) that is an error.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
ROOMS = ["model", "dynamics", "parameters"]


def program():
    """clang-tidy of this Python environment, else of the system, else None."""
    beside = pathlib.Path(sys.executable).parent / "clang-tidy"
    known = [beside, ROOT / ".venv" / "bin" / "clang-tidy"]
    return next((str(path) for path in known if path.is_file()), shutil.which("clang-tidy"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--required", action="store_true", help="fail where clang-tidy or build/release is missing")
    options = parser.parse_args()

    tidy = program()
    if tidy is None or not (BUILD / "compile_commands.json").is_file():
        done = "missing" if options.required else "left out"
        print(f"{done}: clang-tidy, it needs pip install clang-tidy, and build/release (make cpp)")
        return 1 if options.required else 0
    files = options.files or sorted(path for room in ROOMS for path in (ROOT / "src" / "coulomb" / room).glob("*.cpp"))

    # Findings in headers come once with every file that includes them. One that fails without any says why on stderr.
    def check(file):
        command = [
            tidy,
            "-p",
            str(BUILD),
            "--quiet",
            "--warnings-as-errors=*",
            "--extra-arg=-Wno-unknown-warning-option",
            str(file),
        ]
        return subprocess.run(command, capture_output=True, text=True)

    found, failed = set(), False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(check, files):
            failed = failed or outcome.returncode != 0
            text = outcome.stdout.strip()
            if outcome.returncode != 0 and not text:
                text = outcome.stderr.strip() or f"clang-tidy failed without a word: {outcome.returncode}"
            if text and text not in found:
                print(text, flush=True)
            found.add(text)
    print(f"clang-tidy: {len(files)} files, {'findings' if failed else 'nothing found'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
