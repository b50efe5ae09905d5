"""The tables of a fit in Arrow: items, labels, distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from annotruth.io.writers import LazyTable
from annotruth.labels.frames import as_arrow
from annotruth.models.base_fit import Readout, table_of

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
