"""Kinds of charts: each function takes columns and a width and returns a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import (
    Axis,
    Drawing,
    draw_x_axis,
    draw_x_ticks,
    draw_y_axis,
    shorten,
    text_width,
    y_axis_room,
)

_ROW_HEIGHT = 20.0
_PIXELS_PER_INTERVAL = 2.5  # at least, where many are drawn side by side
_MAX_DOTS = 800


@dataclass(frozen=True, eq=False)
class Intervals:
    """Values with intervals, in the order in which they are drawn; intervals may be missing."""

    # one entry per value
    names: Sequence[str]
    value: Floats
    low: Floats | None
    high: Floats | None
    flagged: Sequence[bool]  # which values are drawn in the warning color
    # the ends and the title of the axis
    domain: tuple[float, float]
    title: str
    limit: float | None = None  # where to draw a dashed line
    digits: int = 2  # how many decimals tips have

    @property
    def integers(self) -> bool:
        """Whether the values are whole numbers, such as ranks."""
        return self.digits == 0

    def tip(self, k: int) -> str:
        """Return the k-th value with its name and interval."""
        text = f"{self.names[k]}: {self.value[k]:.{self.digits}f}"
        if self.low is None or self.high is None or np.isnan(self.low[k]):
            return text
        low, high = (f"{end[k]:.{self.digits}f}" for end in (self.low, self.high))
        return f"{text} (95% interval {low} to {high})"

    def ends(self, k: int) -> tuple[float, float]:
        """Return the ends of the k-th interval, within the domain."""
        value = float(self.value[k])
        ends = [value if side is None else float(side[k]) for side in (self.low, self.high)]
        low, high = np.clip([value if np.isnan(end) else end for end in ends], *self.domain)
        return float(low), float(high)


def interval_rows(intervals: Intervals, width: float) -> Drawing:
    """Draw a dot and its interval in one row per name."""
    left = text_width(intervals.names, width * 0.4)
    drawing = Drawing(width, _ROW_HEIGHT * len(intervals.names) + 46)
    axis = Axis(*intervals.domain, left, width - 12)
    bottom = 6 + _ROW_HEIGHT * len(intervals.names)
    draw_x_axis(drawing, axis, 4, bottom, title=intervals.title, integers=intervals.integers)
    if intervals.limit is not None:
        x = axis(intervals.limit)
        drawing.line(x, 4, x, bottom, "at-limit")
    for k, name in enumerate(intervals.names):
        y = 6 + _ROW_HEIGHT * (k + 0.5)
        drawing.text(left - 8, y + 4, shorten(name, left), "at-text", "end")
        low, high = intervals.ends(k)
        with drawing.group(intervals.tip(k) + (" · drop" if intervals.flagged[k] else "")):
            drawing.rect(left, y - _ROW_HEIGHT / 2, width - left, _ROW_HEIGHT, "at-target")
            drawing.line(axis(low), y, axis(high), y, _line_class(intervals.flagged[k]))
            drawing.circle(axis(intervals.value[k]), y, 4, _dot_class(intervals.flagged[k]))
    return drawing


def ranked_intervals(intervals: Intervals, width: float, ranks_title: str) -> Drawing:
    """Draw many intervals side by side in their order, every k-th where they are too many."""
    drawing = Drawing(width, 280)
    top, bottom = 24.0, 236.0
    n, y = len(intervals.names), Axis(*intervals.domain, bottom, top)
    left = y_axis_room(y)
    x = Axis(1, max(n, 2), left + 6, width - 12)
    draw_y_axis(drawing, y, left, width - 6, title=intervals.title, integers=intervals.integers)
    ticks = [tick for tick in x.ticks(4 if width < 500 else 8, integers=True) if tick <= n]
    draw_x_ticks(drawing, x, ticks, bottom)
    drawing.text((left + width) / 2, bottom + 34, ranks_title, "at-tick", "middle")
    if intervals.limit is not None:
        drawing.line(left, y(intervals.limit), width - 6, y(intervals.limit), "at-limit")
    for k in thinned(n, width):
        low, high = intervals.ends(k)
        with drawing.group(intervals.tip(k)):
            drawing.line(x(k + 1), y(low), x(k + 1), y(high), _line_class(intervals.flagged[k]))
            drawing.circle(x(k + 1), y(intervals.value[k]), 2.2, _dot_class(intervals.flagged[k]))
    return drawing


def thinned(n: int, width: float) -> Codes:
    """Return which of n to draw: all, or as many as there is room for, evenly."""
    room = int(width / _PIXELS_PER_INTERVAL)
    return np.arange(n) if n <= room else np.unique(np.linspace(0, n - 1, room).round().astype(int))


def dumbbell_chart(
    name: str, title: str, caption: str, data: Mapping[str, Sequence[Any]],
    series: Mapping[str, Floats], domain: tuple[float, float], axis_title: str,
) -> Chart:  # fmt: skip
    """Chart several values of each name, which is in the first column of the data, on one line.

    Those of the first series are grey.
    """
    names = next(iter(data.values()))
    classes = ("at-given", "at-mark", "at-ring", "at-warn")

    def draw(width: float) -> Drawing:
        left = text_width(names, width * 0.4)
        top = 12.0 + 18.0 * len(series)
        bottom = top + 28.0 * len(names)
        drawing = Drawing(width, bottom + 40)
        axis = Axis(*domain, left, width - 12)
        for n, legend in enumerate(series):
            drawing.circle(left + 6, 8 + 18 * n, 5, classes[n])
            drawing.text(left + 18, 12 + 18 * n, legend, "at-tick")
        draw_x_axis(drawing, axis, top, bottom, title=axis_title)
        for k, each in enumerate(names):
            y = top + 28.0 * (k + 0.5)
            drawing.text(left - 8, y + 4, shorten(each, left), "at-text", "end")
            finite = [float(values[k]) for values in series.values() if not np.isnan(values[k])]
            if finite:
                drawing.line(axis(min(finite)), y, axis(max(finite)), y, "at-base")
            for n, (legend, values) in enumerate(series.items()):
                if not np.isnan(values[k]):
                    tip = f"{each}, {legend}: {values[k]:.3f}"
                    drawing.circle(axis(values[k]), y, 5, classes[n], tip=tip)
        return drawing

    columns = {key: values.tolist() for key, values in series.items()}
    return Chart(name, title, caption, {**data, **columns}, draw)


def histogram_chart(
    name: str, title: str, caption: str, edges: Any, counts: Codes, axis: str, unit: str,
    *, integers: bool = False,
) -> Chart:  # fmt: skip
    """Chart how many units there are between each two edges; of integers, bins end before the next."""

    def draw(width: float) -> Drawing:
        drawing = Drawing(width, 240)
        top, bottom = 24.0, 196.0
        y = Axis(0.0, max(float(counts.max()), 1.0), bottom, top)
        left = y_axis_room(y)
        x = Axis(float(edges[0]), float(edges[-1]), left, width - 12)
        draw_y_axis(drawing, y, left, width - 12, title=unit, integers=True)
        for low, high, count in zip(edges, edges[1:], counts, strict=False):
            span = f"{axis} {low:.2f} to {high:.2f}"
            if integers:
                span = f"{low:,.0f} to {high - 1:,.0f} {axis}"
            tip = f"{span}: {count:,} {unit} ({count / max(counts.sum(), 1):.1%})"
            bar = (x(low) + 0.5, y(count), x(high) - x(low) - 1, bottom - y(count))
            drawing.rect(*bar, "at-mark", tip=tip)
        draw_x_ticks(drawing, x, x.ticks(5, integers=integers), bottom)
        drawing.line(left, bottom, width - 12, bottom, "at-base")
        drawing.text((left + width) / 2, bottom + 34, axis, "at-tick", "middle")
        return drawing

    to = edges[1:] - 1 if integers else edges[1:]
    data = {"from": edges[:-1].tolist(), "to": to.tolist(), unit: counts.tolist()}
    return Chart(name, title, caption, data, draw)


def paired_bars(
    names: Sequence[str], given: Floats, recovered: Floats | None, css_classes: Sequence[str],
    width: float, tips: Sequence[str],
) -> Drawing:  # fmt: skip
    """Draw shares as bars: given in grey below, recovered in the category's color above."""
    height, top = (22.0, 6.0) if recovered is None else (30.0, 26.0)
    drawing = Drawing(width, top + height * len(names) + 28)
    left = text_width(names, width * 0.35)
    largest = max(float(given.max()), 0.0 if recovered is None else float(recovered.max()), 1e-9)
    axis = Axis(0.0, largest, left, width - 56)
    if recovered is not None:
        drawing.rect(left, 6, 10, 10, css_classes[0])
        drawing.text(left + 16, 15, "recovered", "at-tick")
        drawing.rect(left + 84, 6, 10, 10, "at-given")
        drawing.text(left + 100, 15, "as given", "at-tick")
    for k, name in enumerate(names):
        y = top + height * k
        drawing.text(left - 8, y + height / 2 + 2, shorten(name, left), "at-text", "end")
        share = given[k] if recovered is None else recovered[k]
        with drawing.group(tips[k]):
            drawing.rect(0, y, width, height, "at-target")
            drawing.rect(
                left, y + 4, axis(share) - left, 14 if recovered is None else 12, css_classes[k]
            )
            if recovered is not None:
                drawing.rect(left, y + 17, axis(given[k]) - left, 6, "at-given")
            drawing.text(axis(share) + 6, y + 15, f"{share:.1%}", "at-tick")
    drawing.line(left, top, left, top + height * len(names) + 2, "at-base")
    return drawing


