"""The report: one file of HTML that opens anywhere, without a network.

What is text stands in the page as it is; the tables' rows are columns of JSON, compressed, which
the page's script unpacks and shows a screenful at a time.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from base64 import b64encode
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from annotruth.aside import written_aside
from annotruth.models.result import Fit
from annotruth.report import sections
from annotruth.report.advice import advise
from annotruth.report.consensus import Consensus, bins_of
from annotruth.report.drawing import escaped
from annotruth.report.palette import THEMES, category_colours, colour_of
from annotruth.report.picture import Picture, category_rules, chart_style
from annotruth.report.plots import Plots
from annotruth.report.tables import Table, annotator_table, item_table, label_table

MOST_BYTES = 4_500_000
"""Room for the tables in the file; of more items than fit, the most disputed stay."""

_MOST_CELLS = 8
_SCRIPTS = ("data.js", "marks.js", "table.js", "detail.js", "charts.js", "main.js")
_LINKS = {
    "read": "Read",
    "fit": "Fit",
    "annotators": "Annotators",
    "items": "Items",
    "labels": "Doubtful labels",
    "agreement": "Agreement",
    "next": "What to do next",
}


def write_report(fit: Fit, path: str | Path, *, source: str | None = None) -> None:
    """Write the report of a fit; ``source`` names the labels, such as their file."""
    content = page(fit, source=source)
    with written_aside(path) as aside:
        aside.write_text(content, encoding="utf-8", newline="\n")


def page(fit: Fit, *, source: str | None = None, most_bytes: int = MOST_BYTES) -> str:
    """Make the report of a fit, as text."""
    consensus = Consensus(fit)
    advice, bins = advise(fit, consensus), bins_of(fit.data, _MOST_CELLS)
    plot = Plots(fit)
    drawn = sections.pictures(plot, fit)
    people = annotator_table(fit, consensus, advice, bins)
    doubtful = label_table(fit, consensus)
    fixed = {
        "categories": fit.data.scale.names,
        "colours": colour_of(fit.data.scale),
        "bins": bins.names,
        "charts": {name: _short(picture) for name, picture in drawn.items()},
    }

    most = fit.data.n_items
    while True:
        items = item_table(fit, consensus, advice, most)
        tables = {"annotators": people, "items": items, "labels": doubtful}
        data = _packed({**fixed, "tables": _plain(tables)})
        if len(data) <= most_bytes or most <= 1:
            break
        most = max(int(0.95 * most * most_bytes / len(data)), 1)

    body = [
        sections.read_section(fit, drawn),
        sections.fit_section(fit, drawn),
        sections.annotator_section(fit, drawn, people, advice),
        sections.item_section(fit, drawn, items, advice),
        sections.label_section(fit, doubtful),
        sections.agreement_section(fit, drawn, plot.agreement_rows),
        sections.next_section(fit, advice, consensus.difficulty()),
    ]
    style, script = _style(fit), _script()
    heading = source or "Labels"
    return _filled(
        _asset("page.html"),
        {
            "policy": _policy(style, script),
            "title": escaped(f"{heading}: annotation report"),
            "style": style,
            "links": "".join(f'<a href="#{key}">{told}</a>' for key, told in _LINKS.items()),
            "heading": escaped(heading),
            "under": escaped(f"{fit.model} on {fit.data.describe()}"),
            "sections": "\n".join(body),
            "footer": escaped(
                f"Made by annotruth {version('annotruth')}. Numbers in the tables are rounded; "
                "fit --out writes them in full. This page asks nothing of the network."
            ),
            "data": data,
            "script": script,
        },
    )


def _plain(tables: dict[str, Table | None]) -> dict[str, Any]:
    return {name: vars(table) for name, table in tables.items() if table is not None}


def _short(picture: Picture) -> dict[str, Any]:
    """Round the numbers behind a picture to six digits; nan is null."""
    return {
        key: [
            (float(f"{v:.6g}") if math.isfinite(v) else None) if isinstance(v, float) else v
            for v in column
        ]
        for key, column in picture.records.items()
    }


def _packed(data: Any) -> str:
    """Compress JSON into letters that mean nothing to HTML; the same data, the same letters."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone half of a surrogate pair, which JSON may hold, has no bytes of its own.
    return b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()


def _style(fit: Fit) -> str:
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in THEMES[theme].items())
        for theme in ("light", "dark")
    )
    themes = (
        f":root{{{light}color-scheme:light}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
        f"@media print{{:root:root:root{{{light}color-scheme:light}}}}\n"
    )
    colours = "\n".join(category_rules(category_colours(fit.data.scale)))
    return f"{themes}{_asset('page.css')}{chart_style()}{colours}\n"


def _script() -> str:
    return '"use strict";\n(() => {\n' + "".join(map(_asset, _SCRIPTS)) + "})();\n"


def _policy(style: str, script: str) -> str:
    """Allow this page's own style and script, by their hashes, and nothing else."""
    own_style, own_script = (
        b64encode(sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{own_style}'; script-src 'sha256-{own_script}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("annotruth.report").joinpath("assets", name).read_text("utf-8")


def _filled(template: str, parts: dict[str, str]) -> str:
    # In one go, so that braces in the parts stay what they are.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)
