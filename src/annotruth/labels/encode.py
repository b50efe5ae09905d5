"""From columns of ids to integer codes, and from codes to the layout of `Labels`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.kernels.arrays import slices
from annotruth.labels.buffers import as_arrow, as_numpy
from annotruth.labels.ids import Ids
from annotruth.labels.scale import is_text, plain

# From so many labels on, threads and compiled kernels are worth their start.
_MANY = 100_000
_ROWS = 1 << 16


class Coded(NamedTuple):
    """A column in codes.

    Attributes
    ----------
    codes
        The code of each row.
    values
        The distinct values in order of first appearance; null may be one of them.
    levels
        The levels in order, where the column was a frame library's ordered categorical.
    """

    codes: NDArray[np.int32]
    values: pa.Array
    levels: list[Any] | None = None

    def take(self, kept: NDArray[np.bool_]) -> Coded:
        """Keep some rows, and of the values those that are left."""
        return _without_gaps(self.codes[kept], self.values)._replace(levels=self.levels)


def distinct(column: pa.ChunkedArray) -> Coded:
    """Encode a column without gaps, in order of first appearance."""
    if pa.types.is_dictionary(column.type):
        return _recoded(column)
    column = plain(column)
    if len(column) >= _MANY and is_text(column.type) and not column.null_count:
        return _entered(column)
    chunks = column.dictionary_encode(null_encoding="encode").chunks
    values = chunks[0].dictionary if chunks else pa.array([], column.type)  # one for all chunks
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    codes = [np.empty(0, dtype=np.int32), *(as_numpy(chunk.indices) for chunk in chunks)]
    return Coded(np.concatenate(codes), values)


def _entered(column: pa.ChunkedArray) -> Coded:
    """Encode text, of which Arrow takes three times as long where there are many values."""
    ids = Ids()
    pieces = (chunk[at] for chunk in column.chunks for at in slices(len(chunk), _ROWS))
    codes = [ids.enter(piece) for piece in pieces if len(piece)]
    return Coded(np.concatenate(codes), ids.values())


def distinct_all(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, Coded]:
    """Encode columns side by side."""
    if min(map(len, columns.values())) < _MANY:
        return {name: distinct(column) for name, column in columns.items()}
    with ThreadPoolExecutor(len(columns)) as pool:
        return dict(zip(columns, pool.map(distinct, columns.values()), strict=True))


def _recoded(column: pa.ChunkedArray) -> Coded:
    """Encode what comes encoded: its dictionary may have gaps, repeats and another order."""
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return distinct(column.cast(column.type.value_type))
    dictionary = column.chunk(0).dictionary
    levels = dictionary.to_pylist() if column.type.ordered else None
    # The dictionary's null, added at its end, stands for the nulls among the indices.
    values = pa.chunked_array([dictionary, pa.nulls(1, dictionary.type)])
    places, values, _ = distinct(values)
    codes = []
    for chunk in column.chunks:
        index = chunk.indices.cast(pa.int32())
        codes.append(as_numpy(index.fill_null(len(dictionary)) if index.null_count else index))
        if len(values) < len(places):  # a value stands twice
            codes[-1] = places[codes[-1]]
    return _without_gaps(np.concatenate(codes), values)._replace(levels=levels)


def _without_gaps(codes: NDArray[np.int32], values: pa.Array) -> Coded:
    """Leave out values that do not occur, and order the rest by first appearance, in place."""
    number = np.full(len(values), -1, dtype=np.int32)
    n = _kernels(len(codes)).renumber(codes, number)
    if (number == np.arange(len(values))).all():
        return Coded(codes, values)
    there = np.flatnonzero(number >= 0)
    order = np.empty(n, dtype=np.int64)
    order[number[there]] = there
    return Coded(codes, values.take(as_arrow(order)))


def decoded(table: pa.Table) -> pa.Table:
    """Write the values of every dictionary out."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def plain_numbers(ids: pa.Array) -> pa.Array:
    """Turn ids read from a text file into integers where that loses nothing ("007" stays)."""
    try:
        ids[:1].cast(pa.int64())  # most ids that are no numbers say so at once
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
    order = np.argsort(pair, kind="stable")
    same = pair[order[1:]] == pair[order[:-1]]
    return np.sort(order[1:][same]), np.sort(order[:-1][same])