def line(x: Floats, y: Floats, width: float, *, x_title: str, y_title: str) -> Drawing:
    """Draw one line."""
    drawing = Drawing(width, 240)
    left, top, bottom = 84.0, 24.0, 196.0
    x_axis = Axis(float(x.min()), max(float(x.max()), float(x.min()) + 1), left, width - 12)
    margin = 0.05 * (float(np.ptp(y)) or max(abs(float(y[0])) * 1e-6, 1e-9))
    y_axis = Axis(float(y.min()) - margin, float(y.max()) + margin, bottom, top)
    draw_y_axis(drawing, y_axis, left, width - 12, title=y_title)
    draw_x_ticks(drawing, x_axis, x_axis.ticks(5, integers=True), bottom)
    drawing.text((left + width) / 2, bottom + 34, x_title, "at-tick", "middle")
    drawn = thinned(len(x), width)
    points = [(x_axis(a), y_axis(b)) for a, b in zip(x[drawn], y[drawn], strict=True)]
    drawing.path(points, "at-mark-line")
    radius = 2.5 if len(drawn) > 60 else 3.5
    for k, (a, b) in zip(drawn, points, strict=True):
        drawing.circle(a, b, radius, "at-mark", tip=f"{x_title} {x[k]:,.0f}: {y[k]:,.4f}")
    return drawing


