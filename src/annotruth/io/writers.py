"""Tables to files, whole or not at all."""

from __future__ import annotations

import base64
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, OutputError
from annotruth.io.atomic import atomic_write, atomic_write_folder
from annotruth.io.lazy_table import LazyTable
from annotruth.kernels.arrays import slices
from annotruth.labels.encode import decode_table

TableFormat = Literal["csv", "parquet", "json"]


def format_of(path: str | os.PathLike[str]) -> TableFormat:
    """Take the format from the ending of a name."""
    ending = Path(path).suffix.lower().removeprefix(".")
    known: tuple[TableFormat, ...] = get_args(TableFormat)
    for format in known:
        if ending == format:
            return format
    raise InputError(
        f"{os.fspath(path)}: the name must end in {', '.join(f'.{format}' for format in known)}"
    )


_ROWS_AT_ONCE = 1 << 16
_ROWS_PER_GROUP = 1 << 24
_CELLS_PER_PIECE = 1 << 21
_DICTIONARY_SIZE = 1 << 28


def write_table(
    table: pa.Table | LazyTable, path: str | os.PathLike[str], format: TableFormat = "csv"
) -> None:
    """Write one table; the file appears when it is complete.

    In CSV, text is quoted, a missing value or NaN is an empty cell, and numbers keep every digit.
    """
    _check_format(format)
    with atomic_write(path) as aside:
        _write(table, aside, format, shown=path)


def write_tables(
    tables: Mapping[str, pa.Table | LazyTable],
    folder: str | os.PathLike[str],
    *,
    format: TableFormat = "csv",
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write ``<name>.csv``, ``.parquet`` or ``.json`` for each table, and texts such as fit.json.

    Parameters
    ----------
    tables
        The tables by name, without an extension; `LazyTable` are made only now.
    folder
        Where they go; made when it is not there.
    format
        "csv", "parquet" or "json" (a list of records).
    extra
        Texts by file name, with the extension.
    """
    _check_format(format)
    with atomic_write_folder(folder) as aside:

        def write(name: str) -> None:
            file = f"{name}.{format}"
            _write(tables[name], aside / file, format, shown=Path(folder) / file)

        # Arrow writes Parquet on one thread. Where only pieces have room, it is for those of one.
        room = all(isinstance(table, pa.Table) or table.at_once for table in tables.values())
        with ThreadPoolExecutor(pa.cpu_count() if format == "parquet" and room else 1) as pool:
            list(pool.map(write, tables))
        for file, text in (extra or {}).items():
            (aside / file).write_text(text, encoding="utf-8", newline="\n")


def _check_format(format: str) -> None:
    if format not in get_args(TableFormat):
        raise InputError(f"unknown format {format!r}: choose csv, parquet or json")


def _write(
    table: pa.Table | LazyTable, aside: Path, format: TableFormat, shown: str | os.PathLike[str]
) -> None:
    if isinstance(table, LazyTable) and table.at_once:
        table = table.whole()
    try:
        if format == "csv":
            _write_csv(table, aside)
        elif format == "json":
            from annotruth.io.json_tables import write_json

            write_json(_pieces(table, _ROWS_AT_ONCE), aside)
        elif isinstance(table, LazyTable):
            _write_parquet_pieces(table, aside)
        else:
            _write_parquet(table, aside)
    except pa.ArrowException as error:
        # Failures of the disk are plain OSErrors; this is, say, a list, which CSV cannot hold.
        text = f"cannot write {os.fspath(shown)}: {error}; choose another format"
        raise OutputError(" ".join(text.split())) from error


def _pieces(table: pa.Table | LazyTable, rows: int) -> Iterator[pa.Table]:
    """Hand out the rows in pieces, with the values of every dictionary."""
    for at in slices(table.num_rows, rows):
        yield decode_table(table.slice(at.start, rows))


def _write_csv(table: pa.Table | LazyTable, path: Path) -> None:
    """Write the rows in parts, some of which are spelled out while others are written."""
    import pyarrow.csv

    def spelled(start: int) -> pa.Buffer:
        text = pa.BufferOutputStream()
        pyarrow.csv.write_csv(
            _with_gaps(decode_table(table.slice(start, _ROWS_AT_ONCE))),
            text,
            pyarrow.csv.WriteOptions(include_header=start == 0, batch_size=_ROWS_AT_ONCE),
        )
        return text.getvalue()

    ahead: deque[Future[pa.Buffer]] = deque()
    with path.open("wb") as file, ThreadPoolExecutor(pa.cpu_count()) as pool:
        for start in range(0, max(1, table.num_rows), _ROWS_AT_ONCE):
            ahead.append(pool.submit(spelled, start))
            if len(ahead) > 2 * pa.cpu_count():
                file.write(ahead.popleft().result())
        for text in ahead:
            file.write(text.result())


def _with_gaps(table: pa.Table) -> pa.Table:
    """Leave cells empty where a number is none: a spreadsheet takes nan for a word."""
    for place, column in enumerate(table.columns):
        if pa.types.is_floating(column.type):
            none = pc.is_nan(column)
            if pc.any(none).as_py():
                gaps = pc.if_else(none, pa.scalar(None, column.type), column)
                table = table.set_column(place, table.field(place), gaps)
    return table


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet

    coded = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    if not coded:
        pyarrow.parquet.write_table(table, path, compression="zstd")
        return
    # Dictionaries go in as they are, one for many rows; whoever reads the file sees plain values.
    plain = decode_table(table.slice(0, 0)).schema
    with pyarrow.parquet.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        use_dictionary=coded,
        dictionary_pagesize_limit=_DICTIONARY_SIZE,
        # Of a dictionary they take longer than all the rest, and labels come in any order.
        write_statistics=False,
        store_schema=False,
    ) as file:
        file.write_table(table, row_group_size=_ROWS_PER_GROUP)
        file.add_key_value_metadata({"ARROW:schema": base64.b64encode(plain.serialize()).decode()})


def _write_parquet_pieces(table: LazyTable, path: Path) -> None:
    import pyarrow.parquet

    width = table.slice(0, 0).num_columns
    with ExitStack() as stack:
        file = None
        for piece in _pieces(table, max(1, _CELLS_PER_PIECE // width)):
            if file is None:
                file = stack.enter_context(
                    pyarrow.parquet.ParquetWriter(path, piece.schema, compression="zstd")
                )
            file.write_table(piece)
