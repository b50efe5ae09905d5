"""Pages of one item or one annotator: results, what they are, and who said what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup, escape

from annotruth.analyses.advice.annotators import has_flags
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.notes import DISPUTED_RULE
from annotruth.observations.encode import to_text
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE
from annotruth.report.charts.chart import NORMAL_WIDTH, Chart
from annotruth.report.charts.panels import TimeLine, time_chart
from annotruth.report.content import content_type
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.render import Fact, Facts
from annotruth.serve.pages.frame import Frame, estimate, number, percent, render
from annotruth.serve.pages.lists import category
from annotruth.serve.pages.overview import MAX_POINTS
from annotruth.serve.pages.tables import (
    CODE,
    Column,
    LabelSnapshotTables,
    PagedTable,
    RankTables,
    SnapshotTables,
    TableQuery,
    chosen_rows,
)
from annotruth.serve.store.tables import AnnotatorHistory, StoredEvent

MAX_LABELS = 500
"""How many labels of an item the page shows."""

MAX_OPPONENTS = 200
"""How many opponents of an item its page shows."""

_MAX_TEXT = 20_000
_CHOSEN = {LEFT: "left", RIGHT: "right"}
_SERIOUS = Column("p_serious", "P serious", RANK_HEADINGS["p_serious"][1], right=True)
_SECONDS = Column("seconds", "Seconds", "from start to submission", True, False, 1)
_SUBMITTED = Column("submitted", "Submitted", "time in UTC", sorts=False, rank=1)
_OPPONENT_COLUMNS = [
    Column("item", "Compared with", sorts=False),
    Column("place", "Rank", "its rank", right=True, sorts=False),
    Column("won", "Won", "how often this item was preferred", right=True, sorts=False),
    Column("lost", "Lost", "how often the other was", right=True, sorts=False),
    Column("tied", "Tied", "how often neither was", right=True, sorts=False),
]


def _page(frame: Frame, title: str, tab: str, **values: Any) -> str:
    return render(frame, "details.html", title, tab=tab, live=True, **values)


def item_page(
    frame: Frame,
    item: str,
    tables: LabelSnapshotTables | None = None,
    *,
    labels: Sequence[StoredEvent] = (),
    past: Sequence[StoredEvent] = (),
    content: Mapping[str, Any] | None = None,
    gold: str | None = None,
    leases: Sequence[str] = (),
) -> str:
    """Return the page of an item of a project of labels.

    ``labels`` are its current ones, as the store has them now, and ``past`` those that were changed
    or deleted since, the latest first; ``leases`` are those who were given it and have not labelled it
    yet.
    """
    row = None if tables is None else tables.item(item)
    values: dict[str, Any] = {"waiting": "It is in no snapshot yet."}
    if tables is not None and row is not None:
        values = {
            "charts": [tables.charts.item(tables.fit.data.items[row[CODE]].as_py())],
            "lead": row["why"],
            "facts": Facts(_item_facts(tables, row, gold, leases)),
        }
    return _page(
        frame,
        item,
        "items",
        under="Item",
        content=_contents(content),
        section="labels",
        heading="Who said what",
        table=_labels_of_item(frame, item, labels, tables, row),
        past=past,
        **values,
    )


def _contents(content: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Return what an item is: names and values, and whether these are images, links or text."""
    found: list[tuple[str, str, str]] = []
    for name, value in (content or {}).items():
        if value is None:
            continue
        text = str(value)
        kind, url = content_type(text.strip()), text.strip()
        # A path would be one of this server's.
        can_load = url.lower().startswith(("http://", "https://", "data:"))
        if kind == "link" or (kind in ("image", "audio", "video") and can_load):
            found.append((name, kind, url))
        else:
            cut = text[:_MAX_TEXT] + ("…" if len(text) > _MAX_TEXT else "")
            found.append((name, "text", Markup("\n").join(map(escape, cut.splitlines()))))
    return found


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


def _item_facts(
    tables: LabelSnapshotTables, row: Mapping[str, Any], gold: str | None, leases: Sequence[str]
) -> list[Fact]:
    rows: list[Fact] = []
    if row.get("label") is not None:
        note = f"confidence {percent(row.get('confidence'))}"
        rows.append(("Label", tables.names[row["label"]], note))
        if row["disputed"]:
            rows.append(("Disputed", "yes", DISPUTED_RULE))
    if row.get("expectation") is not None:
        rows.append(("Score", number(row["expectation"]), ""))
    if gold is not None:
        rows.append(("Known truth", gold, ""))
    rows.append(("Status", row["status"], f"add {row['add']:,}" if row["add"] else ""))
    rows.append(("Difficulty", number(row["entropy"]), "entropy"))
    if leases:
        rows.append(("Being labelled by", ", ".join(leases), ""))
    return rows


