"""Pages of one item or one annotator: results, what they are, and who said what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup, escape

from annotruth.analyses.advice.annotators import has_flags
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.over_time import TimeLine, draw_time_lines
from annotruth.report.content import content_type
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.render import Beside, Fact, Facts, Part, Section, SideBySide, Text
from annotruth.serve.pages.lists import category
from annotruth.serve.pages.overview import MAX_POINTS
from annotruth.serve.pages.parts import (
    Contents,
    First,
    Frame,
    Media,
    Moment,
    Quiet,
    Tasks,
    estimate,
    number,
    percent,
    render,
)
from annotruth.serve.pages.snapshot_tables import LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import Column, TableQuery, chosen_rows, paged_table
from annotruth.serve.store.tables import AnnotatorHistory, StoredEvent

MAX_LABELS = 500
"""How many labels of an item the page shows."""

MAX_OPPONENTS = 200
"""How many opponents of an item its page shows."""

_MAX_TEXT = 20_000
_CHOSEN = {LEFT: "left", RIGHT: "right"}
_OPPONENT_COLUMNS = [
    Column("item", "Compared with", sorts=False),
    Column("place", "Rank", "its rank", right=True, sorts=False),
    Column("won", "Won", "how often this item was preferred", right=True, sorts=False),
    Column("lost", "Lost", "how often the other was", right=True, sorts=False),
    Column("tied", "Tied", "how often neither was", right=True, sorts=False),
]


@dataclass(frozen=True, kw_only=True)
class ItemData:
    """What the page of an item shows."""

    item: str
    tables: LabelTables | None = None  # of the snapshot; None if there is none yet
    labels: Sequence[StoredEvent] = ()  # its current labels, as the store has them now
    past: Sequence[StoredEvent] = ()  # labels that were changed or deleted since, the latest first
    content: Mapping[str, Any] | None = None
    gold: str | None = None
    leases: Sequence[str] = ()  # who was given it and has not answered yet


def item_page(frame: Frame, data: ItemData) -> str:
    """Return the page of an item of a project of labels."""
    code = None if data.tables is None else data.tables.item_code(data.item)
    parts = [content_section(data.content)]
    if data.tables is not None and code is not None:
        row = data.tables.items.slice(code, 1).to_pylist()[0]
        chart = data.tables.charts.item(data.tables.fit.data.items[code].as_py())
        about = Beside([Text(row["why"], "lead"), Facts(_item_facts(data, row))])
        parts.append(First([SideBySide([chart, about])]))
    else:
        parts.append(First([Text("It is in no snapshot yet.")]))
    parts.append(Section("labels", "Who said what", [_labels_of_item(frame, data, code)]))
    if data.past:
        past = [
            [
                *(Moment(event.submitted), " ", frame.annotator(event.annotator, "", 60), ": "),
                f"{'deleted' if event.deleted else event.label} ",
                Quiet(f"({event.source})"),
            ]
            for event in data.past
        ]
        parts.append(Section("past", "Changed or deleted since", [Tasks(past)]))
    return render(frame, data.item, *parts, tab="items", under="Item", live=True)


def content_section(content: Mapping[str, Any] | None) -> Part:
    """Return what an item is: texts, links, and images, audio and video by URL."""
    known = {name: value for name, value in (content or {}).items() if value is not None}
    rows = [(name, _content(str(value))) for name, value in known.items()]
    return First([Contents(rows)]) if content else ""


def _content(value: str) -> Part:
    kind, url = content_type(value.strip()), value.strip()
    # A path would be one of this server's.
    can_load = url.lower().startswith(("http://", "https://", "data:"))
    if kind == "link" or (kind in ("image", "audio", "video") and can_load):
        return Media(kind, url)
    cut = value[:_MAX_TEXT] + ("…" if len(value) > _MAX_TEXT else "")
    return Text(Markup("\n").join(map(escape, cut.splitlines())), "content")


def content_sources(content: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what a page with this content may load, by directive of its security policy."""
    sources: dict[str, set[str]] = {"img-src": {"'self'", "data:"}}
    for value in (content or {}).values():
        text = str(value).strip()
        kind = content_type(text)
        if kind in ("image", "audio", "video") and text.lower().startswith(("http:", "https:")):
            directive = "img-src" if kind == "image" else "media-src"
            sources.setdefault(directive, set()).add(f"{text.split(':')[0].lower()}:")
    return {name: " ".join(sorted(values)) for name, values in sources.items()}


