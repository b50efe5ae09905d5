"""CSV and its variants: every cell read as text, every fault located by row and line."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, counted
from annotruth.io.content import check_utf8, partitions

_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_HEADER_WINDOW = 1 << 20
_PEEK = 1 << 16
_BLOCK = 1 << 24  # bytes parsed at once; a row must fit in them


def read_delimited(
    data: pa.Buffer, choose: Callable[[list[str]], Iterable[str]], *, in_batches: bool
) -> Iterator[pa.Table]:
    """Read a CSV, separated by whichever of , tab ; | its header uses, into columns of text.

    ``choose`` picks the columns to read, given the names in the header. Only an empty cell is
    null: NA may be an id. Unless ``in_batches``, all rows come in one table.
    """
    import pyarrow.csv

    separator, names, size = _read_header(data)
    chosen = list(choose(names))
    rows = data.slice(size)
    if rows.size == 0:
        yield pa.table({name: pa.array([], pa.string()) for name in chosen})
        return
    options = _arrow_options(separator, names, chosen)
    with _faults_located(data, rows, separator, len(names)):
        source = pa.BufferReader(rows)
        if in_batches:
            with pyarrow.csv.open_csv(source, **options) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        else:
            table = pyarrow.csv.read_csv(source, **options)
    if not in_batches:
        yield table


def _arrow_options(separator: str, names: list[str], chosen: list[str]) -> dict[str, Any]:
    import pyarrow.csv

    return {
        "read_options": pyarrow.csv.ReadOptions(column_names=names, block_size=_BLOCK),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=chosen,
            null_values=[""],
            strings_can_be_null=True,
        ),
    }


@contextmanager
def _faults_located(data: pa.Buffer, rows: pa.Buffer, separator: str, width: int) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid:
        # Arrow reads in parallel and cannot name the row; read again, row by row.
        check_utf8(data)
        _check_rows(data, separator, width)
        raise
    if _count_quotes(rows) % 2:
        # Arrow lets a quote that is never closed swallow the rest of the file.
        _check_rows(data, separator, width)


def _count_quotes(rows: pa.Buffer) -> int:
    quote = ord('"')
    return sum(
        int(np.count_nonzero(np.frombuffer(part, dtype=np.uint8) == quote))
        for part in partitions(rows)
    )


def find_separator(data: pa.Buffer) -> str:
    """Return the separator that the first row uses."""
    return _read_header(data)[0]


def read_first_rows(data: pa.Buffer, max_rows: int = 100) -> list[list[str]]:
    """Return the first rows as text, the one with the column names included."""
    separator, _, size = _read_header(data)
    window = max(_PEEK, 20 * size)  # a wide table has few rows in a fixed number of bytes
    text = data.slice(0, min(window, data.size)).to_pybytes().decode(errors="surrogateescape")
    rows: list[list[str]] = []
    with suppress(csv.Error), _no_field_size_limit():  # faults are reported when all is read
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for row in reader:
            if len(rows) == max_rows:
                return rows
            if row:
                rows.append(row)
    return rows[:-1] if data.size > window else rows  # the last may be truncated


def _read_header(data: pa.Buffer) -> tuple[str, list[str], int]:
    """Return the separator, the names of the columns, and how many bytes the header takes."""
    first = data.slice(0, min(_HEADER_WINDOW, data.size)).to_pybytes()
    # Bytes that are not UTF-8 pass for now: columns that are not read may hold them.
    text = first.decode(errors="surrogateescape")
    stream = io.StringIO(text, newline="")
    start = 0
    while (line := stream.readline()) and not line.strip():
        start = stream.tell()
    if not line:
        raise InputError("the file holds only whitespace")
    unquoted = re.sub('"[^"]*"', "", line)
    separator = max(_SEPARATORS, key=unquoted.count)
    stream.seek(start)
    try:
        names = next(csv.reader(iter(stream.readline, ""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InputError(f"the header cannot be read ({error}): check its quotes") from error
    size = len(text[: stream.tell()].encode(errors="surrogateescape"))
    check_utf8(data.slice(0, size))
    if any(ord(letter) < 32 and letter not in "\t\r\n" for letter in text[: stream.tell()]):
        raise InputError("the header holds control characters, so this is not a text table")
    if len(names) == 1:
        raise InputError(
            f"the header has only one column, {names[0][:60]!r}: separate columns by "
            f"{', '.join(_SEPARATORS.values())}"
        )
    named = [name.strip() or f"column {place}" for place, name in enumerate(names, start=1)]
    return separator, named, size


def _check_rows(data: pa.Buffer, separator: str, width: int) -> None:
    """Refuse the first row that does not fit the header, naming its row and line."""
    lines = io.TextIOWrapper(pa.BufferReader(data), encoding="utf-8", newline="")
    with _no_field_size_limit():
        rows = csv.reader(lines, delimiter=separator, strict=True)
        number, line = 0, 1  # the header is row 0
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                unclosed = "end of data" in str(error)
                what = (
                    "opens a quote that is never closed" if unclosed else f"is malformed ({error})"
                )
                raise InputError(
                    f"row {number} (line {line}) {what}: double a quote inside quotes"
                ) from error
            if row and len(row) != width:
                raise InputError(
                    f"row {number} (line {line}) has {counted(len(row), 'field')} where the header has "
                    f"{width}: correct the row, or quote what contains the separator"
                )
            number += bool(row)  # blank lines do not count as rows
            line = rows.line_num + 1


@contextmanager
def _no_field_size_limit() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
