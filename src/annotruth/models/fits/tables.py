"""Fits of labels: their tables, their summary, and their entries of ``fit.json``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import counted
from annotruth.io.writers import LazyTable
from annotruth.kernels.arrays import Floats, slices
from annotruth.models.base_fit import (
    FLAGGED,
    LOW_ACCURACY,
    NO_VERDICT,
    OTHER_OPINION,
    PARTLY_CARELESS,
    READOUTS,
    SPAMMER_BELOW,
    TOO_FEW,
    Readout,
    table_of,
)
from annotruth.models.fits.accessors import Kind
from annotruth.models.fits.notes import DISPUTED_RULE, WITHHELD_LINE, notes_of, to_dicts
from annotruth.models.result import Fit
from annotruth.observations.frames import as_arrow

MOST_COLUMNS = 100
"""With more categories, the items table has no column per category; see `Fit.distributions`."""


def all_tables(fit: Fit) -> dict[str, LazyTable | pa.Table]:
    """Return the tables that are written to files; long ones of labels on disk are made in partitions."""
    data, in_memory = fit.data, not fit.data.on_disk
    tables: dict[str, LazyTable | pa.Table] = {
        "items": LazyTable(data.n_items, partial(item_rows, fit), in_memory),
        "annotators": LazyTable(
            data.n_annotators, lambda _: annotator_rows(fit), fits_in_memory=True
        ),
        "labels": LazyTable(data.n_labels, _label_rows(fit), in_memory),
    }
    if fit.distribution is not None and data.n_categories > MOST_COLUMNS:
        tables["distributions"] = LazyTable(
            data.n_items, partial(distribution_rows, fit), in_memory
        )
    return tables


def item_rows(fit: Fit, rows: slice) -> pa.Table:
    """Return some rows of the items table."""
    scale = fit.data.scale
    theta = None if fit.distribution is None else fit.distribution.partition(rows)
    columns: dict[str, Any] = {
        "item": fit.data.items[rows],
        "n_labels": fit.data.labels_per_item[rows],
    }
    if fit.label is not None:
        columns["label"] = scale.categories.take(as_arrow(fit.label[rows]))
    if fit.expectation is not None:
        columns["expectation"] = fit.expectation[rows]
    if theta is not None:
        columns["confidence"] = theta.confidence()
        columns["entropy"] = theta.entropy()
    if fit.disputed is not None:
        columns["disputed"] = fit.disputed[rows]
    columns |= {name: column[rows] for name, column in fit.item_columns.items()}
    if theta is not None and len(scale) <= MOST_COLUMNS:
        columns |= dict(zip(share_names(fit), theta.dense(len(scale)).T, strict=True))
    return table_of(columns)


def share_names(fit: Fit) -> list[str]:
    """Return the names of the items' columns of categories, such as p_cat for cat.

    A name that a model-specific column has, such as robust-gpm's p_leads, gets an underscore.
    """
    names = (f"p_{name}" for name in fit.data.scale.names)
    return [f"{name}_" if name in fit.item_columns else name for name in names]


def annotator_rows(fit: Fit[Any]) -> pa.Table:
    """Return the annotators table."""
    data = fit.data
    ids = {"annotator": data.annotators, f"n_{fit.unit}s": data.labels_per_annotator}
    return table_of({**ids, **fit.annotator_values()})


def _label_rows(fit: Fit) -> Callable[[slice], pa.Table]:
    """Return a function that makes rows of the labels table, in the order of the input."""
    data = fit.data
    p_serious = None if fit.p_serious is None else data.in_row_order(fit.p_serious)

    def make(rows: slice) -> pa.Table:
        table = data.to_codes(rows)
        if p_serious is None:
            return table
        return table.append_column("p_serious", as_arrow(p_serious[rows]))

    return make


def distribution_rows(fit: Fit, rows: slice, readout: Readout | None = None) -> pa.Table:
    """Return the distributions of some items, without zeros."""
    theta = fit.distribution_of(readout).partition(rows)
    nonzero = np.flatnonzero(theta.probability > 0)
    return table_of(
        {
            "item": fit.data.items[rows].take(as_arrow(theta.item()[nonzero])),
            "label": fit.data.scale.categories.take(as_arrow(theta.category[nonzero])),
            "p": theta.probability[nonzero],
        }
    )


def _distributions(fit: Fit, readout: Readout | None = None) -> pa.Table:
    return distribution_rows(fit, slice(0, fit.data.n_items), readout)


def _soft_labels(fit: Fit, readout: Readout | None = None) -> pa.Table:
    shares = fit.distribution_of(readout).dense(len(fit.data.scale))
    names = [f"p_{name}" for name in fit.data.scale.names]
    return pa.table([fit.data.items, *shares.T], names=["item", *names])


def label_quality(fit: Fit) -> pa.Table:
    """Return one row per item: the label found, how probable it is, and who agrees with it.

    ``annotator_agreement`` is the share of the item's labels that are the consensus label.
    """
    data, right, label = fit.data, fit.right_distribution(), _consensus(fit)
    item, n = data.item_of_label(), data.n_items
    agrees = np.bincount(item, data.category_of_label() == label[item], minlength=n)
    quality = right.dense(data.n_categories)[np.arange(n), label]
    return table_of(
        {
            "item": data.items,
            "consensus_label": data.scale.categories.take(as_arrow(label)),
            "consensus_quality_score": quality,
            "annotator_agreement": agrees / data.labels_per_item,
            "num_annotations": data.labels_per_item,
        }
    )


def annotator_stats(fit: Fit) -> pa.Table:
    """Return one row per annotator, the lowest quality first.

    ``annotator_quality`` is the expected share of right labels: the mean probability of the
    annotator's labels. ``agreement_with_consensus`` is the share that are the label found.
    ``worst_class`` is the class of which most items are expected to be mislabelled.
    """
    data, n = fit.data, fit.data.n_categories
    right = fit.right_distribution().dense(n)
    item, label, annotator = data.item_of_label(), data.category_of_label(), data.annotator

    def total(values: NDArray[Any]) -> Floats:
        weights = values.astype(np.float64)
        return np.bincount(annotator, weights, minlength=data.n_annotators).astype(np.float64)

    quality = total(right[item, label]) / data.labels_per_annotator
    agrees = label == _consensus(fit)[item]
    worst = np.argmax([total(right[item, k] * (label != k)) for k in range(n)], axis=0)
    table = table_of(
        {
            "annotator": data.annotators,
            "annotator_quality": quality,
            "num_examples_labeled": data.labels_per_annotator,
            "agreement_with_consensus": total(agrees) / data.labels_per_annotator,
            "worst_class": data.scale.categories.take(as_arrow(worst)),
        }
    )
    return table.take(as_arrow(np.argsort(quality, kind="stable")))


def _consensus(fit: Fit) -> NDArray[np.int32]:
    assert fit.label is not None
    return fit.label


def readout_line(fit: Fit) -> str:
    """Return the line of the summary on what items' probabilities are."""
    return f"p_<label> and confidence are {READOUTS[fit.readout]}"


