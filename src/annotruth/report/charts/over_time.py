"""Charts over time: lines with intervals, one panel per line, and counts per period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.report.charts.drawing import (
    Axis,
    Drawing,
    draw_x_ticks,
    draw_y_axis,
    short_number,
    shorten,
    y_axis_room,
)

_PANEL_WIDTH = 280.0
TIME_LINES_WIDTH = 3 * _PANEL_WIDTH
"""The width at which three panels stand side by side."""

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAY = 24 * 3600.0


class TimeLine(NamedTuple):
    """Values by time with the ends of their intervals, which are NaN where they are not known."""

    time: Sequence[datetime]
    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def without_intervals(cls, time: Sequence[datetime], value: Sequence[float]) -> TimeLine:
        """Return a line of values alone."""
        unknown = np.full(len(time), np.nan)
        return cls(time, np.asarray(value, dtype=float), unknown, unknown)


class Panel(NamedTuple):
    """One line of a drawing with its axes."""

    name: str  # its title
    x: Floats
    # the values and the ends of their intervals, which are NaN where they are not known
    value: Floats
    low: Floats
    high: Floats
    tips: Sequence[str]  # what is said of each value
    ends: tuple[str, str]  # what stands under the first and the last value
    changes: Sequence[float] = ()  # where a vertical line stands


def draw_time_lines(
    lines: Mapping[str, TimeLine],
    width: float,
    *,
    domain: tuple[float, float] = (0.0, 1.0),
    limit: float | None = None,
) -> Drawing:
    """Draw one panel per line over a common time axis, in rows, with a dashed line at the limit."""
    every = [time for line in lines.values() for time in line.time]
    first, last = min(every).timestamp(), max(every).timestamp()
    margin = 0.04 * (last - first or 1.0)
    span = first - margin, last + margin
    panels = []
    for name, line in lines.items():
        values = zip(line.time, line.value, strict=True)
        tips = [
            f"{name}, {short_day(time)} {time:%H:%M} UTC: {short_number(round(value, 2))}"
            for time, value in values
        ]
        ends = [
            short_day(time) if span[1] - span[0] >= _DAY else f"{time:%H:%M:%S}"
            for time in (min(line.time), max(line.time))
        ]
        x = np.array([time.timestamp() for time in line.time])
        panels.append(Panel(name, x, *line[1:], tips, (ends[0], ends[1])))
    return draw_panels(panels, width, domain=domain, limit=limit, span=span)


def draw_panels(
    panels: Sequence[Panel],
    width: float,
    *,
    domain: tuple[float, float] = (0.0, 1.0),
    limit: float | None = None,
    span: tuple[float, float] | None = None,
    height: float = 170.0,
) -> Drawing:
    """Draw panels of one height in rows, with a dashed line at the limit; ``span``: of the x axis."""
    n_columns = max(min(int(width // (_PANEL_WIDTH * 0.95)), len(panels)), 1)
    drawing = Drawing(width, -(-len(panels) // n_columns) * height)
    for n, panel in enumerate(panels):
        left, top = (n % n_columns) * width / n_columns, (n // n_columns) * height
        y_axis = Axis(*domain, top + height - 30, top + 26.0)
        margin = 0.04 * (float(panel.x[-1] - panel.x[0]) or 1.0)
        low, high = span or (panel.x[0] - margin, panel.x[-1] + margin)
        right = left + width / n_columns - 16
        _draw_panel(
            drawing, panel, Axis(low, high, left + y_axis_room(y_axis) - 12, right), y_axis, limit
        )
    return drawing


def _draw_panel(
    drawing: Drawing, panel: Panel, x_axis: Axis, y_axis: Axis, limit: float | None
) -> None:
    left, right, bottom, top = x_axis.start, x_axis.end, y_axis.start, y_axis.end
    drawing.text(left, top - 8, shorten(panel.name, right - left))
    for tick in (y_axis.low, (y_axis.low + y_axis.high) / 2, y_axis.high):
        css_class = "at-limit" if tick == limit else "at-grid"
        drawing.line(left, y_axis(tick), right, y_axis(tick), css_class)
        drawing.text(left - 8, y_axis(tick) + 4, short_number(tick), "at-tick", "end")
    drawing.text(left, bottom + 16, panel.ends[0], "at-tick")
    if panel.ends[1] != panel.ends[0]:
        drawing.text(right, bottom + 16, panel.ends[1], "at-tick", "end")
    for change in panel.changes:
        drawing.line(x_axis(change), top, x_axis(change), bottom, "at-warn-range at-thick")
    points = [(x_axis(x), y_axis(value)) for x, value in zip(panel.x, panel.value, strict=True)]
    for (x, _), low, high in zip(points, panel.low, panel.high, strict=True):
        if np.isfinite(low) and np.isfinite(high):
            drawing.line(x, y_axis(low), x, y_axis(high), "at-range")
    drawing.path(points, "at-mark-line")
    radius = 3.0 if len(points) <= 30 else 2.0
    for (x, y), tip in zip(points, panel.tips, strict=True):
        drawing.circle(x, y, radius, "at-mark", tip=tip)


def draw_counts(
    start: Sequence[datetime], count: Sequence[int], period: timedelta, width: float, unit: str
) -> Drawing:
    """Draw how many there were in each period, as bars from its start to its end."""
    drawing = Drawing(width, 220)
    top, bottom, right = 24.0, 186.0, width - 12
    y_axis = Axis(0.0, max(*count, 1), bottom, top)
    left = y_axis_room(y_axis)
    seconds = period.total_seconds()
    first, last = start[0].timestamp(), start[-1].timestamp() + seconds
    x_axis = Axis(first, last, left, right)
    draw_y_axis(drawing, y_axis, left, right, title=unit, integers=True)
    for time, number in zip(start, count, strict=True):
        x, end = x_axis(time.timestamp()), x_axis(time.timestamp() + seconds)
        gap = 1.0 if end - x > 3.0 else 0.0
        tip = f"{short_day(time)} {time:%H:%M} UTC: {number:,} {unit}"
        drawing.rect(x, y_axis(number), end - x - gap, bottom - y_axis(number), "at-mark", tip=tip)
    days = last - first > 1.5 * _DAY
    starts = [time for time in start if not days or time.hour == 0]
    step = -(-len(starts) // (5 if width > 400 else 3))
    ticks = {time.timestamp(): time for time in starts[::step]}
    draw_x_ticks(
        drawing, x_axis, list(ticks), bottom,
        lambda tick: short_day(ticks[tick]) if days else f"{ticks[tick]:%H:%M}",
    )  # fmt: skip
    drawing.line(left, bottom, right, bottom, "at-base")
    return drawing


def short_day(time: datetime) -> str:
    """Return a day without its year, such as 3 May."""
    return f"{time.day} {_MONTHS[time.month - 1]}"
