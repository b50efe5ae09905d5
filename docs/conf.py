"""Configuration of the site that `make docs` builds with Sphinx. It works offline."""

import logging
import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
logging.basicConfig(level=logging.WARNING)  # before a package of the theme shows everything

project = "annotruth"
version = release = metadata.version("annotruth")
copyright = "the annotruth authors"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "llms",
    "mathml",
    "public_members",
    "sample_report",
    "search_excerpts",
]
exclude_patterns = ["extensions", "templates"]
templates_path = ["templates"]

myst_heading_anchors = 3
nb_execution_mode = "force"  # notebooks are kept without output
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
default_role = "py:obj"
suppress_warnings = ["ref.python"]  # attributes of several classes have the same name

html_theme = "furo"
html_title = f"annotruth {release}"
html_extra_path = ["llms.txt"]  # and llms-full.txt, which the extension llms writes
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # excerpts come from search_excerpts, also for files


def setup(app: Sphinx) -> None:
    """Mend docstrings of properties that begin with "what: more"; napoleon takes it for a type."""
    app.connect("autodoc-process-docstring", _restore_first_words, priority=600)


def _restore_first_words(
    app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]
) -> None:
    for at, line in enumerate(lines):
        if what in ("attribute", "property") and line.startswith(":type: "):
            lines[0] = f"{line.removeprefix(':type: ')}: {lines[0]}"
            del lines[at]
            return
