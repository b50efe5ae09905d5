"""Matrices of labels, items by annotators, with and without names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import InputError, listed, option
from annotruth.io.formats.source import Format, Source
from annotruth.io.formats.votes import counted
from annotruth.observations.columns.names import NAMES_OF
from annotruth.observations.frames import as_numpy, make_column
from annotruth.observations.options import ParsedLabels
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
    kinds = {column.type for column in cells if not pa.types.is_null(column.type)}
    numeric = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    kind = kinds.pop() if len(kinds) == 1 else pa.float64() if numeric else pa.string()
    column = pa.chunked_array([part for each in cells for part in each.cast(kind).chunks], kind)
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
        unused={"NA or the like": int(unavailable.sum()), "-1": int(abstained.sum())},
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
        classes = [int(each) for each in sorted(others)]
        raise InputError(
            f"-1 beside {' and '.join(sorted(others))} may be a class or mean that there is no "
            f"label: pass {option('categories', [-1, *classes])} for a class, or "
            f"{option('categories', classes)}"
        )
    abstained: NDArray[np.bool_] = as_numpy(pc.is_in(texts, pa.array(written)))
    return abstained


# With names: one row per item and one column per annotator, or transposed. Items may have no names.

_ITEMS, _ANNOTATORS = NAMES_OF["item"] | {"stimuli", "id", "index"}, NAMES_OF["annotator"]
_LABELS = NAMES_OF["label"] | {"stars"}
_IDS = set(map("{}_id".format, _ITEMS | _ANNOTATORS))
_NUMBERED_ANNOTATOR = re.compile(
    rf"\s*({'|'.join(sorted(_ANNOTATORS))})[ _.-]?\d+\s*", re.IGNORECASE
)
_STIMULUS = re.compile(r".*\d|.*\.[a-z]+\d?")  # ends in a number, or is the name of a file
_WIDEST = 10  # steps of a scale whose numbers are not those of a slider
_MIN_SUMS = 6  # rows: fewer have equal sums by chance
# Columns beside those of annotators, without separators.
_SUMMARIES = {
    *("gold", "goldlabel", "truth", "groundtruth", "truelabel", "majority", "majorityvote"),
    *("majoritylabel", "consensus", "mean", "average", "avg", "median", "std", "stdev"),
    *("mos", "total", "sum"),
}
_UNNAMED = "column 1"  # the name given to a first column without one


def _spelling(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def _is_wide(source: Source) -> bool:
    """Return whether a table is a matrix of labels; refuse one of counts or probabilities."""
    if not _has_cells(source):
        return False
    _refuse_shares(source.names[1:], [row[1:] for row in source.rows[1:]])
    return True


def _has_cells(source: Source) -> bool:
    """Return whether the first column names the rows, the first row the columns, and cells agree.

    A long table with unknown column names is not a matrix: its items occur in several rows.
    """
    names = [name.strip().lower() for name in source.names]
    if len(names) < 3 or set(names[1:]) & (_ITEMS | _ANNOTATORS | _LABELS | _IDS):
        return False
    rows = source.rows[1:]
    if not rows or any(len(row) != len(names) for row in rows):
        return False
    if len({row[0] for row in rows}) != len(rows) or len(set(names)) != len(names):
        return False
    cells = [row[1:] for row in rows]
    named = names[0] in _ITEMS | _ANNOTATORS | _IDS | {_UNNAMED}
    agree = cells_agree(cells) or (named and cells_overlap(cells))
    agree = agree or (names[0] in _ANNOTATORS and _are_scores(names[1:], cells))
    return agree and not _is_labels(names[1:], cells)


def _are_scores(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether columns of stimuli, which are numbered or files, have scores of one scale."""
    cells = [cell.strip() for row in rows for cell in row if not is_empty(cell)]
    if (
        not cells
        or not all(map(_STIMULUS.fullmatch, names))
        or not all(map(_COUNT.fullmatch, cells))
    ):
        return False
    scores = {int(cell) for cell in cells}
    return len(scores) > 1 and max(scores) - min(scores) <= _WIDEST


