"""The overview of a project, and the list of projects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from fastapi import Request

from annotruth.errors import counted
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.panels import TIME_LINES_WIDTH, TimeLine, draw_counts, time_chart
from annotruth.report.render import Fact, Facts
from annotruth.serve.pages.frame import PROJECTS, Frame, PageLink, list_page, minute, render
from annotruth.serve.pages.tables import Column, PagedTable, TableQuery
from annotruth.serve.pages.visit import TO_ACT_ON, Visit, frame_of, project_page, router
from annotruth.serve.store.projects import (
    get_worker_state,
    hourly_counts,
    latest_annotator_history,
    latest_snapshot,
    list_projects,
    snapshot_history,
)
from annotruth.serve.store.rows import count, latest
from annotruth.serve.store.tables import Alert, Project, Snapshot, StoredEvent, alert
from annotruth.serve.web.parameters import Reader, context_of

MAX_POINTS = 120
"""How many snapshots a line of a chart has at most."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MAX_HOURS = 72  # of longer projects, the chart has days
_MIN_BARS = 12  # of a shorter project, one bar would fill the chart
_MAX_DAYS = 366  # of longer projects, the chart has the last ones
_MAX_HOURS_READ = _MAX_DAYS * 24
_MAX_ALERTS = 8
_MAX_SNAPSHOTS = 1000  # that the charts are drawn from

