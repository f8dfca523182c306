"""How Sphinx builds the documentation: `make docs`. Generated pages come from `generated.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
# Notebooks run `drhg` of this checkout and find the files that it ships.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["PYTHONPATH"] = str(HERE.parent / "src")
os.environ["COLUMNS"] = "90"

import drhg  # noqa: E402

project = "drhg"
author = "The drhg authors"
project_copyright = author
version = release = drhg.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "generated",
]
exclude_patterns = ["_build", "results", "**.ipynb_checkpoints"]
default_role = "py:obj"
nitpicky = False

# Notebooks: executed at every build, and an error in one is an error of the build.
nb_execution_mode = os.environ.get("DRHG_NOTEBOOKS", "force")
nb_execution_timeout = 300  # seconds; the longest takes 20 on an idle machine
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_render_markdown_format = "myst"
nb_output_stderr = "remove"  # progress

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    "npt.ArrayLike": "ArrayLike",
    "ArrayLike": "ArrayLike",
    "Floats": "ndarray",
    "Ints": "ndarray",
}
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"drhg {version}"
html_static_path = ["_static"]
html_css_files = ["drhg.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7db3f0", "color-brand-content": "#7db3f0"},
}

# Addresses elsewhere are checked by `make linkcheck`, which needs a network.
linkcheck_timeout = 20
linkcheck_retries = 2
