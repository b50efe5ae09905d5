"""Matrices of labels, items by annotators: recognising them, and making them long tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.formats.source import ParsedLabels
from annotruth.io.formats.votes import counted
from annotruth.observations.frames import as_numpy, make_column
from annotruth.observations.validate import (
    NOT_AVAILABLE,
    describe_unavailable,
    missing,
    not_available,
)

_COUNT = re.compile(r"\d+")
_EMPTY = {"", "nan", *NOT_AVAILABLE}


def cells_agree(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the columns hold labels of one scale, as far as these rows show.

    Columns of different things (a name, an age, a note) share few values; those of a matrix of
    labels share most: nine in ten columns must share more than half of their distinct values
    with another.
    """
    width = max(map(len, rows), default=0)
    columns = [{normalise(row[n]) for row in rows if n < len(row)} - _EMPTY for n in range(width)]
    columns = [column for column in columns if column]
    among = Counter(value for column in columns for value in column)
    alike = sum(2 * sum(among[value] > 1 for value in column) > len(column) for column in columns)
    return len(columns) > 1 and 10 * alike >= 9 * len(columns)


def cells_overlap(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether all columns hold numbers of one range, such as positions of a slider."""
    try:
        columns = [
            [float(cell) for cell in column if not is_empty(cell)]
            for column in zip(*rows, strict=True)
        ]
    except ValueError:
        return False
    columns = [column for column in columns if column]
    if len(columns) < 2:
        return False
    low, high = np.quantile([value for column in columns for value in column], [0.25, 0.75])
    return all(min(column) <= high and max(column) >= low for column in columns)


def normalise(cell: str) -> str:
    """Return a cell so that equal labels are equal text: 4.0 as 4, NaN as nan."""
    text = cell.strip().lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def is_empty(cell: str) -> bool:
    """Return whether a cell holds no label."""
    return cell.strip().lower() in _EMPTY


def unpivot(
    cells: Sequence[pa.ChunkedArray],
    down: pa.Array | pa.ChunkedArray,
    across: Sequence[str | int],
    *,
    transposed: bool = False,
    from_text: bool,
    categories: Sequence[Any] | None = None,
    notes: Sequence[str] = (),
) -> ParsedLabels:
    """Turn a matrix into a long table, row by row, leaving out empty cells.

    ``down`` names the rows and ``across`` the columns; rows are items unless ``transposed``. Unless
    the caller's ``categories`` have it, -1 among numbers from 0 means that there is no label.
    """
    n_rows, width = len(down), len(cells)
    column = _stack(cells)
    # Row by row: cell (r, c) is at position c * n_rows + r of the stacked columns.
    position = (np.arange(n_rows)[:, None] + np.arange(width) * n_rows).ravel()
    label = column.take(pa.array(position))
    empty, unavailable = missing(label), np.zeros(len(label), dtype=bool)
    if from_text:
        unavailable = not_available(label, categories)
    present = np.flatnonzero(~(empty | unavailable))
    abstained = _find_abstentions(label.take(pa.array(present)), categories)
    present = present[~abstained]
    if len(present):
        position, label = position[present], label.take(pa.array(present))
    row = pa.array(position % n_rows if n_rows else position)
    col = pa.array(position // n_rows if n_rows else position)
    names = make_column("name", list(across)).take(col)
    item, annotator = (names, down.take(row)) if transposed else (down.take(row), names)
    return ParsedLabels(
        pa.table({"item": item, "annotator": annotator, "label": label}),
        from_text=from_text,
        notes=(
            f"{n_rows:,} rows by {width:,} columns",
            *notes,
            counted(int(empty.sum()), "empty cell", "empty cells"),
            describe_unavailable(int(unavailable.sum())),
            counted(
                int(abstained.sum()),
                "cell of -1, which means no label",
                "cells of -1, which mean no label",
            ),
        ),
    )


def _find_abstentions(
    label: pa.ChunkedArray, categories: Sequence[Any] | None
) -> NDArray[np.bool_]:
    """Return which labels are abstentions, written as -1 (Snorkel)."""
    texts = label.cast(pa.string())
    values = {value: normalise(value) for value in pc.unique(texts).to_pylist()}
    written = [value for value, normal in values.items() if normal == "-1"]
    others = set(values.values()) - {"-1"}
    none = np.zeros(len(label), dtype=bool)
    if not written or not others or not all(_COUNT.fullmatch(value) for value in others):
        return none
    if categories is not None and "-1" in {normalise(str(each)) for each in categories}:
        return none
    if categories is None and others <= {"0", "1"}:
        named, classes = ",".join(sorted(others)), ", ".join(sorted(others))
        raise InputError(
            f"-1 beside {' and '.join(sorted(others))} may be a class or mean that there is no "
            f"label: pass categories=[-1, {classes}] (`--categories=-1,{named}`) for a class, or "
            f"[{classes}] (`--categories {named}`)"
        )
    abstained: NDArray[np.bool_] = as_numpy(pc.is_in(texts, pa.array(written)))
    return abstained


def _stack(cells: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    kinds = {column.type for column in cells if not pa.types.is_null(column.type)}
    kind = kinds.pop() if len(kinds) == 1 else pa.float64() if _are_numbers(kinds) else pa.string()
    return pa.chunked_array(
        [chunk for column in cells for chunk in column.cast(kind).chunks], type=kind
    )


def _are_numbers(kinds: set[pa.DataType]) -> bool:
    return all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
