"""The calibration chart: accuracy by confidence, one panel per model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import Axis, Drawing
from benchmarks.truth.scoring import Score

_SIDE, _GAP, _TOP, _COLUMNS = 150.0, 40.0, 28.0, 4
_MAX_RADIUS = 9.0
_MIN_ITEMS = 10  # a bin of fewer shows chance


class Curve(NamedTuple):
    """A model's accuracy by confidence; ``share`` is that of the items in the bin."""

    confidence: Floats
    accuracy: Floats
    share: Floats


def pooled_curve(scores: Mapping[str, Score]) -> Curve | None:
    """Return the curve over all sets, each with the same weight; None without probabilities."""
    bins = [score.bins for score in scores.values() if score.bins is not None]
    if not bins:
        return None
    shares = np.array([one.n / one.n.sum() for one in bins])
    total = shares.sum(axis=0)
    used = sum(one.n for one in bins) >= _MIN_ITEMS
    confidence, accuracy = (
        (shares * np.array([getattr(one, name) for one in bins])).sum(axis=0)[used] / total[used]
        for name in ("confidence", "accuracy")
    )
    return Curve(confidence, accuracy, total[used] / len(bins))


def calibration_chart(scores: Mapping[str, Mapping[str, Score]]) -> Chart | None:
    """Return the chart of all models that report probabilities."""
    curves = {
        model: curve
        for model, found in scores.items()
        if (curve := pooled_curve(found)) is not None
    }
    if not curves:
        return None
    columns = {
        "model": [model for model, curve in curves.items() for _ in curve.share],
        "confidence": [x for curve in curves.values() for x in curve.confidence.tolist()],
        "accuracy": [x for curve in curves.values() for x in curve.accuracy.tolist()],
        "share": [x for curve in curves.values() for x in curve.share.tolist()],
    }
    n_columns = min(_COLUMNS, len(curves))
    width = n_columns * (_SIDE + _GAP) + 8

    def draw(_: float) -> Drawing:
        n_rows = math.ceil(len(curves) / n_columns)
        drawing = Drawing(width, n_rows * (_SIDE + _TOP + _GAP))
        for n, (model, curve) in enumerate(curves.items()):
            row, column = divmod(n, n_columns)
            _draw_panel(
                drawing, model, curve,
                column * (_SIDE + _GAP) + _GAP, row * (_SIDE + _TOP + _GAP) + _TOP,
            )  # fmt: skip
        return drawing

    return Chart(
        "calibration",
        "Accuracy by confidence",
        "On the dashed line, items of 80% confidence are right 80% of the time; below it, the model "
        "is overconfident. The area of a dot is the share of items; bins of fewer than "
        f"{_MIN_ITEMS} items are left out.",
        columns,
        draw,
        width=width,
    )


def _draw_panel(drawing: Drawing, model: str, curve: Curve, left: float, top: float) -> None:
    right, bottom = left + _SIDE, top + _SIDE
    x, y = Axis(0.0, 1.0, left, right), Axis(0.0, 1.0, bottom, top)
    drawing.text(left, top - 8, model)
    for tick in (0.0, 0.5, 1.0):
        drawing.line(left, y(tick), right, y(tick), "at-grid")
        drawing.line(x(tick), top, x(tick), bottom, "at-grid")
        drawing.text(x(tick), bottom + 14, f"{tick:g}", "at-tick", "middle")
        drawing.text(left - 6, y(tick) + 4, f"{tick:g}", "at-tick", "end")
    drawing.text((left + right) / 2, bottom + 28, "confidence", "at-tick", "middle")
    drawing.line(x(0), y(0), x(1), y(1), "at-limit")
    points = [(x(a), y(b)) for a, b in zip(curve.confidence, curve.accuracy, strict=True)]
    drawing.path(points, "at-mark-line")
    for k, (a, b) in enumerate(points):
        share = float(curve.share[k])
        tip = (
            f"{model}: confidence {curve.confidence[k]:.2f}, accuracy {curve.accuracy[k]:.2f}, "
            f"{share:.1%} of the items"
        )
        drawing.circle(a, b, max(_MAX_RADIUS * math.sqrt(share), 1.5), "at-mark", tip=tip)
