"""Tables to files, complete or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError, OutputError
from annotruth.io.atomic import atomic_write, atomic_write_folder
from annotruth.observations.encode import decode_table, mark_formulas

TableFormat = Literal["csv", "parquet", "json"]


@dataclass(frozen=True)
class LazyTable:
    """A table whose rows are made on request, sliced as Arrow tables are."""

    num_rows: int
    """The number of rows to request. Where a row requested yields several, or none, the tables
    returned are longer or shorter than requested."""
    make_rows: Callable[[slice], pa.Table]
    fits_in_memory: bool = False
    """Whether all rows may be made at once."""

    def slice(self, start: int, length: int) -> pa.Table:
        """Return ``length`` rows from ``start`` on, or as many as there are."""
        return self.make_rows(slice(start, min(start + length, self.num_rows)))

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self.slice(0, self.num_rows)


def format_of(path: str | os.PathLike[str]) -> TableFormat:
    """Return the format of a file name's suffix."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    known: tuple[TableFormat, ...] = get_args(TableFormat)
    for format in known:
        if suffix == format:
            return format
    raise InputError(
        f"{os.fspath(path)}: the name must end in {', '.join(f'.{format}' for format in known)}"
    )


_ROWS_AT_ONCE = 1 << 16
_CELLS_AT_ONCE = 1 << 21


def write_table(
    table: pa.Table | LazyTable,
    path: str | os.PathLike[str],
    format: TableFormat = "csv",
    *,
    safe_cells: bool = False,
) -> None:
    """Write one table; the file appears when it is complete.

    In CSV, text is quoted, a missing value or NaN is an empty cell, and numbers keep all digits.
    With ``safe_cells``, a CSV has ' before text that a spreadsheet would run as a formula.
    """
    table = _with_safe_cells(table) if safe_cells and format == "csv" else table
    _check_format(format)
    with atomic_write(path) as temporary:
        _write(table, temporary, format, destination=path)


def write_tables(
    tables: Mapping[str, pa.Table | LazyTable],
    folder: str | os.PathLike[str],
    *,
    format: TableFormat = "csv",
    extra: Mapping[str, str] | None = None,
    safe_cells: bool = False,
) -> None:
    """Write ``<name>.csv``, ``.parquet`` or ``.json`` for each table, and texts such as fit.json.

    A `LazyTable` is made only now. ``extra`` are texts by file name, with the suffix. With
    ``safe_cells``, a CSV has ' before text that a spreadsheet would run as a formula.
    """
    if safe_cells and format == "csv":
        tables = {name: _with_safe_cells(table) for name, table in tables.items()}
    _check_format(format)
    with atomic_write_folder(folder) as temporary:
        for name, table in tables.items():
            file = f"{name}.{format}"
            _write(table, temporary / file, format, destination=Path(folder) / file)
        for file, text in (extra or {}).items():
            (temporary / file).write_text(text, encoding="utf-8", newline="\n")


def _with_safe_cells(table: pa.Table | LazyTable) -> pa.Table | LazyTable:
    if isinstance(table, pa.Table):
        return mark_formulas(table)
    return replace(table, make_rows=lambda rows: mark_formulas(table.make_rows(rows)))


def _check_format(format: str) -> None:
    if format not in get_args(TableFormat):
        raise InputError(f"unknown format {format!r}: choose csv, parquet or json")


def _write(
    table: pa.Table | LazyTable,
    path: Path,
    format: TableFormat,
    destination: str | os.PathLike[str],
) -> None:
    if isinstance(table, LazyTable) and table.fits_in_memory:
        table = table.to_table()
    try:
        if format == "json":
            parts = _partitions(table, _ROWS_AT_ONCE)
            batches = (part.to_batches(max_chunksize=_OBJECTS_AT_ONCE) for part in parts)
            rows = (row for batch in chain.from_iterable(batches) for row in batch.to_pylist())
            write_records(rows, path)
        else:
            _write_rows(table, path, format)
    except pa.ArrowException as error:
        # Disk failures are OSErrors; this is, for example, a list, which CSV cannot hold.
        raise OutputError(
            f"cannot write {os.fspath(destination)}: {error}; choose another format"
        ) from error


