"""Pages with one large table: annotators, items, the ranking, and the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow.compute as pc

from annotruth.analyses.advice.annotators import verdict_rules
from annotruth.analyses.advice.items import ITEM_STATUS
from annotruth.errors import AnnotruthError, counted
from annotruth.report.charts.chart import Chart
from annotruth.report.headings import ACCURACY_TIPS, HEADINGS, RANK_HEADINGS, READOUT_TIPS
from annotruth.report.render import Part, Section, Text
from annotruth.serve.pages.parts import (
    Category,
    First,
    Frame,
    Joined,
    Rules,
    Tag,
    Tasks,
    bars,
    render,
    trend,
)
from annotruth.serve.pages.snapshot_tables import CODE, LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import (
    ROWS_PER_PAGE,
    Column,
    PagedTable,
    SearchForm,
    TableQuery,
    chosen_rows,
    paged_table,
)
from annotruth.serve.store.tables import Lease
from annotruth.serve.web.work_queue import LabelTask

DEFAULT_SORT = ("accuracy", "reliability", "n_labels")
"""By what annotators are sorted if nothing else is asked for: the first that the model estimates."""

_MAX_ASKED = 12
_RANKING_COLUMNS = [
    Column("item", "Item"),
    Column("rank", "Rank", RANK_HEADINGS["rank"][1]),
    Column("score", "Score", RANK_HEADINGS["score"][1], right=True),
    Column("p_best", "P best", RANK_HEADINGS["p_best"][1], right=True, rank=1),
    Column("n_comparisons", "Votes", RANK_HEADINGS["n_comparisons"][1], right=True, rank=1),
    Column("won", "Won", RANK_HEADINGS["won"][1], right=True, rank=1),
    Column("lost", "Lost", RANK_HEADINGS["lost"][1], right=True, rank=1),
    Column("tied", "Tied", RANK_HEADINGS["tied"][1], right=True, rank=2),
    Column("part", "Part", RANK_HEADINGS["part"][1], right=True, rank=2),
]
_QUEUE_COLUMNS = [
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
    Column("reason", "Why", sorts=False, rank=2),
]


class Activity(NamedTuple):
    """What the store knows about an annotator, beside the snapshot."""

    seconds: float | None = None  # median time of their recent labels; None if it is not known
    reliability: Sequence[float | None] = ()  # in the past, oldest first


def annotator_columns(tables: SnapshotTables) -> list[Column]:
    """Return the columns of the table of annotators: what the model estimates."""
    readout = tables.fit.readout if isinstance(tables, LabelTables) else "right"
    wanted = [
        Column("annotator", "Annotator"),
        Column(
            "n_labels", "Votes" if isinstance(tables, RankTables) else "Labels", right=True, rank=1
        ),
        Column("accuracy", "Accuracy", ACCURACY_TIPS[readout]),
        Column("reliability", "Reliability", HEADINGS["reliability"][1]),
        Column("over_time", "Over time", "reliability in past snapshots", sorts=False, rank=1),
        Column("behavior", "Behavior", HEADINGS["behavior"][1], rank=1),
        Column("matches", "Matches", HEADINGS["matches"][1], right=True, rank=2),
        Column("seconds", "Seconds", "median seconds per label, of the last 100", True, False, 2),
        Column("verdict", "Verdict", "what the advice is, by the rules below the table"),
        Column("ask", "Ask", HEADINGS["ask"][1], rank=2),
        Column("reason", "Reason", HEADINGS["reason"][1], sorts=False, rank=2),
    ]
    known = {*tables.annotators.column_names, "seconds"}
    if "reliability" in known:
        known.add("over_time")
    return [column for column in wanted if column.key in known]


def annotator_query(path: str, query: Mapping[str, str], tables: SnapshotTables) -> TableQuery:
    """Return which annotators are asked for; the least accurate first, if nothing else."""
    keys = [column.key for column in annotator_columns(tables) if column.sorts]
    default = next(name for name in DEFAULT_SORT if name in keys)
    return TableQuery.parse(path, query, keys, default)


def shown_annotators(tables: SnapshotTables, query: TableQuery) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of annotators on a page of the table, and how many there are in all."""
    rows, total = chosen_rows(tables.annotators, query, ids="annotator", picked="verdict")
    return rows.to_pylist(), total


