"""How Sphinx builds the documentation."""

import re
from pathlib import Path

root = Path(__file__).resolve().parents[1]

project = "arrowdl"
author = "The arrowdl developers"
copyright = "the arrowdl developers"
release = re.search(r'^version = "(.*)"$', (root / "pyproject.toml").read_text(), re.M)[1]
version = ".".join(release.split(".")[:2])

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
nitpicky = True
# Types of other libraries and of the standard one: named, not linked, since nothing is fetched.
nitpick_ignore_regex = [("py:.*", r"(?!arrowdl).*|arrowdl\.loader\._types\..*")]

default_role = "py:obj"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
highlight_language = "python"

html_theme = "furo"
html_title = f"arrowdl {release}"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
