"""Batches of the chosen columns of a file: CSV, Parquet, Arrow or JSON lines.

Reading a file into memory is the case of one batch.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, OutputError, counted, one_line, option, shorten
from annotruth.io.content import (
    DATABASE_TITLE,
    UTF8_BOM,
    ContentKind,
    FileContent,
    check_utf8,
    partitions,
)
from annotruth.io.decompress import (
    VALUE_BYTES,
    arrow_size,
    check_size,
    decoded_size,
    refuse_size,
)
from annotruth.io.json_lines import read_json_lines
from annotruth.observations.disk import format_size
from annotruth.observations.encode import decode_table
from annotruth.observations.frames import ChooseColumns


def read_batches(
    content: FileContent,
    choose: ChooseColumns,
    *,
    max_rows: int | None = None,
    keep_codes: bool = False,
) -> Iterator[pa.Table]:
    """Read the chosen columns in batches of at most ``max_rows``; without it, in one batch.

    Columns of a CSV are text. With ``keep_codes``, text that a Parquet file holds as a dictionary
    stays one, which is faster to encode.
    """
    if content.kind in DATABASE_TITLE:
        raise InputError(
            f"this is a {DATABASE_TITLE[content.kind]}, which is read only as LABELS, and in "
            "memory: save the table as CSV or Parquet"
        )
    if content.kind == "json" and max_rows is not None:
        raise InputError(
            "JSON is not read within a memory limit: save the labels as CSV or Parquet, or leave "
            f"out {option('memory')}"
        )
    chosen = partial(_choose_unique, choose)
    if content.kind == "text":
        batches = _read_delimited(content.data, chosen, in_batches=max_rows is not None)
    elif content.kind == "json":
        batches = iter([read_json_lines(content.data, chosen, limit=content.limit)])
    else:
        batches = _read_columnar(content, chosen, max_rows, keep_codes)
    for batch in batches:
        if max_rows is None:
            yield batch
        else:
            for start in range(0, max(1, batch.num_rows), max_rows):
                yield batch.slice(start, max_rows)


def read_columns(
    content: FileContent, choose: ChooseColumns, *, keep_codes: bool = False
) -> pa.Table:
    """Read the chosen columns into memory, as one batch."""
    (table,) = read_batches(content, choose, keep_codes=keep_codes)
    return table


def read_start(content: FileContent, n_rows: int) -> pa.Table:
    """Read the first rows of all columns; JSON is read as a whole."""
    batches, n_read = [], 0
    max_rows = None if content.kind == "json" else n_rows
    for batch in read_batches(content, lambda names: names, max_rows=max_rows):
        batches.append(batch)
        n_read += batch.num_rows
        if n_read >= n_rows:
            break
    return pa.concat_tables(batches).slice(0, n_rows)


def _read_columnar(
    content: FileContent,
    choose: Callable[[list[str]], list[str]],
    max_rows: int | None,
    keep_codes: bool,
) -> Iterator[pa.Table]:
    """Read Parquet or Arrow."""
    is_parquet = content.kind == "parquet"
    with _damage_reported(content.kind):
        for batch in (_read_parquet if is_parquet else _read_arrow)(content, choose, max_rows):
            # A damaged file can hold offsets that point outside it: never let them through.
            batch.validate(full=True)
            check_size(decoded_size(batch, keep_codes=keep_codes), "text", content.limit)
            yield decode_table(batch) if is_parquet and not keep_codes else batch


def _choose_unique(choose: ChooseColumns, names: list[str]) -> list[str]:
    """Choose columns of a table whose column names must be unique."""
    chosen = list(dict.fromkeys(choose(names)))
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"two columns are named {repeated!r}: rename one")
    return chosen


def _read_parquet(
    content: FileContent, choose: Callable[[list[str]], list[str]], max_rows: int | None
) -> Iterator[pa.Table]:
    """Read batches whose sizes are added up, with text as dictionaries, which repeat nothing."""
    import pyarrow.parquet

    open_file = partial(pyarrow.parquet.ParquetFile, page_checksum_verification=True)
    with open_file(pa.BufferReader(content.data)) as file:
        metadata, names = file.metadata, choose(file.schema_arrow.names)
        texts = _check_parquet_columns(file, names, content.limit)
    coded = [path for path in texts if _reads_as_codes(open_file, content, metadata, path)]
    # Values that are not codes may repeat a long text in few bytes: of these, few at once.
    at_once = min(_PARQUET_ROWS if len(coded) == len(texts) else 256, max_rows or _PARQUET_ROWS)
    tables: list[pa.Table] = []
    n_rows = size = 0
    with open_file(pa.BufferReader(content.data), metadata=metadata, read_dictionary=coded) as file:
        schema = pa.schema([file.schema_arrow.field(name) for name in names])
        for batch in file.iter_batches(batch_size=at_once, columns=names):
            n_rows += batch.num_rows
            size += batch.nbytes + VALUE_BYTES * batch.num_rows * batch.num_columns
            if size > content.limit:
                limit = format_size(content.limit)
                refuse_size(
                    f"reading the Parquet content takes more than {limit}", 4 * content.limit
                )
            tables.append(pa.Table.from_batches([batch]))
            if max_rows is not None:
                yield tables.pop()
    if n_rows != metadata.num_rows:
        raise pa.ArrowInvalid(f"{n_rows} rows where the footer says {metadata.num_rows}")
    if max_rows is None or not n_rows:
        yield pa.concat_tables(tables) if tables else schema.empty_table()


def _reads_as_codes(
    open_file: Callable[..., Any], content: FileContent, metadata: Any, path: str
) -> bool:
    """Return whether Arrow can read a column of text as codes: some encodings it cannot."""
    data = pa.BufferReader(content.data)
    with open_file(data, metadata=metadata, read_dictionary=[path]) as file:
        try:
            next(file.iter_batches(batch_size=1, columns=[path]), None)
        except OSError:  # of a damaged file, reading the values raises again
            return False
    return True


def _check_parquet_columns(file: Any, names: list[str], limit: int) -> list[str]:
    """Return the paths of columns of text, and refuse lists of more values than the limit allows."""
    metadata, starts = file.metadata, tuple(f"{name}." for name in names)
    columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    chosen = [n for n, each in enumerate(columns) if f"{each.path}.".startswith(starts)]
    lists = [n for n in chosen if columns[n].max_repetition_level]
    if lists:  # one row of them can hold any number of values
        # Arrow ends the process when asked about the columns of a damaged footer. A scan raises.
        file.scan_contents(names)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        n_values = sum(group.column(n).num_values for group in groups for n in lists)
        check_size(VALUE_BYTES * n_values, "lists of the Parquet content", limit)
    return [columns[n].path for n in chosen if columns[n].physical_type == "BYTE_ARRAY"]


def _read_arrow(
    content: FileContent, choose: Callable[[list[str]], list[str]], max_rows: int | None
) -> Iterator[pa.Table]:
    import pyarrow.ipc

    data = content.data
    check_size(arrow_size(data), "decompressed Arrow content", content.limit)
    is_file = data.slice(0, 6).to_pybytes() == b"ARROW1"
    with pyarrow.ipc.open_file(data) if is_file else pyarrow.ipc.open_stream(data) as reader:
        names = choose(reader.schema.names)
        if max_rows is None:
            yield reader.read_all().select(names)
            return
        yield reader.schema.empty_table().select(names)
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            yield pa.Table.from_batches([batch]).select(names)


@contextmanager
def _damage_reported(kind: ContentKind) -> Iterator[None]:
    """Turn the errors of a damaged file into an `InputError`."""
    try:
        yield
    except (InputError, OutputError, MemoryError):
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the {kind.capitalize()} content is damaged or truncated "
            f"({shorten(one_line(str(error)), 200)}): copy or export the file again"
        ) from error


# CSV and its variants: every cell is read as text, and every fault is located by row and line.

_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_HEADER_WINDOW = 1 << 20
_PEEK = 1 << 16
_PEEK_LINES = 20  # enough to tell a table separated by spaces from a text
_BLOCK = 1 << 24  # bytes parsed at once; a row must fit in them
_PARQUET_ROWS = 1 << 20  # read at once


def _read_delimited(
    data: pa.Buffer, choose: ChooseColumns, *, in_batches: bool
) -> Iterator[pa.Table]:
    """Read a CSV, separated by whichever of , tab ; | its header uses, or else by single spaces.

    All columns are text. ``choose`` picks the columns to read, given the names in the header. Only an
    empty cell is null: NA may be an id. Unless ``in_batches``, all rows come in one table.
    """
    import pyarrow.csv

    separator, names, size = _read_header(data)
    chosen = list(choose(names))
    rows = data.slice(size)
    if rows.size == 0:
        yield pa.table({name: pa.array([], pa.string()) for name in chosen})
        return
    if rows.slice(0, min(3, rows.size)).to_pybytes() == UTF8_BOM:
        # Arrow would drop it as the mark of a file, but it is part of an id: begin at the line end.
        rows = data.slice(size - 1)
    options = {
        "read_options": pyarrow.csv.ReadOptions(column_names=names, block_size=_BLOCK),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=chosen,
            null_values=[""],
            strings_can_be_null=True,
        ),
    }
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


@contextmanager
def _faults_located(data: pa.Buffer, rows: pa.Buffer, separator: str, width: int) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid:
        # Arrow reads in parallel and cannot name the row; read again, row by row.
        check_utf8(data)
        _check_rows(data, separator, width)
        raise
    quote = ord('"')
    counts = (np.frombuffer(part, dtype=np.uint8) == quote for part in partitions(rows))
    if sum(int(np.count_nonzero(each)) for each in counts) % 2:
        # Arrow lets a quote that is never closed swallow the rest of the file.
        _check_rows(data, separator, width)


def read_header(data: pa.Buffer) -> tuple[str, list[str]]:
    """Return the separator that the first row uses, and the names of the columns."""
    separator, names, _ = _read_header(data)
    return separator, names


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
    if separator not in unquoted:
        first_lines = text[start:].split("\n", _PEEK_LINES)[:_PEEK_LINES]
        n_spaces = {each.count(" ") for each in first_lines if each.strip()}
        if len(n_spaces) == 1 and min(n_spaces) >= 2:  # three fields or more in every line
            separator = " "
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
