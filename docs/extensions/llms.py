"""Write llms-full.txt, the users' pages in one text file, beside the site."""

from pathlib import Path

from sphinx.application import Sphinx

LEFT_OUT = ("development/", "reproduction/", "reference/")


def setup(app: Sphinx) -> None:
    """Write the file after the pages."""
    app.connect("build-finished", write_pages)


def write_pages(app: Sphinx, exception: Exception | None) -> None:
    """Write the Markdown pages, in the order of their names."""
    if exception is not None or app.builder.format != "html":
        return
    names = [name for name in sorted(app.env.found_docs) if not name.startswith(LEFT_OUT)]
    paths = [Path(app.env.doc2path(name)) for name in names]
    texts = [path.read_text("utf-8").strip() for path in paths if path.suffix == ".md"]
    (Path(app.outdir) / "llms-full.txt").write_text("\n\n".join(texts) + "\n", "utf-8")
