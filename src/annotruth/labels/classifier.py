"""A classifier's probabilities of the categories, matched to the labels by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, listed, shorten, shown
from annotruth.kernels.arrays import Floats
from annotruth.labels import validate
from annotruth.labels.arrays import LabelArrays
from annotruth.labels.encode import match_ids
from annotruth.labels.frames import find_columns, to_arrow
from annotruth.labels.scale import Scale, parse_numbers, to_plain
from annotruth.labels.truth import check_matches

_ROLE = "classifier"
_PREFIX = "p_"
_MAX_ROUNDING = 0.02  # by which the sum of a row may differ from 1


def match_classifier(data: Any, labels: LabelArrays) -> Floats:
    """Return a classifier's probabilities, items x categories; NaN for items without a prediction.

    ``data`` is a frame with an item column and one column per category, named as the category or
    with the prefix ``p_``; or an array with one column per category and one row per item, in the order
    of the items. Predictions of items without labels are left out, and a warning counts them.
    """
    if isinstance(data, np.ndarray):
        ids, probabilities = _rows_of_array(data, labels)
    else:
        ids, probabilities = _rows_of_table(data, labels.scale)
    _check_probabilities(ids, probabilities)
    item = match_ids(ids, labels.items)
    matched = np.flatnonzero(item >= 0)
    check_matches(len(matched), ids, _ROLE)
    validate.check_items_once(item[matched], ids.take(pa.array(matched)), _ROLE)
    predictions: Floats = np.full((labels.n_items, labels.n_categories), np.nan)
    rows = probabilities[matched]
    predictions[item[matched]] = rows / rows.sum(axis=1, keepdims=True)
    return predictions


def _rows_of_array(array: NDArray[Any], labels: LabelArrays) -> tuple[pa.Array, Floats]:
    """Return the ids and probabilities of an array: ids are row numbers, or those of the labels."""
    n_rows, n = len(array) if array.ndim else 0, labels.n_categories
    if array.ndim != 2 or array.shape[1] != n or array.dtype.kind not in "fiu":
        raise InputError(
            f"the classifier's array has shape {' x '.join(map(str, array.shape)) or '()'} and type "
            f"{array.dtype}: numbers of items x {n} categories ({listed(labels.scale.names)}) are "
            "needed"
        )
    numbers = array.astype(np.float64)
    if n_rows == 0:
        raise InputError("the classifier has no rows")
    if pa.types.is_integer(labels.items.type):
        return pa.array(np.arange(n_rows)), numbers
    if n_rows != labels.n_items:
        raise InputError(
            f"the classifier's array has {n_rows:,} rows for {labels.n_items:,} items: give a frame "
            "with a column item"
        )
    return labels.items, numbers


def _rows_of_table(data: Any, scale: Scale) -> tuple[pa.Array, Floats]:
    """Return the ids and probabilities of a table."""
    table = to_arrow(data)[0]
    item = find_columns(table.column_names, ("item",))["item"]
    names = _find_classes([name for name in table.column_names if name != item], scale)
    if table.num_rows == 0:
        raise InputError("the classifier has no rows")
    ids = to_plain(table.column(item))
    if validate.missing(ids).any():
        raise InputError("the classifier has a row without an item: remove it")
    columns = [_numbers(table, name) for name in names]
    return ids.combine_chunks(), np.column_stack(columns)


def _find_classes(columns: Sequence[str], scale: Scale) -> list[str]:
    """Return the column of each category; refuse categories without one, and others than these."""
    with_prefix = [f"{_PREFIX}{name}" for name in scale.names]
    has_prefix = any(name in columns for name in with_prefix)
    names = with_prefix if has_prefix else list(scale.names)
    absent = [name for name in names if name not in columns]
    if absent:
        raise InputError(
            f"the classifier has no column {listed(absent)} (found: {listed(columns)}): it needs "
            f"one column per category, {listed(with_prefix)}"
        )
    more = [name for name in columns if name not in names]
    if has_prefix:
        more = [name.removeprefix(_PREFIX) for name in more if name.startswith(_PREFIX)]
    if more:
        every = ",".join(map(shorten, [*scale.names, *more]))
        raise InputError(
            f"the classifier has columns for {listed(more)}, which no label names: remove them, or "
            f'pass `--categories "{every}"` (with `--scale nominal` if they have no order)'
        )
    return names


def _numbers(table: pa.Table, name: str) -> Floats:
    column = to_plain(table.column(name))
    numbers = None if validate.missing(column).any() else parse_numbers(column.combine_chunks())
    if numbers is None:
        raise InputError(
            f"column {shown(name)} of the classifier must hold a number in every row: leave out "
            "the rows of items that have no prediction"
        )
    return numbers


def _check_probabilities(ids: pa.Array, probabilities: Floats) -> None:
    """Refuse rows that are no probabilities; name the first."""
    sums = probabilities.sum(axis=1)
    inside = np.asarray((np.isfinite(probabilities) & (probabilities >= 0.0)).all(axis=1))
    wrong = np.flatnonzero(~(inside & (np.abs(sums - 1.0) <= _MAX_ROUNDING)))
    if not len(wrong):
        return
    row = int(wrong[0])
    values = ", ".join(f"{value:g}" for value in probabilities[row, :5])
    what = f"sum to {sums[row]:g}" if inside[row] else "are not all from 0 to 1"
    raise InputError(
        f"the classifier's probabilities of item {shown(ids[row].as_py())} {what} ({values}"
        f"{', ...' if probabilities.shape[1] > 5 else ''}): give probabilities that sum to 1, such as "
        "the softmax of logits"
    )
