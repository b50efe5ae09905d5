"""Excerpts under search results, also of pages that are opened as files.

Sphinx makes excerpts in the browser from the pages that it found, which pages opened as files may
not load. So the build writes the texts of all pages into a script, which excerpts.js reads.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

_HIDDEN = (nodes.title, nodes.raw, nodes.comment, nodes.math_block)


def setup(app: Sphinx) -> dict[str, bool]:
    """Load both scripts on the search page only; write the texts after the build."""
    app.connect("html-page-context", _add_scripts)
    app.connect("build-finished", _write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_scripts(app: Sphinx, page: str, *_: object) -> None:
    if page == "search":
        app.add_js_file("page-texts.js")
        app.add_js_file("excerpts.js")


def _write_texts(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        texts = {
            app.builder.get_target_uri(page): _sections(app.env.get_doctree(page))
            for page in sorted(app.env.found_docs)
        }
        script = f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
        Path(app.outdir, "_static", "page-texts.js").write_text(script, "utf-8")


def _sections(page: nodes.document) -> list[tuple[str, str]]:
    """Return the anchor and the text of each section, less its title and inner sections."""
    texts: dict[str, list[str]] = {}
    for element in page.findall(nodes.TextElement):
        if not (isinstance(element, _HIDDEN) or isinstance(element.parent, nodes.TextElement)):
            section = _section_of(element)
            texts.setdefault(section, []).append(" ".join(element.astext().split()))
    return [(anchor, " ".join(parts)) for anchor, parts in texts.items()]


def _section_of(node: nodes.Node) -> str:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.section):
            return str(node["ids"][0])
    return ""