def _partitions(table: pa.Table | LazyTable, rows: int) -> Iterator[pa.Table]:
    """Return the rows in partitions, at least one, with dictionaries replaced by their values."""
    for start in range(0, max(1, table.num_rows), rows):
        yield decode_table(table.slice(start, rows))


def _write_rows(table: pa.Table | LazyTable, path: Path, format: TableFormat) -> None:
    """Write CSV or Parquet in partitions."""
    import pyarrow.csv
    import pyarrow.parquet

    is_csv = format == "csv"
    width = max(1, table.slice(0, 0).num_columns)
    parts = _partitions(table, _ROWS_AT_ONCE if is_csv else max(1, _CELLS_AT_ONCE // width))
    first = next(parts)
    with (
        pyarrow.csv.CSVWriter(path, first.schema)
        if is_csv
        else pyarrow.parquet.ParquetWriter(path, first.schema, compression="zstd")
    ) as file:
        for part in chain([first], parts):
            file.write_table(_without_nan(part) if is_csv else part)


def _without_nan(table: pa.Table) -> pa.Table:
    """Replace NaN by null, an empty cell: spreadsheets take nan for text."""
    for place, column in enumerate(table.columns):
        if pa.types.is_floating(column.type):
            is_nan = pc.is_nan(column)
            if pc.any(is_nan).as_py():
                column = pc.if_else(is_nan, pa.scalar(None, column.type), column)
                table = table.set_column(place, table.field(place), column)
    return table


_OBJECTS_AT_ONCE = 1 << 14  # rows turned into Python objects
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)


def write_records(
    records: Iterable[Mapping[str, Any]], path: Path, *, as_lines: bool = False
) -> None:
    """Write objects as a JSON list, one per line; with ``as_lines``, as JSON lines.

    Numbers that are not finite are written as null.
    """
    start, between, end = ("", "\n", "\n") if as_lines else ("[\n", ",\n", "\n]\n")
    separator = start
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(separator + _encode(record))
            separator = between
        if separator == between:
            file.write(end)
        elif not as_lines:
            file.write("[]\n")


def _encode(record: Mapping[str, Any]) -> str:
    try:
        return _ENCODER.encode(record)
    except ValueError:  # a number that is not finite; to look for it in every record takes longer
        return _ENCODER.encode(_finite(record))


def _finite(value: Any) -> Any:
    """Return a value of a record with null in the place of numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


SUFFIXES = (".csv", ".parquet", ".json", ".npz")


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse a file name without a suffix that soft labels can be written in."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{os.fspath(path)}: soft labels are written to a name that ends in {', '.join(SUFFIXES)}"
        )


def write_soft_labels(
    table: pa.Table,
    classes: pa.Array,
    path: str | os.PathLike[str],
    *,
    safe_cells: bool = False,
) -> None:
    """Write the table of `Fit.soft_labels` in the format of the suffix.

    With ``safe_cells``, a CSV has ' before text that a spreadsheet would run as a formula.

    A .npz file holds the arrays ``items``, ``classes`` and ``probabilities`` (items x classes),
    which `numpy.load` reads without pickle.
    """
    check_suffix(path)
    if Path(path).suffix.lower() != ".npz":
        write_table(table, path, format_of(path), safe_cells=safe_cells)
        return
    columns = [column.to_numpy() for column in table.columns[1:]]
    with atomic_write(path) as temporary:
        np.savez(
            temporary,
            items=_to_numpy(table.column(0)),
            classes=_to_numpy(classes),
            probabilities=np.column_stack(columns),
        )


def _to_numpy(ids: pa.Array | pa.ChunkedArray) -> NDArray[np.generic]:
    """Return ids as an array of numbers or of text, which needs no pickle."""
    values = np.asarray(ids.to_pylist())
    if values.dtype.kind == "U" and values.tolist() != ids.to_pylist():
        raise InputError("NumPy drops the NUL at the end of an id: write .csv, .parquet or .json")
    return values.astype(str) if values.dtype == object else values
