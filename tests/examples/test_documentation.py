"""Every block of code of README.md and docs/**/*.md runs as printed: the Python blocks of a page one after the other in one namespace, README's
C++ and CMake as one small project."""

import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import coulomb

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages by extras that may be missing: README's PyTorch and JAX come last.
EXTRAS = {
    "torch": "import torch",
    "jax": "import jax",
    "gymnasium": "coulomb.envs",
    "stable_baselines3": "coulomb.envs.sb3",
    "rsl_rl.runners": "coulomb.envs.rsl_rl",
    "skrl": "import wrap_env",
    "torchrl": "from torchrl",
    "viser": "coulomb.Viewer",
    "crocoddyl": "import crocoddyl",
    "casadi": "import casadi",
    "aligator": "import aligator",
    "imageio_ffmpeg": "save_video",
}


def blocks(page, language):
    """(first line's number, code) of a page's blocks in that language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, found.start(1)) + 1, found.group(1))
        for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def test_blocks_are_found():
    counts = {str(page.relative_to(ROOT)): len(blocks(page, "python")) for page in PAGES}
    assert sum(page.read_text().count("```python") for page in PAGES) == sum(counts.values()) >= 12
    assert counts["README.md"] >= 5 and len(blocks(PAGES[0], "cpp")) == len(blocks(PAGES[0], "cmake")) == 1


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_python_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    doubles_before = "jax" in sys.modules and sys.modules["jax"].config.jax_enable_x64
    try:
        for line, code in blocks(page, "python"):
            for package, needs in EXTRAS.items():
                if needs in code:
                    pytest.importorskip(package)
            program = compile("\n" * (line - 1) + code, str(page), "exec")  # errors name the line of the page
            exec(program, namespace)
    finally:
        if "jax" in namespace:
            namespace["jax"].config.update("jax_enable_x64", bool(doubles_before))


def test_the_page_of_options_is_that_of_the_table():
    spec = importlib.util.spec_from_file_location("options_table", ROOT / "docs" / "options_table.py")
    options_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(options_table)
    assert options_table.PAGE.read_text() == options_table.page(), "run docs/options_table.py"


def test_the_page_of_scaling_is_that_of_its_measurements(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tables = importlib.import_module("scaling_tables")
    data = json.loads((ROOT / "benchmarks" / "results" / "scaling.json").read_text())
    page = (ROOT / "docs" / "scaling.md").read_text()
    assert page.split(tables.BEGIN)[1].split(tables.END)[0].strip() == "\n".join(tables.lines_of(data))


def test_readme_says_what_is_so(tmp_path, monkeypatch):
    """The number that README prints beside its first gradient."""
    namespace = {}
    for _, code in blocks(PAGES[0], "python")[:2]:
        exec(code, namespace)
    assert namespace["d"]["mass/box"].shape == (12, 1) and namespace["d"].A.shape == (12, 12)
    assert namespace["g"]["friction/ground"] == pytest.approx(-9.81 * 0.05, rel=0.02)
    assert namespace["G"]["friction/ground"].shape == (64, 1)


@pytest.mark.skipif(not (shutil.which("c++") and shutil.which("cmake")), reason="no compiler")
def test_cpp_of_the_readme_compiles_and_runs(tmp_path):
    prefix = coulomb.cmake_prefix()
    (_, cpp), (_, cmake) = blocks(PAGES[0], "cpp")[0], blocks(PAGES[0], "cmake")[0]
    include, body = cpp.split("\n\n", 1)
    (tmp_path / "main.cpp").write_text(
        f"{include}\nint main() {{\n{body}\nreturn d.A_T.size() == 144 && sim.status().converged ? 0 : 1;\n}}\n"
    )
    head = "cmake_minimum_required(VERSION 3.22)\nproject(readme LANGUAGES CXX)\nadd_executable(my_program main.cpp)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + cmake)
    build = tmp_path / "build"
    python = pathlib.Path(sys.executable)
    cmake = str(python.with_name("cmake")) if python.with_name("cmake").exists() else "cmake"
    for command in (
        [cmake, "-S", str(tmp_path), "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"],
        [cmake, "--build", str(build)],
        [str(build / "my_program")],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr


def reasons():
    """Every text of the library that begins as reasons of steps and results do."""
    starts = "solved in parts|relaxed|max_iterations|failed|inelastic|impact_limit|search_limit|no solution exists|no step was taken"
    found = set()
    for source in (ROOT / "src" / "coulomb").rglob("*.cpp"):
        found |= set(re.findall(rf'"((?:{starts})(?:: [^"]*|[^":=]*))"', source.read_text()))
    return {text for text in found if " " in text and " got " not in text and not text.endswith(("yet", "environment"))}


def test_every_reason_has_an_answer():
    page = (ROOT / "docs" / "trouble.md").read_text()
    missing = [text for text in reasons() if text not in page]
    assert len(reasons()) >= 14 and not missing
