"""Charts of lines in panels: several series with bands, values over time, and counts per period."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.report.charts.chart import CLASS_COLORS, Chart
from annotruth.report.charts.drawing import (
    Axis,
    Drawing,
    draw_x_ticks,
    short_number,
    shorten,
    text_width,
    y_axis_room,
)
from annotruth.report.charts.shapes import bars

_WIDTH = 760.0
_HEIGHT = 300.0
_LEFT, _RIGHT = 64.0, 12.0
_PANEL_WIDTH = 280.0
TIME_LINES_WIDTH = 3 * _PANEL_WIDTH
"""The width at which three panels stand side by side."""

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAY = 24 * 3600.0


@dataclass(frozen=True)
class LineAxes:
    """Titles and scales of a chart of lines."""

    # the titles of the axes
    x_title: str
    y_title: str
    ticks: Sequence[float] = ()  # where the x axis has ticks; chosen by the range if not given
    percent: bool = False  # whether x is shown in percent
    log: bool = False  # whether both axes are logarithmic


def line_chart(
    name: str, title: str, caption: str, rows: Sequence[Mapping[str, Any]], axes: LineAxes
) -> Chart:
    """Return a chart of lines from rows of ``panel, series, x, y`` and, for bands, ``low, high``.

    Panels stand side by side, each with a y axis of its own; series share their colors.
    """
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    series = list(dict.fromkeys(row["series"] for row in rows))
    columns = {key: [row[key] for row in rows] for key in rows[0]}

    def draw(width: float) -> Drawing:
        drawing = Drawing(width, _HEIGHT)
        _draw_legend(drawing, series)
        step = width / len(panels)
        for n, panel in enumerate(panels):
            some = [row for row in rows if row["panel"] == panel]
            _draw_series(drawing, panel, some, series, axes, n * step, (n + 1) * step)
        return drawing

    colors = CLASS_COLORS[: len(series)]
    return Chart(name, title, caption, columns, draw, colors=colors, width=_WIDTH)


def _draw_legend(drawing: Drawing, series: Sequence[str]) -> None:
    x = 8.0
    for n, label in enumerate(series):
        drawing.circle(x, 12, 5, f"at-k{n}")
        drawing.text(x + 10, 16, label)
        x += 28.0 + text_width([label], 400.0)


def _draw_series(
    drawing: Drawing, panel: str, rows: Sequence[Mapping[str, Any]], series: Sequence[str],
    axes: LineAxes, start: float, end: float,
) -> None:  # fmt: skip
    """Draw one panel between two places of the drawing."""
    scaled = math.log10 if axes.log else float
    xs = [scaled(row["x"]) for row in rows]
    ys = [scaled(row[key]) for row in rows for key in ("low", "y", "high") if key in row]
    left, right, top, bottom = start + _LEFT, end - _RIGHT, 64.0, _HEIGHT - 44.0
    margin = 0.04 * (max(xs) - min(xs) or 1.0)
    x_axis = Axis(min(xs) - margin, max(xs) + margin, left, right)
    margin = 0.06 * (max(ys) - min(ys) or 1.0)
    y_axis = Axis(min(ys) - margin, max(ys) + margin, bottom, top)
    drawing.text(left, top - 24, panel)
    drawing.text(start + 4, top - 8, axes.y_title, "at-tick")
    for tick in _ticks(y_axis, axes.log):
        drawing.line(left, y_axis(tick), right, y_axis(tick), "at-grid")
        drawing.text(left - 8, y_axis(tick) + 4, _label(tick, axes.log), "at-tick", "end")
    ticks = [scaled(value) for value in axes.ticks] or _ticks(x_axis, axes.log)
    draw_x_ticks(
        drawing, x_axis, ticks, bottom,
        lambda tick: f"{100 * tick:g}" if axes.percent else _label(tick, axes.log),
    )  # fmt: skip
    drawing.text((left + right) / 2, bottom + 36, axes.x_title, "at-tick", "middle")
    drawing.rect(left, top, right - left, bottom - top, "at-frame")
    for n, label in enumerate(series):
        some = [row for row in rows if row["series"] == label]
        if some and "low" in some[0]:
            upper = [(x_axis(scaled(row["x"])), y_axis(scaled(row["high"]))) for row in some]
            lower = [(x_axis(scaled(row["x"])), y_axis(scaled(row["low"]))) for row in some]
            drawing.path([*upper, *lower[::-1]], f"at-band at-k{n}")
        points = [(x_axis(scaled(row["x"])), y_axis(scaled(row["y"]))) for row in some]
        drawing.path(points, f"at-line at-l{n}")
        for row, (x, y) in zip(some, points, strict=True):
            tip = f"{label}, {axes.x_title} {row['x']:g}: {row['y']:.4g}"
            drawing.circle(x, y, 3.5, f"at-k{n}", tip=tip)


def _ticks(axis: Axis, log: bool) -> list[float]:
    """Return ticks; of logarithms, whole powers of ten where there are two or more."""
    powers = [float(p) for p in np.arange(math.ceil(axis.low), math.floor(axis.high) + 1)]
    return powers if log and len(powers) > 1 else axis.ticks(4)


def _label(tick: float, log: bool) -> str:
    return short_number(10.0**tick if log else tick)


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


def time_chart(
    name: str, title: str, caption: str, lines: Mapping[str, TimeLine],
    keys: Sequence[str] = ("series", "value", "low", "high"), *,
    width: float = TIME_LINES_WIDTH, **options: Any,
) -> Chart:  # fmt: skip
    """Chart values over a common time axis, one panel per line.

    ``keys``: the names of lines, values and the ends of intervals in the data.
    ``options``: those of `draw_panels`.
    """
    every = [time.timestamp() for line in lines.values() for time in line.time]
    margin = 0.04 * (max(every) - min(every) or 1.0)
    span = min(every) - margin, max(every) + margin
    panels = []
    for label, line in lines.items():
        tips = [
            f"{label}, {short_day(time)} {time:%H:%M} UTC: {short_number(round(value, 2))}"
            for time, value in zip(line.time, line.value, strict=True)
        ]
        first, last = (
            short_day(time) if span[1] - span[0] >= _DAY else f"{time:%H:%M:%S}"
            for time in (min(line.time), max(line.time))
        )
        x = np.array([time.timestamp() for time in line.time])
        panels.append(Panel(label, x, *line[1:], tips, (first, last)))
    data: dict[str, list[Any]] = {keys[0]: [key for key in lines for _ in lines[key].time]}
    data["time"] = [time.isoformat() for line in lines.values() for time in line.time]
    for key, values in zip(keys[1:], ("value", "low", "high"), strict=True):
        data[key] = [each for line in lines.values() for each in getattr(line, values).tolist()]
    return Chart(
        name, title, caption, data, lambda w: draw_panels(panels, w, span=span, **options),
        width=width,
    )  # fmt: skip


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
    edges = [time.timestamp() for time in [*start, start[-1] + period]]
    tips = [
        f"{short_day(time)} {time:%H:%M} UTC: {number:,} {unit}"
        for time, number in zip(start, count, strict=True)
    ]
    days = edges[-1] - edges[0] > 1.5 * _DAY
    starts = [time for time in start if not days or time.hour == 0]
    ticks = {time.timestamp(): time for time in starts[:: -(-len(starts) // int(width // 80))]}
    return bars(
        edges, count, width, ("", unit), tips, integers="y", ticks=list(ticks),
        label=lambda tick: short_day(ticks[tick]) if days else f"{ticks[tick]:%H:%M}",
    )  # fmt: skip


def short_day(time: datetime) -> str:
    """Return a day without its year, such as 3 May."""
    return f"{time.day} {_MONTHS[time.month - 1]}"
