"""CSV and its relatives: every cell read as text, every fault found by row and line."""

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

from annotruth.errors import InputError
from annotruth.io.content import check_utf8, chunks
from annotruth.labels.formatting import counted

_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_HEADER_WINDOW = 1 << 20
_PEEK = 1 << 16
_BLOCK = 1 << 24  # what is parsed at once; a row must fit in it


def read_delimited(data: pa.Buffer, choose: Callable[[list[str]], Iterable[str]]) -> pa.Table:
    """Read a CSV, with whichever of , tab ; | its header uses, into columns of text.

    ``choose`` picks the columns to read, given the names in the header. Only an empty cell is
    null: NA may be somebody's name.
    """
    import pyarrow.csv

    separator, names, size = _header(data)
    wanted = list(choose(names))
    rows = data.slice(size)
    if rows.size == 0:
        return pa.table({name: pa.array([], pa.string()) for name in wanted})
    with _faults_found(data, rows, separator, len(names)):
        return pyarrow.csv.read_csv(pa.BufferReader(rows), **_options(separator, names, wanted))


def delimited_batches(
    data: pa.Buffer, choose: Callable[[list[str]], Iterable[str]]
) -> Iterator[pa.RecordBatch]:
    """Read a CSV as `read_delimited` does, some rows at a time."""
    import pyarrow.csv

    separator, names, size = _header(data)
    wanted = list(choose(names))
    rows = data.slice(size)
    if rows.size == 0:
        return
    with _faults_found(data, rows, separator, len(names)):
        options = _options(separator, names, wanted)
        with pyarrow.csv.open_csv(pa.BufferReader(rows), **options) as reader:
            yield from reader


def _options(separator: str, names: list[str], wanted: list[str]) -> dict[str, Any]:
    import pyarrow.csv

    return {
        "read_options": pyarrow.csv.ReadOptions(column_names=names, block_size=_BLOCK),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    }


@contextmanager
def _faults_found(data: pa.Buffer, rows: pa.Buffer, separator: str, width: int) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid:
        # Arrow reads in parallel and cannot name the row; look again, slowly.
        check_utf8(data)
        _check_rows(data, separator, width)
        raise
    if _quotes(rows) % 2:
        # Arrow lets a quote that is never closed swallow the rest of the file.
        _check_rows(data, separator, width)


def _quotes(rows: pa.Buffer) -> int:
    quote = ord('"')
    return sum(
        int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == quote))
        for chunk in chunks(rows)
    )


def separator_of(data: pa.Buffer) -> str:
    """Say which separator the first row uses."""
    return _header(data)[0]


def first_rows(data: pa.Buffer, most: int = 100) -> list[list[str]]:
    """Read the first rows, the one with the names among them, to see what they hold."""
    separator, _, size = _header(data)
    enough = max(_PEEK, 20 * size)  # a wide table has few rows in a fixed number of bytes
    text = data.slice(0, min(enough, data.size)).to_pybytes().decode(errors="surrogateescape")
    rows: list[list[str]] = []
    with suppress(csv.Error), _fields_of_any_size():  # a fault is found, and told, by the reading
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for row in reader:
            if len(rows) == most:
                return rows
            if row:
                rows.append(row)
    return rows[:-1] if data.size > enough else rows  # the last may be cut


def _header(data: pa.Buffer) -> tuple[str, list[str], int]:
    """Return the separator, the names of the columns, and how many bytes the header takes."""
    first = data.slice(0, min(_HEADER_WINDOW, data.size)).to_pybytes()
    # Bytes that are not UTF-8 pass for now: rows that nobody reads may hold them.
    text = first.decode(errors="surrogateescape")
    stream = io.StringIO(text, newline="")
    start = 0
    while (line := stream.readline()) and not line.strip():
        start = stream.tell()
    if not line:
        raise InputError("the file holds nothing but blank space")
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
        raise InputError("the header holds control characters, so this is no table of text")
    if len(names) == 1:
        raise InputError(
            f"the header has one column only, {names[0][:60]!r}: separate columns by "
            f"{', '.join(_SEPARATORS.values())}"
        )
    named = [name.strip() or f"column {place}" for place, name in enumerate(names, start=1)]
    return separator, named, size


def _check_rows(data: pa.Buffer, separator: str, width: int) -> None:
    """Find the first row that is no row of the table, and say where it stands."""
    lines = io.TextIOWrapper(pa.BufferReader(data), encoding="utf-8", newline="")
    with _fields_of_any_size():
        rows = csv.reader(lines, delimiter=separator, strict=True)
        number, line = 0, 1  # the header is row 0
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                unclosed = "end of data" in str(error)
                what = "opens a quote that is never closed" if unclosed else f"is broken ({error})"
                raise InputError(
                    f"row {number} (line {line}) {what}: write a quote inside quotes twice"
                ) from error
            if row and len(row) != width:
                raise InputError(
                    f"row {number} (line {line}) has {counted(len(row), 'field')} where the header has "
                    f"{width}: correct the row, or quote what contains the separator"
                )
            number += bool(row)  # blank lines are no rows
            line = rows.line_num + 1


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
