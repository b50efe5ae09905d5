"""Tables of callers: which column is which, and conversion between their library and Arrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError, InputError, listed, shown

if TYPE_CHECKING:
    import narwhals as nw

ChooseColumns = Callable[[list[str]], Iterable[str]]
"""Picks the columns to convert, given the names of all columns."""

# Column names that need no option, per role: ours, and those of crowd-kit, the VLDB'17 benchmark
# and rater.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "task", "question"),
    "annotator": ("annotator", "worker", "rater"),
    "label": ("label", "answer", "rating"),
    "truth": ("label", "truth", "answer", "rating"),
}
LABEL_ROLES = ("item", "annotator", "label")
TRUTH_ROLES = ("item", "truth")

# The packages of frames whose rows are on other machines, which must not be collected implicitly.
_DISTRIBUTED_FRAMES = {"pyspark.sql": "spark"}


def find_columns(
    names: Sequence[str], roles: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the column of each role, by the given name or by a known name."""
    if not isinstance(given, Mapping | None):
        raise InputError(f"columns is {shown(given)}: give a mapping from role to column name")
    # pandas numbers columns that have no names; here every name is text.
    given = {role: str(name) for role, name in (given or {}).items()}
    unknown = sorted(set(given) - set(roles))
    if unknown:
        raise InputError(
            f"columns has the unknown role {unknown[0]!r}: the roles are {', '.join(roles)}"
        )
    is_labels = tuple(roles) == LABEL_ROLES  # the option columns is only for labels
    by_spelling = {str(name).strip().lower(): name for name in reversed(names)}
    by_spelling.update((name, name) for name in names)  # the exact spelling comes first
    columns: dict[str, str] = {}
    for role in roles:
        if role in given:
            if given[role] not in names:
                raise InputError(f"no column {given[role]!r} (found: {listed(names)})")
            columns[role] = given[role]
            continue
        matches = [by_spelling[alias] for alias in ALIASES[role] if alias in by_spelling]
        if not matches:
            raise InputError(
                f"no column for the {role} (found: {listed(names)}); "
                f"name it {ALIASES[role][0]!r}{f', or {pass_column(role)}' if is_labels else ''}"
            )
        if len(matches) > 1:
            raise InputError(
                f"columns {' and '.join(map(repr, matches))} could both be the {role}; "
                f"{pass_column(role) if is_labels else 'rename one'}"
            )
        columns[role] = matches[0]
    for name in columns.values():
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")
        roles_of_column = [role for role, column in columns.items() if column == name]
        if len(roles_of_column) > 1:
            raise InputError(
                f"column {name!r} cannot be the {' and the '.join(roles_of_column)} at once; "
                f"{pass_column(roles_of_column[1]) if is_labels else 'add the other column'}"
            )
    return columns


def pass_column(role: str) -> str:
    """Return what to do, in a message, where the column of a role is not known."""
    return f"pass columns={{'{role}': NAME}} (`--columns {role}=NAME`)"


def is_known_name(name: str) -> bool:
    """Return whether a column of this name needs no option."""
    return any(name.strip().lower() in known for known in ALIASES.values())


def check_further_columns(
    role: str, names: Sequence[str], further: Sequence[str], used: Sequence[str]
) -> None:
    """Refuse further columns that are missing or have another role; ``used`` are those."""
    for name in further:
        if name not in names:
            raise InputError(f"no column {name!r} for the {role} (found: {listed(names)})")
        if name in used:
            raise InputError(
                f"column {name!r} is the item, annotator or label and cannot be the {role}: leave "
                "it out"
            )
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}: rename one")


def to_arrow(data: Any, choose: ChooseColumns | None = None) -> tuple[pa.Table, str]:
    """Return a frame or a list of (item, annotator, label) tuples as an Arrow table.

    The second value is the name of the caller's frame library, in which tables are returned.
    ``choose`` picks the columns of a frame to convert.
    """
    if isinstance(data, pa.Table):
        return data, "pyarrow"
    library = distributed_library(data)
    if library is not None:
        raise InputError(
            f"this is a distributed frame: pass engine={library!r} (`--engine {library}`), or "
            "collect it"
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
        return _frame_to_arrow(frame, choose), frame.implementation.name.lower()
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        with suppress(pa.ArrowInvalid):  # a single column is not a table
            return pa.table(data), "pyarrow"
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        return _tuples_to_arrow(list(data)), default_frame()
    raise InputError(
        f"cannot read labels from {type(data).__name__}: give a pandas, polars or pyarrow frame, "
        "a list of (item, annotator, label) tuples, or read a file with annotruth.read_labels"
    )


def distributed_library(data: Any) -> str | None:
    """Return the name of the library, and engine, of a distributed frame; None for other data."""
    kind = type(data)
    for package, library in _DISTRIBUTED_FRAMES.items():
        if kind.__module__.startswith(f"{package}.") and kind.__name__ == "DataFrame":
            return library
    return None


def from_arrow(table: pa.Table, frame: str) -> Any:
    """Return an Arrow table as a frame of the named library."""
    if frame == "pyarrow":
        return table
    import narwhals as nw

    return nw.from_arrow(table, backend=frame).to_native()  # type: ignore[arg-type]


def check_pandas_installed() -> None:
    """Raise an error where a pandas object is requested and pandas is not installed."""
    if importlib.util.find_spec("pandas") is None:
        raise AnnotruthError("this is returned as a pandas Series or frame: install pandas")


def default_frame() -> str:
    """Return the frame library for callers who used none: pandas if it is installed."""
    return "pandas" if importlib.util.find_spec("pandas") else "pyarrow"


def _frame_to_arrow(frame: nw.DataFrame[Any], choose: ChooseColumns | None) -> pa.Table:
    # Columns that are not needed may hold anything, so they are not converted.
    by_text = {str(name): name for name in frame.columns}
    chosen = list(by_text) if choose is None else dict.fromkeys(choose(list(by_text)))
    return pa.table(
        {name: _series_to_arrow(name, frame.get_column(by_text[name])) for name in chosen}
    )


def _series_to_arrow(name: str, series: nw.Series[Any]) -> pa.Array:
    try:
        return series.to_arrow()
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Arrow's message names no row, so convert again and find it.
        return make_column(name, series.to_list())


def _tuples_to_arrow(rows: Sequence[Any]) -> pa.Table:
    for number, row in enumerate(rows, start=1):
        if isinstance(row, (str, bytes, dict)) or not isinstance(row, Sequence) or len(row) != 3:
            raise InputError(f"row {number} is {shown(row)}: each must be (item, annotator, label)")
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        {
            role: make_column(role, list(values))
            for role, values in zip(LABEL_ROLES, columns, strict=True)
        }
    )


def make_column(name: str, values: list[Any]) -> pa.Array:
    """Return values as an Arrow column; where types are mixed, the error names the row."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    present = [(row, v) for row, v in enumerate(values, start=1) if not _is_missing(v)]
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
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN
    except (TypeError, ValueError):  # comparing pandas' NA with itself yields no boolean
        return True


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
        texts = [text.encode() for text in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers)
    if values.dtype == np.bool_:
        return as_arrow(values.view(np.uint8)).cast(pa.bool_())
    kind = pa.from_numpy_dtype(values.dtype)
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
