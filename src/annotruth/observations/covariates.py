"""Further data about labels, annotators and items, in the order of their codes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import AnnotruthWarning, InputError, counted
from annotruth.observations import validate
from annotruth.observations.arrays import Columns
from annotruth.observations.encode import encode_column, match_ids, to_text
from annotruth.observations.frames import find_columns, to_arrow
from annotruth.observations.layout import Layout
from annotruth.observations.scale import to_plain


def match_annotator_covariates(data: Any, annotators: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of a frame with one row per annotator, in the order of the codes.

    Rows of annotators without labels are ignored; annotators without a row get null.
    """
    ids, columns = _read_columns(data, "annotator")
    code = match_ids(ids, annotators)
    validate.check_annotators_match(code, ids, "the annotator covariates")
    return _scatter(columns, code, len(annotators))


def match_item_covariates(data: Any, items: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of a frame with one row per item, in the order of the codes.

    Unknown items are refused; items without a row get null.
    """
    ids, columns = _read_columns(data, "item")
    code = match_ids(ids, items)
    validate.check_known_items(code, ids, "item covariates")
    return _scatter(columns, code, len(items))


def _read_columns(data: Any, role: str) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Return the ids of a frame, and all other columns."""
    table = to_arrow(data)[0]
    id_column = find_columns(table.column_names, (role,))[role]
    columns = {
        name: to_array(table.column(name)) for name in table.column_names if name != id_column
    }
    if not columns:
        raise InputError(f"the {role} covariates have no column besides {id_column!r}: add one")
    ids = to_array(table.column(id_column))
    if validate.missing(ids).any():
        raise InputError(f"the {role} covariates have a row without an {role}: remove it")
    return ids, columns


def content_of_items(name: str, column: pa.Array, layout: Layout) -> pa.Array:
    """Return the content of each item as text, from a column with one value per label.

    Values are in the order of the layout. An item has the first of the input's values; that some
    have several is one warning.
    """
    try:
        text = to_text(column).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"column {name!r} holds {column.type}, which is no content: give text, URLs or paths"
        ) from None
    code = pc.fill_null(text.indices, -1).to_numpy()
    n_items = len(layout.item_ptr) - 1
    item = np.repeat(np.arange(n_items), np.diff(layout.cell_ptr[layout.item_ptr]))
    # The last of an item's values in this order is its first in the input.
    order = np.argsort(-layout.row.astype(np.int64))
    order = order[code[order] >= 0]
    first = np.full(n_items, -1)
    first[item[order]] = code[order]
    n_several = len(np.unique(item[order][code[order] != first[item[order]]]))
    if n_several:
        warnings.warn(
            f"{counted(n_several, 'item has', 'items have')} different values in column {name!r}: "
            "the first of each is taken as its content",
            AnnotruthWarning,
            stacklevel=2,
        )
    return text.dictionary.take(pa.array(first, mask=first < 0))


def to_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array without a dictionary."""
    column = to_plain(column)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def to_numbers(column: pa.Array) -> pa.Array:
    """Turn text into integers or floats where all of it is numbers."""
    for kind in (pa.int64(), pa.float64()):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def _scatter(columns: Columns, code: NDArray[np.int64], n: int) -> dict[str, pa.Array]:
    """Return columns of length ``n``, with row i at position ``code[i]``; null elsewhere."""
    row = np.full(n, -1, dtype=np.int64)
    matched = code >= 0
    row[code[matched]] = np.flatnonzero(matched)
    index = pa.array(row, mask=row < 0)
    return {name: column.take(index) for name, column in columns.items()}


def append_rows(first: Columns, n_first: int, second: Columns, n_second: int) -> Columns:
    """Return ``n_first`` rows followed by ``n_second`` others; a column that one lacks is null."""
    appended = {}
    for name in {**first, **second}:
        columns = [
            columns[name] if name in columns else pa.nulls(n)
            for columns, n in ((first, n_first), (second, n_second))
        ]
        appended[name] = pa.concat_arrays(_with_one_type(name, *columns))
    return appended


def merge_by_code(first: Columns, second: Columns, code: NDArray[np.int64], n: int) -> Columns:
    """Return ``n`` rows: those of ``first``, and of ``second`` at ``code`` where the first is null.

    ``first`` may have fewer rows.
    """
    merged = {}
    placed = _scatter(second, code, n)
    for name in {**first, **placed}:
        known = first.get(name, pa.nulls(0))
        known = pa.concat_arrays([known, pa.nulls(n - len(known), known.type)])
        merged[name] = pc.coalesce(*_with_one_type(name, known, placed.get(name, pa.nulls(n))))
    return merged


def _with_one_type(name: str, first: pa.Array, second: pa.Array) -> list[pa.Array]:
    if first.type == second.type:
        return [first, second]
    tables = [pa.table({name: column}) for column in (first, second)]
    try:
        joined = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        raise InputError(
            f"covariate {name!r} holds {first.type} in one place and {second.type} in another: "
            "make them one type"
        ) from None
    return [column.cast(joined.schema.field(0).type) for column in (first, second)]


def match_groups(data: Any, items: pa.Array, *, role: str) -> NDArray[np.int64]:
    """Return the group of each item, such as its source, in codes without gaps.

    ``data`` is a mapping or a pandas Series from item to group. An item may occur more than once,
    as in a table of labels, with one group; items without labels are ignored. ``role`` is what
    the groups are for, in messages.
    """
    is_series = getattr(data, "ndim", 0) == 1 and hasattr(data, "items")
    if not (isinstance(data, Mapping) or is_series):
        raise InputError(
            f"{role} cannot be read from {type(data).__name__}: give a mapping or a pandas "
            "Series from item to group"
        )
    ids, names = zip(*data.items(), strict=True) if len(data) else ((), ())
    item, name = match_ids(_to_arrow(ids), items), _to_arrow(names)
    used = np.flatnonzero((item >= 0) & ~validate.missing(name))
    item = item[used]
    code, groups, _ = encode_column(pa.chunked_array([name.take(pa.array(used))]))
    group = np.full(len(items), -1, dtype=np.int64)
    group[item] = code
    for e in np.flatnonzero(group < 0)[:1]:
        raise InputError(
            f"{role} gives item {items[int(e)].as_py()!r} no group "
            f"({np.count_nonzero(group < 0):,} such items): name a group for every item"
        )
    for row in np.flatnonzero(group[item] != code)[:1]:
        e = int(item[row])
        one, other = (groups[int(g)].as_py() for g in (code[row], group[e]))
        raise InputError(
            f"{role} puts item {items[e].as_py()!r} into groups {one!r} and {other!r}: "
            "name one group per item"
        )
    return group


def _to_arrow(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
