"""Files of labels, gold and truth, in any common format, or one line that says why not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, OutputError
from annotruth.io import formats
from annotruth.io.content import Kind, content_of
from annotruth.io.formats.base import ParsedLabels
from annotruth.io.formats.source import Source
from annotruth.io.options import ReadOptions
from annotruth.labels import Labels
from annotruth.labels.validate import LABEL_ROLES, find_columns, is_known_name

_NO_NAMES = "; if the first row holds no names, put one before it: item,annotator,label"


def read_labels(
    path: str | os.PathLike[str], read: ReadOptions | None = None, **options: Any
) -> Labels:
    """Read labels from a file.

    Parameters
    ----------
    path
        A long table as CSV or TSV (also with ; or | between columns), Parquet, Arrow, Feather
        or JSON lines, plain or packed with gzip, bzip2, xz, zstd, lz4 or zip; or what another
        tool wrote (see ``io.formats``), recognised by what it holds.
    read, **options
        How to read it: `ReadOptions`, or its fields as keywords.

    Raises
    ------
    InputError
        When the file or what it holds cannot be used; one line says what, where and what to do.
    """
    read = ReadOptions.of(read, options)
    if read.memory is not None:
        from annotruth.io.large import read_labels_within

        return read_labels_within(path, read)
    with explained(path):
        found, columns = _found(Path(path), read.columns or {}, read.input_format, read.question)
        how = replace(read, columns=columns).with_categories(found.categories)
        labels = Labels.from_arrow(found.table, how, from_text=found.from_text)
        labels = replace(labels, read_as=found.read_as)
        return labels if found.gold is None else labels.with_gold(found.gold)


def read_table(path: str | os.PathLike[str]) -> tuple[pa.Table, bool]:
    """Read a whole file as a table, a long one in the formats of `read_labels`.

    The second value says whether it came from a CSV or TSV, where every column is text.
    """
    with explained(path):
        return _read(*content_of(Path(path)), lambda names: names)


class _NoLongTableError(InputError):
    """The columns of a long table are not there."""


def _found(
    path: Path, columns: Mapping[str, str], input_format: str | None, question: str | None
) -> tuple[ParsedLabels, Mapping[str, str] | None]:
    """Find the labels, and which columns are named by the user: None, but for a long table."""
    formats.check_name(input_format)
    several = formats.read_several(path)
    if several is not None:
        return several, None
    kind, data = content_of(path)
    source = Source(path, kind, data, partial(_read, kind, data), columns, question)
    if input_format is not None and input_format != "long":
        return formats.read_as(input_format, source), None
    # The keys of JSON are known only once it is read, so its first object is looked at before.
    found = formats.recognised(source) if input_format is None and kind == "json" else None
    if found is not None:
        return found, None

    def choose(names: list[str]) -> Iterable[str]:
        try:
            return find_columns(names, LABEL_ROLES, columns).values()
        except InputError as error:
            unnamed = kind == "text" and not columns and not any(map(is_known_name, names))
            raise _NoLongTableError(f"{error}{_NO_NAMES if unnamed else ''}") from None

    try:
        table, from_text = _read(kind, data, choose, coded=True)
    except _NoLongTableError:
        found = formats.recognised(source) if input_format is None and kind != "json" else None
        if found is None:
            raise
        return found, None
    if question is not None:
        raise InputError("a table of one row a label has no questions: leave the question out")
    return ParsedLabels(table, from_text), columns


def _read(
    kind: Kind,
    data: pa.Buffer,
    choose: Callable[[list[str]], Iterable[str]],
    *,
    coded: bool = False,
) -> tuple[pa.Table, bool]:
    """Read the chosen columns; with ``coded``, text that the file holds in codes stays so."""
    columns = partial(without_twins, choose)
    if kind == "text":
        from annotruth.io.delimited import read_delimited

        table = read_delimited(data, columns)
    elif kind == "json":
        from annotruth.io.json_lines import read_json_lines

        table = read_json_lines(data, columns)
    else:
        with damage_told(kind):
            if kind == "parquet":
                table = _read_parquet(data, columns, coded=coded)
            else:
                table = _read_arrow(data, columns)
            # A damaged file can hold offsets that point outside it: never let them through.
            table.validate(full=True)
    return table, kind == "text"


def without_twins(choose: Callable[[list[str]], Iterable[str]], names: list[str]) -> list[str]:
    """Choose columns, none of which may be there twice."""
    wanted = list(dict.fromkeys(choose(names)))
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two columns are named {twice!r}: rename one")
    return wanted


def _read_parquet(
    data: pa.Buffer, columns: Callable[[list[str]], list[str]], *, coded: bool
) -> pa.Table:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(pa.BufferReader(data)) as file:
        metadata, names = file.metadata, columns(file.schema_arrow.names)
    with pyarrow.parquet.ParquetFile(
        pa.BufferReader(data),
        metadata=metadata,
        read_dictionary=held_in_codes(metadata, names) if coded else None,
    ) as file:
        return file.read(columns=names)


def held_in_codes(metadata: Any, names: list[str]) -> list[str]:
    """Name the columns of text that the file holds in codes.

    Text itself takes more than the four bytes of its length, so less than that must be codes.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = []
    for place in range(metadata.num_columns):
        chunks = [group.column(place) for group in groups]
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        n = sum(chunk.num_values for chunk in chunks)
        column = metadata.schema.column(place)
        is_text = column.physical_type == "BYTE_ARRAY" and column.logical_type.type == "STRING"
        if column.path in names and is_text and size < 4 * n:
            found.append(column.path)
    return found


def _read_arrow(data: pa.Buffer, columns: Callable[[list[str]], list[str]]) -> pa.Table:
    import pyarrow.ipc

    is_file = data.slice(0, 6).to_pybytes() == b"ARROW1"
    opened = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
    with opened(data) as reader:
        names = columns(reader.schema.names)
        return reader.read_all().select(names)


@contextmanager
def damage_told(kind: str) -> Iterator[None]:
    """Say in one line that a file is damaged."""
    try:
        yield
    except OutputError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the {kind.capitalize()} content is damaged or cut short ({error}): "
            "copy or export the file again"
        ) from error


@contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """End every failure in one line that names the file."""
    try:
        yield
    except OutputError:
        raise
    except InputError as error:
        reason, cause = str(error), error.__cause__
    except RecursionError as error:
        reason, cause = "the content is nested too deep to be labels: export it again", error
    except FileNotFoundError as error:
        reason, cause = "no such file: check the path", error
    except IsADirectoryError as error:
        reason, cause = "this is a folder: name the file in it", error
    except PermissionError as error:
        reason, cause = "the file may not be read: check its permissions", error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason, cause = f"the file cannot be read ({error}): check that it is whole", error
    else:
        return
    raise InputError(" ".join(f"{os.fspath(path)}: {reason}".split())) from cause