def _labels_of_item(
    frame: Frame,
    item: str,
    labels: Sequence[StoredEvent],
    tables: LabelSnapshotTables | None,
    row: Mapping[str, Any] | None,
) -> PagedTable:
    """Return the table of who said what, with what the snapshot says about it."""
    has_accuracy = tables is not None and tables.fit.accuracy is not None
    name = "accuracy" if has_accuracy else "reliability"
    columns = [
        Column("annotator", "Annotator", sorts=False),
        Column("label", "Label", sorts=False),
        Column("estimate", name.capitalize(), "of the annotator", sorts=False, rank=1),
        _SERIOUS._replace(sorts=False),
        _SECONDS,
        _SUBMITTED,
    ]
    said = {} if tables is None or row is None else _said(tables, row[CODE], name)
    rows = []
    for event in labels[:MAX_LABELS]:
        known = dict(said.get(event.annotator, {}))
        if known and known["label"].name != event.label:  # it was edited since the snapshot
            del known["p_serious"], known["label"]
        rows.append({"annotator": event.annotator, "label": event.label, **_times(event), **known})
    query = TableQuery(path=frame.address("item", id=item))
    return PagedTable("Who said what", columns, rows, query, len(rows))


def _said(tables: LabelSnapshotTables, code: int, name: str) -> dict[str, dict[str, Any]]:
    """Return, by annotator, what the snapshot says of the label and of the annotator."""
    data, said = tables.fit.data, {}
    for at in tables.labels_of_item(code).tolist():
        row = tables.annotators.slice(int(data.annotator[at]), 1).to_pylist()[0]
        said[row["annotator"]] = {
            "estimate": None if row.get(name) is None else estimate(row, name),
            "label": category(tables, int(tables.consensus.category[at])),
            "p_serious": None if tables.fit.p_serious is None else float(tables.fit.p_serious[at]),
        }
    return said


def _times(event: StoredEvent) -> dict[str, Any]:
    """Return how long an annotator took, if that is known, and when they ended."""
    took = None if event.started is None else (event.submitted - event.started).total_seconds()
    return {"seconds": took, "submitted": event.submitted}


def ranked_item_page(
    frame: Frame, item: str, tables: RankTables | None, content: Mapping[str, Any] | None
) -> str:
    """Return the page of an item of a project of comparisons."""
    row = None if tables is None else tables.item(item)
    values: dict[str, Any] = {"under": "Item", "content": _contents(content)}
    if tables is None or row is None:
        return _page(frame, item, "items", waiting="It is in no snapshot yet.", **values)
    votes = f"{row['won']:,} won, {row['lost']:,} lost, {row['tied']:,} tied"
    known: list[Fact] = [
        ("Rank", f"{row['rank']:,}", f"95% interval {row['rank_low']:,} to {row['rank_high']:,}"),
        ("Score", f"{row['score']:.2f}", f"95% interval {row['low']:.2f} to {row['high']:.2f}"),
        ("P best", percent(row["p_best"]), "probability that its score is the highest"),
        ("Votes", f"{row['n_comparisons']:,}", votes),
    ]
    query = TableQuery(path=frame.address("item", id=item))
    rows = _opponents(tables, row[CODE])
    values["table"] = PagedTable(
        "Opponents", _OPPONENT_COLUMNS, rows[:MAX_OPPONENTS], query, len(rows)
    )
    values |= {"facts": Facts(known), "section": "opponents", "heading": "Against whom, best first"}
    return _page(frame, item, "items", **values)


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
    rank, ids = tables.fit.ranking.rank, to_text(data.items)
    others = np.flatnonzero(won + lost + tied)
    others = others[np.argsort(rank[others], kind="stable")]
    columns = {"place": rank, "won": won, "lost": lost, "tied": tied}
    return [
        {"item": ids[k].as_py(), **{name: int(values[k]) for name, values in columns.items()}}
        for k in others.tolist()
    ]


def annotator_page(
    frame: Frame,
    annotator: str,
    tables: SnapshotTables | None = None,
    asked: Mapping[str, str] | None = None,
    *,
    history: Sequence[AnnotatorHistory] = (),
    traits: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    events: Callable[[Sequence[str]], Mapping[str, StoredEvent]] = lambda items: {},
) -> str:
    """Return the page of an annotator, the most doubtful labels first.

    ``history`` is what past snapshots said about them, ``seconds`` the median time of their recent
    labels, and ``events`` returns their labels of some items, for the times.
    """
    row = None if tables is None else tables.annotator(annotator)
    if tables is None or row is None:
        return _page(frame, annotator, "annotators", waiting="They are in no snapshot yet.")
    code = row[CODE]
    charts = _history_charts(annotator, history, tables)
    if isinstance(tables, LabelSnapshotTables):
        charts.append(tables.charts.annotator(tables.fit.data.annotators[code].as_py()))
    return _page(
        frame,
        annotator,
        "annotators",
        under="Annotator",
        lead=row["reason"],
        facts=Facts(_annotator_facts(frame, row, seconds, traits or {})),
        over_time=charts,
        section="labels",
        heading=f"{frame.unit}s".capitalize(),
        table=_labels_of_annotator(frame, tables, code, asked or {}, events),
    )


