"""From columns of ids to integer codes, in order of first appearance, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

from annotruth.errors import InputError
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Codes, map_on_all_cores, slices
from annotruth.observations import layout
from annotruth.observations.disk import Disk
from annotruth.observations.frames import as_arrow, as_numpy
from annotruth.observations.scale import is_text, to_plain

_MAX_TABLE = 2  # entries of a table of integers, per row
_MAX_CODES = np.iinfo(np.int32).max


class EncodedColumn(NamedTuple):
    """The code of each row of a column, and what the codes stand for."""

    codes: NDArray[np.int32]
    values: pa.Array
    """The distinct values in order of first appearance; null may be one of them."""
    levels: list[Any] | None = None
    """The levels in order, where the column was a frame library's ordered categorical."""

    def take(self, kept: NDArray[np.bool_]) -> EncodedColumn:
        """Return some rows, with the values that occur in them."""
        return _without_gaps(self.codes[kept], self.values)._replace(levels=self.levels)


def encode_column(column: pa.ChunkedArray) -> EncodedColumn:
    """Encode a column, in order of first appearance."""
    if pa.types.is_dictionary(column.type):
        return _recode(column)
    column = to_plain(column)
    if len(column) >= layout.MANY_ROWS and pa.types.is_integer(column.type):
        encoded = _encode_integers(column)
        if encoded is not None:
            return encoded
    is_long = is_text(column.type) and column.nbytes > _MAX_CODES
    chunks = (
        (column.cast(pa.large_string()) if is_long else column).dictionary_encode("encode").chunks
    )
    values = chunks[0].dictionary if chunks else pa.array([], column.type)  # one for all chunks
    if pa.types.is_large_string(values.type) and values.nbytes <= _MAX_CODES:
        values = values.cast(pa.string())
    codes = [np.empty(0, dtype=np.int32), *(as_numpy(chunk.indices) for chunk in chunks)]
    return EncodedColumn(np.concatenate(codes), values)


def encode_columns(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, EncodedColumn]:
    """Encode columns, in parallel where they are long."""
    arrays = list(columns.values())
    are_long = min(map(len, arrays)) >= layout.MANY_ROWS
    encode = map_on_all_cores if are_long else map
    return dict(zip(columns, encode(encode_column, arrays), strict=True))


class Memory:
    """Makes columns in memory, as `Disk` does on disk, without a limit."""

    pending_bytes = 1 << 26

    def column(self, dtype: DTypeLike) -> MemoryColumn:
        """Return an empty column to append to."""
        return MemoryColumn(np.dtype(dtype))


