"""Charts of lines in panels side by side, with bands around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotruth.report.charts.chart import CLASS_COLORS, Chart
from annotruth.report.charts.drawing import Axis, Drawing, draw_x_ticks, short_number, text_width

_WIDTH = 760.0
_HEIGHT = 300.0
_LEFT, _RIGHT = 64.0, 12.0


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
            _draw_panel(drawing, panel, some, series, axes, n * step, (n + 1) * step)
        return drawing

    colors = CLASS_COLORS[: len(series)]
    return Chart(name, title, caption, columns, draw, colors=colors, width=_WIDTH)


def _draw_legend(drawing: Drawing, series: Sequence[str]) -> None:
    x = 8.0
    for n, label in enumerate(series):
        drawing.circle(x, 12, 5, f"at-k{n}")
        drawing.text(x + 10, 16, label)
        x += 28.0 + text_width([label], 400.0)


def _draw_panel(
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
