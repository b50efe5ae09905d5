"""The report of a fit of sets of labels: one HTML file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.analyses.advice.annotators import verdict_rules, verdicts
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.report.charts.chart import CLASS_COLORS
from annotruth.report.charts.fit_charts import history_chart
from annotruth.report.page import convergence_notice, how_it_ended, range_of, subheading
from annotruth.report.render import (
    DataTable,
    Fact,
    Facts,
    Heading,
    Section,
    SideBySide,
    Text,
    as_sentence,
    make_page,
    write_page,
)
from annotruth.report.sections import rows_left_out, verdict_counts
from annotruth.sets.charts import label_chart, reliability_chart, together_chart
from annotruth.sets.fit import SURE, evaluate_sets, given_sets, label_names
from annotruth.sets.page_tables import answer_rows, item_rows, label_rows, people_rows

_METRICS = {
    "f1_micro": ("Micro-F1", "over all items and labels at once"),
    "f1_macro": ("Macro-F1", "the mean over labels: rare ones count as much"),
    "exact_match": ("Exact match", "items whose whole set is right"),
    "jaccard": ("Jaccard", "labels in common, of those in either set"),
}


def write_set_report(
    fit: Fit,
    path: str | Path,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    arguments: str | None = None,
) -> None:
    """Write the report of a fit, as `set_report_page` makes it; it has no advice, for ``arguments``."""
    write_page(set_report_page(fit, source=source, truth=truth, command=command), path)


def set_report_page(
    fit: Fit,
    *,
    source: str | None = None,
    truth: Any = None,
    command: str | None = None,
    day: date | None = None,
) -> str:
    """Return the report of a fit of sets, as HTML; the arguments are as in `report_page`."""
    return make_page(
        kind="Annotation report",
        heading=source or "Sets of labels",
        subheading=subheading(fit.model, fit.describe(), day),
        command=command or "",
        notice=" ".join(filter(None, (as_sentence(fit.notice()), convergence_notice(fit)))),
        sections=[
            _overview(fit),
            *([] if truth is None else [_against_truth(fit, truth)]),
            _labels(fit),
            _items(fit),
            _annotators(fit),
            _answers(fit),
            _appendix(fit),
        ],
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full. "
        "This page works offline.",
        colors=CLASS_COLORS,
    )


def _overview(fit: Fit) -> Section:
    n_items = fit.data.n_items
    sure = int((fit.confidence > SURE).sum())
    empty = int((~fit.sets.any(axis=1)).sum())
    n_dropped = int((verdicts(fit)[0] == "drop").sum())
    rows: list[Fact] = [
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
        (
            "Labels",
            f"{len(label_names(fit.data)):,}",
            as_sentence((fit.chosen or {})["why"]).rstrip("."),
        ),
        (
            "Annotators",
            f"{fit.data.n_annotators:,}",
            f"{n_dropped:,} to drop, median reliability {np.median(np.asarray(fit.reliability)):.2f}",
        ),
    ]
    lead = (
        "An answer is a set of labels. For every item, this page has the probability of each label, the "
        "most likely set, and the probability that it is exactly this set."
    )
    return Section("overview", "Overview", [Text(lead), Facts(rows)])


def _against_truth(fit: Fit, truth: Any) -> Section:
    metrics = evaluate_sets(fit, truth)
    rows = [(name, f"{metrics[key]:.3f}", note) for key, (name, note) in _METRICS.items()]
    return Section("truth", "Against the truth", [Facts(rows)])


def _labels(fit: Fit) -> Section:
    text = (
        "How many items have each label, and how well a typical serious annotator finds it: sensitivity "
        "is how often the label is given where it is right, specificity how often it is left out where "
        "it is not."
    )
    charts = [label_chart(fit), *filter(None, [together_chart(fit)])]
    table = DataTable("labels", "Labels", label_rows(fit))
    drawn = SideBySide(charts) if len(charts) > 1 else charts[0]
    return Section("labels", "Labels", [Text(text), drawn, table])


def _items(fit: Fit) -> Section:
    text = "Confidence is the probability that the item has exactly these labels; p is that of a label."
    table = item_rows(fit)
    note = rows_left_out(table, "items", "least certain")
    return Section(
        "items", "Items", [Text(text), note, DataTable("sets", "Items", table)], long=True
    )


def _annotators(fit: Fit) -> Section:
    text = (
        f"Reliability is how much an annotator's answers say (sensitivity + specificity - 1) relative to "
        f"a typical serious annotator; below {SPAMMER_BELOW:g} they are spammers."
    )
    rules = verdict_rules(fit)
    words = verdicts(fit)[0]
    counts = {word: int((words == word).sum()) for word in rules}
    table = people_rows(fit)
    parts = [
        Text(text),
        SideBySide([reliability_chart(fit), verdict_counts("Verdicts", counts, rules)]),
        rows_left_out(table, "annotators", "least reliable"),
        DataTable("people", "Annotators", table),
    ]
    return Section("annotators", "Annotators", parts, long=True)


def _answers(fit: Fit) -> Section:
    table = answer_rows(fit)
    if not table.rows:
        text = "No answer of the other annotators is probably not serious."
        return Section("answers", "Doubtful answers", [Text(text)])
    parts = [
        Text("Answers that are probably not serious, of annotators who are not dropped."),
        rows_left_out(table, "doubtful answers", "most doubtful"),
        DataTable("answers", "Doubtful answers", table),
    ]
    return Section("answers", "Doubtful answers", parts, long=True)


def _appendix(fit: Fit) -> Section:
    data = fit.data
    per_answer = given_sets(fit.data).sum(axis=1)
    empty = int((per_answer == 0).sum())
    rows: list[Fact] = [
        ("Answers", f"{data.n_labels:,}", f"{per_answer.mean():.1f} labels each, {empty:,} empty"),
        ("Different sets", f"{data.n_categories:,}", "among the answers"),
        ("Items", f"{data.n_items:,}", range_of(data.labels_per_item, "answer")),
        ("Annotators", f"{data.n_annotators:,}", range_of(data.labels_per_annotator, "answer")),
        ("Rows dropped", f"{data.n_dropped:,}" if data.n_dropped else "none", "without an answer"),
    ]
    known = int((data.known >= 0).sum())
    if known:
        rows.append(("Known truths", f"{known:,}", "items whose set was given"))
    parts = [
        Heading("What was read"),
        Facts(rows),
        Text(f"Read as: {data.read_as}.", "quiet") if data.read_as else "",
        *how_it_ended(fit, {"history": history_chart(fit, "answers")}, "answer"),
    ]
    return Section("appendix", "Appendix", parts)
