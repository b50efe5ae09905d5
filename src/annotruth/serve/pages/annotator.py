"""The page of one annotator: reliability over time, confusion matrix, and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.advice.flags import has_flags
from annotruth.comparisons.table import LEFT, RIGHT
from annotruth.labels.frames import as_arrow
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.over_time import TimeLine, draw_time_lines
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.html import facts, figure, section, side_by_side
from annotruth.serve.pages import cells
from annotruth.serve.pages.item import seconds_of
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.pages.overview import MAX_POINTS
from annotruth.serve.pages.snapshot_tables import LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import Column, TableQuery, chosen_rows, paged_table
from annotruth.serve.store.records import AnnotatorHistory, StoredEvent

_CHOSEN = {LEFT: "left", RIGHT: "right"}


@dataclass(frozen=True, kw_only=True)
class AnnotatorData:
    """What the page of an annotator shows.

    Attributes
    ----------
    annotator
        Their id.
    tables
        The tables of the snapshot; None if there is none yet.
    history
        What past snapshots said about them.
    traits
        What is known about them.
    seconds
        The median time that they took for one of their recent labels.
    events
        Their current labels by item, of the items on the page, for the times.

    Examples
    --------
    >>> AnnotatorData(annotator="ann").history
    ()
    """

    annotator: str
    tables: SnapshotTables | None = None
    history: Sequence[AnnotatorHistory] = ()
    traits: Mapping[str, Any] | None = None
    seconds: float | None = None
    events: Mapping[str, StoredEvent] | None = None


def label_columns(tables: SnapshotTables) -> list[Column]:
    """Return the columns of the table of an annotator's labels."""
    serious = Column("p_serious", "P serious", RANK_HEADINGS["p_serious"][1], right=True)
    times = [
        Column("seconds", "Seconds", "from start to submission", True, False, 1),
        Column("submitted", "Submitted", "time in UTC", sorts=False, rank=1),
    ]
    if isinstance(tables, RankTables):
        names = [Column("left", "Left"), Column("right", "Right"), Column("chosen", "Chosen")]
        return [*names, *([serious] if tables.fit.p_serious is not None else [])]
    names = [
        Column("item", "Item"),
        Column("label", "Label given"),
        Column("recovered", "Recovered", "the recovered label of the item"),
    ]
    return [*names, *([serious] if tables.fit.p_serious is not None else []), *times]


def label_query(path: str, query: Mapping[str, str], tables: SnapshotTables) -> TableQuery:
    """Return which labels are asked for; the most doubtful first, if nothing else."""
    keys = [column.key for column in label_columns(tables) if column.sorts]
    return TableQuery.parse(path, query, keys, "p_serious" if "p_serious" in keys else keys[0])


def shown_labels(
    tables: SnapshotTables, code: int, query: TableQuery
) -> tuple[list[dict[str, Any]], int]:
    """Return the labels of an annotator on a page of the table, and how many there are in all."""
    table = _comparisons(tables, code) if isinstance(tables, RankTables) else _labels(tables, code)
    rows, total = chosen_rows(table, query, ids=table.column_names[0])
    return rows.to_pylist(), total


def _labels(tables: LabelTables, code: int) -> pa.Table:
    """Return the labels of an annotator in the snapshot."""
    data, consensus = tables.fit.data, tables.consensus
    at = np.flatnonzero(data.annotator == code)
    item = consensus.item[at]
    names = pa.array(tables.names)
    columns = {
        "item": tables.items["item"].take(as_arrow(item)),
        "label": names.take(as_arrow(consensus.category[at])),
        "recovered": names.take(as_arrow(consensus.recovered[item])),
        "label_code": as_arrow(consensus.category[at]),
        "recovered_code": as_arrow(consensus.recovered[item]),
    }
    if tables.fit.p_serious is not None:
        columns["p_serious"] = as_arrow(tables.fit.p_serious[at])
    return pa.table(columns)


def _comparisons(tables: RankTables, code: int) -> pa.Table:
    """Return the comparisons of an annotator in the snapshot."""
    data, ids = tables.fit.data, tables.items["item"]
    at = np.arange(data.annotator_ptr[code], data.annotator_ptr[code + 1])
    columns = {
        "left": ids.take(as_arrow(data.left[at])),
        "right": ids.take(as_arrow(data.right[at])),
        "chosen": pa.array([_CHOSEN.get(code, "tie") for code in data.outcome[at].tolist()]),
    }
    if tables.fit.p_serious is not None:
        columns["p_serious"] = as_arrow(tables.fit.p_serious[at])
    return pa.table(columns)


