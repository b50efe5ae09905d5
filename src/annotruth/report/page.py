"""Pages: the report of a fit of any kind, and how a page is put together, as one HTML file.

Texts and charts stand in the page; the rows of tables are compressed JSON, which the page's script
unpacks and shows one screen at a time.
"""

from __future__ import annotations

import gzip
import importlib
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from annotruth.errors import check_path
from annotruth.io.atomic import atomic_write
from annotruth.models import base_fit
from annotruth.report.charts.chart import CLASS_COLORS, THEMES, chart_style, color_rules
from annotruth.report.pdf import HTML, check_pdf, write_pdf
from annotruth.report.render import DataTable, Section, plain_renderer, renderer

_SCRIPTS = ("data.js", "table.js", "detail.js", "decide.js", "theme.js", "main.js")
_MODULES = {"labels": "labels", "comparisons": "rankings", "sets": "sets", "questions": "questions"}
"""The module that has a function ``content`` with what is in the report of each kind of fit."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is on a page: the report of a fit, or a comparison of models."""

    kind: str  # what the page is, such as "Annotation report"
    heading: str  # of a report, where the name of the labels is not given
    described: str  # what was read, under the heading
    command: str = ""  # the command that makes the page
    notice: str = ""  # a warning under the heading; what stands between backticks is code
    sections: Sequence[Section]  # those without parts are left out
    footer: str  # the text at the end; what stands between backticks is code
    data: str = ""  # the rows of tables, by `pack`; those of the sections if not given
    colors: Sequence[str] = CLASS_COLORS  # those of the categories
    # what the page may load, by directive of its Content-Security-Policy
    sources: Mapping[str, str] = field(default_factory=dict)

    def headed(self, source: str | None, title: str | None) -> Page:
        """Return the page under the name of the data or, if there is one, a title."""
        if title and title.strip():
            described = f"{source} · {self.described}" if source else self.described
            return replace(self, heading=title, described=described)
        return replace(self, heading=source or self.heading)

    @cached_property
    def shown(self) -> list[Section]:
        """The sections that have parts."""
        return [section for section in self.sections if section.parts]

    @cached_property
    def style(self) -> str:
        """The style sheet in the page."""
        return page_style(self.colors)

    @cached_property
    def script(self) -> str:
        """The script in the page."""
        return script_of(map(asset, _SCRIPTS))

    @property
    def policy(self) -> str:
        """The Content-Security-Policy: this style and script, by their hashes, and the sources."""
        style, script = (
            b64encode(sha256(text.encode()).digest()).decode() for text in (self.style, self.script)
        )
        images = self.sources.get("img-src", "").replace("data:", "")
        allowed = {**self.sources, "img-src": f"data: {images}"}
        loaded = "; ".join(f"{name} {' '.join(text.split())}" for name, text in allowed.items())
        return (
            f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
            f"{loaded}; base-uri 'none'; form-action 'none'"
        )

    @property
    def packed(self) -> str:
        """The rows of the page's tables."""
        return self.data or pack({"categories": [], "colors": [], "tables": tables_of(self.shown)})

    @property
    def version(self) -> str:
        """The version of annotruth that made the page."""
        return version("annotruth")

    def html(self) -> str:
        """Return the page with its style and script in it, which allows no others."""
        return str(renderer().show(self))

    def plain_html(self) -> str:
        """Return the page with the first rows of its tables, for programs that run no scripts."""
        return str(plain_renderer().show(self))

    def write(self, path: str | Path) -> None:
        """Write the page as HTML or PDF, by the name of the file, completely or not at all."""
        check_name(path)
        if Path(path).suffix.lower() not in HTML:
            write_pdf(path, self.html, self.plain_html)
            return
        with atomic_write(path) as temporary:
            temporary.write_text(self.html(), encoding="utf-8", newline="\n")


def check_name(path: str | Path) -> None:
    """Raise an error unless a page can be written to a file of this name."""
    check_path(path, "the name of what is written")
    if Path(path).suffix.lower() not in HTML:
        check_pdf(path)


def write_report(fit: Any, path: str | Path, **options: Any) -> None:
    """Write the report of a fit, as `make_report` makes it, as HTML or PDF."""
    check_name(path)
    make_report(fit, **options).write(path)


def make_report(
    fit: Any,
    *,
    source: str | None = None,
    title: str | None = None,
    command: str | None = None,
    day: date | None = None,
    **options: Any,
) -> Page:
    """Return the report of a fit.

    ``source``: the name of the labels, such as their file.
    ``title``: the heading, in place of the name of the labels, which is then under it.
    ``command``: the command that makes the report, for its end.
    ``day``: the date in the heading; today if not given.
    ``options``: those of the function ``content`` for this kind of fit, among them
      ``truth``, the truths of some or all items, as `annotruth.evaluate` takes them.
    """
    module = importlib.import_module(f"annotruth.report.{_MODULES[fit.kind]}")
    page: Page = module.content(fit, **options)
    day = day or base_fit.now().date()
    described = f"{fit.model} · {day.day} {day:%B %Y} · {page.described}"
    return replace(page, described=described, command=command or "").headed(source, title)


def tables_of(sections: Iterable[Section]) -> dict[str, dict[str, Any]]:
    """Return the rows of the tables of sections, by name."""
    tables = [table for each in sections for table in each.find(DataTable)]
    return {each.name: vars(each.table) for each in tables if each.table is not None}


def pack(data: Any) -> str:
    """Return JSON, compressed and in letters that are safe in HTML; the same data, the same text."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # JSON may hold half of a surrogate pair, which UTF-8 cannot encode.
    return b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()


def page_style(colors: Sequence[str]) -> str:
    """Return the style sheet of pages in both themes, with the colors of categories."""
    light, dark = (
        "".join(f"--{name}:{color};" for name, color in THEMES[theme].items())
        for theme in ("light", "dark")
    )
    themes = (
        f":root{{{light}color-scheme:light}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
        f"@media print{{:root:root:root{{{light}color-scheme:light}}}}\n"
    )
    rules = "\n".join(color_rules(colors))
    return f"{themes}{asset('page.css')}{chart_style()}{rules}\n"


def script_of(scripts: Iterable[str]) -> str:
    """Return scripts as one, whose names other scripts do not see."""
    return '"use strict";\n(() => {\n' + "".join(scripts) + "})();\n"


def asset(name: str) -> str:
    """Return a style sheet, script or template of pages."""
    return files("annotruth.report").joinpath("assets", name).read_text("utf-8")
