"""MACE's matrix, also that of ITU-T P.913: no names, rows are items, columns are annotators."""

from __future__ import annotations

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.batches import find_separator, read_delimited
from annotruth.io.formats.matrix import cells_agree, cells_overlap, is_empty, normalise, unpivot
from annotruth.io.formats.source import Format, ParsedLabels, Source


def _recognise(source: Source) -> bool:
    """Return whether all cells agree, and the first row holds labels, not names.

    A name is not empty, not the same as another, and not a label.
    """
    rows = source.rows
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
    return unnamed and (cells_agree(rows) or cells_overlap(rows))


def _read(source: Source) -> ParsedLabels:
    if source.kind != "text":
        raise InputError(
            "MACE's matrix is CSV, and this file is not: pass another input format (`--input-format`)"
        )
    separator = find_separator(source.content.data)
    width = len(source.rows[0])
    header = separator.join(str(n) for n in range(1, width + 1)) + "\n"
    named = pa.py_buffer(header.encode() + source.content.data.to_pybytes())
    (table,) = read_delimited(named, lambda names: names, in_batches=False)
    return unpivot(
        table.columns,
        pa.array(range(1, table.num_rows + 1)),
        range(1, width + 1),
        from_text=True,
        notes=("no names, rows are items and columns annotators, both numbered from 1",),
    )


FORMATS = (Format("mace", "matrix of labels without names", _recognise, _read),)
