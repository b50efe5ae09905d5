"""Configuration of the site that `make docs` builds with Sphinx. It works offline."""

from importlib import metadata

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

project = "annotruth"
version = release = metadata.version("annotruth")
copyright = "the annotruth authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_mock_imports = ["pandas"]  # optional, and not needed to read docstrings
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
default_role = "py:obj"
html_theme = "furo"
html_title = f"annotruth {release}"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # pages opened as files cannot load others


def _write_inline(writer: nodes.NodeVisitor, node: nodes.math) -> None:
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _write_block(writer: nodes.NodeVisitor, node: nodes.math_block) -> None:
    text = node.astext()
    if "\\\\" in text and "\\begin" not in text:
        text = f"\\begin{{aligned}}{text}\\end{{aligned}}"
    writer.body.append(f"<div>{latex2mathml.tex2mathml(text, as_block=True)}</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers show without a script from the network."""
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_block, None))
