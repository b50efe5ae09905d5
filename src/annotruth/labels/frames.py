"""The border between the caller's frame library and Arrow, crossed once each way."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from annotruth.errors import InputError

ROLES = ("item", "annotator", "label")


def to_arrow(data: Any) -> tuple[pa.Table, str]:
    """Turn a frame or a list of (item, annotator, label) tuples into Arrow.

    Returns the table and the name of the caller's frame library, for the way back.
    """
    if isinstance(data, pa.Table):
        return data, "pyarrow"
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return _frame_to_arrow(frame), frame.implementation.name.lower()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data), "pyarrow"
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        return _tuples_to_arrow(list(data)), default_frame()
    raise InputError(
        f"cannot read labels from {type(data).__name__}: give a pandas, polars or pyarrow frame, "
        "a list of (item, annotator, label) tuples, or read a file with annotruth.read_labels"
    )


def from_arrow(table: pa.Table, frame: str) -> Any:
    """Turn an Arrow table into a frame of the named library."""
    if frame == "pyarrow":
        return table
    return nw.from_arrow(table, backend=frame).to_native()


def default_frame() -> str:
    """Name the library for tables when the caller brought none: pandas if it is installed."""
    return "pandas" if importlib.util.find_spec("pandas") else "pyarrow"


def _frame_to_arrow(frame: nw.DataFrame[Any]) -> pa.Table:
    names = frame.columns
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the frame has two columns named {twice[0]!r}: rename one")
    try:
        return frame.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Arrow's own message names no row; look again, column by column, for the mixed one.
        columns = {str(name): column_of(str(name), frame[name].to_list()) for name in names}
        return pa.table(columns)


def _tuples_to_arrow(rows: Sequence[Any]) -> pa.Table:
    for number, row in enumerate(rows, start=1):
        if isinstance(row, (str, bytes, dict)) or not isinstance(row, Sequence) or len(row) != 3:
            raise InputError(f"row {number} is {row!r}: each must be (item, annotator, label)")
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        {role: column_of(role, list(values)) for role, values in zip(ROLES, columns, strict=True)}
    )


def column_of(name: str, values: list[Any]) -> pa.Array:
    """Make one Arrow column, and say which row breaks it when the types are mixed."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    present = [(row, v) for row, v in enumerate(values, start=1) if v is not None and v == v]
    first = type(present[0][1])
    other = next(((row, v) for row, v in present if type(v) is not first), None)
    if other is None:
        # One type that Arrow has no room for, such as integers beyond 64 bits: keep its text.
        return pa.array([None if v is None else str(v) for v in values])
    row, value = other
    raise InputError(
        f"column {name!r} mixes {first.__name__} and {type(value).__name__} "
        f"(row {row}: {value!r}): make them one type"
    )
