"""Batches of the chosen columns of a file: CSV, Parquet, Arrow or JSON lines.

Reading a file into memory is the case of one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, OutputError
from annotruth.io.content import ContentKind, FileContent

ChooseColumns = Callable[[list[str]], Iterable[str]]
"""Picks the columns to read, given the names of all columns."""


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
    if content.kind == "json" and max_rows is not None:
        raise InputError(
            "JSON is not read within a memory limit: save the labels as CSV or Parquet, or leave "
            "out memory (`--memory`)"
        )
    for batch in _read(content, partial(_choose_unique, choose), max_rows, keep_codes):
        if max_rows is None:
            yield batch
        else:
            for start in range(0, batch.num_rows, max_rows):
                yield batch.slice(start, max_rows)


def read_columns(
    content: FileContent, choose: ChooseColumns, *, keep_codes: bool = False
) -> pa.Table:
    """Read the chosen columns into memory, as one batch."""
    (table,) = read_batches(content, choose, keep_codes=keep_codes)
    return table


def _read(
    content: FileContent,
    choose: Callable[[list[str]], list[str]],
    max_rows: int | None,
    keep_codes: bool,
) -> Iterator[pa.Table]:
    kind, data = content
    if kind == "text":
        from annotruth.io.delimited import read_delimited

        yield from read_delimited(data, choose, in_batches=max_rows is not None)
        return
    if kind == "json":
        from annotruth.io.json_lines import read_json_lines

        yield read_json_lines(data, choose)
        return
    with _damage_reported(kind):
        if kind == "parquet":
            batches = _read_parquet(data, choose, max_rows, keep_codes)
        else:
            batches = _read_arrow(data, choose, max_rows)
        for batch in batches:
            # A damaged file can hold offsets that point outside it: never let them through.
            batch.validate(full=True)
            yield batch


def _choose_unique(choose: ChooseColumns, names: list[str]) -> list[str]:
    """Choose columns of a table whose column names must be unique."""
    chosen = list(dict.fromkeys(choose(names)))
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"two columns are named {repeated!r}: rename one")
    return chosen


def _read_parquet(
    data: pa.Buffer,
    choose: Callable[[list[str]], list[str]],
    max_rows: int | None,
    keep_codes: bool,
) -> Iterator[pa.Table]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(pa.BufferReader(data)) as file:
        metadata, names = file.metadata, choose(file.schema_arrow.names)
    with pyarrow.parquet.ParquetFile(
        pa.BufferReader(data),
        metadata=metadata,
        read_dictionary=_dictionary_columns(metadata, names) if keep_codes else None,
    ) as file:
        if max_rows is None:
            yield file.read(columns=names)
        else:
            for batch in file.iter_batches(batch_size=max_rows, columns=names):
                yield pa.Table.from_batches([batch])


def _dictionary_columns(metadata: Any, names: list[str]) -> list[str]:
    """Return the text columns that a Parquet file holds as dictionaries.

    Plain text takes more than the four bytes of its length, so less than that must be codes.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    coded = []
    for place in range(metadata.num_columns):
        chunks = [group.column(place) for group in groups]
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        n = sum(chunk.num_values for chunk in chunks)
        column = metadata.schema.column(place)
        is_text = column.physical_type == "BYTE_ARRAY" and column.logical_type.type == "STRING"
        if column.path in names and is_text and size < 4 * n:
            coded.append(column.path)
    return coded


def _read_arrow(
    data: pa.Buffer, choose: Callable[[list[str]], list[str]], max_rows: int | None
) -> Iterator[pa.Table]:
    import pyarrow.ipc

    is_file = data.slice(0, 6).to_pybytes() == b"ARROW1"
    with pyarrow.ipc.open_file(data) if is_file else pyarrow.ipc.open_stream(data) as reader:
        names = choose(reader.schema.names)
        if max_rows is None:
            yield reader.read_all().select(names)
        elif is_file:
            for number in range(reader.num_record_batches):
                yield pa.Table.from_batches([reader.get_batch(number)]).select(names)
        else:
            for batch in reader:
                yield pa.Table.from_batches([batch]).select(names)


@contextmanager
def _damage_reported(kind: ContentKind) -> Iterator[None]:
    """Turn the errors of a damaged file into an `InputError`."""
    try:
        yield
    except OutputError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the {kind.capitalize()} content is damaged or truncated ({error}): "
            "copy or export the file again"
        ) from error
