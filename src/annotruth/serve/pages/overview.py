"""The overview of a project: how far it is, how well annotators agree, and what to do now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from annotruth.errors import counted
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.charts.over_time import (
    TIME_LINES_WIDTH,
    TimeLine,
    draw_counts,
    draw_time_lines,
)
from annotruth.report.html import facts, figure, section, side_by_side
from annotruth.serve.pages.cells import link, moment, moment_text
from annotruth.serve.pages.layout import Frame, render
from annotruth.serve.store.records import Alert, Project, Snapshot, WorkerState
from annotruth.serve.store.schema import utc_now

MAX_POINTS = 120
"""How many snapshots a line of a chart has at most."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MAX_HOURS = 72  # of longer projects, the chart has days
_MIN_BARS = 12  # of a shorter project, one bar would fill the chart
_MAX_DAYS = 366  # of longer projects, the chart has the last ones

MAX_HOURS_READ = _MAX_DAYS * 24
"""How many hours with labels the chart needs at most."""

_MAX_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class OverviewData:
    """What the overview shows.

    Attributes
    ----------
    project
        The project.
    snapshots
        Its snapshots, oldest first.
    per_hour
        Labels per hour.
    state
        What the worker last said.
    alerts
        The latest alerts that nobody has seen and that ask for something.
    to_drop
        The annotators that the advice is to drop.
    n_received
        How many labels were received, where there is no snapshot yet.
    now
        The time.

    Examples
    --------
    >>> project = Project(1, "films", "labels", {}, datetime(2026, 1, 1, tzinfo=UTC))
    >>> OverviewData(project=project).summary
    {}
    """

    project: Project
    snapshots: Sequence[Snapshot] = ()
    per_hour: Mapping[datetime, int] | None = None
    state: WorkerState | None = None
    alerts: Sequence[Alert] = ()
    to_drop: Sequence[str] = ()
    n_received: int = 0
    now: datetime = field(default_factory=utc_now)

    @property
    def summary(self) -> Mapping[str, object]:
        """The figures of the latest snapshot."""
        return self.snapshots[-1].summary if self.snapshots else {}


def overview_page(frame: Frame, data: OverviewData) -> str:
    """Return the overview of a project."""
    error = data.state.error if data.state is not None else ""
    if not data.snapshots:
        content = _first_fit(frame, data.n_received) if data.n_received else _waiting(frame)
        return render(
            frame, frame.project, content, tab="", notice=error, live=True, every_label=True
        )
    last = data.snapshots[-1]
    under = f"{last.model} · {moment_text(last.created)} UTC · snapshot {last.version:,}"
    charts = [figure(chart) for chart in _charts(frame, data)]
    parts = [
        f'<section class="first">{facts(_facts(frame, data))}</section>',
        section("now", "What to do now", _tasks(frame, data)),
        section("time", "Over time", side_by_side(*charts)) if charts else "",
    ]
    return render(frame, frame.project, *parts, tab="", under=under, notice=error, live=True)


def _first_fit(frame: Frame, n_received: int) -> str:
    """Return what a project with labels but without snapshots shows."""
    rows = facts([(f"{frame.unit}s".capitalize(), f"{n_received:,}", "received")])
    return (
        f'<section class="first">{rows}<p class="lead">They are being fitted for the first time. In a '
        "new installation this compiles code first, which takes up to a minute.</p></section>"
    )


def _waiting(frame: Frame) -> str:
    """Return what a project without snapshots shows."""
    example = (
        '{"left": "a", "right": "b", "annotator": "ann", "outcome": "left"}'
        if frame.is_ranking
        else '{"item": "1", "annotator": "ann", "label": "cat"}'
    )
    command = (
        f"curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' -d '{example}' "
        f"http://HOST/api/v1{frame.address()}/{frame.unit}s"
    )
    return (
        f'<section class="first"><p class="lead">Waiting for the first {frame.unit}s. This page '
        f"shows them as they arrive.</p><p><code>{escaped(command)}</code></p></section>"
    )