class MemoryColumn:
    """A column in memory that is appended to, and then becomes an array."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._parts: list[NDArray[Any]] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        self._parts.append(np.asarray(values, dtype=self._dtype))

    def to_array(self) -> NDArray[Any]:
        """Return all values as an array, which is the part itself where there is one."""
        if len(self._parts) == 1:
            return self._parts[0]
        return np.concatenate([np.empty(0, self._dtype), *self._parts])


class BatchEncoder:
    """Codes of a column that comes in batches, in order of first appearance over all of them.

    ``role`` is what the column holds, for messages. With ``mixed_as_text``, ids of different types
    become text. What there is per value and batch goes to the ``store``.
    """

    def __init__(self, role: str, store: Memory | Disk, *, mixed_as_text: bool = False) -> None:
        self._role = role
        self._mixed_as_text = mixed_as_text
        self._distinct: pa.Array | None = None
        self._more: list[pa.Array] = []  # values of the batches since
        self._n = 0  # the values of all batches
        self.n_bytes = 0  # that the values take in memory
        self._store = store
        self._place = store.column(np.int32)  # of each of them, among those that are distinct

    def add(self, batch: EncodedColumn) -> NDArray[np.int32]:
        """Return the codes of the rows of a batch, to be renumbered once all batches are added.

        Batches of other files may have another type, such as decimals after whole numbers.
        """
        values = self._to_common_type(batch.values)
        codes = batch.codes + np.int32(self._n) if self._n else batch.codes
        self._more.append(values)
        self._n += len(values)
        self.n_bytes += values.nbytes
        known = 0 if self._distinct is None else self._distinct.nbytes
        if self.n_bytes - known > max(known, self._store.pending_bytes):
            self.values()
        return codes

    def values(self) -> pa.Array:
        """Return the distinct values so far, in order of first appearance."""
        if self._distinct is None:
            self._distinct = self._more.pop(0) if self._more else pa.nulls(0)
            self._place.append(np.arange(len(self._distinct)))
        if self._more:
            n, values = len(self._distinct), [self._distinct, *self._more]
            if len({each.type for each in values}) > 1:
                values = [each.cast(pa.large_string()) for each in values]
            codes, self._distinct, _ = encode_column(pa.chunked_array(values))
            self._place.append(codes[n:])
            self._more = []
            self.n_bytes = self._distinct.nbytes
        return self._distinct

    def merge_whole_numbers(self) -> None:
        """Make 1 and 1.0 one value, where all values are whole numbers written as text."""
        values = self.values()
        whole = whole_numbers(values)
        if whole is not values:
            codes, self._distinct, _ = encode_column(pa.chunked_array([whole]))
            place = codes[self._place.to_array()]
            self._place = self._store.column(np.int32)
            self._place.append(place)

    def renumber(self, *columns: NDArray[np.integer[Any]]) -> None:
        """Replace codes by places among the distinct values, in place, as there may be many."""
        if len(self.values()) == self._n:
            return
        place = self._place.to_array()
        for codes in columns:
            for at in slices(len(codes)):
                codes[at] = place[codes[at]]

    def _to_common_type(self, values: pa.Array) -> pa.Array:
        """Return the values of a batch in a type that those before are converted to as well."""
        known = [*self._more[-1:], self._distinct]
        before = values.type if known[0] is None else known[0].type
        if values.type == before or (is_text(values.type) and is_text(before)):
            return values
        if self._mixed_as_text:
            self._distinct = to_text(self.values())
            return to_text(values)
        try:
            common = common_type(before, values.type)
            converted = self.values().cast(common)
            if len(converted.unique()) < len(converted):
                raise pa.ArrowInvalid("values are the same in the other type")
            self._distinct = converted
            return values.cast(common)
        except pa.ArrowException:
            raise InputError(
                f"the {self._role}s are {values.type}, and those before are {before}: convert one "
                "of them"
            ) from None


def _encode_integers(column: pa.ChunkedArray) -> EncodedColumn | None:
    """Encode integers by a table of all integers between them; None if there are too many, or nulls.

    A table takes a tenth of the time of Arrow's hash table where there are many values.
    """
    ends = pc.min_max(column)
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if column.null_count or last - first >= min(_MAX_TABLE * len(column), _MAX_CODES):
        return None
    numbers = as_numpy(column)
    wide = np.uint64 if numbers.dtype == np.uint64 else np.int64  # in which differences fit
    codes = (numbers.astype(wide, copy=False) - wide(first)).astype(np.int32)
    table = np.arange(last - first + 1).astype(wide) + wide(first)
    return _without_gaps(codes, as_arrow(table.astype(numbers.dtype)))


def _recode(column: pa.ChunkedArray) -> EncodedColumn:
    """Encode a dictionary column: its dictionary may have gaps, repeats and another order."""
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return encode_column(column.cast(column.type.value_type))
    dictionary = column.chunk(0).dictionary
    levels = dictionary.to_pylist() if column.type.ordered else None
    # A null, added at the end of the dictionary, stands for the nulls among the indices.
    values = pa.chunked_array([dictionary, pa.nulls(1, dictionary.type)])
    places, values, _ = encode_column(values)
    codes = []
    for chunk in column.chunks:
        index = chunk.indices.cast(pa.int32())
        codes.append(as_numpy(index.fill_null(len(dictionary)) if index.null_count else index))
        if len(values) < len(places):  # a value is in the dictionary twice
            codes[-1] = places[codes[-1]]
    return _without_gaps(np.concatenate(codes), values)._replace(levels=levels)


def _without_gaps(codes: NDArray[np.int32], values: pa.Array) -> EncodedColumn:
    """Leave out values that do not occur, and order the rest by first appearance, in place."""
    number = np.full(len(values), -1, dtype=np.int32)
    n = find_kernel("layout.renumber")(codes, number)
    if (number == np.arange(len(values))).all():
        return EncodedColumn(codes, values)
    present = np.flatnonzero(number >= 0)
    order = np.empty(n, dtype=np.int64)
    order[number[present]] = present
    return EncodedColumn(codes, values.take(as_arrow(order)))


def common_type(*kinds: pa.DataType) -> pa.DataType:
    """Return the type that columns of several types can have; raise an ArrowException if none."""
    schemas = [pa.schema([("", kind)]) for kind in kinds]
    return pa.unify_schemas(schemas, promote_options="permissive").types[0]


def concat_columns(columns: Sequence[pa.Array]) -> pa.Array:
    """Return columns one after the other, as text if their types differ."""
    kinds = {column.type for column in columns if not pa.types.is_null(column.type)}
    if len(kinds) > 1:
        return pa.concat_arrays([to_text(column) for column in columns])
    kind = kinds.pop() if kinds else pa.null()
    return pa.concat_arrays([column.cast(kind) for column in columns])


def decode_table(table: pa.Table) -> pa.Table:
    """Replace every dictionary column by its values."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def restore_text(values: Any) -> Any:
    """Return text of a CSV as it was before formulas were marked for a spreadsheet."""
    if is_text(values.type) and pc.any(pc.starts_with(to_plain(values), "'")).as_py():
        return restore_formulas(to_plain(values))
    return values


