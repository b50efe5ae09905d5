"""The report of a fit of comparisons: one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from annotruth.comparisons.table import TIE
from annotruth.io.reading.file_errors import file_named_in_errors
from annotruth.io.reading.tables import load_table
from annotruth.labels.frames import as_arrow
from annotruth.models import base_fit
from annotruth.models.pairs.result import RankFit
from annotruth.models.pairs.summary import notices
from annotruth.report.charts.chart import CLASS_COLORS, Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.fit_charts import as_text
from annotruth.report.further import make_sections
from annotruth.report.html import as_sentence, facts, make_page, pack, rounded, section, write_page
from annotruth.report.page import convergence_notice, how_it_ended, range_of
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

MAX_VOTES = 400_000
"""With more comparisons, the dialogs of items and annotators do not list them."""

_LINKS = {
    "verdict": "Verdict",
    "truth": "Against known grades",
    "ranking": "Ranking",
    "wins": "Win matrix",
    "annotators": "Annotators",
    "sides": "Side bias",
    "groups": "Taste groups",
    "votes": "Doubtful votes",
    "machines": "Machines",
    "parts": "Parts",
    "appendix": "Appendix",
}


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
    against = ""
    if truth is not None:
        against = _against_grades(fit, truth, charts)
    items = rank_item_table(fit, on_page.items)
    people = rank_annotator_table(fit, on_page.annotators)
    votes = doubtful_votes(fit, on_page.annotators)
    pairs = disputed_pairs(fit, on_page.items)
    tables = {"items": items, "annotators": people, "pairs": pairs}
    tables |= {} if votes is None else {"votes": votes}
    further = make_sections(fit)
    for each in further.values():
        charts |= each.charts
        tables |= each.tables
    parts = {
        "verdict": sections.rank_verdict_section(
            fit, rank_verdict(fit), arguments=arguments or "VOTES"
        ),
        "truth": against,
        "ranking": sections.ranking_section(fit, charts, items),
        "wins": sections.wins_section(charts),
        "annotators": sections.comparer_section(fit, charts, people),
        "sides": sections.side_section(fit, charts),
        "groups": sections.group_section(fit, charts),
        "votes": sections.votes_section(fit, votes, pairs),
        **{kind: each.section for kind, each in further.items()},
        "parts": sections.parts_section(fit),
        "appendix": _appendix(fit, charts),
    }
    data = {
        "ranking": True,
        "categories": [],
        "colors": [],
        "charts": {name: rounded(chart) for name, chart in charts.items()},
        "tables": {name: vars(table) for name, table in tables.items()},
    }
    day = day or base_fit.now().date()
    return make_page(
        kind="Ranking report",
        heading=source or "Comparisons",
        subheading=f"{fit.model} · {day.day} {day:%B %Y} · {fit.data.describe()}",
        command=command or "",
        notice=_notice(fit),
        links={name: _LINKS[name] for name, part in parts.items() if part},
        sections=parts.values(),
        data="\n".join([pack(data), pack(vote_data(fit, on_page, MAX_VOTES))]),
        footer="Numbers in the tables are rounded; `annotruth rank --out DIR` writes them in full. "
        "This page works offline.",
        colors=CLASS_COLORS,
    )


def _against_grades(fit: RankFit, truth: Any, charts: dict[str, Chart]) -> str:
    """Return the section on known grades, and add its chart to the others."""
    from annotruth.report.charts.truth_charts import grade_chart
    from annotruth.selection.evaluate import grade_metrics, match_grades

    with file_named_in_errors(truth):
        grades = match_grades(fit, load_table(truth))
    names = as_text(fit.data.items.take(as_arrow(grades.item)))
    charts["grades"] = grade_chart(names, grades.grade, fit.scores.mean[grades.item])
    return sections.grade_section(grades, grade_metrics(fit, grades), charts)


def _notice(fit: RankFit) -> str:
    """Return the warnings at the top of the report; empty if there are none."""
    return " ".join([*map(as_sentence, notices(fit)), convergence_notice(fit)]).strip()


def _appendix(fit: RankFit, charts: Mapping[str, Chart]) -> str:
    """Return what was read and how the fit ended."""
    data = fit.data
    ties = int((data.outcome == TIE).sum())
    rows: list[tuple[str, object, str]] = [
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
    read_as = f'<p class="quiet">Read as: {escaped(data.read_as)}.</p>' if data.read_as else ""
    ended = how_it_ended(fit, charts, "comparison")
    return section("appendix", "Appendix", "<h3>What was read</h3>", facts(rows), read_as, *ended)
