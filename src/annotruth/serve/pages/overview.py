"""The overview of a project, the list of projects, the form that logs in, and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from annotruth.errors import counted
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.over_time import (
    TIME_LINES_WIDTH,
    TimeLine,
    draw_counts,
    draw_time_lines,
)
from annotruth.report.render import CodeText, Fact, Facts, Part, Section, SideBySide, Strong, Text
from annotruth.serve.pages.parts import (
    PROJECTS,
    ChoiceField,
    Field,
    First,
    Form,
    FormBox,
    Frame,
    Joined,
    Moment,
    PageLink,
    Tasks,
    render,
)
from annotruth.serve.pages.table import Column, TableQuery, paged_table
from annotruth.serve.store.columns import utc_now
from annotruth.serve.store.tables import Alert, Project, Snapshot, WorkerState

MAX_POINTS = 120
"""How many snapshots a line of a chart has at most."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MAX_HOURS = 72  # of longer projects, the chart has days
_MIN_BARS = 12  # of a shorter project, one bar would fill the chart
_MAX_DAYS = 366  # of longer projects, the chart has the last ones

MAX_HOURS_READ = _MAX_DAYS * 24
"""How many hours with labels the chart needs at most."""

_MAX_NAMED = 8
_COLUMNS = [
    Column("name", "Project", sorts=False),
    Column("kind", "Kind", sorts=False, rank=1),
    Column("n_labels", "Labels", right=True, sorts=False),
    Column("agreement", "Agreement", right=True, sorts=False, rank=1),
    Column("finished", "Finished", "items that need no more labels", right=True, sorts=False),
    Column("updated", "Updated", "time of the last snapshot, in UTC", sorts=False, rank=1),
]
_KINDS = {"labels": "labels of items", "comparisons": "comparisons of pairs of items"}


@dataclass(frozen=True, kw_only=True)
class OverviewData:
    """What the overview shows."""

    project: Project
    snapshots: Sequence[Snapshot] = ()  # its snapshots, oldest first
    per_hour: Mapping[datetime, int] | None = None  # labels per hour
    state: WorkerState | None = None  # what the worker last said
    # The latest alerts that nobody has seen and that ask for something.
    alerts: Sequence[Alert] = ()
    to_drop: Sequence[str] = ()  # the annotators that the advice is to drop
    n_received: int = 0  # how many labels were received, where there is no snapshot yet
    now: datetime = field(default_factory=utc_now)

    @property
    def summary(self) -> Mapping[str, object]:
        """The figures of the latest snapshot."""
        return self.snapshots[-1].summary if self.snapshots else {}


def overview_page(frame: Frame, data: OverviewData) -> str:
    """Return the overview of a project."""
    error = data.state.error if data.state is not None else ""
    if not data.snapshots:
        first = First(_first_fit(frame, data.n_received) if data.n_received else _waiting(frame))
        return render(
            frame, frame.project, first, tab="", notice=error, live=True, every_label=True
        )
    last = data.snapshots[-1]
    under = f"{last.model} · {Moment(last.created).text} UTC · snapshot {last.version:,}"
    charts = _charts(frame, data)
    parts = [
        First([Facts(_facts(frame, data))]),
        Section("now", "What to do now", [_tasks(frame, data)]),
        Section("time", "Over time", [SideBySide(charts)]) if charts else "",
    ]
    return render(frame, frame.project, *parts, tab="", under=under, notice=error, live=True)


def _first_fit(frame: Frame, n_received: int) -> list[Part]:
    """Return what a project with labels but without snapshots shows."""
    text = (
        "They are being fitted for the first time. In a new installation this compiles code first, "
        "which takes up to a minute."
    )
    return [
        Facts([(f"{frame.unit}s".capitalize(), f"{n_received:,}", "received")]),
        Text(text, "lead"),
    ]


def _waiting(frame: Frame) -> list[Part]:
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
    lead = f"Waiting for the first {frame.unit}s. This page shows them as they arrive."
    return [Text(lead, "lead"), Text(CodeText(command))]


