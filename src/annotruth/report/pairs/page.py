"""The report of a fit of comparisons: one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.models.pairs.summary import notices
from annotruth.models.result import RankFit
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import TIE
from annotruth.report.charts.chart import CLASS_COLORS, Chart
from annotruth.report.charts.fit_charts import as_text
from annotruth.report.further import make_sections
from annotruth.report.page import convergence_notice, how_it_ended, range_of, subheading
from annotruth.report.pairs import sections
from annotruth.report.pairs.tables import (
    disputed_pairs,
    doubtful_votes,
    rank_annotator_table,
    rank_item_table,
    rows_on_page,
    vote_data,
)
from annotruth.report.pairs.verdict import rank_verdict
from annotruth.report.render import (
    Fact,
    Facts,
    Heading,
    Section,
    Text,
    as_sentence,
    charts_and_tables,
    make_page,
    pack,
    write_page,
)

MAX_VOTES = 400_000
"""With more comparisons, the dialogs of items and annotators do not list them."""


def write_rank_report(
    fit: RankFit,
    path: str | Path,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    arguments: str | None = None,
) -> None:
    """Write the report of a fit, as `rank_report_page` makes it."""
    page = rank_report_page(fit, source=source, truth=truth, command=command, arguments=arguments)
    write_page(page, path)


def rank_report_page(
    fit: RankFit,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    arguments: str | None = None,
    day: date | None = None,
) -> str:
    """Return the report of a fit of comparisons, as HTML; the arguments are as in `report_page`."""
    on_page = rows_on_page(fit)
    charts = sections.rank_charts_of(fit)
    items = rank_item_table(fit, on_page.items)
    people = rank_annotator_table(fit, on_page.annotators)
    votes = doubtful_votes(fit, on_page.annotators)
    pairs = disputed_pairs(fit, on_page.items)
    verdict = rank_verdict(fit)
    shown = [
        sections.rank_verdict_section(fit, verdict, arguments=arguments or "VOTES"),
        *([] if truth is None else [_against_grades(fit, truth)]),
        sections.ranking_section(fit, charts, items),
        sections.wins_section(charts),
        sections.comparer_section(fit, charts, people),
        sections.side_section(fit, charts),
        sections.group_section(fit, charts),
        sections.votes_section(fit, votes, pairs),
        *make_sections(fit),
        sections.parts_section(fit),
        _appendix(fit, charts),
    ]
    data = {"ranking": True, "categories": [], "colors": []} | charts_and_tables(shown)
    return make_page(
        kind="Ranking report",
        heading=source or "Comparisons",
        subheading=subheading(fit.model, fit.data.describe(), day),
        command=command or "",
        notice=_notice(fit),
        sections=shown,
        data="\n".join([pack(data), pack(vote_data(fit, on_page, MAX_VOTES))]),
        footer="Numbers in the tables are rounded; `annotruth rank --out DIR` writes them in full. "
        "This page works offline.",
        colors=CLASS_COLORS,
    )


def _against_grades(fit: RankFit, truth: Any) -> Section:
    """Return the section on known grades."""
    from annotruth.report.charts.truth_charts import grade_chart
    from annotruth.selection.evaluate import grade_metrics, match_grades

    with file_named_in_errors(truth):
        grades = match_grades(fit, load_table(truth))
    names = as_text(fit.data.items.take(as_arrow(grades.item)))
    chart = grade_chart(names, grades.grade, fit.scores.mean[grades.item])
    return sections.grade_section(grades, grade_metrics(fit, grades), chart)


def _notice(fit: RankFit) -> str:
    """Return the warnings at the top of the report; empty if there are none."""
    return " ".join([*map(as_sentence, notices(fit)), convergence_notice(fit)]).strip()


def _appendix(fit: RankFit, charts: Mapping[str, Chart]) -> Section:
    """Return what was read and how the fit ended."""
    data = fit.data
    ties = int((data.outcome == TIE).sum())
    rows: list[Fact] = [
        ("Comparisons", f"{data.n_comparisons:,}", f"{ties:,} of them ties" if ties else "no ties"),
        ("Items", f"{data.n_items:,}", range_of(data.comparisons_per_item, "comparison")),
        (
            "Annotators",
            f"{data.n_annotators:,}",
            range_of(data.comparisons_per_annotator, "comparison"),
        ),
        ("Sides", "known" if data.sides_known else "not known", "on which items were shown"),
        ("Rows dropped", f"{data.n_dropped:,}" if data.n_dropped else "none", "without an outcome"),
    ]
    if data.contexts is not None:
        rows.append(("Contexts", f"{len(data.contexts):,}", "prompts, scenes or questions"))
    for name, (value, low, high) in fit.coefficients.items():
        note = f"log odds per unit, 95% interval {low:+.3g} to {high:+.3g}"
        rows.append((f"Covariate {name}", f"{value:+.3g}", note))
    parts = [
        Heading("What was read"),
        Facts(rows),
        Text(f"Read as: {data.read_as}.", "quiet") if data.read_as else "",
        *how_it_ended(fit, charts, "comparison"),
    ]
    return Section("appendix", "Appendix", parts)
