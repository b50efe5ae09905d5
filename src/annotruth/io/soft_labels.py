"""Soft labels for training: one row per item, one column per class."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write
from annotruth.io.writers import format_of, write_table

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
