"""A matrix with names: one row per item and one column per annotator, or transposed.

The items may have no names, as when a frame of labels by annotator is written without its index.
"""

from __future__ import annotations

import re
from itertools import chain

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.formats.matrix import cells_agree, cells_overlap, is_empty, normalise, unpivot
from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.observations.frames import KNOWN_NAMES

_ITEMS = {*chain(*KNOWN_NAMES["item"]), "stimuli", "id", "index"}
_ANNOTATORS = {*chain(*KNOWN_NAMES["annotator"])}
_LABELS = {*chain(*KNOWN_NAMES["label"]), "stars"}
_IDS = {f"{name}_id" for name in _ITEMS | _ANNOTATORS}
_NUMBERED_ANNOTATOR = re.compile(
    rf"\s*({'|'.join(sorted(_ANNOTATORS))})[ _.-]?\d+\s*", re.IGNORECASE
)
_UNNAMED = "column 1"  # the name given to a first column without one


def _is_wide(source: Source) -> bool:
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
    return (cells_agree(cells) or (named and cells_overlap(cells))) and not _is_labels(
        names[1:], cells
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
                f"column {name!r} is not an annotator: pass another input format (`--input-format`)"
            )
    table = source.table(list(source.names))
    return unpivot(
        table.columns,
        pa.array(range(1, table.num_rows + 1)),
        list(source.names),
        from_text=source.from_text,
        categories=source.categories,
        notes=("columns are annotators, rows are items, numbered from 1",),
    )


def _wide_format(*, transposed: bool) -> Format:
    def read(source: Source) -> ParsedLabels:
        if len(source.names) < 3:
            raise InputError("a matrix has a column of names and at least two of labels")
        table = source.table(list(source.names))
        rows, across = ("annotators", "items") if transposed else ("items", "annotators")
        other = "wide" if transposed else "wide-transposed"
        return unpivot(
            table.columns[1:],
            table.column(0),
            list(source.names[1:]),
            transposed=transposed,
            from_text=source.from_text,
            categories=source.categories,
            notes=(f"rows are {rows}, columns {across}; if not, pass `--input-format {other}`",),
        )

    if transposed:
        return Format("wide-transposed", "matrix of annotators by items", _is_transposed, read)
    return Format("wide", "matrix of items by annotators", _is_wide, read)


FORMATS = (
    _wide_format(transposed=True),
    _wide_format(transposed=False),
    Format("wide-counted", "matrix of labels by annotator", _is_numbered, _read_numbered),
)
