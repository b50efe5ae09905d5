"""Annotators to leave out: a list of their ids, or a file or frame of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.errors import (
    AnnotruthWarning,
    InputError,
    check_path,
    counted,
    listed,
    option,
    shown,
)
from annotruth.io.content import check_utf8, read_content
from annotruth.io.parse import read_table
from annotruth.io.sources import file_errors_reported, file_named_in_errors
from annotruth.observations.columns.names import find_columns
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import as_arrow, make_column, to_arrow
from annotruth.observations.options import ReadOptions
from annotruth.observations.pairs.table import Comparisons
from annotruth.observations.scale import to_plain
from annotruth.observations.table import Labels
from annotruth.observations.validate import check_types

WORKBOOK, DECISION_SHEET = ".xlsx", "Decisions"
DECISION, DECISIONS = "your decision", ("pay", "do not pay", "ask")
"""The sheet and the column of a workbook in which people decide, and what they decide on annotators."""

LEFT_OUT = "of annotators left out"
"""Why rows of annotators who are left out are not used."""

_LISTS = ("", ".txt", ".lst")  # suffixes of files that hold one id per line

Table = TypeVar("Table", Labels, Comparisons)


def leave_out(
    data: Table, read: ReadOptions, *, strict: bool = True, also: Sequence[str] = ()
) -> Table:
    """Return labels or comparisons without those of some annotators; items without any go, too.

    The option ``drop`` has ids of annotators; or is a frame, or the path of a file, with a column
    ``annotator``. With a column ``verdict``, as in what ``--keep`` writes, those with the verdict
    "drop"; with a column ``your decision``, as in the workbook of `Fit.write`, those not to pay. A text
    file, such as .txt, has one id per line. Unless ``strict``, it is only a warning that none of the
    ids has a label. ``also``: ids of further annotators, who need not be in the data.
    """
    if not (read.drops_annotators or also):
        return data
    if data.on_disk:
        raise InputError(
            f"annotators can be left out in memory only: leave out {option('memory')} or "
            f"{option('drop')}"
        )
    dropped = dropped_annotators(data.annotators, read, strict=strict, what=data.noun, also=also)
    if not dropped.any():
        return data
    kept = data.without_annotators(dropped)
    names = to_text(data.annotators.filter(as_arrow(dropped))).to_pylist()
    who = f"{counted(len(names), 'annotator')} left out: {listed(names)}"
    n_lost = data.n_labels - kept.n_labels
    unused = Counter(data.unused) + Counter({LEFT_OUT: n_lost})
    return replace(kept, left_out=f"{who}; {counted(n_lost, data.noun)}", unused=unused)


def dropped_annotators(
    annotators: pa.Array,
    read: ReadOptions,
    *,
    strict: bool = True,
    what: str = "label",
    also: Sequence[str] = (),
) -> NDArray[np.bool_]:
    """Return which annotators to leave out; ``what`` is the noun for what annotators gave."""
    ids = _ids(read.drop, read.max_size)
    code = match_ids(ids, annotators)
    unknown = np.flatnonzero(code < 0)
    if len(unknown):
        first = shown(ids[int(unknown[0])].as_py())
        if strict and len(unknown) == len(ids):
            raise InputError(
                f"no annotator to leave out has a {what} ({counted(len(ids), 'id')}, first: {first}): "
                f"check {option('drop')}, which takes ids or an existing file"
            )
        warnings.warn(
            f"{len(unknown):,} of {counted(len(ids), 'annotator')} to leave out "
            f"{'has' if len(unknown) == 1 else 'have'} no {what}s (first: {first})",
            AnnotruthWarning,
            stacklevel=3,
        )
    dropped = np.zeros(len(annotators), dtype=np.bool_)
    for found in (code, match_ids(pa.array(also, pa.string()), annotators)):
        dropped[found[found >= 0]] = True
    if dropped.all():
        raise InputError(f"all annotators are left out by {option('drop')}: keep some")
    return dropped


def leave_out_again(
    table: Table, read: ReadOptions, also: Sequence[str], *, n_repeated: int
) -> Table:
    """Return labels or comparisons that a fit was updated with as `leave_out` does.

    Where ``n_repeated`` of them were in the fit already, those who were left out before are among them,
    too, and are counted once.
    """
    if n_repeated:
        others = {reason: n for reason, n in table.unused.items() if reason != LEFT_OUT}
        table = replace(table, unused=others)
    return leave_out(table, read, strict=False, also=also)


def dropped_ids(read: ReadOptions) -> list[str]:
    """Return the ids of the annotators to leave out as text."""
    found: list[str] = to_text(_ids(read.drop, read.max_size)).to_pylist()
    return found


def _ids(drop: Any, max_size: str | int | None) -> pa.Array:
    """Return the distinct ids of the annotators to leave out."""
    if isinstance(drop, str | Path):
        ids = _read_ids(Path(drop), max_size)
    elif isinstance(drop, np.ndarray):
        ids = make_column("annotator", list(np.atleast_1d(drop)))
    elif isinstance(drop, list | tuple | set | frozenset):
        ids = make_column("annotator", list(drop))
    else:
        ids = _ids_of_table(to_arrow(drop)[0])
    ids = to_plain(ids)
    if pa.types.is_nested(ids.type):
        raise InputError(f"drop is {shown(drop)}: give the ids of annotators, or a file of them")
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return ids.drop_null().unique()


def _read_ids(path: Path, max_size: str | int | None) -> pa.Array:
    """Return the ids in a file: a table, or one per line."""
    check_path(path, "drop")
    if path.suffix.lower() in _LISTS:
        with file_errors_reported(path):
            data = read_content(path, max_size=max_size).data
            check_utf8(data)
            lines = data.to_pybytes().decode().splitlines()
        return pa.array([line.strip() for line in lines if line.strip()], pa.string())
    # The sheets of a workbook may be in any order.
    is_book = path.suffix.lower() == WORKBOOK
    try:
        table = read_table(path, max_size=max_size, sheet=DECISION_SHEET if is_book else None)
    except InputError:
        table = read_table(path, max_size=max_size)
    with file_named_in_errors(path):
        return _ids_of_table(table)


def _not_to_pay(table: pa.Table, decision: str) -> pa.Table:
    """Return the rows of a workbook in which somebody decided not to pay."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(to_text(to_plain(table[decision]))))
    unknown = pc.index_in(words, value_set=pa.array(["", *DECISIONS])).is_null()
    wrong = words.filter(pc.and_(words.is_valid(), unknown))
    if len(wrong):
        raise InputError(
            f"the column {decision!r} has {shown(wrong[0].as_py())}: choose {', '.join(DECISIONS)}, or "
            "leave it empty"
        )
    return table.filter(pc.equal(words, DECISIONS[1]))


def _ids_of_table(table: pa.Table) -> pa.ChunkedArray:
    column = find_columns(table.column_names, ("annotator",))["annotator"]
    check_types({"annotator": table[column]}, {"annotator": column})
    decision = next((name for name in table.column_names if name.lower() == DECISION), None)
    if decision is not None:
        table = _not_to_pay(table, decision)
    elif "verdict" in table.column_names:
        table = table.filter(pc.equal(to_text(to_plain(table["verdict"])), "drop"))
    return table[column]
