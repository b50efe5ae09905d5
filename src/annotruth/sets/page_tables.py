"""The tables of the report of a fit of sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from annotruth.analyses.advice.annotators import verdicts
from annotruth.models.base_fit import SPAMMER_BELOW, table_of
from annotruth.models.result import Fit
from annotruth.observations.sets import Members
from annotruth.report.tables import (
    MAX_ANNOTATORS,
    PageColumn,
    PageTable,
    columns_of,
    number_column,
    text_column,
)
from annotruth.sets.fit import given_sets, joined, label_names

MAX_PROBABILITIES = 400_000
"""How many probabilities of labels the page has; of more, the least certain items stay."""

MAX_ANSWERS = 5_000
"""How many doubtful answers the page has."""

_MAX_SHOWN = 8  # labels with a column of their own; the file that --out writes has all

_HEADINGS: Mapping[str, tuple[str, str]] = {
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
}
_SHARES = {"confidence", "sensitivity", "specificity", "prevalence", "p_serious"}
_HIDDEN = {"low", "high", "spammer"} | {
    f"{rate}_{end}" for rate in ("sensitivity", "specificity") for end in ("low", "high")
}
_FIRST = (
    "item",
    "annotator",
    "label",
    "labels",
    "confidence",
    "reliability",
    "verdict",
    "recovered",
)


def label_rows(fit: Fit) -> PageTable:
    """Return the table of labels, the most frequent first."""
    table = fit.label_table()
    columns = _with_headings(columns_of(table, np.arange(table.num_rows)))
    return PageTable(
        columns,
        len(label_names(fit.data)),
        len(label_names(fit.data)),
        "prevalence",
        descending=True,
    )


def item_rows(fit: Fit) -> PageTable:
    """Return the table of items, the least certain first."""
    n_shown = min(len(label_names(fit.data)), _MAX_SHOWN)
    rows = np.argsort(fit.confidence, kind="stable")[: max(1, MAX_PROBABILITIES // n_shown)]
    table = fit.item_table().select(["item", "n_answers", "confidence"])
    columns = columns_of(table, rows)
    columns.insert(2, text_column("labels", _named(fit, fit.sets[rows])))
    columns = _with_headings(columns)
    unsure = (fit.probability[rows] > 0.2) & (fit.probability[rows] < 0.8)
    columns += _with_headings([text_column("next", joined(fit, unsure).to_pylist())])
    names = label_names(fit.data)
    most = np.sort(np.argsort(-fit.probability.mean(axis=0), kind="stable")[:n_shown])
    for n in most.tolist():
        column = number_column(f"p_{n}", np.round(fit.probability[rows, n], 3))
        column |= {"kind": "share", "title": names[n], "help": "probability of this label"}
        columns.append(column)
    return PageTable(columns, len(rows), fit.data.n_items, "confidence")


def people_rows(fit: Fit) -> PageTable:
    """Return the table of annotators, the least reliable first."""
    rows = np.argsort(np.asarray(fit.reliability), kind="stable")[:MAX_ANNOTATORS]
    columns = _with_headings(columns_of(fit.annotator_table(), rows))
    for column in columns:
        if column["key"] == "reliability":
            column |= {"domain": [0, 1], "limit": SPAMMER_BELOW}
    words, reasons = verdicts(fit)
    columns[3:3] = _with_headings([text_column("verdict", words[rows].tolist())])
    columns += _with_headings([text_column("reason", [reasons[s] for s in rows])])
    return PageTable(columns, len(rows), fit.data.n_annotators, "reliability")


def answer_rows(fit: Fit) -> PageTable:
    """Return the answers that are probably not serious, of annotators who are not dropped."""
    data = fit.data
    dropped = verdicts(fit)[0] == "drop"
    p_serious = np.asarray(fit.p_serious)
    doubtful = np.flatnonzero((p_serious < SPAMMER_BELOW) & ~dropped[data.annotator])
    first = doubtful[np.argsort(p_serious[doubtful], kind="stable")][:MAX_ANSWERS]
    item = data.item_of_label()[first]
    ids: dict[str, Any] = {
        "item": data.items.take(item),
        "annotator": data.annotators.take(data.annotator[first]),
        "labels": _named(fit, given_sets(fit.data)[first]),
        "recovered": _named(fit, fit.sets[item]),
        "p_serious": np.round(p_serious[first], 3),
    }
    columns = _with_headings(columns_of(table_of(ids), np.arange(len(first))))
    return PageTable(columns, len(first), len(doubtful), "p_serious")


def _named(fit: Fit, sets: Members) -> list[str]:
    """Return sets as text, of which the empty one has a name."""
    return [text or "(none)" for text in joined(fit, sets).to_pylist()]


def _with_headings(columns: list[PageColumn]) -> list[PageColumn]:
    """Return columns with the headings of sets of labels."""
    for column in columns:
        key = column["key"]
        if key in _HEADINGS:
            column["title"], column["help"] = _HEADINGS[key]
        if key in _SHARES and column["kind"] == "number":
            column["kind"] = "share"
        column["hidden"] = key in _HIDDEN
        column["rank"] = _FIRST.index(key) if key in _FIRST else len(_FIRST)
    return columns