def _labels_of_annotator(
    frame: Frame,
    tables: SnapshotTables,
    code: int,
    asked: Mapping[str, str],
    events: Callable[[Sequence[str]], Mapping[str, StoredEvent]],
) -> PagedTable:
    serious = [] if tables.fit.p_serious is None else [_SERIOUS]
    if isinstance(tables, RankTables):
        sides = [Column("left", "Left"), Column("right", "Right"), Column("chosen", "Chosen")]
        columns, given = [*sides, *serious], _comparisons(tables, code)
    else:
        names = [
            Column("item", "Item"),
            Column("label", "Label given"),
            Column("recovered", "Recovered", "the recovered label of the item"),
        ]
        columns, given = [*names, *serious, _SECONDS, _SUBMITTED], _labels(tables, code)
    default = "p_serious" if serious else columns[0].key
    query = TableQuery.parse(frame.address("annotator"), asked, columns, default)
    rows, total = chosen_rows(given, query, ids=columns[0].key)
    if isinstance(tables, LabelSnapshotTables):
        stored = events([row["item"] for row in rows])
        for row in rows:
            if row["item"] in stored:
                row |= _times(stored[row["item"]])
            for key in ("label", "recovered"):
                row[key] = category(tables, row[f"{key}_code"])
    return PagedTable("Labels", columns, rows, query, total)


def _labels(tables: LabelSnapshotTables, code: int) -> pa.Table:
    """Return the labels of an annotator in the snapshot."""
    data, consensus = tables.fit.data, tables.consensus
    at = np.flatnonzero(data.annotator == code)
    item = consensus.item[at]
    names = pa.array(tables.names)
    given, recovered = as_arrow(consensus.category[at]), as_arrow(consensus.recovered[item])
    columns = {
        "item": tables.items["item"].take(as_arrow(item)),
        "label": names.take(given),
        "recovered": names.take(recovered),
        "label_code": given,
        "recovered_code": recovered,
    }
    if tables.fit.p_serious is not None:
        columns["p_serious"] = as_arrow(tables.fit.p_serious[at])
    return pa.table(columns)


def _comparisons(tables: RankTables, code: int) -> pa.Table:
    """Return the comparisons of an annotator in the snapshot."""
    data, ids = tables.fit.data, to_text(tables.fit.data.items)
    at = np.arange(data.annotator_ptr[code], data.annotator_ptr[code + 1])
    columns = {
        "left": ids.take(as_arrow(data.left[at])),
        "right": ids.take(as_arrow(data.right[at])),
        "chosen": pa.array([_CHOSEN.get(code, "tie") for code in data.outcome[at].tolist()]),
    }
    if tables.fit.p_serious is not None:
        columns["p_serious"] = as_arrow(tables.fit.p_serious[at])
    return pa.table(columns)


def _annotator_facts(
    frame: Frame, row: Mapping[str, Any], seconds: float | None, traits: Mapping[str, Any]
) -> list[Fact]:
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
    rows.append((f"{frame.unit}s".capitalize(), f"{row[f'n_{frame.unit}s']:,}", ""))
    if row.get("matches") is not None:
        note = "of their labels are the recovered ones"
        rows.append(("Matches", percent(row["matches"]), note))
    if seconds is not None:
        note = f"median per {frame.unit}, of the last 100"
        rows.append(("Speed", f"{seconds:,.1f} s", note))
    return [*rows, *((str(name), str(value), "") for name, value in traits.items())]


def _history_charts(
    annotator: str, history: Sequence[AnnotatorHistory], tables: SnapshotTables
) -> list[Chart]:
    step = max(-(-len(history) // MAX_POINTS), 1)
    past = [each for each in history[::-1][::step] if each.reliability is not None][::-1]
    if not past:
        return []
    columns = zip(*((each.reliability, each.low, each.high) for each in past), strict=True)
    line = TimeLine([each.created for each in past], *(np.array(c, dtype=float) for c in columns))
    limit = None if has_flags(tables.fit) else SPAMMER_BELOW
    dashed = "" if limit is None else f"; dashed: {limit}"
    name, title = "reliability-over-time", "Reliability over time"
    caption = f"Lines are 95% intervals{dashed}. Points are where it changed."
    lines = {annotator: line}
    return [time_chart(name, title, caption, lines, limit=limit, width=NORMAL_WIDTH)]
