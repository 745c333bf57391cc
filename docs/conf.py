"""How Sphinx builds the documentation."""

import os
import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(root / "docs"))  # for notebooks.py, interop_tables.py

project = "arrowdl"
author = "The arrowdl developers"
copyright = "the arrowdl developers"
release = re.search(r'^version = "(.*)"$', (root / "pyproject.toml").read_text(), re.M)[1]
version = ".".join(release.split(".")[:2])

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "notebooks", "interop_tables"]
exclude_patterns = ["_build"]
nitpicky = True
# Types of other libraries and of the standard one: named, not linked, since nothing is fetched.
nitpick_ignore_regex = [("py:.*", r"(?!arrowdl).*|arrowdl\.loader\._types\..*")]

default_role = "py:obj"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True  # `shape` and `dtype` are of several classes
napoleon_use_rtype = False
# The groups of the Loader's parameters.
napoleon_custom_sections = [(name, "params_style") for name in ("Order", "Tensors", "Work")]
highlight_language = "python"

html_theme = "furo"
html_title = f"arrowdl {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {"navigation_with_keys": True}

# Read the Docs builds each release and the branch of the next one, adds a menu of these versions to
# every page, and leads search engines to the newest release.
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
if os.environ.get("READTHEDOCS_VERSION_TYPE") == "branch":
    html_title = f"arrowdl after {release}"