def _item_facts(data: ItemData, row: Mapping[str, Any]) -> list[Fact]:
    assert data.tables is not None
    rows: list[Fact] = []
    if row.get("label") is not None:
        note = f"confidence {percent(row.get('confidence'))}"
        rows.append(("Label", data.tables.names[row["label"]], note))
        if row["disputed"]:
            rows.append(("Disputed", "yes", DISPUTED_RULE))
    if row.get("expectation") is not None:
        rows.append(("Score", number(row["expectation"]), ""))
    if data.gold is not None:
        rows.append(("Known truth", data.gold, ""))
    rows.append(("Status", row["status"], f"add {row['add']:,}" if row["add"] else ""))
    rows.append(("Difficulty", number(row["entropy"]), "entropy"))
    if data.leases:
        rows.append(("Being labelled by", ", ".join(data.leases), ""))
    return rows


def _labels_of_item(frame: Frame, data: ItemData, code: int | None) -> Part:
    """Return the table of who said what, with what the snapshot says about it."""
    tables = data.tables
    has_accuracy = tables is not None and tables.fit.accuracy is not None
    name = "accuracy" if has_accuracy else "reliability"
    columns = [
        Column("annotator", "Annotator", sorts=False),
        Column("label", "Label", sorts=False),
        Column("estimate", name.capitalize(), "of the annotator", sorts=False, rank=1),
        Column("p_serious", "P serious", RANK_HEADINGS["p_serious"][1], right=True, sorts=False),
        Column("seconds", "Seconds", "from start to submission", right=True, sorts=False, rank=1),
        Column("submitted", "Submitted", "time in UTC", sorts=False, rank=1),
    ]
    said = {} if tables is None or code is None else _said(tables, code, name)
    rows = [_label_row(event, said) for event in data.labels[:MAX_LABELS]]
    query = TableQuery(path=frame.address("item", id=data.item), sort="")
    return paged_table(frame, "Who said what", columns, rows, query, len(rows))


def _said(tables: LabelTables, code: int, name: str) -> dict[str, dict[str, Any]]:
    """Return, by annotator, what the snapshot says of the label and of the annotator."""
    data, said = tables.fit.data, {}
    for at in tables.labels_of_item(code).tolist():
        row = tables.annotators.slice(int(data.annotator[at]), 1).to_pylist()[0]
        serious = None if tables.fit.p_serious is None else float(tables.fit.p_serious[at])
        given = category(tables, int(tables.consensus.category[at]))
        shown = "" if row.get(name) is None else estimate(row, name)
        said[row["annotator"]] = {"estimate": shown, "label": given, "p_serious": serious}
    return said


def _label_row(event: StoredEvent, said: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"annotator": event.annotator, **_times(event)}
    known = dict(said.get(event.annotator, {}))
    if known and known["label"].name != event.label:  # it was edited since the snapshot
        del known["p_serious"], known["label"]
    return {**row, "label": event.label, **known}


def _times(event: StoredEvent) -> dict[str, Any]:
    """Return how long an annotator took, if that is known, and when they ended."""
    took = None if event.started is None else (event.submitted - event.started).total_seconds()
    return {"seconds": took, "submitted": Moment(event.submitted)}


def ranked_item_page(
    frame: Frame, item: str, tables: RankTables | None, content: Mapping[str, Any] | None
) -> str:
    """Return the page of an item of a project of comparisons."""
    code = None if tables is None else tables.item_code(item)
    parts = [content_section(content)]
    if tables is None or code is None:
        parts.append(First([Text("It is in no snapshot yet.")]))
        return render(frame, item, *parts, tab="items", under="Item", live=True)
    row = tables.items.slice(code, 1).to_pylist()[0]
    votes = f"{row['won']:,} won, {row['lost']:,} lost, {row['tied']:,} tied"
    known: list[Fact] = [
        ("Rank", f"{row['rank']:,}", f"95% interval {row['rank_low']:,} to {row['rank_high']:,}"),
        ("Score", f"{row['score']:.2f}", f"95% interval {row['low']:.2f} to {row['high']:.2f}"),
        ("P best", percent(row["p_best"]), "probability that its score is the highest"),
        ("Votes", f"{row['n_comparisons']:,}", votes),
    ]
    parts.append(First([Facts(known)]))
    query = TableQuery(path=frame.address("item", id=item), sort="")
    rows = _opponents(tables, code)
    table = paged_table(
        frame, "Opponents", _OPPONENT_COLUMNS, rows[:MAX_OPPONENTS], query, len(rows)
    )
    parts.append(Section("opponents", "Against whom, best first", [table]))
    return render(frame, item, *parts, tab="items", under="Item", live=True)


