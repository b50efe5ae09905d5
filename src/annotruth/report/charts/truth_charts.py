"""Charts of a fit against known truths: calibration, confusion, scores and gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.metrics import accuracy_interval
from annotruth.report.charts import shapes
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import Axis, Drawing, draw_x_axis, draw_y_axis, y_axis_room
from annotruth.report.consensus import CategoryBins

_N_BINS = 10
_MAX_DOTS = 800


def calibration_chart(confidence: Floats, right: NDArray[np.bool_], error: float) -> Chart:
    """Return how often labels of about the same confidence are right: a reliability diagram."""
    place = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    counts = np.bincount(place, minlength=_N_BINS)
    some = np.flatnonzero(counts)
    n, n_right = counts[some], np.bincount(place, right, _N_BINS)[some]
    expected, share = np.bincount(place, confidence, _N_BINS)[some] / n, n_right / n
    low, high = accuracy_interval(n_right, n)
    data = {
        "from": (some / _N_BINS).tolist(),
        "to": ((some + 1) / _N_BINS).tolist(),
        "items": n.tolist(),
        "confidence": expected.tolist(),
        "right": share.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }
    tips = [
        f"confidence {e:.0%} on average, {s:.0%} right (95% interval {a:.0%} to {b:.0%}), {m:,} items"
        for e, s, a, b, m in zip(expected, share, low, high, n, strict=True)
    ]

    def draw(width: float) -> Drawing:
        drawing = Drawing(width, 320)
        left, right_end, top, bottom = 46.0, width - 16, 24.0, 276.0
        x, y = Axis(0.0, 1.0, left, right_end), Axis(0.0, 1.0, bottom, top)
        draw_y_axis(drawing, y, left, right_end, title="share right")
        draw_x_axis(drawing, x, top, bottom, title="confidence")
        drawing.line(x(0.0), y(0.0), x(1.0), y(1.0), "at-limit")
        for k, tip in enumerate(tips):

            def bar(k: int = k) -> None:
                a, b = x(data["from"][k]) + 1, x(data["to"][k]) - 1
                drawing.rect(a, y(share[k]), b - a, bottom - y(share[k]), "at-bar")
                drawing.line(x(expected[k]), y(low[k]), x(expected[k]), y(high[k]), "at-range")
                drawing.circle(x(expected[k]), y(share[k]), 4, "at-mark")
                drawing.text((a + b) / 2, bottom - 4, f"{n[k]:,}", "at-tick", "middle")

            drawing.group(tip, bar)
        return drawing

    return Chart(
        name="calibration",
        title="Calibration",
        caption="How often labels of about the same confidence are right, with 95% intervals and "
        "numbers of items; calibrated confidence is on the dashed line. The calibration error, the "
        f"mean distance from it, is {error:.3f}.",
        data=data,
        draw=draw,
    )


def confusion_chart(
    bins: CategoryBins, true: NDArray[np.int32], recovered: NDArray[np.int32]
) -> Chart:
    """Return how many items of each true category were recovered as each."""
    size = len(bins)
    place = bins.of[true] * size + bins.of[recovered]
    counts = np.bincount(place, minlength=size * size).reshape(size, size)
    rows, columns = (axis.ravel().tolist() for axis in np.indices(counts.shape))
    data: dict[str, Sequence[Any]] = {
        "true": [bins.names[k] for k in rows],
        "recovered": [bins.names[k] for k in columns],
        "items": counts.ravel().tolist(),
    }
    tips = [f"true {t}, recovered {r}: {m:,}" for t, r, m in zip(*data.values(), strict=True)]
    return Chart(
        name="confusion",
        title="Confusion matrix",
        caption="Items by their true label (rows) and their recovered label (columns). A stronger color is a "
        "larger share of the row.",
        data=data,
        draw=lambda width: shapes.confusion_matrix(
            bins.names, counts, width, tips, ("true ↓", "recovered →")
        ),
    )


def score_chart(names: Sequence[str], true: Floats, recovered: Floats) -> Chart:
    """Return the recovered scores against the true ones."""
    tips = [
        f"{name}: true {t:.2f}, recovered {r:.2f}"
        for name, t, r in zip(names, true, recovered, strict=True)
    ]
    return _scatter(
        "true-scores",
        "Scores against the truth",
        "One dot per item; recovered without error on the dashed line.",
        {"item": names, "true": true.tolist(), "recovered": recovered.tolist()},
        tips,
        ("true score", "recovered score"),
        diagonal=True,
    )


def grade_chart(names: Sequence[str], grade: Floats, score: Floats) -> Chart:
    """Return the scores of ranked items against their known grades."""
    tips = [
        f"{name}: grade {g:g}, score {s:.2f}"
        for name, g, s in zip(names, grade, score, strict=True)
    ]
    return _scatter(
        "grades",
        "Scores against known grades",
        "One dot per item; grades count by their order only.",
        {"item": names, "grade": grade.tolist(), "score": score.tolist()},
        tips,
        ("known grade", "score"),
        same_scale=False,
    )


def gold_chart(
    names: Sequence[str], estimate: str, value: Floats, share: Floats, n: Codes
) -> Chart:
    """Return how often annotators are right on gold items, against their accuracy or reliability."""
    tips = [
        f"{name}: {s:.0%} of {m:,} gold labels right, {estimate} {v:.2f}"
        for name, s, m, v in zip(names, share, n, value, strict=True)
    ]
    return _scatter(
        "gold",
        f"Right on gold items, by {estimate}",
        "One dot per annotator with labels on gold items.",
        {"annotator": names, estimate: value.tolist(), "right": share.tolist()},
        tips,
        (estimate, "share right on gold items"),
    )


def _scatter(
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