def annotators_page(
    frame: Frame,
    tables: SnapshotTables,
    query: TableQuery,
    shown: tuple[Sequence[Mapping[str, Any]], int],
    activity: Mapping[str, Activity],
) -> str:
    """Return the page of annotators."""
    rows = [_with_activity(row, activity.get(row["annotator"], Activity())) for row in shown[0]]
    rules = verdict_rules(tables.fit)
    columns = annotator_columns(tables)
    first = [
        SearchForm(query, "annotators", rules, "all verdicts"),
        paged_table(frame, "Annotators", columns, rows, query, shown[1]),
        Rules("Rules of the verdicts", {Tag(word): text for word, text in rules.items()}),
    ]
    charts = [First([chart], style="") for chart in _annotator_charts(tables)]
    under = "It advises; it never blocks a person by itself."
    return render(
        frame, "Annotators", First(first), *charts, tab="annotators", under=under, live=True
    )


def _with_activity(row: Mapping[str, Any], activity: Activity) -> dict[str, Any]:
    past = trend([*activity.reliability, row["reliability"]]) if "reliability" in row else ""
    return {**row, "seconds": activity.seconds, "over_time": past}


def _annotator_charts(tables: SnapshotTables) -> list[Chart]:
    try:
        if isinstance(tables, LabelTables) and tables.fit.accuracy is not None:
            return [tables.charts.accuracy()]
        return [tables.charts.reliability()]
    except AnnotruthError:  # the model gives no reliability
        return []


def item_columns(tables: LabelTables) -> list[Column]:
    """Return the columns of the table of items: what the model estimates."""
    wanted = [
        Column("item", "Item"),
        Column("distribution", "Distribution", HEADINGS["distribution"][1], sorts=False, rank=1),
        Column("label", "Label", HEADINGS["label"][1]),
        Column("disputed", *HEADINGS["disputed"], rank=1),
        Column("expectation", "Score", HEADINGS["expectation"][1], right=True, rank=1),
        Column("confidence", "Confidence", READOUT_TIPS[tables.fit.readout], right=True),
        Column("entropy", "Difficulty", HEADINGS["entropy"][1], right=True, rank=2),
        Column("n_labels", "Labels", HEADINGS["n_labels"][1], right=True, rank=1),
        Column("status", "Status", "whether more labels would help, by the rules below the table"),
        Column("add", "Add", HEADINGS["add"][1], right=True, rank=1),
        Column("why", "Why", HEADINGS["why"][1], sorts=False, rank=2),
    ]
    known = set(tables.items.column_names)
    if tables.fit.disputed is None or not tables.fit.disputed.any():
        known.discard("disputed")
    if tables.fit.distribution is not None:
        known.add("distribution")
    return [column for column in wanted if column.key in known]


def item_query(path: str, query: Mapping[str, str], tables: LabelTables) -> TableQuery:
    """Return which items are asked for; the most difficult first, if nothing else."""
    keys = [column.key for column in item_columns(tables) if column.sorts]
    return TableQuery.parse(path, query, keys, "-entropy")


def items_page(frame: Frame, tables: LabelTables, query: TableQuery) -> str:
    """Return the page of items."""
    found, total = chosen_rows(tables.items, query, ids="item", picked="status")
    rows = [
        {
            **row,
            "distribution": _distribution(tables, row[CODE]),
            "label": category(tables, row["label"]) if "label" in row else None,
        }
        for row in found.to_pylist()
    ]
    first = [
        SearchForm(query, "items", ITEM_STATUS),
        paged_table(frame, "Items", item_columns(tables), rows, query, total),
        Rules("Rules of the status", {Tag(word): text for word, text in ITEM_STATUS.items()}),
    ]
    return render(frame, "Items", First(first), tab="items", live=True)


def category(tables: LabelTables, code: int) -> Category:
    """Return a category with its color."""
    return Category(tables.names[code], tables.colors[code])


def _distribution(tables: LabelTables, code: int) -> Part:
    """Return the recovered distribution of an item as small bars."""
    theta = tables.fit.distribution
    if theta is None:
        return ""
    entries = slice(theta.ptr[code], theta.ptr[code + 1])
    shares = [0.0] * len(tables.names)
    for k, share in zip(
        theta.category[entries].tolist(), theta.probability[entries].tolist(), strict=True
    ):
        shares[k] = share
    return bars(shares, tables.colors, tables.names)


def ranking_query(path: str, query: Mapping[str, str]) -> TableQuery:
    """Return which items are asked for; the best first, if nothing else."""
    return TableQuery.parse(path, query, [column.key for column in _RANKING_COLUMNS], "rank")


def ranking_page(frame: Frame, tables: RankTables, query: TableQuery) -> str:
    """Return the ranking of the items."""
    rows, total = chosen_rows(tables.items, query, ids="item")
    columns = [c for c in _RANKING_COLUMNS if c.key != "part" or tables.fit.n_parts > 1]
    table = paged_table(frame, "Ranking", columns, rows.to_pylist(), query, total)
    chart = First([tables.charts.ranking()], style="")
    first = First([SearchForm(query, "items"), table])
    return render(frame, "Ranking", first, chart, tab="items", live=True)


