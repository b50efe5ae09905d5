"""Kinds of charts: each function takes columns and a width and returns a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import (
    Axis,
    Drawing,
    draw_axes,
    draw_x_ticks,
    shorten,
    text_width,
)

_ROW_HEIGHT = 20.0
_PIXELS_PER_INTERVAL = 2.5  # at least, where many are drawn side by side
_MAX_DOTS = 800
_MAX_LABELS, _LABEL_HEIGHT = 10, 15.0  # of names above many intervals


@dataclass(frozen=True, eq=False)
class Intervals:
    """Values with intervals, in the order in which they are drawn; intervals may be missing."""

    # one entry per value
    names: Sequence[str]
    value: Floats
    low: Floats | None
    high: Floats | None
    flagged: Any  # which values are drawn in the warning color; None: none of them
    # which values are named where there is no room for all names; None: none of them
    named: Any = field(default=None, kw_only=True)
    # the ends and the title of the axis
    domain: tuple[float, float]
    title: str
    limit: float | None = None  # where to draw a dashed line
    digits: int = 2  # how many decimals tips have

    def sorted(self) -> Intervals:
        """Return the values in their order, the lowest first."""
        order = np.argsort(self.value, kind="stable")
        in_order: Any = {
            each: None if getattr(self, each) is None else getattr(self, each)[order]
            for each in ("value", "low", "high", "flagged", "named")
        }
        return replace(self, names=[self.names[k] for k in order], **in_order)

    def columns(self, who: str) -> dict[str, Sequence[Any]]:
        """Return the table of the values; ``who`` is the heading of the names."""
        ends = {"low": self.low, "high": self.high}
        return {who: self.names, self.title: self.value.tolist()} | {
            end: values.tolist() for end, values in ends.items() if values is not None
        }

    def is_flagged(self, k: int) -> bool:
        """Return whether the k-th value is drawn in the warning color."""
        return self.flagged is not None and bool(self.flagged[k])

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
    ticks = axis.ticks(5, integers=intervals.digits == 0)
    for tick in ticks:
        drawing.line(axis(tick), 4, axis(tick), bottom, "at-grid")
    draw_x_ticks(drawing, axis, ticks, bottom)
    drawing.text((left + axis.end) / 2, bottom + 34, intervals.title, "at-tick", "middle")
    if intervals.limit is not None:
        x = axis(intervals.limit)
        drawing.line(x, 4, x, bottom, "at-limit")
    for k, name in enumerate(intervals.names):
        y = 6 + _ROW_HEIGHT * (k + 0.5)
        drawing.text(left - 8, y + 4, shorten(name, left), "at-text", "end")
        low, high = intervals.ends(k)
        with drawing.group(intervals.tip(k) + (" · drop" if intervals.is_flagged(k) else "")):
            drawing.rect(left, y - _ROW_HEIGHT / 2, width - left, _ROW_HEIGHT, "at-target")
            drawing.line(axis(low), y, axis(high), y, _line_class(intervals.is_flagged(k)))
            drawing.circle(axis(intervals.value[k]), y, 4, _dot_class(intervals.is_flagged(k)))
    return drawing


def ranked_intervals(intervals: Intervals, width: float, ranks_title: str) -> Drawing:
    """Draw many intervals side by side in their order, every k-th where they are too many.

    Those in question have their names above the plot, each on a line of its own: the first is the
    highest, so that none crosses another one's line.
    """
    n, drawn = len(intervals.names), thinned(len(intervals.names), width)
    named = [] if intervals.named is None else drawn[intervals.named[drawn]][:_MAX_LABELS].tolist()
    band = _LABEL_HEIGHT * len(named)
    drawing = Drawing(width, 280 + band)
    ends, titles = (1.0, max(n, 2.0)), (ranks_title, intervals.title)
    integers = "xy" if intervals.digits == 0 else "x"
    x, y = draw_axes(drawing, ends, intervals.domain, titles, inset=6, integers=integers, band=band)
    for row, k in enumerate(named):
        line, is_left = 20 + _LABEL_HEIGHT * (row + 1), x(k + 1) < 0.6 * width
        drawing.line(x(k + 1), line - 9, x(k + 1), y(intervals.ends(k)[1]), "at-leader")
        room = width - x(k + 1) if is_left else x(k + 1) - x.start
        place = (x(k + 1) + 4, "start") if is_left else (x(k + 1) - 4, "end")
        drawing.text(place[0], line, shorten(intervals.names[k], room), "at-text", place[1])
    if intervals.limit is not None:
        drawing.line(x.start - 6, y(intervals.limit), x.end, y(intervals.limit), "at-limit")
    for k in drawn:
        low, high = intervals.ends(k)
        with drawing.group(intervals.tip(k)):
            drawing.line(x(k + 1), y(low), x(k + 1), y(high), _line_class(intervals.is_flagged(k)))
            drawing.circle(
                x(k + 1), y(intervals.value[k]), 2.2, _dot_class(intervals.is_flagged(k))
            )
    return drawing


def thinned(n: int, width: float) -> Codes:
    """Return which of n to draw: all, or as many as there is room for, evenly."""
    room = int(width / _PIXELS_PER_INTERVAL)
    return np.arange(n) if n <= room else np.unique(np.linspace(0, n - 1, room).round().astype(int))


def bars(
    edges: Any, counts: Any, width: float, titles: tuple[str, str], tips: Sequence[str],
    **options: Any,
) -> Drawing:  # fmt: skip
    """Draw counts as bars between edges; ``options`` are those of `draw_axes`."""
    drawing = Drawing(width, 240)
    ends, tallest = (float(edges[0]), float(edges[-1])), max(float(max(counts)), 1.0)
    x, y = draw_axes(drawing, ends, (0.0, tallest), titles, **options)
    for low, high, count, tip in zip(edges[:-1], edges[1:], counts, tips, strict=True):
        gap = 1.0 if x(high) - x(low) > 3.0 else 0.0
        size = x(high) - x(low) - gap, y(0.0) - y(count)
        drawing.rect(x(low) + gap / 2, y(count), *size, "at-mark", tip=tip)
    drawing.line(x.start, y(0.0), x.end, y(0.0), "at-base")
    return drawing


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


def line(x: Floats, y: Floats, width: float, titles: tuple[str, str]) -> Drawing:
    """Draw one line; x are whole numbers."""
    drawing = Drawing(width, 240)
    margin = 0.05 * (float(np.ptp(y)) or max(abs(float(y[0])) * 1e-6, 1e-9))
    x_ends = float(x.min()), max(float(x.max()), float(x.min()) + 1)
    y_ends = float(y.min()) - margin, float(y.max()) + margin
    x_axis, y_axis = draw_axes(drawing, x_ends, y_ends, titles, integers="x")
    drawn = thinned(len(x), width)
    points = [(x_axis(a), y_axis(b)) for a, b in zip(x[drawn], y[drawn], strict=True)]
    drawing.path(points, "at-mark-line")
    radius = 2.5 if len(drawn) > 60 else 3.5
    for k, (a, b) in zip(drawn, points, strict=True):
        drawing.circle(a, b, radius, "at-mark", tip=f"{titles[0]} {x[k]:,.0f}: {y[k]:,.4f}")
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
        x, y = draw_axes(drawing, x_ends, y_ends, titles, inset=6)
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
