"""The tables of a fit, and its summary: what `annotruth fit` writes and prints."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from annotruth.io.writers import LazyTable
from annotruth.kernels.arrays import slices
from annotruth.models.base_fit import SPAMMER_BELOW, Readout, table_of
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.observations.frames import as_arrow

if TYPE_CHECKING:
    from annotruth.models.result import Fit

MOST_COLUMNS = 100
"""With more categories, the items table has no column per category; see `Fit.distributions`."""


def all_tables(fit: Fit) -> dict[str, LazyTable]:
    """Return all tables by name, to be written to files; each is made when it is read.

    Ids in the labels table are dictionary-encoded. Where the labels are on disk, long tables
    are made in partitions. There is a table of distributions if the items table has no columns
    for the categories.
    """
    data, n_items, fits_in_memory = fit.data, fit.data.n_items, not fit.data.on_disk
    label_rows = _label_rows(fit) if data.on_disk else None
    tables = {
        "items": LazyTable(n_items, partial(item_rows, fit), fits_in_memory),
        "annotators": LazyTable(
            data.n_annotators, lambda _: fit.annotator_table(), fits_in_memory=True
        ),
        "labels": LazyTable(
            data.n_labels, label_rows or (lambda _: coded_label_table(fit)), fits_in_memory
        ),
    }
    if fit.distribution is not None and data.n_categories > MOST_COLUMNS:
        tables["distributions"] = LazyTable(
            n_items, partial(distribution_rows, fit), fits_in_memory
        )
    for name, table in fit.further_tables().items():
        tables[name] = LazyTable.of(table)
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
        shares = theta.dense(len(scale))
        columns |= dict(zip(fit.share_names(), shares.T, strict=True))
    return table_of(columns)


def coded_label_table(fit: Fit) -> pa.Table:
    """Return the labels table in the order of the input, with dictionary-encoded ids."""
    table = fit.data.to_codes()
    if fit.p_serious is None:
        return table
    p_serious = fit.data.in_row_order(fit.p_serious)
    return table.append_column("p_serious", as_arrow(p_serious))


def _label_rows(fit: Fit) -> Callable[[slice], pa.Table]:
    """Return a function that makes some rows of the labels table."""
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


def summary_of(fit: Fit) -> str:
    """Return a few lines: the data, convergence, annotators, items and labels."""
    data = fit.data
    lines = fit.heading_lines()
    if fit.chosen is not None and "instead_of" not in fit.chosen:  # the first line says that
        lines.append(f"chosen: {fit.chosen['why']}")
    if data.read_as:
        lines.append(f"read as: {data.read_as}")
    if data.scale.reason:
        lines.append(data.scale.reason)
    if data.left_out:
        lines.append(data.left_out)
    if data.scale.edges is not None:
        low, high = data.scale.bounds
        lines.append(
            f"labels put into {len(data.scale)} bins from {low:g} to {high:g}; the value of a "
            "bin is its centre"
        )
    lines += fit.summary_lines()
    if data.classifier is not None:
        from annotruth.models.evidence.classifier import judge_classifier  # loads SciPy

        lines.append(f"classifier: {judge_classifier(fit).describe()}")
    if fit.distribution is not None:
        lines.append(fit.readout_line())
    if not fit.withholds_figures:
        lines += _figures(fit)
    return "\n".join([*lines, *fit.further_lines()])


def _figures(fit: Fit) -> list[str]:
    """Return the lines on items, scores and labels."""
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