def row_lines(fit: Fit[Any], what: str) -> list[str]:
    """Return the lines of a summary on rows that were left out; ``what`` they lack."""
    data, lines = fit.data, []
    if data.n_dropped:
        rows = counted(data.n_dropped, f"row had no {what} and was", f"rows had no {what} and were")
        lines.append(f"{rows} dropped")
    if data.n_repeated:
        lines.append(f"{counted(data.n_repeated, 'repeated row')} counted once")
    for reason, n in data.unused.items():
        lines.append(f"{counted(n, 'row')} not used: {reason}")
    if lines:
        lines.append(f"rows: {data.n_read:,} read, {data.n_labels:,} used")
    return lines


def annotator_line(fit: Fit[Any]) -> str:
    """Return the line of the summary on annotators, for a model that has reliabilities.

    Spammers whose whole interval is below `SPAMMER_BELOW` are counted apart: the interval of
    the others says that they may be none.
    """
    assert fit.reliability is not None
    if FLAGGED in fit.annotator_columns:
        return _flag_line(fit)
    n, n_spammers, too_few = len(fit.reliability), fit.n_spammers, fit.too_few[1]
    line = f"annotators: median reliability {np.median(fit.reliability):.2f}"
    has_too_few = np.array(fit.behavior or [""] * n) == too_few
    if fit.spammer is not None:
        are = "is a spammer" if n_spammers == 1 else "are spammers"
        line += f"; {n_spammers:,} of {n:,} {are} (reliability below {SPAMMER_BELOW})"
        if n_spammers and fit.high is not None and fit.verdict != "chance":
            n_clear = int((fit.spammer & (fit.high < SPAMMER_BELOW) & ~has_too_few).sum())
            clear = f"{f'{n_clear:,}' if n_clear else 'none'} of them clearly"
            if n_spammers == 1:
                clear = "clearly" if n_clear else "not clearly"
            line += f", {clear} (whole 95% interval)"
    if n_few := int(has_too_few.sum()):
        line += f"; {n_few:,} {'has' if n_few == 1 else 'have'} {too_few}"
    return line


