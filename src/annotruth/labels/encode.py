"""From columns of ids to integer codes, and from codes to the layout of `Labels`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.labels.scale import is_text, plain


def distinct(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array, list[Any] | None]:
    """Encode a column without gaps.

    Returns the code of each row, the distinct values in order of first appearance, and, for a
    frame library's ordered categorical, its levels in order.
    """
    levels = None
    if pa.types.is_dictionary(column.type) and column.type.ordered and column.num_chunks:
        levels = column.chunk(0).dictionary.to_pylist()
    column = plain(column)
    if is_text(column.type):
        column = column.cast(pa.large_string())  # 32-bit offsets overflow beyond 2 GB of text
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = encoded.dictionary
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    return encoded.indices.to_numpy(zero_copy_only=False), values, levels


def plain_numbers(ids: pa.Array) -> pa.Array:
    """Turn ids read from a text file into integers where that loses nothing ("007" stays)."""
    try:
        numbers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids
    return numbers if numbers.cast(pa.string()).equals(ids.cast(pa.string())) else ids


def repeats(
    item: NDArray[np.int32], annotator: NDArray[np.int32], n_annotators: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find rows where a person labels an item again.

    Returns the rows that repeat an earlier one and the rows that a later one supersedes, each
    in row order.
    """
    pair = item.astype(np.int64) * n_annotators + annotator
    in_order = np.sort(pair)
    if not (in_order[1:] == in_order[:-1]).any():
        none = np.empty(0, dtype=np.int64)
        return none, none
    order = np.argsort(pair, kind="stable")
    same = pair[order[1:]] == pair[order[:-1]]
    return np.sort(order[1:][same]), np.sort(order[:-1][same])


def group(
    item: NDArray[np.integer[Any]],
    label: NDArray[np.integer[Any]],
    n_items: int,
    n_categories: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Sort labels by item, then by category, keeping rows in order within both.

    Returns ``item_ptr, cell_category, cell_ptr`` of `Labels` and the sorted row numbers.
    """
    pair = item.astype(np.int64) * n_categories + label
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    cell_item, cell_category = np.divmod(pair[starts], n_categories)
    item_ptr = np.searchsorted(cell_item, np.arange(n_items + 1))
    return (
        item_ptr.astype(np.int64),
        cell_category.astype(np.int32),
        np.append(starts, len(pair)).astype(np.int64),
        order,
    )


def match(values: pa.Array, ids: pa.Array) -> NDArray[np.int64]:
    """Find each value among the ids, -1 where it is not there.

    Ids of different types meet as text, so that 7 in one file finds "7" in another.
    """
    values, ids = plain(values), plain(ids)
    if values.type != ids.type:
        values, ids = _as_text(values), _as_text(ids)
    found = pc.fill_null(pc.index_in(values, value_set=ids), -1)
    places: NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _as_text(ids: pa.Array) -> pa.Array:
    if pa.types.is_floating(ids.type):
        ids = ids.cast(pa.float64())
        whole = pc.and_(pc.equal(ids, pc.round(ids)), pc.less(pc.abs(ids), 2.0**53))
        if pc.all(whole).as_py():
            ids = ids.cast(pa.int64())
    return ids.cast(pa.string())
