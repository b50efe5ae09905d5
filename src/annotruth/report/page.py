"""The report of a fit: one HTML file.

Texts and charts stand in the page; the rows of tables are compressed JSON, which the page's script
unpacks and shows one screen at a time.
"""

from __future__ import annotations

from pathlib import Path

from annotruth.advice.advice import advise
from annotruth.models.result import Fit
from annotruth.report import sections
from annotruth.report.charts.chart import category_colors, color_indices
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import Consensus, category_bins
from annotruth.report.html import make_page, pack, rounded, write_page
from annotruth.report.tables import annotator_table, item_table, label_table

MAX_BYTES = 4_500_000
"""How much of the file tables may take; of too many items, the most difficult stay."""

_MAX_CELLS = 8
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
    write_page(report_page(fit, source=source), path)


def report_page(fit: Fit, *, source: str | None = None, max_bytes: int = MAX_BYTES) -> str:
    """Return the report of a fit, as HTML."""
    consensus, advice, scale = Consensus(fit), advise(fit), fit.data.scale
    bins = category_bins(fit.data, _MAX_CELLS)
    fit_charts = FitCharts(fit)
    charts = sections.charts_of(fit_charts, fit)
    annotators = annotator_table(fit, consensus, advice, bins)
    labels = label_table(fit, consensus)
    data = {
        "categories": scale.names,
        "colors": color_indices(scale),
        "bins": bins.names,
        "charts": {name: rounded(chart) for name, chart in charts.items()},
    }

    max_rows = fit.data.n_items
    while True:
        items = item_table(fit, consensus, advice, max_rows)
        tables = {"annotators": annotators, "items": items, "labels": labels}
        listed = {name: vars(table) for name, table in tables.items() if table is not None}
        packed = pack({**data, "tables": listed})
        if len(packed) <= max_bytes or max_rows <= 1:
            break
        max_rows = max(int(0.95 * max_rows * max_bytes / len(packed)), 1)

    return make_page(
        kind="Annotation report",
        heading=source or "Labels",
        subheading=f"{fit.model} on {fit.data.describe()}",
        notice=sections.notice(fit),
        links=_LINKS,
        sections=[
            sections.read_section(fit, charts),
            sections.fit_section(fit, charts),
            sections.annotator_section(fit, charts, annotators, advice),
            sections.item_section(fit, charts, items, advice),
            sections.label_section(fit, labels),
            sections.agreement_section(fit, charts, fit_charts.agreement_rows),
            sections.next_section(fit, advice),
        ],
        data=packed,
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full. "
        "This page works offline.",
        colors=category_colors(scale),
    )
