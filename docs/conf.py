"""The site: `make docs` (docs/README.md says how it is laid out).

The source folder of Sphinx is the root of the repository, so that the links between pages are those that one follows in the repository: the pages of
docs/, the README files, and the tables of benchmarks/results and tests/ as they were measured.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "site"))

import coulomb  # noqa: E402

# One core, the processor only, no window: the same pages everywhere.
os.environ.update(OMP_NUM_THREADS="1", JAX_PLATFORMS="cpu", COULOMB_ROOT=str(ROOT))
os.environ["MATPLOTLIBRC"] = str(ROOT / "docs" / "site" / "matplotlibrc")
os.environ["IPYTHONDIR"] = str(ROOT / "build" / "docs" / "ipython")
kernel_config = pathlib.Path(os.environ["IPYTHONDIR"]) / "profile_default" / "ipython_kernel_config.py"
kernel_config.parent.mkdir(parents=True, exist_ok=True)
kernel_config.write_text("c = get_config()\nc.IPKernelApp.log_level = 40\n")  # errors, not that sockets are plain text
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "docs" / "site"), os.environ.get("PYTHONPATH", "")])

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
    "docs/**.rst",
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
nb_execution_cache_path = str(ROOT / "build" / "docs" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
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
html_search_scorer = str(ROOT / "docs" / "site" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_exclude = ".linenos, .gp, .go"

# --- external links: make docs-links ---------------------------------------------------------------------------------------------

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]