def _facts(frame: Frame, data: OverviewData) -> list[tuple[str, object, str]]:
    summary, last = data.summary, data.snapshots[-1]
    n_items = _whole(summary.get("n_items"))
    rows: list[tuple[str, object, str]] = [
        (f"{frame.unit}s".capitalize(), f"{last.n_labels:,}", _rate(summary))
    ]
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
        each = _number(data.project.settings.get("cost_per_label"))
        note = f"{each:g} per {frame.unit}" if each is not None else ""
        rows.append(("Cost so far", f"{cost:,.2f}", note))
    if summary.get("n_needed") is not None:
        rows.append(_expected(frame, summary, data.now))
    return rows


def _expected(
    frame: Frame, summary: Mapping[str, object], now: datetime
) -> tuple[str, object, str]:
    """Return when the project is expected to need no more labels."""
    n_needed = _whole(summary.get("n_needed"))
    if not n_needed:
        return "Expected end", "now", f"no more {frame.unit}s are needed"
    still = f"{counted(n_needed, frame.unit)} to go"
    try:
        time = datetime.fromisoformat(str(summary.get("expected_end")))
    except ValueError:
        return "Expected end", "not known yet", still
    if time < now:  # labels stopped coming
        return "Expected end", "not known", still
    text = f"{time.astimezone(UTC):%d %b %Y}".lstrip("0")
    if time - now < _DAY:
        text = f"{time.astimezone(UTC):%H:%M} UTC"
    return "Expected end", text, still


def _rate(summary: Mapping[str, object]) -> str:
    """Return how fast labels came in during the last day."""
    rate = _number(summary.get("labels_per_hour"))
    return f"{rate:,.0f} per hour on average, last 24 hours" if rate else ""


def _tasks(frame: Frame, data: OverviewData) -> str:
    """Return what to do now: whom to look at, what to ask for, and alerts."""
    notes = data.summary.get("notes")
    lines = [escaped(note) for note in notes] if isinstance(notes, list) else []
    if data.to_drop:
        named = ", ".join(
            link(frame.address("annotator", id=each), each) for each in data.to_drop[:_MAX_NAMED]
        )
        n_more = len(data.to_drop) - _MAX_NAMED
        more = f" and {n_more:,} more" if n_more > 0 else ""
        lines.append(f"<b>{counted(len(data.to_drop), 'annotator')} to drop</b>: {named}{more}")
    n_needed = data.summary.get("n_needed")
    if n_needed:
        queue = link(frame.address("queue"), "queue")
        lines.append(f"<b>{counted(_whole(n_needed), frame.unit)} to ask for</b>: {queue}")
    elif n_needed == 0:
        lines.append(f"No more {frame.unit}s are needed now.")
    for alert in data.alerts[:_MAX_NAMED]:
        lines.append(f"{moment(alert.created)} {escaped(alert.text)}")
    if not lines:
        return '<p class="quiet">Nothing yet.</p>'
    return f'<ul class="tasks">{"".join(f"<li>{line}</li>" for line in lines)}</ul>'


def _charts(frame: Frame, data: OverviewData) -> list[Chart]:
    charts = []
    if data.per_hour:
        charts.append(_counts_chart(frame, data.per_hour))
    rows = thinned_snapshots(data.snapshots)
    lines = {}
    for key, title in (("agreement", "agreement"), ("n_finished", "share of items finished")):
        points = [(row.created, _point(row, key)) for row in rows]
        known = [(time, value) for time, value in points if value is not None]
        if len(known) > 1 and not (frame.is_ranking and key == "n_finished"):
            lines[title] = TimeLine.without_intervals(*map(list, zip(*known, strict=True)))
    if lines:
        low = min(0.0, *(float(line.value.min()) for line in lines.values()))
        charts.append(_lines_chart(lines, math.floor(10 * low) / 10))
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


def _lines_chart(lines: Mapping[str, TimeLine], low: float) -> Chart:
    columns = {
        "series": [name for name, line in lines.items() for _ in line.time],
        "time": [time.isoformat() for line in lines.values() for time in line.time],
        "value": [value for line in lines.values() for value in line.value.tolist()],
    }
    return Chart(
        name="progress",
        title="Agreement and progress",
        caption="One point per snapshot.",
        data=columns,
        draw=lambda width: draw_time_lines(lines, width, domain=(low, 1.0)),
        width=TIME_LINES_WIDTH * 2 / 3,
    )


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
