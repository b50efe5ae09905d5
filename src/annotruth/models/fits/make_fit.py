"""Results per item and per label, as models compute them, and the fit made of them on any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines import DistributedLabels, DistributedSession, Session
from annotruth.kernels.arrays import Floats, concatenate, map_slices, reduce_rows
from annotruth.models.base_fit import Column
from annotruth.models.distribution import Distribution
from annotruth.models.em import direct_history
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary

_ITEMS_AT_ONCE = 1 << 16  # temporary arrays stay in the cache


ItemResults: TypeAlias = dict[str, Any]
"""Results per item and per label: fields of `Fit`."""

BuildItemResults: TypeAlias = Callable[[Labels, Mapping[str, NDArray[Any]]], ItemResults]
"""Builds item results from labels and the session's arrays: of all items, or of a partition."""

ComputeColumns: TypeAlias = Callable[[slice, Floats, Floats], Mapping[str, Column]]
"""Computes the columns of some items, given their distributions and the other ones."""


def summarize_items(
    table: Floats, other_table: Floats, p_serious: Floats, columns: ComputeColumns
) -> ItemResults:
    """Return the results of all items, computed of slices of them on all cores.

    Rows of the tables, items x categories, are divided by their sums, and where rounding has put
    ``p_serious``, one number per label, above 1, it is set to 1: in place, unless an array is read-only,
    as files are.
    """
    shares, others, at_most_one = (
        array if array.flags.writeable else np.empty_like(array)
        for array in (table, other_table, p_serious)
    )

    def limit(labels: slice) -> None:
        np.minimum(p_serious[labels], 1.0, out=at_most_one[labels])

    def compute(items: slice) -> Mapping[str, Column]:
        for values, normalised in (
            (table[items], shares[items]),
            (other_table[items], others[items]),
        ):
            np.divide(values, reduce_rows(np.add, values)[:, np.newaxis], out=normalised)
        return columns(items, shares[items], others[items])

    map_slices(limit, len(p_serious))
    parts = map_slices(compute, len(table), _ITEMS_AT_ONCE)
    return {
        "distribution": Distribution.of_dense(shares),
        "p_serious": at_most_one,
        "item_columns": {name: _concatenate([part[name] for part in parts]) for name in parts[0]},
        "other_distribution": Distribution.of_dense(others),
    }


def _concatenate(columns: list[Column]) -> Column:
    if isinstance(columns[0], np.ndarray):
        return concatenate(columns)
    return pa.concat_arrays(columns)


def of_distributions(labels: Labels, arrays: Mapping[str, NDArray[Any]]) -> ItemResults:
    """Return the results of items whose array, items x categories, is their distribution."""
    (shares,) = arrays.values()
    return {"distribution": Distribution.of_dense(shares)}


def make_fit(
    labels: LabelSummary,
    session: Session,
    arrays: tuple[str, ...],
    build: BuildItemResults,
    **fields: Any,
) -> Fit:
    """Return the fit with the given fields, and results of items built from arrays of the session.

    On a distributed engine ``build`` runs on the workers, one partition at a time, so it must not use
    the items of others; the tables are written there.
    """
    data = cast("Labels", labels)
    if not isinstance(labels, DistributedLabels):
        collected = {name: session.collect(name) for name in arrays}
        results = build(data, collected) if arrays else {}
        return Fit(data=data, **results, **fields)
    on_workers = cast("DistributedSession", session)
    frames = on_workers.write_tables(partial(build_tables, build), arrays)
    try:
        fit = Fit(data=data, frames=frames, **fields)
        frames.write_annotators(fit.annotator_values())
    except BaseException:
        frames.close()
        raise
    return fit


def build_tables(
    build: BuildItemResults, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, pa.Table]:
    """Return the tables of a partition's items and labels, made as those of a fit in memory."""
    results = build(labels, arrays)
    fit = Fit("", {}, labels, direct_history(), **results)
    tables = {"items": fit.item_table(), "labels": fit.label_table()}
    if labels.n_categories > MOST_COLUMNS:
        tables["distributions"] = fit.distribution_table()
    return tables
