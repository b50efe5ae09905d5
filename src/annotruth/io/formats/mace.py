"""MACE's matrix, also that of ITU-T P.913: no names, rows are items, columns are annotators."""

from __future__ import annotations

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.formats.matrix import cells_agree, cells_overlap, is_empty, normalise, unpivot
from annotruth.io.formats.source import Format, ParsedLabels, Source

# Different values in a column of the first 100 rows: more than any scale but a slider has, and what
# even those who use few positions of a slider exceed.
_MANY, _FEW = 25, 10


def _recognise(source: Source) -> bool:
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


def _read(source: Source) -> ParsedLabels:
    if source.kind != "text":
        raise InputError(
            "MACE's matrix is CSV, and this file is not: pass another input format (`--input-format`)"
        )
    n_rows = len(_first_block(source.rows))
    if n_rows < len(source.rows):
        raise InputError(
            f"after {n_rows} rows of a matrix comes an empty one and then others, as for repeated "
            "votes: save each part as a file, and name all of them (`annotruth fit part-1.csv "
            "part-2.csv --duplicates keep`)"
        )
    table = source.unnamed_table
    return unpivot(
        table.columns,
        pa.array(range(1, table.num_rows + 1)),
        range(1, table.num_columns + 1),
        from_text=True,
        categories=source.categories,
        notes=("no names, rows are items and columns annotators, both numbered from 1",),
    )


FORMATS = (Format("mace", "matrix of labels without names", _recognise, _read),)
