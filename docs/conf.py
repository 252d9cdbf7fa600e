"""The site: `make docs` (docs/README.md says how it is laid out).

The source folder of Sphinx is the root of the repository, so that the links between pages are those that one follows in the repository: the pages of
docs/, the README files, and the tables of benchmarks/results and tests/ as they were measured.
"""

import hashlib
import os
import pathlib
import sys

import coulomb

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE = ROOT / "docs" / "site"
BUILD = ROOT / "build" / "docs"
sys.path.insert(0, str(SITE))

# Notebooks: one core, the processor only, our pictures, and from the kernel errors alone.
os.environ.update(
    OMP_NUM_THREADS="1", JAX_PLATFORMS="cpu", COULOMB_ROOT=str(ROOT), MATPLOTLIBRC=str(SITE / "matplotlibrc")
)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SITE), os.environ.get("PYTHONPATH")]))
os.environ["IPYTHONDIR"] = str(BUILD / "ipython")
kernel_config = BUILD / "ipython" / "profile_default" / "ipython_kernel_config.py"
kernel_config.parent.mkdir(parents=True, exist_ok=True)
kernel_config.write_text("c = get_config()\nc.IPKernelApp.log_level = 40\n")


def digest_of_what_pages_read() -> str:
    """Of the installed package and of committed results: where it changes, every page is read and every notebook executed again."""
    package = pathlib.Path(coulomb.__file__).parent
    files = [
        *package.rglob("*.py"),
        *package.glob("*.so"),
        *SITE.glob("*.*"),
        *(ROOT / "benchmarks" / "results").iterdir(),
        *(ROOT / "tests").rglob("*.md"),
    ]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


what_pages_read = digest_of_what_pages_read()

project = "Coulomb"
author = "The Coulomb authors"
copyright = author
version = release = coulomb.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "github_markdown",
    "interface",
]

# --- which files are pages -----------------------------------------------------------------------------------------------------

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "examples/**.md",
    "benchmarks/results/**.md",
    "tests/**.md",
    "src/coulomb/**.md",
    "python/**.md",
]
exclude_patterns = ["build", "output", ".*", "dist"]

# --- pages: Markdown, as GitHub reads it, and notebooks in Markdown ----------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_dmath_double_inline = True
myst_heading_anchors = 6
myst_fence_as_directive = ["math"]
suppress_warnings = ["ref.python"]  # types in docstrings, as nv, are words and not names

nb_execution_mode = "cache"
nb_execution_cache_path = str(BUILD / "notebooks" / what_pages_read)
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # s, of a cell on a busy machine
nb_merge_streams = True
nb_render_markdown_format = "myst"

# --- the Python interface ----------------------------------------------------------------------------------------------------------

autodoc_default_options = {"members": True, "special-members": "__init__, __getitem__"}
autodoc_member_order = "alphabetical"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
add_module_names = False

# --- how it looks ------------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"Coulomb {release}"
html_static_path = ["site/static"]
html_css_files = ["coulomb.css"]
html_search_scorer = str(SITE / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"

# --- external links: make docs-links ---------------------------------------------------------------------------------------------

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]


def setup(app):
    app.add_config_value("what_pages_read", "", "env")
