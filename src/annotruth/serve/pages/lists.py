"""Pages with one large table: annotators, items, the ranking, the queue and alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from annotruth.analyses.advice.annotators import verdict_rules
from annotruth.analyses.advice.items import ITEM_STATUS
from annotruth.errors import counted
from annotruth.report.charts.chart import drawable
from annotruth.report.headings import ACCURACY_TIPS, HEADINGS, RANK_HEADINGS, READOUT_TIPS
from annotruth.serve.pages.frame import Category, Frame, Mark, PageLink, bars, list_page
from annotruth.serve.pages.tables import (
    CODE,
    ROWS_PER_PAGE,
    Column,
    LabelSnapshotTables,
    PagedTable,
    RankTables,
    SnapshotTables,
    TableQuery,
    chosen_rows,
)
from annotruth.serve.pages.visit import TO_ACT_ON, Visit, project_page, waiting_page
from annotruth.serve.store.projects import active_leases
from annotruth.serve.store.rows import count, latest
from annotruth.serve.store.tables import Alert, alert
from annotruth.serve.web.schemas import AlertKind
from annotruth.serve.web.work_queue import LabelTask

FINISHED: AlertKind = "finished"
"""What chooses the pages of finished items, which is also their kind of alerts."""

_MAX_ASKED = 12
_DEFAULT_SORT = ("accuracy", "reliability", "n_labels", "n_comparisons")  # the first that there is

_ALERT_COLUMNS = [
    Column("created", "Time", "in UTC", sorts=False),
    Column("text", "Alert", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("seen", "Seen", sorts=False),
]


def _headed(key: str, headings: Mapping[str, tuple[str, str]] = HEADINGS, **more: Any) -> Column:
    """Return a column with the heading and the tip that the report has for it."""
    title, tip = headings[key]
    return Column(key, title, **{"tip": tip, **more})


_RANKING_COLUMNS = [
    Column("item", "Item"),
    _headed("rank", RANK_HEADINGS),
    _headed("score", RANK_HEADINGS, right=True),
    _headed("p_best", RANK_HEADINGS, right=True, rank=1),
    _headed("n_comparisons", RANK_HEADINGS, right=True, rank=1),
    Column("won", "Won", RANK_HEADINGS["won"][1], right=True, rank=1),
    Column("lost", "Lost", RANK_HEADINGS["lost"][1], right=True, rank=1),
    Column("tied", "Tied", RANK_HEADINGS["tied"][1], right=True, rank=2),
    _headed("part", RANK_HEADINGS, right=True, rank=2),
]
_QUEUE_COLUMNS = [
    Column("item", "Item"),
    _headed("add", right=True),
    _headed("n_labels", right=True),
    Column("gain", "Gain", "what one more label is expected to gain", right=True, rank=1),
    Column("status", "Status", rank=1),
    Column("leases", "Being labelled by", "who was given it", sorts=False, rank=1),
    _headed("why", sorts=False, rank=2),
]
_PAIR_COLUMNS = [
    Column("left", "Left", sorts=False),
    Column("right", "Right", sorts=False),
    Column("annotator", "Ask", "who should compare them", sorts=False),
    Column("gain", "Gain", "by how much it makes the order more certain", True, False, 1),
    # A sentence on a pair is as wide as the table, unlike that on an item.
    Column("why_pair", "Why", sorts=False, rank=2),
]


@project_page("annotators")
def annotators_page(visit: Visit) -> str:
    """Return the page of annotators."""
    frame, tables = visit.frame, visit.tables
    if tables is None:
        return waiting_page(frame, "Annotators", "annotators")
    columns = _annotator_columns(tables)
    keys = {column.key for column in columns}
    default = next(name for name in _DEFAULT_SORT if name in keys)
    query = TableQuery.parse(frame.address("annotators"), visit.asked, columns, default)
    rows, total = chosen_rows(tables.annotators, query, ids="annotator", picked="verdict")
    charts: Any = tables.charts
    has_accuracy = isinstance(tables, LabelSnapshotTables) and tables.fit.accuracy is not None
    return list_page(
        frame,
        "Annotators",
        tab="annotators",
        under="It advises; it never blocks a person by itself.",
        live=True,
        table=PagedTable("Annotators", columns, rows, query, total),
        searched="annotators",
        words=verdict_rules(tables.fit),
        all_text="all verdicts",
        rules="Rules of the verdicts",
        charts=drawable([charts.accuracy if has_accuracy else charts.reliability]).values(),
    )


def _annotator_columns(tables: SnapshotTables) -> list[Column]:
    readout = "right" if isinstance(tables, RankTables) else tables.fit.readout
    wanted = [
        Column("annotator", "Annotator"),
        Column("n_labels", "Labels", right=True, rank=1),
        Column("n_comparisons", "Votes", right=True, rank=1),
        _headed("accuracy", tip=ACCURACY_TIPS[readout]),
        _headed("reliability"),
        _headed("behavior", rank=1),
        _headed("matches", right=True, rank=2),
        Column("verdict", "Verdict", "what the advice is, by the rules below the table"),
        _headed("ask", rank=2),
        _headed("reason", sorts=False, rank=2),
    ]
    return [column for column in wanted if column.key in tables.annotators.column_names]


@project_page("items")
def items_page(visit: Visit) -> str:
    """Return the page of items, or the ranking: the most difficult or the best items first."""
    frame, tables = visit.frame, visit.tables
    if tables is None:
        return waiting_page(frame, frame.items_title, "items")
    is_ranking = isinstance(tables, RankTables)
    columns = _item_columns(tables)
    default = "rank" if is_ranking else "-entropy"
    query = TableQuery.parse(frame.address("items"), visit.asked, columns, default)
    picked = "" if is_ranking else "status"
    rows, total = chosen_rows(tables.items, query, ids="item", picked=picked)
    if isinstance(tables, LabelSnapshotTables):
        for row in rows:
            row["distribution"] = _distribution(tables, row[CODE])
            row["label"] = category(tables, row["label"]) if "label" in row else None
    return list_page(
        frame,
        frame.items_title,
        tab="items",
        live=True,
        table=PagedTable(frame.items_title, columns, rows, query, total),
        searched="items",
        words={} if is_ranking else ITEM_STATUS,
        all_text="all",
        rules="Rules of the status",
        charts=[tables.charts.ranking()] if isinstance(tables, RankTables) else [],
    )


def _item_columns(tables: SnapshotTables) -> list[Column]:
    if isinstance(tables, RankTables):
        return [each for each in _RANKING_COLUMNS if each.key != "part" or tables.fit.n_parts > 1]
    wanted = [
        Column("item", "Item"),
        _headed("distribution", sorts=False, rank=1),
        _headed("label"),
        _headed("disputed", rank=1),
        _headed("expectation", right=True, rank=1),
        _headed("confidence", tip=READOUT_TIPS[tables.fit.readout], right=True),
        _headed("entropy", right=True, rank=2),
        _headed("n_labels", right=True, rank=1),
        Column("status", "Status", "whether more labels would help, by the rules below the table"),
        _headed("add", right=True, rank=1),
        _headed("why", sorts=False, rank=2),
    ]
    known = set(tables.items.column_names)
    if tables.fit.disputed is None or not tables.fit.disputed.any():
        known.discard("disputed")
    if tables.fit.distribution is not None:
        known.add("distribution")
    return [column for column in wanted if column.key in known]


def category(tables: LabelSnapshotTables, code: int) -> Category:
    """Return a category with its color."""
    return Category(tables.names[code], tables.colors[code])


def _distribution(tables: LabelSnapshotTables, code: int) -> Mark | None:
    theta = tables.fit.distribution
    if theta is None:
        return None
    entries = slice(theta.ptr[code], theta.ptr[code + 1])
    shares = [0.0] * len(tables.names)
    for k, share in zip(
        theta.category[entries].tolist(), theta.probability[entries].tolist(), strict=True
    ):
        shares[k] = share
    return bars(shares, tables.colors, tables.names)


@project_page("queue")
def queue_page(visit: Visit) -> str:
    """Return the queue: what to ask for next, whom to ask, and what is being labelled now."""
    frame, tables = visit.frame, visit.tables
    if tables is None:
        return waiting_page(frame, "Queue", "queue")
    leases = active_leases(visit.connection, visit.project.id, visit.now)
    query = TableQuery.parse(frame.address("queue"), visit.asked, _QUEUE_COLUMNS, "-gain")
    pairs_by_key: dict[str, LabelTask] = {}
    if isinstance(tables, RankTables):
        pairs = tables.advice.comparison_table()
        sides = (map(str, pairs[side].to_pylist()) for side in ("left", "right"))
        tasks = [LabelTask(*pair) for pair in zip(*sides, strict=True)]
        pairs_by_key = {task.key: task for task in tasks[::-1]}  # the first of a pair is given out
        query = query.within(pairs.num_rows)
        rows = pairs.slice(query.start, ROWS_PER_PAGE).to_pylist()
        for row in rows:
            row["why_pair"] = row["why"]
        table = PagedTable("Queue", _PAIR_COLUMNS, rows, query, pairs.num_rows)
    else:
        held: dict[str, list[str]] = {}
        for lease in leases:
            held.setdefault(lease.item, []).append(lease.annotator)
        waiting = tables.items.filter(pc.greater(tables.items["add"], 0))
        rows, total = chosen_rows(waiting, query, ids="item")
        for row in rows:
            row["leases"] = ", ".join(held.get(row["item"], []))
        table = PagedTable("Queue", _QUEUE_COLUMNS, rows, query, total)
    asked_people = tables.annotators.filter(tables.annotators["ask"])
    best = asked_people.sort_by([("information", "descending")]).slice(0, _MAX_ASKED)
    shown = [
        {
            "names": pairs_by_key.get(each.item, ()) if frame.is_ranking else (each.item,),
            "annotator": each.annotator,
            "minutes": f"{max((each.expires - visit.now).total_seconds(), 0) / 60:.0f}",
        }
        for each in leases[:ROWS_PER_PAGE]
    ]
    n_add = tables.advice.n_add
    in_round = f"{counted(n_add, frame.unit)} to ask for in this round."
    return list_page(
        frame,
        "Queue",
        tab="queue",
        live=True,
        lead=in_round if n_add else f"No more {frame.unit}s are needed now.",
        table=table,
        queue={
            "ask": best["annotator"].to_pylist(),
            "n_ask": asked_people.num_rows,
            "leases": shown,
            "n_leases": len(leases),
        },
    )


@project_page("alerts", with_tables=False)
def alerts_page(visit: Visit) -> str:
    """Return one page of the alerts of a project.

    Those of finished items, which ask for nothing and are many, have pages of their own.
    """
    frame, project = visit.frame, visit.project.id
    query = TableQuery.parse(frame.address("alerts"), visit.asked)
    is_finished = query.pick == FINISHED
    kinds, others = ((FINISHED,), TO_ACT_ON) if is_finished else (TO_ACT_ON, (FINISHED,))
    total, n_others = (
        count(visit.connection, Alert, alert.c.kind.in_(each), project=project)
        for each in (kinds, others)
    )
    query = query.within(total)
    part = {"limit": ROWS_PER_PAGE, "offset": query.start, "project": project}
    alerts = latest(visit.connection, Alert, alert.c.kind.in_(kinds), **part)
    rows = [{**each._asdict(), "text": _subject(frame, each)} for each in alerts]
    other = frame.address("alerts", **({} if is_finished else {"pick": FINISHED}))
    of = "about annotators and agreement" if is_finished else "of finished items"
    return list_page(
        frame,
        "Alerts",
        tab="alerts",
        under="When the verdict on an annotator changes, agreement falls, or items are finished.",
        live=True,
        may_mark=frame.n_alerts and frame.scope != "read",
        other=PageLink(other, f"{counted(n_others, 'alert')} {of}") if n_others else None,
        table=PagedTable("Alerts", _ALERT_COLUMNS, rows, query, total),
    )


def _subject(frame: Frame, alert: Alert) -> PageLink:
    """Return the text of an alert, a link to the page of the one annotator or item, if any."""
    address, items = "", alert.detail.get("items")
    if alert.kind == "verdict" and alert.subject:
        address = frame.address("annotator", id=alert.subject)
    elif isinstance(items, list) and len(items) == 1:
        address = frame.address("item", id=items[0])
    return PageLink(address, alert.text)
