"""Tables to files, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa

from annotruth.aside import folder_written_aside, written_aside
from annotruth.errors import InputError, OutputError

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


def write_table(table: pa.Table, path: str | os.PathLike[str], format: TableFormat = "csv") -> None:
    """Write one table; the file appears when it is complete.

    In CSV, text is quoted, a missing value is an empty cell, and numbers keep every digit.
    """
    _check_format(format)
    with written_aside(path) as aside:
        _write(table, aside, format, shown=path)


def write_tables(
    tables: Mapping[str, pa.Table],
    folder: str | os.PathLike[str],
    *,
    format: TableFormat = "csv",
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write ``<name>.csv``, ``.parquet`` or ``.json`` for each table, and texts such as fit.json.

    Parameters
    ----------
    tables
        The tables by name, without an extension.
    folder
        Where they go; made when it is not there.
    format
        "csv", "parquet" or "json" (a list of records).
    extra
        Texts by file name, with the extension.
    """
    _check_format(format)
    with folder_written_aside(folder) as aside:
        for name, table in tables.items():
            file = f"{name}.{format}"
            _write(table, aside / file, format, shown=Path(folder) / file)
        for file, text in (extra or {}).items():
            (aside / file).write_text(text, encoding="utf-8", newline="\n")


def _check_format(format: str) -> None:
    if format not in get_args(TableFormat):
        raise InputError(f"unknown format {format!r}: choose csv, parquet or json")


def _write(
    table: pa.Table, aside: Path, format: TableFormat, shown: str | os.PathLike[str]
) -> None:
    try:
        if format == "csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(table, aside)
        elif format == "json":
            from annotruth.io.json_tables import write_json

            write_json(table, aside)
        else:
            import pyarrow.parquet

            pyarrow.parquet.write_table(table, aside, compression="zstd")
    except pa.ArrowException as error:
        # Failures of the disk are plain OSErrors; this is, say, a list, which CSV cannot hold.
        text = f"cannot write {os.fspath(shown)}: {error}; choose another format"
        raise OutputError(" ".join(text.split())) from error
