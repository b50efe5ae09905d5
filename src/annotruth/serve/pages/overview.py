"""The overview of a project, and the list of projects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from annotruth.errors import counted
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.panels import (
    TIME_LINES_WIDTH,
    TimeLine,
    draw_counts,
    time_chart,
)
from annotruth.report.render import Fact, Facts
from annotruth.serve.pages.frame import PROJECTS, Frame, PageLink, list_page, minute, render
from annotruth.serve.pages.tables import Column, PagedTable, TableQuery
from annotruth.serve.store.rows import utc_now
from annotruth.serve.store.tables import Alert, Project, Snapshot, WorkerState

MAX_POINTS = 120
"""How many snapshots a line of a chart has at most."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MAX_HOURS = 72  # of longer projects, the chart has days
_MIN_BARS = 12  # of a shorter project, one bar would fill the chart
_MAX_DAYS = 366  # of longer projects, the chart has the last ones

MAX_HOURS_READ = _MAX_DAYS * 24
"""How many hours with labels the chart needs at most."""

_COLUMNS = [
    Column("name", "Project", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("n_labels", "Labels", right=True, sorts=False),
    Column("agreement", "Agreement", right=True, sorts=False, rank=1),
    Column("finished", "Finished", "items that need no more labels", right=True, sorts=False),
    Column("updated", "Updated", "time of the last snapshot, in UTC", sorts=False, rank=1),
]


def overview_page(
    frame: Frame,
    project: Project,
    snapshots: Sequence[Snapshot] = (),
    *,
    per_hour: Mapping[datetime, int] | None = None,
    state: WorkerState | None = None,
    alerts: Sequence[Alert] = (),
    to_drop: Sequence[str] = (),
    n_received: int = 0,
    now: datetime | None = None,
) -> str:
    """Return the overview of a project.

    ``snapshots`` are the oldest first, ``per_hour`` counts labels, ``alerts`` are those that nobody has
    seen and that ask for something, ``to_drop`` are the annotators that the advice is to drop, and
    ``n_received`` counts labels where there is no snapshot yet.
    """
    page = {"tab": "", "notice": "" if state is None else state.error, "live": True}
    if not snapshots:
        received = (f"{frame.unit}s".capitalize(), f"{n_received:,}", "received")
        page |= {"facts": None, "n_received": n_received, "received": Facts([received])}
        return render(frame, "overview.html", frame.project, every_label=True, **page)
    last = snapshots[-1]
    notes, n_needed = last.summary.get("notes"), last.summary.get("n_needed")
    return render(
        frame,
        "overview.html",
        frame.project,
        under=f"{last.model} · {minute(last.created)} UTC · snapshot {last.version:,}",
        facts=Facts(_facts(frame, project, last, utc_now() if now is None else now)),
        notes=notes if isinstance(notes, list) else [],
        n_needed=None if n_needed is None else _whole(n_needed),
        to_drop=to_drop,
        alerts=alerts,
        charts=_charts(frame, snapshots, per_hour),
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


def projects_page(
    frame: Frame, rows: Sequence[tuple[Project, Snapshot | None]], *, may_create: bool
) -> str:
    """Return the list of projects with the latest snapshot of each."""
    listed = [_row(*each) for each in rows]
    table = PagedTable("Projects", _COLUMNS, listed, TableQuery(path=PROJECTS), len(rows))
    return list_page(frame, "Projects", table=table, may_create=may_create)


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
