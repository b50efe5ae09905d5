"""Formulas as MathML, which browsers show without a script from the network."""

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer "mathml"."""
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_inline(writer: nodes.NodeVisitor, node: nodes.math) -> None:
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _write_block(writer: nodes.NodeVisitor, node: nodes.math_block) -> None:
    text = node.astext()
    if "\\\\" in text and "\\begin" not in text:
        text = f"\\begin{{aligned}}{text}\\end{{aligned}}"
    writer.body.append(f'<div class="formula">{latex2mathml.tex2mathml(text, as_block=True)}</div>')
    raise nodes.SkipNode