def _opponents(tables: RankTables, code: int) -> list[dict[str, Any]]:
    """Return one row per item that this one was compared with, best first."""
    data, n = tables.fit.data, tables.fit.data.n_items
    is_left, is_right = data.left == code, data.right == code

    def count(left: int, right: int) -> Any:
        """Count opponents by the outcome when this item is on the left and on the right."""
        as_left = data.right[is_left & (data.outcome == left)]
        as_right = data.left[is_right & (data.outcome == right)]
        return np.bincount(as_left, minlength=n) + np.bincount(as_right, minlength=n)

    won, lost, tied = count(LEFT, RIGHT), count(RIGHT, LEFT), count(TIE, TIE)
    rank, ids = tables.fit.ranking.rank, tables.items["item"]
    others = np.flatnonzero(won + lost + tied)
    return [
        {
            "item": ids[k].as_py(),
            "place": int(rank[k]),
            "won": int(won[k]),
            "lost": int(lost[k]),
            "tied": int(tied[k]),
        }
        for k in others[np.argsort(rank[others], kind="stable")].tolist()
    ]


@dataclass(frozen=True, kw_only=True)
class AnnotatorData:
    """What the page of an annotator shows."""

    annotator: str
    tables: SnapshotTables | None = None  # of the snapshot; None if there is none yet
    history: Sequence[AnnotatorHistory] = ()  # what past snapshots said about them
    traits: Mapping[str, Any] | None = None
    seconds: float | None = None  # the median time of their recent labels
    events: Mapping[str, StoredEvent] | None = None  # their labels by item, for the times


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
        wait = First([Text("They are in no snapshot yet.")])
        return render(frame, data.annotator, wait, tab="annotators", live=True)
    row = data.tables.annotators.slice(code, 1).to_pylist()[0]
    rows = [_annotator_row(data, each) for each in shown[0]]
    table = paged_table(frame, "Labels", label_columns(data.tables), rows, query, shown[1])
    parts = [
        First([Text(row["reason"], "lead"), Facts(_annotator_facts(frame, data, row))]),
        Section("time", "Over time", [SideBySide(_annotator_charts(data, code))]),
        Section("labels", f"{frame.unit}s".capitalize(), [table]),
    ]
    return render(frame, data.annotator, *parts, tab="annotators", under="Annotator", live=True)


def _annotator_row(data: AnnotatorData, row: Mapping[str, Any]) -> dict[str, Any]:
    event = (data.events or {}).get(row.get("item", ""))
    shown = {**row, **({} if event is None else _times(event))}
    if isinstance(data.tables, LabelTables):
        for key in ("label", "recovered"):
            shown[key] = category(data.tables, row[f"{key}_code"])
    return shown


def _annotator_facts(frame: Frame, data: AnnotatorData, row: Mapping[str, Any]) -> list[Fact]:
    rows: list[Fact] = [
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
        note = "of their labels are the recovered ones"
        rows.append(("Matches", percent(row["matches"]), note))
    if data.seconds is not None:
        note = f"median per {frame.unit}, of the last 100"
        rows.append(("Speed", f"{data.seconds:,.1f} s", note))
    rows += [(str(name), str(value), "") for name, value in (data.traits or {}).items()]
    return rows


def _annotator_charts(data: AnnotatorData, code: int) -> list[Chart]:
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
        has_limit = data.tables is None or not has_flags(data.tables.fit)
        charts.append(_history_chart(data.annotator, line, SPAMMER_BELOW if has_limit else None))
    if isinstance(data.tables, LabelTables):
        charts.append(data.tables.charts.annotator(data.tables.fit.data.annotators[code].as_py()))
    return charts


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