_COLUMNS = [
    Column("name", "Project", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("n_labels", "Labels", right=True, sorts=False),
    Column("agreement", "Agreement", right=True, sorts=False, rank=1),
    Column("finished", "Finished", "items that need no more labels", right=True, sorts=False),
    Column("updated", "Updated", "time of the last snapshot, in UTC", sorts=False, rank=1),
]


@project_page("", with_tables=False)
def overview_page(visit: Visit) -> str:
    """Return the overview of a project."""
    connection, frame, project = visit.connection, visit.frame, visit.project
    snapshots = snapshot_history(connection, project.id, limit=_MAX_SNAPSHOTS)
    state = get_worker_state(connection, project.id)
    page = {"tab": "", "notice": state.error, "live": True}
    if not snapshots:
        n_received = count(connection, StoredEvent, project=project.id)
        received = (f"{frame.unit}s".capitalize(), f"{n_received:,}", "received")
        page |= {"facts": None, "n_received": n_received, "received": Facts([received])}
        return render(frame, "overview.html", frame.project, every_label=True, **page)
    last = snapshots[-1]
    notes, n_needed = last.summary.get("notes"), last.summary.get("n_needed")
    to_act_on, unseen = alert.c.kind.in_(TO_ACT_ON), {"project": project.id, "seen": False}
    verdicts = latest_annotator_history(connection, project.id)
    return render(
        frame,
        "overview.html",
        frame.project,
        under=f"{last.model} · {minute(last.created)} UTC · snapshot {last.version:,}",
        facts=Facts(_facts(frame, project, last, visit.now)),
        notes=notes if isinstance(notes, list) else [],
        n_needed=None if n_needed is None else _whole(n_needed),
        to_drop=sorted(name for name, row in verdicts.items() if row.verdict == "drop"),
        alerts=latest(connection, Alert, to_act_on, limit=_MAX_ALERTS, **unseen),
        charts=_charts(
            frame, snapshots, hourly_counts(connection, project.id, limit=_MAX_HOURS_READ)
        ),
        **page,
    )


def _facts(frame: Frame, project: Project, last: Snapshot, now: datetime) -> list[Fact]:
    summary = last.summary
    n_items, rate = _whole(summary.get("n_items")), _number(summary.get("labels_per_hour"))
    pace = f"{rate:,.0f} per hour on average, last 24 hours" if rate else ""
    rows: list[Fact] = [(f"{frame.unit}s".capitalize(), f"{last.n_labels:,}", pace)]
    if not frame.is_ranking:
        finished = _whole(summary.get("n_finished"))
        share = f"{finished / n_items:.0%} need no more labels" if n_items else ""
        rows.append(("Items finished", f"{finished:,} of {n_items:,}", share))
    else:
        rows.append(("Items", f"{n_items:,}", ""))
    agreement = _number(summary.get("agreement"))
    if agreement is not None:
        rows.append(("Agreement", f"{agreement:.2f}", "1 is full agreement, 0 is chance"))
    n_spammers = _number(summary.get("n_spammers"))
    note = "not known" if n_spammers is None else "no spammers"
    if n_spammers:
        note = counted(int(n_spammers), "spammer")
    rows.append(("Annotators", f"{_whole(summary.get('n_annotators')):,}", note))
    cost = _number(summary.get("cost"))
    if cost is not None:
        each = _number(project.settings.get("cost_per_label"))
        note = f"{each:g} per {frame.unit}" if each is not None else ""
        rows.append(("Cost so far", f"{cost:,.2f}", note))
    if summary.get("n_needed") is not None:
        rows.append(("Expected end", *_expected(frame, summary, now)))
    return rows


def _expected(frame: Frame, summary: Mapping[str, object], now: datetime) -> tuple[str, str]:
    """Return when the project is expected to need no more labels, and how many it needs."""
    n_needed = _whole(summary.get("n_needed"))
    if not n_needed:
        return "now", f"no more {frame.unit}s are needed"
    still = f"{counted(n_needed, frame.unit)} to go"
    try:
        time = datetime.fromisoformat(str(summary.get("expected_end"))).astimezone(UTC)
    except ValueError:
        return "not known yet", still
    if time < now:  # labels stopped coming
        return "not known", still
    return f"{time:%H:%M} UTC" if time - now < _DAY else f"{time:%d %b %Y}".lstrip("0"), still


def _charts(
    frame: Frame, snapshots: Sequence[Snapshot], per_hour: Mapping[datetime, int] | None
) -> list[Chart]:
    charts = [_counts_chart(frame, per_hour)] if per_hour else []
    lines = {}
    for key, title in (("agreement", "agreement"), ("n_finished", "share of items finished")):
        points = [(row.created, _point(row, key)) for row in thinned_snapshots(snapshots)]
        known = [(time, value) for time, value in points if value is not None]
        if len(known) > 1 and not (frame.is_ranking and key == "n_finished"):
            lines[title] = TimeLine.without_intervals(*map(list, zip(*known, strict=True)))
    if lines:
        low = min(0.0, *(float(line.value.min()) for line in lines.values()))
        title, caption = "Agreement and progress", "One point per snapshot."
        domain, width = (math.floor(10 * low) / 10, 1.0), TIME_LINES_WIDTH * 2 / 3
        charts.append(time_chart("progress", title, caption, lines, domain=domain, width=width))
    return charts


def thinned_snapshots(rows: Sequence[Snapshot]) -> list[Snapshot]:
    """Return at most `MAX_POINTS` of the snapshots, evenly, the last among them."""
    step = max(math.ceil(len(rows) / MAX_POINTS), 1)
    return list(rows[::-1][::step])[::-1]


def _point(row: Snapshot, key: str) -> float | None:
    value = _number(row.summary.get(key))
    if key != "n_finished" or value is None:
        return value
    n_items = _whole(row.summary.get("n_items"))
    return value / n_items if n_items else None


def _counts_chart(frame: Frame, per_hour: Mapping[datetime, int]) -> Chart:
    """Return labels per hour, or per day where the project is longer than some days."""
    period, of = _HOUR, "hour"
    first, last = min(per_hour), max(per_hour)
    counts = dict(per_hour)
    if (last - first) / _HOUR > _MAX_HOURS:
        period, of = _DAY, "day"
        counts = {}
        for hour, number in per_hour.items():
            day = hour.replace(hour=0)
            counts[day] = counts.get(day, 0) + number
        first, last = first.replace(hour=0), last.replace(hour=0)
    is_cut = last - first >= _MAX_DAYS * period
    first = last - (_MAX_DAYS - 1) * period if is_cut else first
    first = min(first, last - (_MIN_BARS - 1) * period)
    start = [first + k * period for k in range(int((last - first) / period) + 1)]
    # Hours in which nobody worked have no row.
    count = [counts.get(time, 0) for time in start]
    unit = f"{frame.unit}s"
    return Chart(
        name="per-hour",
        title=f"{unit.capitalize()} per {of}",
        caption=f"The last {_MAX_DAYS} days. Times are UTC." if is_cut else "Times are UTC.",
        data={"start": [time.isoformat() for time in start], unit: count},
        draw=lambda width: draw_counts(start, count, period, width, unit),
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _whole(value: object) -> int:
    return int(_number(value) or 0)


@router.get(PROJECTS)
def _projects(request: Request, access: Reader) -> str:
    context = context_of(request)
    with context.database.connect() as connection:
        rows = [
            _row(each, latest_snapshot(connection, each.id))
            for each in list_projects(connection)
            if access.token.allows("read", each.id)
        ]
    may_create = access.token.allows("admin", None) and access.token.project is None
    table = PagedTable("Projects", _COLUMNS, rows, TableQuery(path=PROJECTS), len(rows))
    return list_page(frame_of(context, access), "Projects", table=table, may_create=may_create)


def _row(project: Project, snapshot: Snapshot | None) -> dict[str, object]:
    name = PageLink(Frame(project=project.name).address(), project.name)
    row: dict[str, object] = {"name": name, "kind": project.kind, "n_labels": 0}
    if snapshot is None:
        return row
    summary = snapshot.summary
    finished, n_items = summary.get("n_finished"), summary.get("n_items")
    if project.kind == "labels" and finished is not None and n_items:
        row["finished"] = f"{finished:,} of {n_items:,}"
    more = {"agreement": summary.get("agreement"), "updated": snapshot.created}
    return {**row, "n_labels": snapshot.n_labels, **more}