class Layout(NamedTuple):
    """Labels sorted by item and category: the arrays of `Labels` of the same names."""

    item_ptr: NDArray[np.int64]
    cell_category: NDArray[np.int32]
    cell_ptr: NDArray[np.int64]
    annotator: NDArray[np.int32]
    row: NDArray[np.signedinteger[Any]]


def arrange(
    item: NDArray[np.integer[Any]],
    annotator: NDArray[np.integer[Any]],
    label: NDArray[np.integer[Any]],
    n_items: int,
    n_categories: int,
) -> Layout:
    """Sort labels by item, then by category, keeping rows in order within both."""
    columns = [np.ascontiguousarray(codes, dtype=np.int32) for codes in (item, annotator, label)]
    n = len(item)
    people = np.empty(n, dtype=np.int32)
    row, key = _room_for(n, n), _room_for(n, n_items * n_categories)
    item_ptr, cell_category, cell_ptr = _kernels(n).arrange(
        *columns, n_items, n_categories, people, row, key
    )
    return Layout(item_ptr, cell_category, cell_ptr, people, row)


def has_repeats(layout: Layout, n_annotators: int) -> bool:
    """Whether some annotator labelled an item more than once."""
    kernels = _kernels(len(layout.row))
    return bool(
        kernels.has_repeats(layout.item_ptr, layout.cell_ptr, layout.annotator, n_annotators)
    )


def put_back(values: NDArray[Any], row: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
    """Put one value a label into the order of their rows."""
    in_order = np.empty_like(values)
    _kernels(len(row)).put_back(values, row, in_order)
    return in_order


def _room_for(n: int, below: int) -> NDArray[np.signedinteger[Any]]:
    """Make room for n numbers below another, of 32 bits where they suffice."""
    return np.empty(n, dtype=np.int32 if below <= np.iinfo(np.int32).max else np.int64)


def _kernels(n_labels: int) -> ModuleType:
    """Return the compiled kernels, or for few labels their twins: sooner done than loaded."""
    room = "annotruth.kernels" if n_labels >= _MANY else "annotruth.kernels.reference"
    return importlib.import_module(f"{room}.layout")


def match(values: pa.Array, ids: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Find each value among the ids, which differ, and return its place: -1 where it is not there.

    Ids of different types meet as text, so that 7 in one file finds "7" in another.
    """
    values, ids = plain(values), plain(ids)
    if values.type != ids.type:
        values, ids = as_text(values), as_text(ids)
    # The many ids are looked up among the few values: a table of the ids takes longer to make.
    values = values.dictionary_encode()
    asked = pc.index_in(ids, value_set=values.dictionary).is_valid()
    places = np.flatnonzero(as_numpy(asked))
    found = pc.index_in(ids.take(as_arrow(places)), value_set=values.dictionary)
    place = np.full(len(values.dictionary) + 1, -1, dtype=np.int64)
    place[as_numpy(found)] = places
    codes = as_numpy(pc.fill_null(values.indices, len(values.dictionary)))
    places_of: NDArray[np.int64] = place[codes]
    return places_of


def as_text(ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Write ids as text; whole numbers without a point."""
    if pa.types.is_floating(ids.type):
        ids = ids.cast(pa.float64())
        whole = pc.and_(pc.equal(ids, pc.round(ids)), pc.less(pc.abs(ids), 2.0**53))
        if pc.all(whole).as_py():
            ids = ids.cast(pa.int64())
    return ids.cast(pa.string())
