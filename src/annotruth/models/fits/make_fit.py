"""A fit made of what a model computes on any engine, and fits of the same labels in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.engines import DistributedLabels, DistributedSession, Session
from annotruth.kernels.arrays import Codes, Floats, concatenate, map_slices, reduce_rows
from annotruth.models.base_fit import Column
from annotruth.models.distribution import Distribution
from annotruth.models.em import direct_history
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.models.result import Fit
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import CanonicalOrder
from annotruth.observations.table import ReorderedLabels

MAX_CANONICAL_LABELS = 50_000
"""Labels up to this number are fitted in canonical order; for more it would take noticeable time."""

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


_OF_ITEMS = ("distribution", "other_distribution", "score", "item_columns")
_OF_ANNOTATORS = ("reliability", "low", "high", "behavior", "annotator_columns")


def in_canonical_order(labels: Labels, *, keep_categories: bool) -> list[ReorderedLabels]:
    """Return few labels in canonical order, in several orders if they are symmetric; of more, nothing.

    Floating-point sums depend on the order of their terms, and extrapolated EM amplifies differences of
    rounding up to its tolerance. In canonical order, labels that differ in names and in the order of
    rows only are fitted with the same arithmetic. Categories that have an order keep it.
    """
    is_large = labels.on_disk or labels.n_labels > MAX_CANONICAL_LABELS
    if is_large or isinstance(labels, DistributedLabels):
        return []
    orders = labels.canonical_orders(keep_categories=keep_categories)
    if labels.classifier is not None:
        orders = orders[:1]  # items that are alike by their labels may differ by the classifier
    return [labels.reordered(order) for order in orders]


def fit_of_original(
    fit: Fit, labels: Labels, reordered: Sequence[ReorderedLabels], axes: Mapping[str, str]
) -> Fit:
    """Return a fit of reordered labels as one of the original ``labels``.

    Of several orders it is the mean. If exchanging some items, annotators and categories gives the same
    labels, exchanging their results gives a fit that is as good. Where rounding, amplified by EM, has
    chosen between the two, the mean is undecided, as it is without rounding.
    """
    images = []
    for each in reordered:
        places = CanonicalOrder(*map(np.argsort, each.order))
        p_serious = None if fit.p_serious is None else fit.p_serious[each.position]
        images.append(_rearranged(fit, labels, places, axes, p_serious))
    if len(images) == 1:
        return images[0]
    n, names = labels.n_categories, (*_OF_ITEMS, *_OF_ANNOTATORS, "parameters", "p_serious")
    return replace(
        images[0], **{name: _mean([getattr(each, name) for each in images], n) for name in names}
    )


def _rearranged(
    fit: Fit,
    labels: Labels,
    places: CanonicalOrder,
    axes: Mapping[str, str],
    p_serious: Floats | None,
) -> Fit:
    """Return the results for the items, annotators and categories at the given places."""
    item, annotator, category = places
    code = np.argsort(category)
    fields = {name: _at(item, getattr(fit, name), code) for name in _OF_ITEMS}
    fields |= {name: _at(annotator, getattr(fit, name), code) for name in _OF_ANNOTATORS}
    fields["parameters"] = {
        name: _reordered(values, axes[name], annotator, category)
        for name, values in fit.parameters.items()
    }
    return replace(fit, data=labels, p_serious=p_serious, **fields)


def _at(places: Codes, values: Any, code: Codes) -> Any:
    """Return results at some places; ``code`` are the new codes of the categories."""
    if isinstance(values, Mapping):
        return {name: _at(places, each, code) for name, each in values.items()}
    if isinstance(values, Distribution):
        return values.take(places, code)
    if isinstance(values, pa.Array):
        return values.take(as_arrow(places))
    if isinstance(values, np.ndarray):
        return values[places]
    return None if values is None else [values[place] for place in places]


def _reordered(values: NDArray[Any], axes: str, annotator: Codes, category: Codes) -> NDArray[Any]:
    """Return a parameter in another order of annotators and categories."""
    axes, _, code = axes.partition(" -> ")
    for axis, name in enumerate(axes.split()):
        n = values.shape[axis]
        if name == "annotator":
            values = values.take(annotator, axis=axis)
        elif name == "category":  # what follows the last category stays, such as a total
            places = np.append(category, np.arange(len(category), n))
            values = values.take(places, axis=axis)
        elif name == "state":
            states = np.arange(n).reshape(len(category), -1)
            values = values.take(states[category].ravel(), axis=axis)
    return np.where(values < 0, values, np.argsort(category)[values]) if code else values


def _mean(values: Sequence[Any], n_categories: int) -> Any:
    """Return the mean of floating-point numbers; of anything else, the first."""
    first = values[0]
    if isinstance(first, Mapping):
        return {name: _mean([each[name] for each in values], n_categories) for name in first}
    if isinstance(first, Distribution):
        dense = [each.dense(n_categories) for each in values]
        return Distribution.of_dense(np.mean(dense, axis=0))
    is_float = isinstance(first, np.ndarray) and first.dtype.kind == "f"
    return np.mean(values, axis=0) if is_float else first
