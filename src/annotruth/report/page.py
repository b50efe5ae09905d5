"""The report of a fit.

What is text stands in the page as it is; the tables' rows are columns of JSON, compressed, which
the page's script unpacks and shows a screenful at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.advice.advice import advise
from annotruth.models.result import Fit
from annotruth.report import sections
from annotruth.report.consensus import Consensus, bins_of
from annotruth.report.palette import category_colours, colour_of
from annotruth.report.plots import Plots
from annotruth.report.shell import packed, rounded, shell, write_page
from annotruth.report.tables import Table, annotator_table, item_table, label_table

MOST_BYTES = 4_500_000
"""Room for the tables in the file; of more items than fit, the most disputed stay."""

_MOST_CELLS = 8
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
    write_page(page(fit, source=source), path)


def page(fit: Fit, *, source: str | None = None, most_bytes: int = MOST_BYTES) -> str:
    """Make the report of a fit, as text."""
    consensus = Consensus(fit)
    advice, bins = advise(fit), bins_of(fit.data, _MOST_CELLS)
    plot = Plots(fit)
    drawn = sections.pictures(plot, fit)
    people = annotator_table(fit, consensus, advice, bins)
    doubtful = label_table(fit, consensus)
    fixed = {
        "categories": fit.data.scale.names,
        "colours": colour_of(fit.data.scale),
        "bins": bins.names,
        "charts": {name: rounded(picture) for name, picture in drawn.items()},
    }

    most = fit.data.n_items
    while True:
        items = item_table(fit, consensus, advice, most)
        tables = {"annotators": people, "items": items, "labels": doubtful}
        data = packed({**fixed, "tables": _plain(tables)})
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
        sections.next_section(fit, advice),
    ]
    return shell(
        kind="Annotation report",
        heading=source or "Labels",
        under=f"{fit.model} on {fit.data.describe()}",
        links=_LINKS,
        sections=body,
        data=data,
        footer="Numbers in the tables are rounded; fit --out writes them in full. This page asks "
        "nothing of the network.",
        colours=category_colours(fit.data.scale),
    )


def _plain(tables: dict[str, Table | None]) -> dict[str, Any]:
    return {name: vars(table) for name, table in tables.items() if table is not None}