def _facts(frame: Frame, data: OverviewData) -> list[Fact]:
    summary, last = data.summary, data.snapshots[-1]
    n_items = _whole(summary.get("n_items"))
    rows: list[Fact] = [(f"{frame.unit}s".capitalize(), f"{last.n_labels:,}", _rate(summary))]
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


def _expected(frame: Frame, summary: Mapping[str, object], now: datetime) -> Fact:
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


def _tasks(frame: Frame, data: OverviewData) -> Part:
    """Return what to do now: whom to look at, what to ask for, and alerts."""
    notes = data.summary.get("notes")
    lines: list[Part] = list(notes) if isinstance(notes, list) else []
    if data.to_drop:
        named = Joined([frame.annotator(a, "", 60) for a in data.to_drop[:_MAX_NAMED]], ", ")
        n_more = len(data.to_drop) - _MAX_NAMED
        more = f" and {n_more:,} more" if n_more > 0 else ""
        count = Strong(f"{counted(len(data.to_drop), 'annotator')} to drop")
        lines.append([count, ": ", named, more])
    n_needed = data.summary.get("n_needed")
    if n_needed:
        asked = Strong(f"{counted(_whole(n_needed), frame.unit)} to ask for")
        lines.append([asked, ": ", PageLink(frame.address("queue"), "queue")])
    elif n_needed == 0:
        lines.append(f"No more {frame.unit}s are needed now.")
    lines += [[Moment(alert.created), f" {alert.text}"] for alert in data.alerts[:_MAX_NAMED]]
    return Tasks(lines) if lines else Text("Nothing yet.", "quiet")


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


class ProjectRow(NamedTuple):
    """A project and its latest snapshot."""

    project: Project
    snapshot: Snapshot | None = None


def projects_page(frame: Frame, rows: Sequence[ProjectRow], *, may_create: bool) -> str:
    """Return the list of projects."""
    query = TableQuery(path=PROJECTS, sort="")
    table = paged_table(frame, "Projects", _COLUMNS, map(_row, rows), query, len(rows))
    parts: list[Part] = [First([table])]
    if may_create:
        pattern = {"required": "", "pattern": "[a-z0-9\\-]{1,60}", "maxlength": 60}
        fields = (
            Field("name", "Name", tip="lower-case letters, digits and -", attributes=pattern),
            ChoiceField("kind", "Kind", _KINDS),
        )
        made = Form(PROJECTS, fields, csrf=frame.csrf, button="Create")
        parts.append(Section("new", "New project", [FormBox(made)]))
    return render(frame, "Projects", *parts)


def _row(each: ProjectRow) -> dict[str, Part]:
    project, snapshot = each
    name = PageLink(Frame(project=project.name).address(), project.name)
    if snapshot is None:
        return {"name": name, "kind": project.kind, "n_labels": 0}
    summary = snapshot.summary
    finished, n_items = summary.get("n_finished"), summary.get("n_items")
    is_ranking = project.kind == "comparisons" or finished is None or not n_items
    return {
        "name": name,
        "kind": project.kind,
        "n_labels": snapshot.n_labels,
        "agreement": summary.get("agreement"),
        "finished": "" if is_ranking else f"{finished:,} of {n_items:,}",
        "updated": Moment(snapshot.created),
    }


def login_page(*, wrong: bool = False) -> str:
    """Return the form that logs in with a token.

    A link that `annotruth serve` prints has the token behind ``#``, which browsers do not send;
    the page's script puts it into the form.
    """
    attributes = {"required": "", "autocomplete": "off", "spellcheck": "false", "autofocus": ""}
    tip = "made by: annotruth serve token create"
    token = Field(
        "token", "Token", kind="password", tip=tip, attributes={**attributes, "id": "token"}
    )
    form = Form("/login", [token], button="Log in", name="login")
    notice = "This token is unknown, revoked or expired." if wrong else ""
    return render(Frame(scope=""), "Log in", First([FormBox(form)]), notice=notice)


def message_page(frame: Frame, title: str, text: str) -> str:
    """Return a page with one message, such as that of an error."""
    link = Text(PageLink(PROJECTS, "Projects"))
    return render(frame, title, First([Text(text, "lead"), link]))
