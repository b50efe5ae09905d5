"""The queue: what to ask for next, whom to ask, and what somebody is labelling now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from annotruth.errors import counted
from annotruth.report.charts.drawing import escaped
from annotruth.report.headings import HEADINGS
from annotruth.report.html import section
from annotruth.serve.pages import cells
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.snapshot_tables import LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import ROWS_PER_PAGE, Column, TableQuery, chosen_rows, paged_table
from annotruth.serve.store.records import Lease
from annotruth.serve.web.work_queue import LabelTask

_MAX_ASKED = 12
_COLUMNS = [
    Column("item", "Item"),
    Column("add", "Add", HEADINGS["add"][1], right=True),
    Column("n_labels", "Labels", HEADINGS["n_labels"][1], right=True),
    Column("gain", "Gain", "what one more label is expected to gain", right=True, rank=1),
    Column("status", "Status", rank=1),
    Column("leases", "Being labelled by", "who was given it", sorts=False, rank=1),
    Column("why", "Why", HEADINGS["why"][1], sorts=False, rank=2),
]
_PAIR_COLUMNS = [
    Column("left", "Left", sorts=False),
    Column("right", "Right", sorts=False),
    Column("annotator", "Ask", "who should compare them", sorts=False),
    Column("gain", "Gain", "by how much it makes the order more certain", True, False, 1),
    Column("why", "Why", sorts=False, rank=2),
]


def queue_query(path: str, query: Mapping[str, str]) -> TableQuery:
    """Return which part of the queue is asked for; the highest gain first, if nothing else."""
    return TableQuery.parse(path, query, [c.key for c in _COLUMNS if c.sorts], "-gain")


def queue_page(
    frame: Frame, tables: SnapshotTables, query: TableQuery, leases: Sequence[Lease], now: datetime
) -> str:
    """Return the queue."""
    n_add = tables.advice.n_add
    lead = f"{counted(n_add, frame.unit)} to ask for in this round." if n_add else (
        f"No more {frame.unit}s are needed now."
    )  # fmt: skip
    held: dict[str, list[str]] = {}
    for lease in leases:
        held.setdefault(lease.item, []).append(lease.annotator)
    if isinstance(tables, RankTables):
        table = _pairs(frame, tables, query)
    else:
        table = _items(frame, tables, query, held)
    parts = [
        f'<section class="first"><p class="lead">{escaped(lead)}</p>{table}</section>',
        section("ask", "Whom to ask", _people(frame, tables)),
        section("now", "Being labelled now", _leases(frame, tables, leases, now)),
    ]
    return render(frame, "Queue", *parts, tab="queue", live=True)


def _items(
    frame: Frame, tables: LabelTables, query: TableQuery, held: Mapping[str, list[str]]
) -> str:
    waiting = tables.items.filter(pc.greater(tables.items["add"], 0))
    rows, total = chosen_rows(waiting, query, ids="item")
    lines = [
        [_cell(frame, column.key, row, held) for column in _COLUMNS] for row in rows.to_pylist()
    ]
    return paged_table("Queue", _COLUMNS, lines, query, total)


def _cell(frame: Frame, key: str, row: Mapping[str, Any], held: Mapping[str, list[str]]) -> str:
    match key:
        case "item":
            return cells.link(frame.address("item", id=row["item"]), row["item"], 40)
        case "add" | "n_labels":
            return f"{row[key]:,}"
        case "gain":
            return cells.number(row["gain"], 3)
        case "status":
            return cells.tag(row["status"])
        case "leases":
            return escaped(", ".join(held.get(row["item"], [])))
        case _:
            return f'<span class="wrapped">{escaped(row[key])}</span>'


def _pairs(frame: Frame, tables: RankTables, query: TableQuery) -> str:
    table = tables.advice.comparison_table()
    query = query.within(table.num_rows)
    lines = []
    for row in table.slice(query.start, ROWS_PER_PAGE).to_pylist():
        pair = [cells.link(frame.address("item", id=row[k]), row[k], 40) for k in ("left", "right")]
        who = row["annotator"]
        asked = (
            "somebody new" if who is None else cells.link(frame.address("annotator", id=who), who)
        )
        lines.append([*pair, asked, cells.number(row["gain"], 3), escaped(row["why"])])
    return paged_table("Queue", _PAIR_COLUMNS, lines, query, table.num_rows)


def _people(frame: Frame, tables: SnapshotTables) -> str:
    """Return those to ask, the most informative first."""
    asked = tables.annotators.filter(tables.annotators["ask"])
    if not asked.num_rows:
        return "<p>Nobody: find new annotators.</p>"
    best = asked.sort_by([("information", "descending")]).slice(0, _MAX_ASKED)
    names = [
        cells.link(frame.address("annotator", id=a), a, 40) for a in best["annotator"].to_pylist()
    ]
    more = f" and {asked.num_rows - len(names):,} more" if asked.num_rows > len(names) else ""
    return f"<p>{', '.join(names)}{more}, the most informative first.</p>"


def _leases(frame: Frame, tables: SnapshotTables, leases: Sequence[Lease], now: datetime) -> str:
    if not leases:
        what = "a pair" if frame.is_ranking else "an item"
        return f'<p class="quiet">Nothing: no annotator has asked for {what}.</p>'
    tasks = _advised_pairs(tables) if isinstance(tables, RankTables) else {}
    lines = [
        f"<li>{_task(frame, tasks.get(lease.item), lease.item)}: "
        f"{cells.link(frame.address('annotator', id=lease.annotator), lease.annotator)}, for "
        f"{max((lease.expires - now).total_seconds(), 0) / 60:.0f} more minutes</li>"
        for lease in leases[:ROWS_PER_PAGE]
    ]
    more = f"<li>and {len(leases) - ROWS_PER_PAGE:,} more</li>" if len(leases) > len(lines) else ""
    return f'<ul class="tasks">{"".join(lines)}{more}</ul>'


def _advised_pairs(tables: RankTables) -> dict[str, LabelTask]:
    """Return the pairs that the advice asks for, by what leases know them by."""
    table = tables.advice.comparison_table()
    sides = (map(str, table[side].to_pylist()) for side in ("left", "right"))
    tasks = [LabelTask(*pair) for pair in zip(*sides, strict=True)]
    return {task.key: task for task in reversed(tasks)}  # the first of a pair is given out


def _task(frame: Frame, pair: LabelTask | None, item: str) -> str:
    """Return what somebody is labelling; a pair that is not advised any more has no names."""
    if frame.is_ranking and pair is None:
        return "a pair"
    names = (item,) if pair is None else pair
    return " and ".join(cells.link(frame.address("item", id=each), each) for each in names)
