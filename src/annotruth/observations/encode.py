"""From columns of ids to integer codes, in order of first appearance, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Codes, slices
from annotruth.observations import layout
from annotruth.observations.frames import as_arrow, as_numpy
from annotruth.observations.scale import is_text, to_plain

_ROWS_AT_ONCE = 1 << 16
_INITIAL_SIZE = 64
_MAX_TABLE = 2  # entries of a table of integers, per row
_MAX_CODES = np.iinfo(np.int32).max
_PADDING = 8  # bytes after the last text, which the kernel reads and ignores


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
    if len(column) >= layout.MANY_ROWS and is_text(column.type) and not column.null_count:
        return _encode_text(column)
    if len(column) >= layout.MANY_ROWS and pa.types.is_integer(column.type):
        encoded = _encode_integers(column)
        if encoded is not None:
            return encoded
    chunks = column.dictionary_encode(null_encoding="encode").chunks
    values = chunks[0].dictionary if chunks else pa.array([], column.type)  # one for all chunks
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    codes = [np.empty(0, dtype=np.int32), *(as_numpy(chunk.indices) for chunk in chunks)]
    return EncodedColumn(np.concatenate(codes), values)


def encode_columns(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, EncodedColumn]:
    """Encode columns, in parallel where they are long."""
    if min(map(len, columns.values())) < layout.MANY_ROWS:
        return {name: encode_column(column) for name, column in columns.items()}
    with ThreadPoolExecutor(len(columns)) as pool:
        return dict(zip(columns, pool.map(encode_column, columns.values()), strict=True))


class BatchEncoder:
    """Codes of a column that comes in batches, in order of first appearance over all of them.

    ``role`` is what the column holds, for messages. With ``mixed_as_text``, ids of different types
    become text.
    """

    def __init__(self, role: str = "id", *, mixed_as_text: bool = False) -> None:
        self._role = role
        self._mixed_as_text = mixed_as_text
        self._type: pa.DataType | None = None
        self._values: pa.Array | None = None  # of the only batch so far
        self._table: IdTable | None = None  # of several batches

    @property
    def n_bytes(self) -> int:
        """The memory that the distinct values take."""
        if self._table is not None:
            return self._table.n_bytes
        return 0 if self._values is None else int(self._values.nbytes)

    def add(self, batch: EncodedColumn) -> NDArray[np.int32]:
        """Return the codes of the rows of a batch, none of them null.

        Batches of other files may have another type, such as decimals after whole numbers.
        """
        values = self._to_common_type(batch.values)
        if self._table is None:
            if self._values is None:
                self._values = values
                return batch.codes
            self._table = IdTable(self._values)
            self._values = None
        return self._table.add(values)[batch.codes]

    def values(self) -> pa.Array:
        """Return the distinct values in the order of their codes."""
        if self._table is not None:
            return self._table.values()
        return pa.nulls(0) if self._values is None else self._values

    def _to_common_type(self, values: pa.Array) -> pa.Array:
        """Return the values of a batch in a type that those before are converted to as well."""
        before = self._type
        if before is None or values.type == before or (is_text(values.type) and is_text(before)):
            self._type = before or values.type
            return values
        if self._mixed_as_text:
            if not is_text(before):
                self._convert(to_text(self.values()))
            return to_text(values)
        try:
            common = common_type(before, values.type)
            if common != before:
                self._convert(self.values().cast(common))
            return values.cast(common)
        except pa.ArrowException:
            raise InputError(
                f"the {self._role}s are {values.type}, and those before are {before}: convert one "
                "of them"
            ) from None

    def _convert(self, values: pa.Array) -> None:
        """Replace the distinct values so far by those of another type, which must be distinct."""
        table = IdTable(values)
        if len(table) < len(values):
            raise pa.ArrowInvalid("values are the same in the other type")
        self._type, self._values, self._table = values.type, None, table


def _encode_text(column: pa.ChunkedArray) -> EncodedColumn:
    """Encode text, for which Arrow takes three times as long where there are many values."""
    table = IdTable()
    parts = (chunk[rows] for chunk in column.chunks for rows in slices(len(chunk), _ROWS_AT_ONCE))
    codes = [table.add(part) for part in parts if len(part)]
    return EncodedColumn(np.concatenate(codes), table.values())


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


class IdTable:
    """A growing hash table of distinct values, all of one type."""

    def __init__(self, values: pa.Array | None = None) -> None:
        self._type: pa.DataType | None = None
        self._n = 0
        self._ends = np.zeros(_INITIAL_SIZE + 1, dtype=np.int64)
        self._text = np.zeros(_INITIAL_SIZE, dtype=np.uint8)
        self._slots = _empty_slots(2 * _INITIAL_SIZE)
        if values is not None:
            self.add(values)

    def __len__(self) -> int:
        return self._n

    @property
    def n_bytes(self) -> int:
        """The memory that the table takes."""
        return self._ends.nbytes + self._text.nbytes + self._slots.nbytes

    def add(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the code of each value, none of them null; new values get the next codes."""
        self._type = self._type or values.type
        ends, text = _bytes_of(values)
        self._reserve(len(values), len(text))
        codes = np.empty(len(values), dtype=np.int32)
        find_or_add = find_kernel("ids.find_or_add")
        self._n = find_or_add(ends, text, self._slots, self._ends, self._text, self._n, codes)
        return codes

    def values(self) -> pa.Array:
        """Return the distinct values in the order of their codes."""
        kind, n = self._type or pa.null(), self._n
        ends = self._ends[: n + 1]
        text = pa.py_buffer(self._text[: ends[-1]].copy())
        if is_text(kind):
            if ends[-1] > np.iinfo(np.int32).max:
                return pa.Array.from_buffers(
                    pa.large_string(), n, [None, pa.py_buffer(ends.copy()), text]
                )
            short = pa.py_buffer(ends.astype(np.int32))
            return pa.Array.from_buffers(pa.string(), n, [None, short, text])
        if pa.types.is_boolean(kind):
            return pa.Array.from_buffers(pa.uint8(), n, [None, text]).cast(kind)
        return pa.Array.from_buffers(kind, n, [None, text])

    def _reserve(self, n_more: int, size: int) -> None:
        n, size = self._n + n_more, int(self._ends[self._n]) + size
        self._text = _extended(self._text, size)
        self._ends = _extended(self._ends, n + 1)
        if 2 * n > len(self._slots):
            more = _empty_slots(1 << ((4 * n - 1).bit_length() - 1))
            find_kernel("ids.rehash")(self._slots, more)
            self._slots = more


