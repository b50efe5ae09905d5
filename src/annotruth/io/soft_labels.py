"""Soft labels for training: one row an item, one column a class."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write
from annotruth.io.writers import format_of, write_table

ENDINGS = (".csv", ".parquet", ".json", ".npz")


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a name that does not say how to write soft labels."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"{os.fspath(path)}: soft labels go to a name in {', '.join(ENDINGS)}")


def write_soft_labels(table: pa.Table, classes: pa.Array, path: str | os.PathLike[str]) -> None:
    """Write the table of `Fit.soft_labels` in the way that the name's ending says.

    In .npz it is the arrays ``items``, ``classes`` and ``probabilities`` (items x classes),
    which `numpy.load` reads without pickle.
    """
    check_ending(path)
    if Path(path).suffix.lower() != ".npz":
        write_table(table, path, format_of(path))
        return
    columns = [column.to_numpy() for column in table.columns[1:]]
    with atomic_write(path) as aside:
        np.savez(
            aside,
            items=_plain(table.column(0)),
            classes=_plain(classes),
            probabilities=np.column_stack(columns),
        )


def _plain(ids: pa.Array | pa.ChunkedArray) -> NDArray[np.generic]:
    """Turn ids into an array of numbers or of text, which needs no pickle."""
    values = np.asarray(ids.to_pylist())
    return values.astype(str) if values.dtype == object else values