def _line_class(flagged: bool) -> str:
    return "at-warn-range" if flagged else "at-range"


def _dot_class(flagged: bool) -> str:
    return "at-warn" if flagged else "at-mark"


def scatter_chart(
    name: str, title: str, caption: str, data: Mapping[str, Sequence[Any]],
    tips: Sequence[str], titles: tuple[str, str], *, diagonal: bool = False,
    same_scale: bool = True,
) -> Chart:  # fmt: skip
    """Return dots at the second and third column of the data; the diagonal is where both are equal."""
    _, xs, ys = (np.asarray(column) for column in data.values())
    drawn = np.arange(len(xs))
    if len(xs) > _MAX_DOTS:
        drawn = np.linspace(0, len(xs) - 1, _MAX_DOTS).round().astype(np.int64)
        caption += f" {len(xs):,} are too many to draw: {_MAX_DOTS:,} are, evenly from the list."
    both = np.concatenate([xs, ys])
    x_ends, y_ends = (_ends(both),) * 2 if same_scale else (_ends(xs), _ends(ys))

    def draw(width: float) -> Drawing:
        drawing = Drawing(width, 320)
        top, bottom = 24.0, 276.0
        y = Axis(*y_ends, bottom, top)
        left = y_axis_room(y)
        x = Axis(*x_ends, left + 6, width - 16)
        draw_y_axis(drawing, y, left, width - 16, title=titles[1])
        draw_x_axis(drawing, x, top, bottom, title=titles[0])
        if diagonal:
            low, high = x_ends
            drawing.line(x(low), y(low), x(high), y(high), "at-limit")
        for k in drawn.tolist():
            drawing.circle(x(xs[k]), y(ys[k]), 3, "at-dot", tip=tips[k])
        return drawing

    kept = {key: [column[k] for k in drawn.tolist()] for key, column in data.items()}
    return Chart(name=name, title=title, caption=caption, data=kept, draw=draw)


def _ends(values: Floats) -> tuple[float, float]:
    """Return the ends of an axis for values, which may all be equal."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)