_WHOLE = r"^-?(0|[1-9][0-9]*)(\.0+)?$"


def whole_numbers(ids: pa.Array) -> pa.Array:
    """Return ids without a point and zeros, where all are whole numbers as text and some have them."""
    if not is_text(ids.type) or not len(ids) or not pc.any(pc.ends_with(ids, ".0")).as_py():
        return ids
    if not pc.all(pc.match_substring_regex(ids, _WHOLE)).as_py():
        return ids
    return pc.replace_substring_regex(ids, r"\.0+$", "")


def to_integers(ids: pa.Array) -> pa.Array:
    """Turn ids read from a text file into integers where that loses nothing ("007" stays)."""
    try:
        ids[:1].cast(pa.int64())  # most ids that are not numbers fail here, at once
        numbers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids
    return numbers if numbers.cast(pa.string()).equals(ids.cast(pa.string())) else ids


def match_ids(values: pa.Array, ids: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the position of each value among the ids, which are distinct; -1 where it is none.

    Ids of different types are compared as text, so that 7 in one file matches "7" in another. A
    missing value matches a missing id.
    """
    values, ids = to_plain(values), to_plain(ids)
    if values.type != ids.type:
        if pa.types.is_integer(ids.type):
            values = whole_numbers(values)
        values, ids = to_text(values), to_text(ids)
    # The many ids are looked up among the few values: a hash table of the ids takes longer.
    values = values.dictionary_encode(null_encoding="encode")
    is_asked = pc.index_in(ids, value_set=values.dictionary).is_valid()
    positions = np.flatnonzero(as_numpy(is_asked))
    code = pc.index_in(ids.take(as_arrow(positions)), value_set=values.dictionary)
    position = np.full(len(values.dictionary), -1, dtype=np.int64)
    position[as_numpy(code)] = positions
    matched: NDArray[np.int64] = position[as_numpy(values.indices)]
    return matched


def id_ranks(ids: pa.Array) -> Codes:
    """Return the rank of each id in the order of their text, whatever the order of the input."""
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[as_numpy(pc.sort_indices(ids.cast(pa.string())))] = np.arange(len(ids))
    return ranks


def to_text(ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return ids as text; whole numbers without a point."""
    if pa.types.is_floating(ids.type):
        ids = ids.cast(pa.float64())
        whole = pc.and_(pc.equal(ids, pc.round(ids)), pc.less(pc.abs(ids), 2.0**53))
        if pc.all(whole).as_py():
            ids = ids.cast(pa.int64())
    return ids.cast(pa.string())


MARK = "'"
# The script of the report, data.js, has the same two patterns.
_FORMULA = "^['\"\\x01-\\x20\\x7f\u00a0\ufeff]*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
_NUMBER = r"^[-+]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?$"


def mark_formulas(table: pa.Table) -> pa.Table:
    """Return a table with a mark before all text that a spreadsheet would run as a formula.

    Numbers, also those written as text, stay as they are.
    """
    columns = [
        _mark(to_plain(column)) if is_text(column.type) else column
        for column in decode_table(table).columns
    ]
    return pa.table(columns, names=_mark(pa.array(table.column_names, pa.string())).to_pylist())


def restore_formulas(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return text without the marks, if all formulas of the column are marked.

    A column with an unmarked formula was not marked, so its quotes are part of the text.
    """
    formulas = are_formulas(column)
    rest = pc.utf8_slice_codeunits(column, 1)
    marked = pc.and_(pc.starts_with(column, MARK), are_formulas(rest))
    if pc.any(pc.and_not(formulas, marked)).as_py() or not pc.any(marked).as_py():
        return column
    return pc.if_else(marked, rest, column)


def _mark(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    formulas = are_formulas(column)
    if not pc.any(formulas).as_py():
        return column
    mark, nothing = (pa.scalar(text, column.type) for text in (MARK, ""))
    marked = pc.binary_join_element_wise(mark, column, nothing)
    return pc.if_else(formulas, marked, column)


def are_formulas(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return which texts a spreadsheet would run as a formula."""
    return pc.and_not(
        pc.match_substring_regex(column, _FORMULA), pc.match_substring_regex(column, _NUMBER)
    )
