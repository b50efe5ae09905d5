"""Tables of callers: conversion between their library and Arrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import (
    InputError,
    option,
    shown,
)
from annotruth.observations.columns.names import LABEL_ROLES

if TYPE_CHECKING:
    import narwhals as nw

ChooseColumns = Callable[[list[str]], Iterable[str]]
"""Picks the columns to convert, given the names of all columns."""


def to_arrow(
    data: Any, choose: ChooseColumns | None = None, roles: Sequence[str] = LABEL_ROLES
) -> tuple[pa.Table, str]:
    """Return a frame, a list of tuples, (item, annotator, label), or of dicts as an Arrow table.

    The second value is the name of the caller's frame library, in which tables are returned.
    ``choose`` picks the columns of a frame to convert; ``roles`` are the entries of a tuple.
    """
    if isinstance(data, pa.Table):
        return data, "pyarrow"
    library = distributed_library(data)
    if library is not None:
        raise InputError(
            f"this is a distributed frame: pass {option('engine', library)}, or collect it"
        )
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(data, pass_through=True)
    except DuplicateError as error:
        raise InputError("two columns of the frame have the same name: rename one") from error
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        # Columns that are not needed may hold anything, so they are not converted.
        by_text = {str(name): name for name in frame.columns}
        chosen = list(by_text) if choose is None else dict.fromkeys(choose(list(by_text)))
        columns = {name: _to_column(name, frame.get_column(by_text[name])) for name in chosen}
        return pa.table(columns), frame.implementation.name.lower()
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        with suppress(pa.ArrowInvalid):  # a single column is not a table
            return pa.table(data), "pyarrow"
    is_one = isinstance(data, (str, bytes, dict)) or getattr(data, "shape", None) == ()
    if isinstance(data, Iterable) and not is_one:
        rows = list(data)
        if rows and isinstance(rows[0], Mapping):
            return records_to_arrow(rows, choose), default_frame()
        return tuples_to_arrow(rows, roles), default_frame()
    what = "labels" if tuple(roles) == LABEL_ROLES else "comparisons"
    raise InputError(
        f"cannot read {what} from {type(data).__name__}: give a pandas, polars or pyarrow frame, a "
        f"list of ({', '.join(roles)}) tuples, or read a file with annotruth.read_{what}"
    )


def distributed_library(data: Any) -> str | None:
    """Return the library, and engine, of a frame whose rows are on other machines; else None.

    Such a frame must not be collected implicitly.
    """
    kind = type(data)
    is_spark = kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"
    return "spark" if is_spark else None


def from_arrow(table: pa.Table, frame: str) -> Any:
    """Return an Arrow table as a frame of the named library."""
    if frame == "pyarrow":
        return table
    import narwhals as nw

    return nw.from_arrow(table, backend=frame).to_native()  # type: ignore[arg-type]


def default_frame() -> str:
    """Return the frame library for callers who used none: pandas if it is installed."""
    return "pandas" if importlib.util.find_spec("pandas") else "pyarrow"


def _to_column(name: str, series: nw.Series[Any]) -> pa.Array:
    try:
        return series.to_arrow()
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Arrow's message names no row, so convert again and find it.
        return make_column(name, series.to_list())


def records_to_arrow(
    records: Sequence[Mapping[str, Any]], choose: ChooseColumns | None = None
) -> pa.Table:
    """Return the chosen entries of dicts, given all their keys; entries that are missing are null."""
    for number, row in enumerate(records, start=1):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} is {shown(row)}: each must be a dict, as others are")
    names = list(dict.fromkeys(chain.from_iterable(records)))
    if not all(isinstance(name, str) for name in names):
        raise InputError("a row has a key that is not text: give dicts of item, annotator, label")
    chosen = names if choose is None else choose(names)
    return pa.table(
        {name: make_column(name, [row.get(name) for row in records]) for name in chosen}
    )


def tuples_to_arrow(rows: Sequence[Any], roles: Sequence[str]) -> pa.Table:
    """Return a list of tuples as a table with a column per role."""
    for number, row in enumerate(rows, start=1):
        is_sequence = isinstance(row, Sequence) and not isinstance(row, (str, bytes))
        if not is_sequence or len(row) != len(roles):
            raise InputError(f"row {number} is {shown(row)}: each must be ({', '.join(roles)})")
    columns = list(zip(*rows, strict=True)) or [()] * len(roles)
    return pa.table(
        {role: make_column(role, list(values)) for role, values in zip(roles, columns, strict=True)}
    )


def is_list(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds lists."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def make_column(name: str, values: list[Any]) -> pa.Array:
    """Return values as an Arrow column; where types are mixed, the error names the row."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    else:
        # Arrow takes numbers among dates for days since 1970.
        if not (pa.types.is_temporal(column.type) and any(isinstance(v, int) for v in values)):
            return column
    present = [(row, v) for row, v in enumerate(values, start=1) if not _is_missing(v)]
    if all(isinstance(v, list | tuple | set | frozenset) for _, v in present):
        # Sets of labels, some of them frozen, or of several types.
        texts = [None if _is_missing(v) else [str(each) for each in v] for v in values]
        with suppress(pa.ArrowException, UnicodeError):
            return pa.array(texts)
    first = type(present[0][1])
    other = next(((row, v) for row, v in present if type(v) is not first), None)
    if other is None and first is int:
        # Arrow has no integers beyond 64 bits: keep their text.
        with suppress(ValueError):  # which Python has not where there are thousands of digits
            return pa.array([None if _is_missing(v) else str(v) for v in values])
    if other is None:
        row, value = next((each for each in present if not _is_readable(each[1])), present[0])
        raise InputError(
            f"column {name!r} holds {first.__name__} values that cannot be read, such as "
            f"{shown(value)} (row {row}): turn them into text or numbers"
        )
    row, value = other
    raise InputError(
        f"column {name!r} mixes {first.__name__} and {type(value).__name__} "
        f"(row {row}: {shown(value)}): make them one type"
    )


def _is_readable(value: Any) -> bool:
    """Return whether Arrow has a type for a value, or for its text."""
    try:
        pa.array([str(value) if isinstance(value, int) else value])
    except (pa.ArrowException, OverflowError, ValueError):
        return False
    return True


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA; an array is a value like others."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN
    except TypeError:  # comparing pandas' NA with itself yields no boolean
        return True
    except (ValueError, RuntimeError):  # nor does comparing arrays, those of NumPy and of PyTorch
        return False


# Arrow's own conversions to and from NumPy load pandas wherever it is installed, which takes as
# long as all the rest of a small fit.


def as_numpy(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers or booleans, none of them null, as an array that may be read-only."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_boolean(array.type):
        return as_numpy(array.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(array)


def as_arrow(values: NDArray[Any] | Sequence[str]) -> pa.Array:
    """Return numbers, booleans, or a list of text as an Arrow array."""
    if not isinstance(values, np.ndarray):
        texts = [*map(str.encode, values)]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers)
    if values.dtype == np.bool_:
        return as_arrow(values.view(np.uint8)).cast(pa.bool_())
    kind = pa.from_numpy_dtype(values.dtype)
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
