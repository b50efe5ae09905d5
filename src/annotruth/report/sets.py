"""The report of a fit of sets of labels: its sections, tables and charts."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.analyses.advice.annotators import verdicts
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow
from annotruth.observations.sets import Members
from annotruth.report.charts.fit_charts import history_chart, reliability_chart
from annotruth.report.page import Page
from annotruth.report.render import DataTable, Fact, Facts, Section, Text, as_sentence
from annotruth.report.sections import (
    annotator_section,
    appendix,
    convergence_notice,
    range_of,
    rows_dropped,
    rows_left_out,
)
from annotruth.report.tables import (
    MAX_ANNOTATORS,
    PageTable,
    TableStyle,
    amend,
    insert_columns,
    number_cells,
)
from annotruth.sets.fit import SURE, evaluate_sets, given_sets, joined, label_names

MAX_PROBABILITIES = 400_000
"""How many probabilities of labels the page has; of more, the least certain items stay."""

MAX_ANSWERS = 5_000
"""How many doubtful answers the page has."""

_MAX_SHOWN = 8  # labels with a column of their own; the file that --out writes has all
_METRICS = {
    "f1_micro": ("Micro-F1", "over all items and labels at once"),
    "f1_macro": ("Macro-F1", "the mean over labels: rare ones count as much"),
    "exact_match": ("Exact match", "items whose whole set is right"),
    "jaccard": ("Jaccard", "labels in common, of those in either set"),
}
_STYLE = TableStyle(
    headings={
        "item": ("Item", ""),
        "annotator": ("Annotator", ""),
        "n_answers": ("Answers", "number of answers"),
        "labels": ("Labels", "the most likely set, or the set that was given"),
        "recovered": ("Recovered", "the most likely set of the item"),
        "confidence": ("Confidence", "the probability that the item has exactly these labels"),
        "next": ("Unsure", "the labels whose probability is between 20% and 80%"),
        "reliability": (
            "Reliability",
            "what their answers say relative to a typical serious annotator, with its 95% interval",
        ),
        "sensitivity": ("Sensitivity", "how often they give a label where it is right"),
        "specificity": ("Specificity", "how often they leave out a label where it is wrong"),
        "prevalence": ("Prevalence", "the share of items that have the label"),
        "n_items": ("Items", "items whose most likely set has the label"),
        "n_given": ("Given", "answers that have the label"),
        "p_serious": ("P serious", "the probability that the answer was serious"),
    },
    first=(
        *("item", "annotator", "label", "labels", "confidence", "reliability", "verdict"),
        "recovered",
    ),
    hidden=("low", "high", "spammer"),
    shares=("confidence", "sensitivity", "specificity", "prevalence", "p_serious"),
    intervals={"reliability": ("low", "high")},
)


def content(fit: Fit, *, truth: Any = None, arguments: str | None = None) -> Page:
    """Return what is in the report of a fit of sets; ``truth`` is as for labels.

    There is no advice on sets, for ``arguments``.
    """
    return Page(
        kind="Annotation report",
        heading="Sets of labels",
        described=fit.describe(),
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
        footer="Numbers in the tables are rounded; `annotruth fit --out DIR` writes them in full.",
    )


def _overview(fit: Fit) -> Section:
    sure = int((fit.confidence > SURE).sum())
    empty = int((~fit.sets.any(axis=1)).sum())
    n_dropped = int((verdicts(fit)[0] == "drop").sum())
    rows: list[Fact] = [
        (
            "Items with a clear set",
            f"{sure:,}",
            f"of {fit.data.n_items:,} have a set above {SURE:.0%} probability",
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
    """Return the labels: how frequent they are, and how well they are found."""
    text = (
        "How many items have each label, and how well a typical serious annotator finds it: sensitivity "
        "is how often the label is given where it is right, specificity how often it is left out where "
        "it is not."
    )
    n = len(label_names(fit.data))
    shown = PageTable(_STYLE.columns(fit.label_table()), n, n, "prevalence", descending=True)
    return Section("labels", "Labels", [Text(text), DataTable("labels", "Labels", shown)])


def _items(fit: Fit) -> Section:
    """Return the items, the least certain first, with the probabilities of the frequent labels."""
    n_shown = min(len(label_names(fit.data)), _MAX_SHOWN)
    rows = np.argsort(fit.confidence, kind="stable")[: max(1, MAX_PROBABILITIES // n_shown)]
    table = fit.item_table().select(["item", "n_answers", "confidence"]).take(as_arrow(rows))
    unsure = (fit.probability[rows] > 0.2) & (fit.probability[rows] < 0.8)
    table = insert_columns(table, {"labels": _named(fit, fit.sets[rows])}, after=["n_answers"])
    columns = _STYLE.columns(table.append_column("next", joined(fit, unsure)))
    most = np.sort(np.argsort(-fit.probability.mean(axis=0), kind="stable")[:n_shown])
    for n in most.tolist():
        column = _STYLE.heading(f"p_{n}") | number_cells(np.round(fit.probability[rows, n], 3))
        title, tip = label_names(fit.data)[n], "probability of this label"
        columns.append(column | {"kind": "share", "title": title, "help": tip})
    page = PageTable(columns, len(rows), fit.data.n_items, "confidence")
    text = "Confidence is the probability that the item has exactly these labels; p is that of a label."
    note = rows_left_out(page, "items", "least certain")
    parts = [Text(text), note, DataTable("sets", "Items", page)]
    return Section("items", "Items", parts, long=True)


def _annotators(fit: Fit) -> Section:
    """Return the annotators, the least reliable first."""
    rows = np.argsort(np.asarray(fit.reliability), kind="stable")[:MAX_ANNOTATORS]
    words, reasons = verdicts(fit)
    table = fit.annotator_table().append_column("reason", as_arrow(reasons))
    columns = _STYLE.columns(table.add_column(3, "verdict", as_arrow(words.tolist())), rows)
    amend(columns, "reliability", domain=[0, 1], limit=SPAMMER_BELOW)
    page = PageTable(columns, len(rows), fit.data.n_annotators, "reliability")
    text = (
        f"Reliability is how much an annotator's answers say (sensitivity + specificity - 1) relative to "
        f"a typical serious annotator; below {SPAMMER_BELOW:g} they are spammers."
    )
    shown = DataTable("people", "Annotators", page)
    chart = reliability_chart(fit, "What answers say relative to a typical serious annotator.")
    return annotator_section(Text(text), chart, fit, shown, "least reliable")


def _answers(fit: Fit) -> Section:
    """Return the answers that are probably not serious, of annotators who are not dropped."""
    data = fit.data
    dropped = verdicts(fit)[0] == "drop"
    p_serious = np.asarray(fit.p_serious)
    doubtful = np.flatnonzero((p_serious < SPAMMER_BELOW) & ~dropped[data.annotator])
    first = doubtful[np.argsort(p_serious[doubtful], kind="stable")][:MAX_ANSWERS]
    if not len(first):
        text = "No answer of the other annotators is probably not serious."
        return Section("answers", "Doubtful answers", [Text(text)])
    item = data.item_of_label()[first]
    ids: dict[str, Any] = {
        "item": data.items.take(item),
        "annotator": data.annotators.take(data.annotator[first]),
        "labels": _named(fit, given_sets(fit.data)[first]),
        "recovered": _named(fit, fit.sets[item]),
        "p_serious": np.round(p_serious[first], 3),
    }
    table = PageTable(_STYLE.columns(ids), len(first), len(doubtful), "p_serious")
    parts = [
        Text("Answers that are probably not serious, of annotators who are not dropped."),
        rows_left_out(table, "doubtful answers", "most doubtful"),
        DataTable("answers", "Doubtful answers", table),
    ]
    return Section("answers", "Doubtful answers", parts, long=True)


def _named(fit: Fit, sets: Members) -> list[str]:
    """Return sets as text, of which the empty one has a name."""
    return [text or "(none)" for text in joined(fit, sets).to_pylist()]


def _appendix(fit: Fit) -> Section:
    data = fit.data
    per_answer = given_sets(fit.data).sum(axis=1)
    empty = int((per_answer == 0).sum())
    rows: list[Fact] = [
        ("Answers", f"{data.n_labels:,}", f"{per_answer.mean():.1f} labels each, {empty:,} empty"),
        ("Different sets", f"{data.n_categories:,}", "among the answers"),
        ("Items", f"{data.n_items:,}", range_of(data.labels_per_item, "answer")),
        ("Annotators", f"{data.n_annotators:,}", range_of(data.labels_per_annotator, "answer")),
        *rows_dropped(data, "without an answer"),
    ]
    if known := int((data.known >= 0).sum()):
        rows.append(("Known truths", f"{known:,}", "items whose set was given"))
    return appendix(rows, fit, {"history": history_chart(fit)}, "answer")
