"""Charts of reliability over the labels of annotators, one small panel per annotator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from annotruth.kernels.arrays import Floats
from annotruth.report.charts.drawing import Axis, Drawing, short_number, shorten

_PANEL_WIDTH, _PANEL_HEIGHT = 270.0, 132.0


class Trajectory(NamedTuple):
    """Reliability with its interval at some labels of an annotator."""

    name: str  # the title of the panel
    x: Floats  # the number of the label that each value is at
    # the reliability and the ends of its interval
    value: Floats
    low: Floats
    high: Floats
    changes: Sequence[float]  # the numbers of the labels from which on it changed
    tips: Sequence[str]  # what is said of each value
    ends: tuple[str, str]  # what stands under the first and the last value


def draw_trajectories(panels: Sequence[Trajectory], width: float, limit: float) -> Drawing:
    """Draw one panel per trajectory, in rows, with a dashed line at the limit and at changes."""
    n_columns = max(min(int(width // (_PANEL_WIDTH * 0.95)), len(panels)), 1)
    step = width / n_columns
    drawing = Drawing(width, -(-len(panels) // n_columns) * _PANEL_HEIGHT)
    for n, panel in enumerate(panels):
        left, top = (n % n_columns) * step, (n // n_columns) * _PANEL_HEIGHT
        margin = 0.04 * (float(panel.x[-1] - panel.x[0]) or 1.0)
        x_axis = Axis(panel.x[0] - margin, panel.x[-1] + margin, left + 34, left + step - 14)
        _draw_panel(
            drawing, panel, x_axis, Axis(0.0, 1.0, top + _PANEL_HEIGHT - 26, top + 24), limit
        )
    return drawing


def _draw_panel(
    drawing: Drawing, panel: Trajectory, x_axis: Axis, y_axis: Axis, limit: float
) -> None:
    left, right, bottom, top = x_axis.start, x_axis.end, y_axis.start, y_axis.end
    drawing.text(left, top - 8, shorten(panel.name, right - left))
    for tick in (0.0, limit, 1.0):
        drawing.line(
            left, y_axis(tick), right, y_axis(tick), "at-limit" if tick == limit else "at-grid"
        )
        drawing.text(left - 6, y_axis(tick) + 4, short_number(tick), "at-tick", "end")
    first, last = panel.ends
    drawing.text(left, bottom + 16, first, "at-tick")
    drawing.text(right, bottom + 16, last, "at-tick", "end")
    for change in panel.changes:
        drawing.line(x_axis(change), top, x_axis(change), bottom, "at-warn-range at-thick")
    places = [x_axis(x) for x in panel.x.tolist()]
    for x, low, high in zip(places, panel.low.tolist(), panel.high.tolist(), strict=True):
        drawing.line(x, y_axis(low), x, y_axis(high), "at-range")
    points = [(x, y_axis(value)) for x, value in zip(places, panel.value.tolist(), strict=True)]
    drawing.path(points, "at-mark-line")
    for (x, y), tip in zip(points, panel.tips, strict=True):
        drawing.circle(x, y, 2.6, "at-mark", tip=tip)