def _empty_slots(n_slots: int) -> NDArray[np.uint64]:
    return np.full(n_slots, np.iinfo(np.uint64).max, dtype=np.uint64)


def _extended(array: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the array with room for ``n`` or more; half as many again, so that it is rare."""
    if n <= len(array):
        return array
    extended = np.zeros(n + n // 2, dtype=array.dtype)
    extended[: len(array)] = array
    return extended


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where the bytes of each value begin, with the end of the last, and the bytes."""
    n, start = len(values), values.offset
    if is_text(values.type):
        _, places, text = values.buffers()
        width = np.int64 if pa.types.is_large_string(values.type) else np.int32
        ends = np.frombuffer(places, dtype=width)[start : start + n + 1].astype(np.int64)
        data = np.frombuffer(text or b"", dtype=np.uint8)[ends[0] : ends[-1]]
        return ends - ends[0], _padded(data)
    if pa.types.is_boolean(values.type):
        return np.arange(n + 1), _padded(as_numpy(values).view(np.uint8))
    size = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1] or b"", dtype=np.uint8)
    return np.arange(n + 1) * size, _padded(data[start * size : (start + n) * size])


def _padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate([data, np.zeros(_PADDING, dtype=np.uint8)])


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
    formulas = _are_formulas(column)
    rest = pc.utf8_slice_codeunits(column, 1)
    marked = pc.and_(pc.starts_with(column, MARK), _are_formulas(rest))
    if pc.any(pc.and_not(formulas, marked)).as_py() or not pc.any(marked).as_py():
        return column
    return pc.if_else(marked, rest, column)


def _mark(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    formulas = _are_formulas(column)
    if not pc.any(formulas).as_py():
        return column
    mark, nothing = (pa.scalar(text, column.type) for text in (MARK, ""))
    marked = pc.binary_join_element_wise(mark, column, nothing)
    return pc.if_else(formulas, marked, column)


def _are_formulas(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.and_not(
        pc.match_substring_regex(column, _FORMULA), pc.match_substring_regex(column, _NUMBER)
    )
