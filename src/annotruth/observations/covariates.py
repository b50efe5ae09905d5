"""Further data about labels and items, in the order of their codes; times are read and checked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import AnnotruthWarning, InputError, counted, shown
from annotruth.observations.arrays import Columns
from annotruth.observations.encode import common_type, to_text
from annotruth.observations.layout import Layout
from annotruth.observations.scale import is_text, to_plain

TIMESTAMP = pa.timestamp("us")
"""The type of times that are dates, in UTC."""

_WITH_ZONE = pa.timestamp("us", tz="UTC")

# What stands for a missing value in text.
_MISSING = ("", "-", "na", "n/a", "nan", "nat", "none", "null")

# Formats of dates beside that of ISO 8601; a name of a time zone is removed before.
_DAYS = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d")
_TIMES = (" %H:%M:%S", " %H:%M", "")
_FORMATS = ("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S")
_ZONE_NAME = r" [A-Z]{3,4}( |$)"

# Numbers that are times: seconds since 1970, milliseconds, and so on, by their size.
_EPOCH_UNITS = ((1e8, "s"), (1e11, "ms"), (1e14, "us"), (1e17, "ns"))
_UNIT_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

_EXAMPLES = {
    "time": "a date such as 2024-05-03 14:30:00, or a number",
    "order": "a number",
    "seconds": "a number",
}


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


def scatter(columns: Columns, code: NDArray[np.int64], n: int) -> dict[str, pa.Array]:
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
    placed = scatter(second, code, n)
    for name in {**first, **placed}:
        known = first.get(name, pa.nulls(0))
        known = pa.concat_arrays([known, pa.nulls(n - len(known), known.type)])
        merged[name] = pc.coalesce(*_with_one_type(name, known, placed.get(name, pa.nulls(n))))
    return merged


def _with_one_type(name: str, first: pa.Array, second: pa.Array) -> list[pa.Array]:
    if first.type == second.type:
        return [first, second]
    try:
        kind = common_type(first.type, second.type)
    except pa.ArrowException:
        raise InputError(
            f"covariate {name!r} holds {first.type} in one place and {second.type} in another: "
            "make them one type"
        ) from None
    return [first.cast(kind), second.cast(kind)]


def warn_of_empty_times(role: str, name: str) -> None:
    """Warn of a column of times in which every value is missing."""
    warnings.warn(
        f"column {name!r} holds no {role} of labels (every value is missing) and is not used",
        AnnotruthWarning,
        stacklevel=2,
    )


def parse_times(
    role: str, name: str, column: pa.Array, *, first_row: int, given: bool, quiet: bool = False
) -> pa.Array | None:
    """Return a column of times, of orders or of seconds, as dates or numbers.

    None, with a warning, if it holds nothing of the sort; a column that the caller named is refused
    then. Where some values cannot be read, the first is an error. ``first_row`` rows of the file
    come before the column's; with ``quiet`` there is no warning.
    """
    if is_text(column.type):
        trimmed = pc.utf8_trim_whitespace(column)
        is_missing = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(_MISSING))
        column = pc.if_else(is_missing, pa.scalar(None, trimmed.type), trimmed)
    parsed = _to_dates(column) if role == "time" else _to_numbers(column)
    wrong = np.asarray(pc.and_(pc.is_valid(column), pc.is_null(parsed)))
    if wrong.any():
        row = int(wrong.argmax())
        what = f"{role} is {shown(column[row].as_py())} in row {first_row + row + 1}"
        if not given and wrong.sum() == len(column) - column.null_count:
            if not quiet:
                message = f"column {name!r} holds no {role} of labels ({what}) and is not used"
                warnings.warn(message, AnnotruthWarning, stacklevel=2)
            return None
        raise InputError(
            f"{what} of column {name!r}, which is not {_EXAMPLES[role]}: correct it, or leave it empty"
        )
    if role == "seconds":
        return _to_seconds(name, parsed)
    return parsed


def join_times(role: str, parts: Sequence[pa.Array]) -> pa.Array:
    """Return the times of several batches as one column; refuse dates beside numbers."""
    types = {part.type for part in parts if not pa.types.is_null(part.type)}
    if len(types) > 1:
        raise InputError(
            f"the {role} is a date in some files and a number in others: write it alike in all"
        )
    kind = types.pop() if types else pa.float64()
    return pa.concat_arrays([part.cast(kind) for part in parts])


def _to_seconds(name: str, numbers: pa.Array) -> pa.Array:
    """Return seconds; names of columns say whether they hold milliseconds. Negative is missing."""
    lower = name.strip().lower()
    if lower.startswith("milliseconds") or lower.endswith(("_ms", "milliseconds")) or lower == "ms":
        numbers = pc.divide(numbers, 1000.0)
    return pc.if_else(pc.less(numbers, 0.0), pa.scalar(None, pa.float64()), numbers)


def _to_numbers(column: pa.Array) -> pa.Array:
    """Return numbers; null where a value is none."""
    if pa.types.is_duration(column.type):
        return pc.divide(column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
    if not is_text(column.type):
        try:
            numbers = column.cast(pa.float64(), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return pa.nulls(len(column), pa.float64())
        return _only_finite(numbers)
    try:
        return _only_finite(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        return pa.array([_number(text) for text in column.to_pylist()], pa.float64())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _only_finite(numbers: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


def _to_dates(column: pa.Array) -> pa.Array:
    """Return dates in UTC, or numbers where they are no seconds since 1970; null where neither."""
    if pa.types.is_temporal(column.type) and not pa.types.is_duration(column.type):
        try:
            return _in_utc(column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None))))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return pa.nulls(len(column), TIMESTAMP)
    numbers = _to_numbers(column)
    if not is_text(column.type) or numbers.null_count < len(column):
        return _dates_of_numbers(numbers)
    forms = [f"{day}{time}" for day in _DAYS for time in _TIMES] + list(_FORMATS)
    candidates = [_iso_dates(column), *(_formatted_dates(column, form) for form in forms)]
    return min(candidates, key=lambda dates: dates.null_count)


def _dates_of_numbers(numbers: pa.Array) -> pa.Array:
    """Return the dates that numbers since 1970 are; other numbers stay numbers."""
    values = numbers.drop_null().to_numpy()
    if not len(values):
        return numbers
    for least, unit in reversed(_EPOCH_UNITS):
        if values.min() >= least:
            microseconds = pc.multiply(numbers, 1e6 / _UNIT_PER_SECOND[unit])
            return microseconds.cast(pa.int64(), safe=False).cast(TIMESTAMP)
    return numbers


def _iso_dates(text: pa.Array) -> pa.Array:
    """Return dates of ISO 8601, with or without a time zone."""
    for kind in (TIMESTAMP, _WITH_ZONE):
        try:
            return _in_utc(text.cast(kind))
        except pa.ArrowInvalid:
            continue
    return pa.array([_iso_date(one) for one in text.to_pylist()], TIMESTAMP)


def _iso_date(text: str | None) -> datetime | None:
    """Return one date, for columns in which some have a time zone and others have none."""
    try:
        date = datetime.fromisoformat((text or "").removesuffix(" UTC"))
    except ValueError:
        return None
    return date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None)


def _formatted_dates(text: pa.Array, form: str) -> pa.Array:
    plain = pc.replace_substring_regex(text, _ZONE_NAME, r"\1")
    return _in_utc(pc.strptime(plain, format=form, unit="us", error_is_null=True))


def _in_utc(dates: pa.Array) -> pa.Array:
    return dates if dates.type == TIMESTAMP else dates.cast(_WITH_ZONE).cast(TIMESTAMP)
