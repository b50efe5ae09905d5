"""The report of a fit of sets of labels: one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.advice.annotators import verdict_rules, verdicts
from annotruth.io.reading.file_errors import file_named_in_errors
from annotruth.io.reading.tables import load_table
from annotruth.models import base_fit
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.report.charts.chart import CLASS_COLORS, Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.fit_charts import history_chart
from annotruth.report.html import (
    as_sentence,
    facts,
    figure,
    make_page,
    pack,
    rounded,
    section,
    side_by_side,
    table_placeholder,
    write_page,
)
from annotruth.report.page import convergence_notice, how_it_ended, range_of
from annotruth.report.sections import rows_left_out, verdict_counts
from annotruth.report.tables import PageTable
from annotruth.sets.charts import label_chart, reliability_chart, together_chart
from annotruth.sets.evaluate import evaluate_sets
from annotruth.sets.fit import SURE, SetFit
from annotruth.sets.page_tables import answer_rows, item_rows, label_rows, people_rows

_LINKS = {
    "overview": "Overview",
    "truth": "Against the truth",
    "labels": "Labels",
    "items": "Items",
    "annotators": "Annotators",
    "answers": "Doubtful answers",
    "appendix": "Appendix",
}
_METRICS = {
    "f1_micro": ("Micro-F1", "over all items and labels at once"),
    "f1_macro": ("Macro-F1", "the mean over labels: rare ones count as much"),
    "exact_match": ("Exact match", "items whose whole set is right"),
    "jaccard": ("Jaccard", "labels in common, of those in either set"),
}


def write_set_report(
    fit: SetFit,
    path: str | Path,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
) -> None:
    """Write the report of a fit, as `set_report_page` makes it."""
    write_page(set_report_page(fit, source=source, truth=truth, command=command), path)


def set_report_page(
    fit: SetFit,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    day: date | None = None,
) -> str:
    """Return the report of a fit of sets, as HTML; the arguments are as in `report_page`."""
    charts = _charts(fit)
    tables = {
        "labels": label_rows(fit),
        "sets": item_rows(fit),
        "people": people_rows(fit),
        "answers": answer_rows(fit),
    }
    parts = {
        "overview": _overview(fit),
        "truth": "" if truth is None else _against_truth(fit, truth),
        "labels": _labels(charts),
        "items": _items(tables["sets"]),
        "annotators": _annotators(fit, charts, tables["people"]),
        "answers": _answers(tables["answers"]),
        "appendix": _appendix(fit, charts),
    }
    data = {
        "categories": [],
        "colors": [],
        "charts": {name: rounded(chart) for name, chart in charts.items()},
        "tables": {name: vars(table) for name, table in tables.items()},
    }
    day = day or base_fit.now().date()
    return make_page(
        kind="Annotation report",
        heading=source or "Sets of labels",
        subheading=f"{fit.model} · {day.day} {day:%B %Y} · {fit.describe()}",
        command=command or "",
        notice=" ".join(filter(None, (as_sentence(fit.notice()), convergence_notice(fit)))),
        links={name: _LINKS[name] for name, part in parts.items() if part},
        sections=parts.values(),
        data=pack(data),
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full. "
        "This page works offline.",
        colors=CLASS_COLORS,
    )


def _charts(fit: SetFit) -> dict[str, Chart]:
    charts = [label_chart(fit), reliability_chart(fit), history_chart(fit, "answers")]
    together = together_chart(fit)
    return {chart.name: chart for chart in ([*charts, together] if together else charts)}


def _overview(fit: SetFit) -> str:
    n_items = fit.data.n_items
    sure = int((fit.confidence > SURE).sum())
    empty = int((~fit.sets.any(axis=1)).sum())
    n_dropped = int((verdicts(fit)[0] == "drop").sum())
    rows: list[tuple[str, object, str]] = [
        (
            "Items with a clear set",
            f"{sure:,}",
            f"of {n_items:,} have a set above {SURE:.0%} probability",
        ),
        (
            "Labels per item",
            f"{fit.sets.sum(axis=1).mean():.1f}",
            f"in the most likely sets; {empty:,} items have none",
        ),
        ("Labels", f"{fit.n_labels:,}", as_sentence(fit.chosen).rstrip(".")),
        (
            "Annotators",
            f"{fit.data.n_annotators:,}",
            f"{n_dropped:,} to drop, median reliability {np.median(fit.reliability):.2f}",
        ),
    ]
    lead = (
        "An answer is a set of labels. For every item, this page has the probability of each label, the "
        "most likely set, and the probability that it is exactly this set."
    )
    return section("overview", "Overview", f"<p>{escaped(lead)}</p>", facts(rows))


def _against_truth(fit: SetFit, truth: Any) -> str:
    with file_named_in_errors(truth):
        metrics = evaluate_sets(fit, load_table(truth))
    rows = [(name, f"{metrics[key]:.3f}", note) for key, (name, note) in _METRICS.items()]
    return section("truth", "Against the truth", facts(rows))


def _labels(charts: Mapping[str, Chart]) -> str:
    text = (
        "How many items have each label, and how well a typical serious annotator finds it: sensitivity "
        "is how often the label is given where it is right, specificity how often it is left out where "
        "it is not."
    )
    together = figure(charts["together"]) if "together" in charts else ""
    drawn = (
        side_by_side(figure(charts["labels"]), together) if together else figure(charts["labels"])
    )
    return section(
        "labels", "Labels", f"<p>{escaped(text)}</p>", drawn, table_placeholder("labels", "Labels")
    )


def _items(table: PageTable) -> str:
    text = "Confidence is the probability that the item has exactly these labels; p is that of a label."
    return section(
        "items",
        "Items",
        f"<p>{escaped(text)}</p>",
        rows_left_out(table, "items", "least certain"),
        table_placeholder("sets", "Items"),
        long=True,
    )


def _annotators(fit: SetFit, charts: Mapping[str, Chart], table: PageTable) -> str:
    text = (
        f"Reliability is how much an annotator's answers say (sensitivity + specificity - 1) relative to "
        f"a typical serious annotator; below {SPAMMER_BELOW:g} they are spammers."
    )
    rules = verdict_rules(fit)
    words = verdicts(fit)[0]
    counts = {word: int((words == word).sum()) for word in rules}
    return section(
        "annotators",
        "Annotators",
        f"<p>{escaped(text)}</p>",
        side_by_side(figure(charts["reliability"]), verdict_counts("Verdicts", counts, rules)),
        rows_left_out(table, "annotators", "least reliable"),
        table_placeholder("people", "Annotators"),
        long=True,
    )


def _answers(table: PageTable) -> str:
    if not table.rows:
        text = "No answer of the other annotators is probably not serious."
        return section("answers", "Doubtful answers", f"<p>{text}</p>")
    text = "Answers that are probably not serious, of annotators who are not dropped."
    return section(
        "answers",
        "Doubtful answers",
        f"<p>{escaped(text)}</p>",
        rows_left_out(table, "doubtful answers", "most doubtful"),
        table_placeholder("answers", "Doubtful answers"),
        long=True,
    )


def _appendix(fit: SetFit, charts: Mapping[str, Chart]) -> str:
    data = fit.data
    per_answer = fit.given.sum(axis=1)
    empty = int((per_answer == 0).sum())
    rows: list[tuple[str, object, str]] = [
        ("Answers", f"{data.n_labels:,}", f"{per_answer.mean():.1f} labels each, {empty:,} empty"),
        ("Different sets", f"{data.n_categories:,}", "among the answers"),
        ("Items", f"{data.n_items:,}", range_of(data.labels_per_item, "answer")),
        ("Annotators", f"{data.n_annotators:,}", range_of(data.labels_per_annotator, "answer")),
        ("Rows dropped", f"{data.n_dropped:,}" if data.n_dropped else "none", "without an answer"),
    ]
    known = int((data.known >= 0).sum())
    if known:
        rows.append(("Known truths", f"{known:,}", "items whose set was given"))
    read_as = f'<p class="quiet">Read as: {escaped(data.read_as)}.</p>' if data.read_as else ""
    ended = how_it_ended(fit, charts, "answer")
    return section("appendix", "Appendix", "<h3>What was read</h3>", facts(rows), read_as, *ended)
