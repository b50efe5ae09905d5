"""Pages of one item or one annotator: results, what they are, and who said what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup, escape
from sqlalchemy import Connection, select
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

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
from annotruth.serve.pages.visit import Visit, project_page
from annotruth.serve.store.events import current_labels
from annotruth.serve.store.projects import (
    active_leases,
    annotator_history,
    get_content,
    get_gold,
    get_traits,
)
from annotruth.serve.store.rows import rows_of
from annotruth.serve.store.tables import AnnotatorHistory, StoredEvent, event
from annotruth.serve.web.guard import CONTENT_SECURITY_POLICY

MAX_LABELS = 500
"""How many labels of an item the page shows."""

MAX_OPPONENTS = 200
"""How many opponents of an item its page shows."""

_MAX_TEXT = 20_000
_RECENT = 100  # labels, for the speed of an annotator
_MAX_PAST = 100
# An expression, so that SQLite does not read all events of a project in this order.
_LATEST_FIRST = -event.c.seq
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


@project_page("item")
def item_page(visit: Visit) -> Response:
    """Return the page of an item, which may show pictures by URL."""
    content = get_content(visit.connection, visit.project.id, visit.id)
    if content is None and (visit.tables is None or visit.tables.item(visit.id) is None):
        _refuse_unknown(visit, "item", items=[visit.id])
    show = _ranked_item if visit.frame.is_ranking else _labelled_item
    page = show(visit, _contents(content))
    return HTMLResponse(page, headers={"Content-Security-Policy": _policy(content)})


def _policy(content: Any) -> str:
    allowed = content_sources(content)
    kept = [part for part in CONTENT_SECURITY_POLICY.split("; ") if part.split()[0] not in allowed]
    return "; ".join([*kept, *(f"{name} {values}" for name, values in allowed.items())])


def _refuse_unknown(visit: Visit, what: str, **of: Any) -> None:
    if not current_labels(visit.connection, visit.project.id, **of):
        raise HTTPException(404, f"there is no such {what}")


def _labelled_item(visit: Visit, content: list[tuple[str, str, str]]) -> str:
    connection, project, item = visit.connection, visit.project.id, visit.id
    tables: Any = visit.tables
    row = None if tables is None else tables.item(item)
    labels = current_labels(connection, project, items=[item])
    values: dict[str, Any] = {"waiting": "It is in no snapshot yet."}
    if row is not None:
        leases = active_leases(connection, project, visit.now, item=item)
        facts = _item_facts(
            tables, row, get_gold(connection, project, item), [each.annotator for each in leases]
        )
        values = {
            "charts": [tables.charts.item(tables.fit.data.items[row[CODE]].as_py())],
            "lead": row["why"],
            "facts": Facts(facts),
        }
    return _page(
        visit.frame,
        item,
        "items",
        under="Item",
        content=content,
        section="labels",
        heading="Who said what",
        table=_labels_of_item(visit.frame, item, labels, tables, row),
        past=_past_events(connection, project, item, labels),
        **values,
    )


def _past_events(
    connection: Connection, project_id: int, item: str, current: Sequence[StoredEvent]
) -> list[StoredEvent]:
    """Return the events of an item that are not its current labels, the latest first."""
    query = select(event).where(event.c.project == project_id, event.c.item == item)
    latest = query.order_by(_LATEST_FIRST).limit(_MAX_PAST + len(current))
    kept = {each.seq for each in current}
    found = rows_of(connection, StoredEvent, latest)
    return [each for each in found if each.seq not in kept][:_MAX_PAST]


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
    for each in labels[:MAX_LABELS]:
        known = dict(said.get(each.annotator, {}))
        if known and known["label"].name != each.label:  # it was edited since the snapshot
            del known["p_serious"], known["label"]
        rows.append({"annotator": each.annotator, "label": each.label, **_times(each), **known})
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


def _times(label: StoredEvent) -> dict[str, Any]:
    """Return how long an annotator took, if that is known, and when they ended."""
    took = None if label.started is None else (label.submitted - label.started).total_seconds()
    return {"seconds": took, "submitted": label.submitted}


def _ranked_item(visit: Visit, content: list[tuple[str, str, str]]) -> str:
    frame, item, tables = visit.frame, visit.id, visit.tables
    row = tables.item(item) if isinstance(tables, RankTables) else None
    values: dict[str, Any] = {"under": "Item", "content": content}
    if not isinstance(tables, RankTables) or row is None:
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


@project_page("annotator")
def annotator_page(visit: Visit) -> str:
    """Return the page of an annotator, the most doubtful labels first."""
    connection, project, frame = visit.connection, visit.project.id, visit.frame
    tables, annotator = visit.tables, visit.id
    row = None if tables is None else tables.annotator(annotator)
    if tables is None or row is None:
        _refuse_unknown(visit, "annotator", annotator=annotator)
        return _page(frame, annotator, "annotators", waiting="They are in no snapshot yet.")
    charts = _history_charts(annotator, annotator_history(connection, project, annotator), tables)
    if isinstance(tables, LabelSnapshotTables):
        charts.append(tables.charts.annotator(tables.fit.data.annotators[row[CODE]].as_py()))
    seconds = _median_seconds(connection, project, annotator)
    traits = get_traits(connection, project, annotator)
    return _page(
        frame,
        annotator,
        "annotators",
        under="Annotator",
        lead=row["reason"],
        facts=Facts(_annotator_facts(frame, row, seconds, traits)),
        over_time=charts,
        section="labels",
        heading=f"{frame.unit}s".capitalize(),
        table=_labels_of_annotator(visit, tables, row[CODE]),
    )


def _median_seconds(connection: Connection, project_id: int, annotator: str) -> float | None:
    of_annotator = (event.c.project == project_id) & (event.c.annotator == annotator)
    latest = (
        select(event.c.started, event.c.submitted)
        .where(of_annotator, event.c.started.is_not(None), ~event.c.deleted)
        .order_by(_LATEST_FIRST)
        .limit(_RECENT)
    )
    seconds = [(row.submitted - row.started).total_seconds() for row in connection.execute(latest)]
    return median(seconds) if seconds else None


def _labels_of_annotator(visit: Visit, tables: SnapshotTables, code: int) -> PagedTable:
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
    query = TableQuery.parse(visit.frame.address("annotator"), visit.asked, columns, default)
    rows, total = chosen_rows(given, query, ids=columns[0].key)
    if isinstance(tables, LabelSnapshotTables):
        items = [row["item"] for row in rows]
        labels = current_labels(visit.connection, visit.project.id, items=items, annotator=visit.id)
        stored = {each.item: each for each in labels}
        for row in rows:
            if row["item"] in stored:
                row |= _times(stored[row["item"]])
            for key in ("label", "recovered"):
                row[key] = category(tables, row[f"{key}_code"])
    return PagedTable("Labels", columns, rows, query, total)


def _labels(tables: LabelSnapshotTables, code: int) -> pa.Table:
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
