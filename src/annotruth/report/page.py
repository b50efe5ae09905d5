"""The report of a fit: one HTML file.

Texts and charts stand in the page; the rows of tables are compressed JSON, which the page's script
unpacks and shows one screen at a time.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.advice.advice import advise
from annotruth.models.result import Fit
from annotruth.report import sections
from annotruth.report.charts.chart import category_colors, color_indices
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.consensus import Consensus, category_bins
from annotruth.report.html import make_page, pack, rounded, write_page
from annotruth.report.tables import annotator_table, item_table, label_table
from annotruth.report.verdict import verdict_of, verdict_section

if TYPE_CHECKING:
    from annotruth.report.truth import TruthFindings

MAX_BYTES = 4_500_000
"""How much of the file tables may take; of too many items, the most difficult stay."""

_MAX_CELLS = 8
_LINKS = {
    "verdict": "Verdict",
    "truth": "Against the truth",
    "annotators": "Annotators",
    "items": "Items",
    "labels": "Doubtful labels",
    "agreement": "Agreement",
    "appendix": "Appendix",
}


def write_report(
    fit: Fit,
    path: str | Path,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
) -> None:
    """Write the report of a fit, as `report_page` makes it."""
    write_page(report_page(fit, source=source, truth=truth, command=command), path)


def report_page(
    fit: Fit,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    day: date | None = None,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Return the report of a fit, as HTML.

    Parameters
    ----------
    source
        The name of the labels, such as their file.
    truth
        The truths of some or all items, as `annotruth.evaluate` takes them.
    command
        The command that makes the report, for its heading.
    day
        The date in the heading; today if not given.
    max_bytes
        How much of the file tables may take.
    """
    against = against_truth(fit, truth)
    consensus, advice, scale = Consensus(fit), advise(fit), fit.data.scale
    bins = category_bins(fit.data, _MAX_CELLS)
    fit_charts = FitCharts(fit)
    charts = sections.charts_of(fit_charts, fit)
    annotators = annotator_table(fit, consensus, advice, bins)
    labels = label_table(fit, consensus)
    measured = against.measured if against else None
    verdict = verdict_of(fit, advice, fit_charts.agreement_rows[0], measured)
    drawn = {**charts, **(against.charts if against else {})}
    data = {
        "categories": scale.names,
        "colors": color_indices(scale),
        "bins": bins.names,
        "charts": {name: rounded(chart) for name, chart in drawn.items()},
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

    parts = {
        "verdict": verdict_section(fit, advice, verdict, source=source if command else None),
        "truth": against.section if against else "",
        "annotators": sections.annotator_section(fit, charts, annotators, advice),
        "items": sections.item_section(fit, charts, items, advice),
        "labels": sections.label_section(fit, labels),
        "agreement": sections.agreement_section(fit, charts, fit_charts.agreement_rows),
        "appendix": sections.appendix_section(fit, charts),
    }
    day = day or datetime.now(UTC).date()
    return make_page(
        kind="Annotation report",
        heading=source or "Labels",
        subheading=f"{fit.model} · {day.day} {day:%B %Y} · {fit.data.describe()}",
        command=command or "",
        notice=sections.notice(fit),
        links={name: text for name, text in _LINKS.items() if parts[name]},
        sections=parts.values(),
        data=packed,
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full. "
        "This page works offline.",
        colors=category_colors(scale),
    )


def against_truth(fit: Fit, truth: Any) -> TruthFindings | None:
    """Return how the fit does against known truths, from outside or given to it; None without."""
    if truth is None and not (fit.data.known >= 0).any():
        return None
    from annotruth.report.truth import compare_with_truth  # most reports do not need it

    return compare_with_truth(fit, truth)
