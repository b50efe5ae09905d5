"""Tables of a snapshot for pages and API: sorted, filtered, a part at a time, one row by id."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed, shown
from annotruth.serve.web.snapshot_cache import LoadedSnapshot

TableName = Literal["items", "annotators"]
Order = Literal["asc", "desc"]

_ID = {"items": "item", "annotators": "annotator"}


class TablePart(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    rows
        The rows.
    n_rows
        How many there are in all.
    next_start
        Where the next part starts; None at the end.

    Examples
    --------
    >>> TablePart([{"item": "a"}], n_rows=3, next_start=1).next_start
    1
    """

    rows: list[dict[str, Any]]
    n_rows: int
    next_start: int | None


def result_table(loaded: LoadedSnapshot, name: TableName) -> pa.Table:
    """Return the items or the annotators of a snapshot, with the advice on each."""
    return loaded.keep(name, lambda: _make_table(loaded, name))


def _make_table(loaded: LoadedSnapshot, name: TableName) -> pa.Table:
    fit, advice = loaded.fit, loaded.advice
    table: pa.Table = getattr(fit, "item_table" if name == "items" else "annotator_table")()
    if name == "annotators":
        more = advice.annotator_table()
    elif hasattr(advice, "item_table"):
        more = advice.item_table()
    else:  # of comparisons, pairs are advised on
        return table
    for column in more.column_names:
        if column not in table.column_names:
            table = table.append_column(column, more[column])
    return table


def table_part(
    loaded: LoadedSnapshot,
    name: TableName,
    *,
    sort: str | None = None,
    order: Order = "asc",
    status: str | None = None,
    start: int = 0,
    limit: int = 100,
) -> TablePart:
    """Return some rows of a table, sorted by a column, those with a status or verdict alone."""
    table = result_table(loaded, name)
    rows = _sorted_rows(loaded, name, sort, order)
    if status is not None:
        column = "status" if name == "items" else "verdict"
        if column not in table.column_names:
            raise InputError(f"these {name} have no {column}: leave it out")
        has_status = pc.fill_null(pc.equal(table[column], status), False).to_numpy()
        rows = rows[has_status[rows]]
    chosen = table.take(pa.array(rows[start : start + limit]))
    end = start + limit
    return TablePart(to_rows(chosen), len(rows), end if end < len(rows) else None)


def _sorted_rows(
    loaded: LoadedSnapshot, name: TableName, sort: str | None, order: Order
) -> np.ndarray[Any, np.dtype[np.int64]]:
    table = result_table(loaded, name)
    if sort is None:
        return np.arange(len(table))
    if sort not in table.column_names:
        raise InputError(f"sort by {shown(sort)}: choose one of {listed(table.column_names, 40)}")
    keys = [(sort, "descending" if order == "desc" else "ascending")]
    return loaded.keep(
        f"{name} by {sort} {order}",
        lambda: pc.sort_indices(table, keys).to_numpy().astype(np.int64),
    )


def row_of(loaded: LoadedSnapshot, name: TableName, id_: str) -> dict[str, Any] | None:
    """Return the row of an item or an annotator; None if the snapshot has none."""
    table = result_table(loaded, name)
    row = row_numbers(loaded, name).get(id_)
    return None if row is None else to_rows(table.slice(row, 1))[0]


def rows_of(loaded: LoadedSnapshot, name: TableName, ids: list[str]) -> list[dict[str, Any]]:
    """Return the rows of those ids that the snapshot has."""
    numbers = row_numbers(loaded, name)
    rows = [numbers[each] for each in ids if each in numbers]
    return to_rows(result_table(loaded, name).take(pa.array(rows, pa.int64())))


def row_numbers(loaded: LoadedSnapshot, name: TableName) -> dict[str, int]:
    """Return the number of the row of each item or annotator."""

    def make() -> dict[str, int]:
        ids = result_table(loaded, name)[_ID[name]].to_pylist()
        return {str(each): row for row, each in enumerate(ids)}

    return loaded.keep(f"row numbers of {name}", make)


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON has them: no NaN, ids as text."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
            elif name in ("item", "annotator") and value is not None:
                row[name] = str(value)
    return rows