def annotator_page(
    frame: Frame,
    data: AnnotatorData,
    query: TableQuery | None = None,
    shown: tuple[Sequence[Mapping[str, Any]], int] = ((), 0),
) -> str:
    """Return the page of an annotator; without a query, there is no snapshot of them yet."""
    code = None if data.tables is None else data.tables.annotator_code(data.annotator)
    if data.tables is None or code is None or query is None:
        wait = '<section class="first"><p>They are in no snapshot yet.</p></section>'
        return render(frame, data.annotator, wait, tab="annotators", live=True)
    row = data.tables.annotators.slice(code, 1).to_pylist()[0]
    columns, (rows, total) = label_columns(data.tables), shown
    lines = [[_cell(frame, data, column.key, each) for column in columns] for each in rows]
    lead = f'<p class="lead">{escaped(row["reason"])}</p>'
    parts = [
        f'<section class="first">{lead}{facts(_facts(frame, data, row))}</section>',
        section("time", "Over time", side_by_side(*map(figure, _charts(data, code)))),
        section(
            "labels",
            f"{frame.unit}s".capitalize(),
            paged_table("Labels", columns, lines, query, total),
        ),
    ]
    return render(frame, data.annotator, *parts, tab="annotators", under="Annotator", live=True)


def _facts(
    frame: Frame, data: AnnotatorData, row: Mapping[str, Any]
) -> list[tuple[str, object, str]]:
    rows: list[tuple[str, object, str]] = [
        ("Verdict", row["verdict"], "ask them" if row["ask"] else "do not ask them"),
    ]
    for name, prefix in (("accuracy", "accuracy_"), ("reliability", "")):
        if row.get(name) is None:
            continue
        low, high = row.get(f"{prefix}low"), row.get(f"{prefix}high")
        known = low is not None and high is not None
        note = f"95% interval {low:.2f} to {high:.2f}" if known else ""
        rows.append((name.capitalize(), f"{row[name]:.2f}", note))
    if row.get("behavior"):
        rows.append(("Behavior", row["behavior"], ""))
    rows.append((f"{frame.unit}s".capitalize(), f"{row['n_labels']:,}", ""))
    if row.get("matches") is not None:
        rows.append(
            ("Matches", cells.percent(row["matches"]), "of their labels are the recovered ones")
        )
    if data.seconds is not None:
        rows.append(
            ("Speed", f"{data.seconds:,.1f} s", f"median per {frame.unit}, of the last 100")
        )
    rows += [(str(name), str(value), "") for name, value in (data.traits or {}).items()]
    return rows


def _charts(data: AnnotatorData, code: int) -> list[Chart]:
    charts = []
    step = max(-(-len(data.history) // MAX_POINTS), 1)
    past = [each for each in data.history[::-1][::step] if each.reliability is not None][::-1]
    if past:
        line = TimeLine(
            [each.created for each in past],
            *(
                np.array([np.nan if v is None else v for v in values], dtype=float)
                for values in zip(*((e.reliability, e.low, e.high) for e in past), strict=True)
            ),
        )
        charts.append(_history_chart(data.annotator, line, _limit(data.tables)))
    if isinstance(data.tables, LabelTables):
        charts.append(data.tables.charts.annotator(data.tables.fit.data.annotators[code].as_py()))
    return charts


def _limit(tables: SnapshotTables | None) -> float | None:
    """Return the reliability below which people are spammers; None for a model that flags them."""
    return None if tables is not None and has_flags(tables.fit) else SPAMMER_BELOW


def _history_chart(annotator: str, line: TimeLine, limit: float | None) -> Chart:
    dashed = "" if limit is None else f"; dashed: {limit}"
    return Chart(
        name="reliability-over-time",
        title="Reliability over time",
        caption=f"Lines are 95% intervals{dashed}. Points are where it changed.",
        data={
            "time": [time.isoformat() for time in line.time],
            "reliability": line.value.tolist(),
            "low": line.low.tolist(),
            "high": line.high.tolist(),
        },
        draw=lambda width: draw_time_lines({annotator: line}, width, limit=limit),
    )


def _cell(frame: Frame, data: AnnotatorData, key: str, row: Mapping[str, Any]) -> str:
    if key in ("item", "left", "right"):
        return cells.link(frame.address("item", id=row[key]), row[key], 40)
    if key in ("label", "recovered") and isinstance(data.tables, LabelTables):
        return cells.category(row[f"{key}_code"], data.tables.colors, data.tables.names)
    if key == "p_serious":
        return cells.number(row[key])
    event = (data.events or {}).get(row.get("item", ""))
    if key == "seconds" and event is not None:
        return seconds_of(event)
    if key == "submitted" and event is not None:
        return cells.moment(event.submitted)
    return cells.plain(row.get(key))