def _refuse_shares(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Refuse rows of numbers that all have the same sum: counts or probabilities of classes."""
    try:
        sums = [sum(float(cell) for cell in row) for row in rows]
    except ValueError:
        return
    several = len({tuple(row) for row in rows}) > 2
    if (
        len(rows) >= _MIN_SUMS
        and several
        and sums[0]
        and max(sums) - min(sums) < 1e-6 * abs(sums[0])
    ):
        raise InputError(
            f"every row has the sum {sums[0]:g}, so columns {listed(names)} may be counts or "
            "probabilities of classes, which do not say who gave a label: give one row per label, "
            f"or pass {option('input_format', 'wide')} if the columns are annotators"
        )


def _is_labels(names: list[str], cells: list[list[str]]) -> bool:
    """Return whether the first row holds labels, not names; 1, 2, 3, ... are names."""
    if any(names == [str(n) for n in range(start, start + len(names))] for start in (0, 1)):
        return False
    values = {normalise(cell) for row in cells for cell in row if not is_empty(cell)}
    return all(is_empty(name) or normalise(name) in values for name in names)


def _is_transposed(source: Source) -> bool:
    first = source.names[0].strip().lower() if source.names else ""
    return first.removesuffix("_id") in _ANNOTATORS and _is_wide(source)


def _is_numbered(source: Source) -> bool:
    """Return whether all columns are named as annotators, rater_1 or observer 2, and none as items.

    Without such names, three columns of small numbers may be anything: the caller must say so.
    """
    return len(source.names) > 1 and all(map(_NUMBERED_ANNOTATOR.fullmatch, source.names))


def _read_numbered(source: Source) -> ParsedLabels:
    if len(source.names) < 2:
        raise InputError("a matrix of labels by annotator has at least two columns")
    for name in source.names:
        if name.strip().lower() in _ITEMS | _ANNOTATORS | _LABELS | _IDS:
            raise InputError(
                f"column {name!r} is not an annotator: pass another {option('input_format')}"
            )
    table = source.table(list(source.names))
    return unpivot(
        table.columns,
        pa.array(range(1, table.num_rows + 1)),
        list(source.names),
        from_text=source.from_text,
        categories=source.read.categories,
        notes=("columns are annotators, rows are items, numbered from 1",),
    )


def summary_columns(names: Sequence[Any]) -> list[Any]:
    """Return the columns beside those of annotators that hold truths, means and the like, by name."""
    found = [name for name in names if _spelling(str(name)) in _SUMMARIES]
    return found if len(names) - len(found) > 1 else []


def _read_named(source: Source, *, transposed: bool) -> ParsedLabels:
    if len(source.names) < 3:
        raise InputError("a matrix has a column of names and at least two of labels")
    names = list(source.names)
    is_asked = transposed or source.read.input_format is not None
    summaries = [] if is_asked else summary_columns(names[1:])
    names = [name for name in names if name not in summaries]
    table = source.table(names)
    rows, across = ("annotators", "items") if transposed else ("items", "annotators")
    other = "wide" if transposed else "wide-transposed"
    left_out = f"not {', '.join(summaries)}, by name; else pass {option('input_format', 'wide')}"
    return unpivot(
        table.columns[1:],
        table.column(0),
        names[1:],
        transposed=transposed,
        from_text=source.from_text,
        categories=source.read.categories,
        notes=(
            f"rows are {rows}, columns {across}; if not, pass {option('input_format', other)}",
            left_out if summaries else "",
        ),
    )


# Without names, as MACE reads them and ITU-T P.913 shows them: rows are items, columns annotators.

# Different values in a column of the first 100 rows: more than any scale but a slider has, and what
# even those who use few positions of a slider exceed.
_MANY, _FEW = 25, 10


def _is_unnamed(source: Source) -> bool:
    """Return whether all cells agree, and the first row holds labels, not names.

    A name is not empty, not the same as another, and not a label.
    """
    rows = _first_block(source.rows)
    if len(rows) < 2 or len({len(row) for row in rows}) != 1:
        return False
    first, *rest = rows
    labels = {normalise(cell) for row in rest for cell in row}
    named = [normalise(cell) for cell in first if not is_empty(cell)]
    unnamed = (
        any(is_empty(cell) for cell in first[1:])
        or len(set(named)) < len(named)
        or set(named) <= labels
    )
    if not unnamed or _has_ids(rows):
        return False
    return cells_agree(rows) or (cells_overlap(rows) and _spans_agree(rows))


def _first_block(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows before one of empty cells that is shorter: repetitions are in further blocks."""
    width = len(rows[0]) if rows else 0
    ends = (n for n, row in enumerate(rows) if len(row) < width and all(map(is_empty, row)))
    return rows[: next(ends, len(rows))]


def _has_ids(rows: list[list[str]]) -> bool:
    """Return whether some columns hold many different values and others few: ids beside labels."""
    counts = [
        len({normalise(cell) for cell in column if not is_empty(cell)})
        for column in zip(*rows, strict=True)
    ]
    return max(counts) > _MANY and min(counts) <= _FEW


def _spans_agree(rows: list[list[str]]) -> bool:
    """Return whether nine in ten columns of numbers span a quarter of the whole range or more."""
    columns = [
        [float(cell) for cell in column if not is_empty(cell)] for column in zip(*rows, strict=True)
    ]
    columns = [column for column in columns if column]
    whole = max(map(max, columns)) - min(map(min, columns))
    n_wide = sum(4 * (max(column) - min(column)) >= whole for column in columns)
    return 10 * n_wide >= 9 * len(columns)


def _read_unnamed(source: Source) -> ParsedLabels:
    if source.kind != "text":
        raise InputError(
            f"MACE's matrix is CSV, and this file is not: pass another {option('input_format')}"
        )
    n_rows = len(_first_block(source.rows))
    if n_rows < len(source.rows):
        raise InputError(
            f"after {n_rows} rows of a matrix comes an empty one and then others, as for repeated "
            "votes: save each part as a file, name all of them, and pass "
            f"{option('duplicates', 'keep')}"
        )
    table = source.unnamed_table
    return unpivot(
        table.columns,
        pa.array(range(1, table.num_rows + 1)),
        range(1, table.num_columns + 1),
        from_text=True,
        categories=source.read.categories,
        notes=("no names, rows are items and columns annotators, both numbered from 1",),
    )


FORMATS = (
    Format(
        "wide-transposed",
        "matrix of annotators by items",
        _is_transposed,
        partial(_read_named, transposed=True),
    ),
    Format(
        "wide", "matrix of items by annotators", _is_wide, partial(_read_named, transposed=False)
    ),
    Format("wide-counted", "matrix of labels by annotator", _is_numbered, _read_numbered),
    Format("mace", "matrix of labels without names", _is_unnamed, _read_unnamed),
)