def queue_query(path: str, query: Mapping[str, str]) -> TableQuery:
    """Return which part of the queue is asked for; the highest gain first, if nothing else."""
    return TableQuery.parse(path, query, [c.key for c in _QUEUE_COLUMNS if c.sorts], "-gain")


def queue_page(
    frame: Frame, tables: SnapshotTables, query: TableQuery, leases: Sequence[Lease], now: datetime
) -> str:
    """Return the queue: what to ask for next, whom to ask, and what is being labelled now."""
    n_add = tables.advice.n_add
    lead = (
        f"{counted(n_add, frame.unit)} to ask for in this round."
        if n_add
        else f"No more {frame.unit}s are needed now."
    )
    if isinstance(tables, RankTables):
        table = _pairs(frame, tables, query)
    else:
        table = _waiting_items(frame, tables, query, leases)
    parts = [
        First([Text(lead, "lead"), table]),
        Section("ask", "Whom to ask", [Text(_people(frame, tables))]),
        Section("now", "Being labelled now", [_leases(frame, tables, leases, now)]),
    ]
    return render(frame, "Queue", *parts, tab="queue", live=True)


def _waiting_items(
    frame: Frame, tables: LabelTables, query: TableQuery, leases: Sequence[Lease]
) -> PagedTable:
    held: dict[str, list[str]] = {}
    for lease in leases:
        held.setdefault(lease.item, []).append(lease.annotator)
    waiting = tables.items.filter(pc.greater(tables.items["add"], 0))
    found, total = chosen_rows(waiting, query, ids="item")
    rows = [{**row, "leases": ", ".join(held.get(row["item"], []))} for row in found.to_pylist()]
    return paged_table(frame, "Queue", _QUEUE_COLUMNS, rows, query, total)


def _pairs(frame: Frame, tables: RankTables, query: TableQuery) -> PagedTable:
    table = tables.advice.comparison_table()
    query = query.within(table.num_rows)
    found = table.slice(query.start, ROWS_PER_PAGE).to_pylist()
    # The sentence on a pair is as wide as the table, that on an item is not.
    rows = [
        {
            **row,
            "annotator": ["somebody new"] if row["annotator"] is None else row["annotator"],
            "reason": [row["why"]],
        }
        for row in found
    ]
    return paged_table(frame, "Queue", _PAIR_COLUMNS, rows, query, table.num_rows)


def _people(frame: Frame, tables: SnapshotTables) -> Part:
    """Return those to ask, the most informative first."""
    asked = tables.annotators.filter(tables.annotators["ask"])
    if not asked.num_rows:
        return "Nobody: find new annotators."
    best = asked.sort_by([("information", "descending")]).slice(0, _MAX_ASKED)
    names = [frame.annotator(each) for each in best["annotator"].to_pylist()]
    more = f" and {asked.num_rows - len(names):,} more" if asked.num_rows > len(names) else ""
    return [Joined(names, ", "), f"{more}, the most informative first."]


def _leases(frame: Frame, tables: SnapshotTables, leases: Sequence[Lease], now: datetime) -> Part:
    if not leases:
        what = "a pair" if frame.is_ranking else "an item"
        return Text(f"Nothing: no annotator has asked for {what}.", "quiet")
    tasks = _advised_pairs(tables) if isinstance(tables, RankTables) else {}
    lines: list[Part] = [
        [
            _task(frame, tasks.get(lease.item), lease.item),
            ": ",
            frame.annotator(lease.annotator, "", 60),
            f", for {max((lease.expires - now).total_seconds(), 0) / 60:.0f} more minutes",
        ]
        for lease in leases[:ROWS_PER_PAGE]
    ]
    if len(leases) > len(lines):
        lines.append(f"and {len(leases) - ROWS_PER_PAGE:,} more")
    return Tasks(lines)


def _advised_pairs(tables: RankTables) -> dict[str, LabelTask]:
    """Return the pairs that the advice asks for, by what leases know them by."""
    table = tables.advice.comparison_table()
    sides = (map(str, table[side].to_pylist()) for side in ("left", "right"))
    tasks = [LabelTask(*pair) for pair in zip(*sides, strict=True)]
    return {task.key: task for task in reversed(tasks)}  # the first of a pair is given out


def _task(frame: Frame, pair: LabelTask | None, item: str) -> Part:
    """Return what somebody is labelling; a pair that is not advised any more has no names."""
    if frame.is_ranking and pair is None:
        return "a pair"
    names = (item,) if pair is None else pair
    return Joined([frame.item(each) for each in names], " and ")
