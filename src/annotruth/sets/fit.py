"""Fits of sets of labels: their tables, summary and entries, and how good they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.io.parse import load_table
from annotruth.io.sources import file_named_in_errors
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import SETS as SETS_MODEL
from annotruth.models.base_fit import table_of
from annotruth.models.fits.accessors import Kind
from annotruth.models.fits.notes import ONE_ANNOTATOR_LINE, ONE_LABEL_LINE, Note
from annotruth.models.fits.tables import annotator_line, annotator_rows, row_lines
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.sets import (
    Members,
    describe_sets,
    known_members,
    match_known_sets,
    members,
)
from annotruth.sets.readout import TOO_FEW_ANSWERS

SEPARATOR = "|"
_SEPARATORS = (SEPARATOR, ";", ",", "/", "\t", "\x1f")
SURE = 0.9
"""Items whose set is more likely than this have a clear set."""


def label_names(data: Labels) -> list[str]:
    """Return the labels to choose from, in order."""
    assert data.scale.set_labels is not None
    names: list[str] = data.scale.set_labels.to_pylist()
    return names


def given_sets(data: Labels) -> Members:
    """Return which labels each answer has, in the order of the data: answers x labels."""
    return members(data.scale)[data.category_of_label()]


def joined(fit: Fit, sets: Members) -> pa.Array:
    """Return sets as text, with the separator between labels."""
    names = label_names(fit.data)
    texts = [fit.separator.join(names[n] for n in np.flatnonzero(row)) for row in sets]
    return pa.array(texts, pa.string())


def with_separator(fit: Fit, separator: str | None) -> Fit:
    """Return the fit with a separator that no label contains, by preference the given one."""
    names = label_names(fit.data)
    usable = (each for each in (separator, *_SEPARATORS) if each)
    free = (each for each in usable if not any(each in name for name in names))
    return replace(fit, separator=next(free, SEPARATOR))


def _items(fit: Fit) -> pa.Table:
    columns: dict[str, Any] = {
        "item": fit.data.items,
        "n_answers": fit.data.labels_per_item,
        "labels": joined(fit, fit.sets),
        "confidence": fit.confidence,
    }
    return table_of({**columns, **_shares(fit)})


def _answers(fit: Fit) -> pa.Table:
    data = fit.data
    assert fit.p_serious is not None
    ids = data.to_arrow().select(["item", "annotator"])
    given = ids.append_column("labels", joined(fit, data.in_row_order(given_sets(data))))
    return given.append_column("p_serious", pa.array(data.in_row_order(fit.p_serious)))


def _labels(fit: Fit) -> pa.Table:
    names = label_names(fit.data)
    return table_of(
        {
            "label": names,
            "prevalence": fit.probability.mean(axis=0),
            "n_items": fit.sets.sum(axis=0),
            "n_given": given_sets(fit.data).sum(axis=0),
            "sensitivity": fit.parameter("crowd_sensitivity", len(names)),
            "specificity": fit.parameter("crowd_specificity", len(names)),
        }
    )


def _soft_labels(fit: Fit, _: str | None = None) -> pa.Table:
    return table_of({"item": fit.data.items, **_shares(fit)})


def _shares(fit: Fit) -> dict[str, Floats]:
    columns = zip(label_names(fit.data), fit.probability.T, strict=True)
    return {f"p_{name}": np.ascontiguousarray(column) for name, column in columns}


def _notes(fit: Fit) -> list[Note]:
    """Return why the results say little; empty if nothing is known."""
    if fit.data.n_annotators == 1:
        return [Note("one annotator", "warning", ONE_ANNOTATOR_LINE)]
    if fit.data.n_labels > fit.data.n_items:
        return []
    return [Note("one label per item", "warning", ONE_LABEL_LINE.replace("labels", "answers"))]


def _summary(fit: Fit) -> list[str]:
    assert fit.chosen is not None
    n_sure = int((fit.confidence > SURE).sum())
    n_empty = int((~fit.sets.any(axis=1)).sum())
    items = f"items: {n_sure:,} of {fit.data.n_items:,} have a set above {SURE:.0%} probability"
    return [
        *fit.heading_lines(),
        *row_lines(fit, "answer"),
        *fit.history.lines(fit.data.n_labels, "answer"),
        fit.chosen["why"],
        f"{items}; {fit.sets.sum(axis=1).mean():.1f} labels per item, {n_empty:,} without a label",
        annotator_line(fit),
    ]


def _counts(fit: Fit) -> dict[str, Any]:
    names = label_names(fit.data)
    return {
        "n_answers": fit.data.n_labels,
        "n_labels": len(names),
        "n_sets": fit.data.n_categories,
        "labels": names,
        "separator": fit.separator,
    }


def _describe(data: Labels) -> str:
    n_choices = len(label_names(data))
    return describe_sets(data.n_labels, data.n_items, data.n_annotators, n_choices)


SETS = Kind(
    unit="answer",
    too_few=("too few answers", TOO_FEW_ANSWERS),
    no_spammers=(TOO_FEW_ANSWERS,),
    tables={
        "items": _items,
        "annotators": annotator_rows,
        "answers": _answers,
        "labels": _labels,
        "soft_labels": _soft_labels,
    },
    written=lambda fit: {
        name: fit.table(name) for name in ("items", "annotators", "answers", "labels")
    },
    summary=_summary,
    notes=_notes,
    counts=_counts,
    entries=lambda fit: {"frame": fit.data.frame, "chosen": fit.chosen and fit.chosen["why"]},
    describe=_describe,
    saved_as=SETS_MODEL,
)
"""What is different for sets of labels."""


def evaluate_sets(
    fit: Fit,
    truth: Any,
    *,
    separator: str | None = None,
    max_size: str | int | None = None,
    **_: object,
) -> dict[str, float]:
    """Return micro-F1, macro-F1, the share of exact matches, and Jaccard's index.

    ``truth`` is a frame of ``item`` and a column of lists, or of text with the separator between
    labels (by default that of the fit), or a mapping of items to sets.
    """
    with file_named_in_errors(truth):
        table = load_table(truth, max_size=max_size)
        separator = separator or fit.separator
        known = match_known_sets(table, fit.data, role="truth", separator=separator)
    return set_metrics(known_members(known, fit.data.scale), fit.sets[known.item])


def set_metrics(truth: Members, sets: Members) -> dict[str, float]:
    """Return the metrics of sets, items x labels, compared with true sets.

    Two empty sets have Jaccard's index 1. Macro-F1 is over the labels that are in some set.
    """
    both = (truth & sets).sum(axis=0)
    total = truth.sum(axis=0) + sets.sum(axis=0)
    seen = total > 0
    common, either = (truth & sets).sum(axis=1), (truth | sets).sum(axis=1)
    jaccard = np.where(either > 0, common / np.maximum(either, 1), 1.0)
    return {
        "f1_micro": float(2.0 * both.sum() / max(total.sum(), 1)),
        "f1_macro": float(np.mean(2.0 * both[seen] / total[seen])) if seen.any() else 0.0,
        "exact_match": float((truth == sets).all(axis=1).mean()),
        "jaccard": float(jaccard.mean()),
    }