def _flag_line(fit: Fit[Any]) -> str:
    n_flagged, counts = fit.n_spammers or 0, Counter(fit.behavior or ())
    line = "annotators:"
    if fit.accuracy is not None:
        line += f" median accuracy {np.median(fit.accuracy):.2f};"
    if NO_VERDICT in counts:
        return f"{line} no verdicts on people"
    are = "is a spammer" if n_flagged == 1 else "are spammers"
    line += f" {n_flagged:,} of {counts.total():,} {are} (careless or consistently wrong)"
    for name in (LOW_ACCURACY, PARTLY_CARELESS, OTHER_OPINION, fit.too_few[1]):
        verbs = ("is", "are") if name == PARTLY_CARELESS else ("has", "have")
        if counts[name]:
            line += f"; {counts[name]:,} {verbs[counts[name] != 1]} {name}"
    return line


def _common_lines(fit: Fit[Any]) -> list[str]:
    """Return the lines on dropped rows, convergence and annotators."""
    lines = [*row_lines(fit, "label"), *fit.history.lines(fit.data.n_labels, "label")]
    if fit.withholds_figures:
        lines.append(WITHHELD_LINE)
    elif fit.reliability is not None:
        lines.append(annotator_line(fit))
    return lines


def _distributed_summary(fit: Fit[Any]) -> list[str]:
    return [*fit.heading_lines(), *_common_lines(fit), readout_line(fit)]


def _summary(fit: Fit) -> list[str]:
    """Return the lines on the data, convergence, annotators, items and labels."""
    data = fit.data
    lines = fit.heading_lines()
    if fit.chosen is not None and "instead_of" not in fit.chosen:  # the first line says that
        lines.append(f"chosen: {fit.chosen['why']}")
    read_as = f"read as: {data.read_as}" if data.read_as else ""
    lines += filter(None, [read_as, data.scale.reason, data.left_out])
    if data.scale.edges is not None:
        low, high = data.scale.bounds
        lines.append(
            f"labels put into {len(data.scale)} bins from {low:g} to {high:g}; the value of a "
            "bin is its centre"
        )
    lines += _common_lines(fit)
    if data.classifier is not None:
        from annotruth.models.evidence.classifier import judge_classifier  # loads SciPy

        lines.append(f"classifier: {judge_classifier(fit).describe()}")
    if fit.distribution is not None:
        lines.append(readout_line(fit))
    return lines if fit.withholds_figures else [*lines, *_figures(fit)]


def _figures(fit: Fit) -> list[str]:
    data, lines = fit.data, []
    if fit.distribution is not None:
        n_sure = np.count_nonzero(fit.distribution.confidence() > 0.9)
        lines.append(
            f"items: {n_sure:,} of {data.n_items:,} have a top label above 90% "
            f"{'probability' if fit.readout == 'right' else 'of opinion'}; "
            f"mean difficulty (entropy) {fit.distribution.entropy().mean():.2f} "
            f"of at most {math.log(len(data.scale)):.2f}"
        )
    if fit.disputed is not None and (n_disputed := np.count_nonzero(fit.disputed)):
        are = "is" if n_disputed == 1 else "are"
        lines.append(f"items: {n_disputed:,} {are} disputed: {DISPUTED_RULE}")
    if fit.expectation is not None:
        low, median, high = np.quantile(fit.expectation, [0.0, 0.5, 1.0])
        lines.append(f"scores: {low:.2f} to {high:.2f}, median {median:.2f}")
    if fit.p_serious is not None:
        n_irregular = sum(
            np.count_nonzero(fit.p_serious[rows] < SPAMMER_BELOW) for rows in slices(data.n_labels)
        )
        lines.append(f"labels: {n_irregular:,} of {data.n_labels:,} are probably not serious")
    return lines


def _counts(fit: Fit) -> dict[str, Any]:
    return {"n_labels": fit.data.n_labels, "n_categories": fit.data.n_categories}


def _entries(fit: Fit) -> dict[str, Any]:
    scale = fit.data.scale
    return {
        "scale": scale.kind,
        "scale_reason": scale.reason or None,
        "bins": None if scale.edges is None else scale.edges.tolist(),
        "frame": fit.data.frame,
        "readout": fit.readout,
        "verdict": fit.verdict,
        "notes": to_dicts(fit.notes),
    }


LABELS = Kind(
    unit="label",
    too_few=("too few labels", TOO_FEW),
    tables={
        "items": lambda fit: item_rows(fit, slice(0, fit.data.n_items)),
        "annotators": annotator_rows,
        "labels": lambda fit: _label_rows(fit)(slice(0, fit.data.n_labels)),
        "distributions": _distributions,
        "soft_labels": _soft_labels,
        "label_quality": label_quality,
        "annotator_stats": annotator_stats,
    },
    written=all_tables,
    summary=_summary,
    notes=notes_of,
    counts=_counts,
    entries=_entries,
)
"""What is different for labels."""

DISTRIBUTED = replace(
    LABELS,
    tables={},
    summary=_distributed_summary,
)
"""What is different for labels on other machines: nothing with one entry per item or label is here."""
