"""The charts of a comparison of models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.distribution import Z_95
from annotruth.report.charts import shapes
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.pairs import pair_triangle


def comparison_charts(fitted: pa.Table, pairs: pa.Table) -> dict[str, Chart]:
    """Return the charts that the tables have data for, by name."""
    correlation = {"srocc": "SROCC", "plcc": "PLCC"}
    charts = [
        _held_out_chart(fitted),
        _accuracy_chart(fitted),
        _measure_chart("correlation", "Correlation of scores with the truth", fitted, correlation),
        _pair_chart("same-label", "same_label", "Items with the same label", fitted, pairs),
        _pair_chart(
            "score-correlation", "score_correlation", "Correlation of scores", fitted, pairs
        ),
    ]
    return {chart.name: chart for chart in charts if chart is not None}


def _held_out_chart(fitted: pa.Table) -> Chart | None:
    behind, error = (_numbers(fitted[name]) for name in ("behind", "behind_error"))
    some = ~np.isnan(behind)
    if some.sum() < 2:
        return None
    names = _names_of(fitted, some)
    value, half = 0.0 - behind[some], Z_95 * error[some]
    low, high = value - half, value + half
    ends = np.concatenate([value, low[~np.isnan(low)], high[~np.isnan(high)]])
    margin = 0.04 * (float(np.ptp(ends)) or 1.0)
    return _interval_chart(
        "held-out",
        "Prediction of held-out labels",
        "Mean log-probability per label, minus that of the best model: further right is better. Lines are 95% intervals of the difference on the same labels: a "
        "model whose line does not reach 0 predicts worse than the best one.",
        (names, value, low, high),
        (float(ends.min()) - margin, float(ends.max()) + margin),
        "difference in mean log-probability",
        limit=0.0,
    )


def _accuracy_chart(fitted: pa.Table) -> Chart | None:
    keys = ("accuracy", "accuracy_low", "accuracy_high")
    value, low, high = (_numbers(fitted[name]) for name in keys)
    some = ~np.isnan(value)
    if not some.any():
        return None
    return _interval_chart(
        "accuracy",
        "Accuracy",
        "Share of items with the right label, of those whose truth is known. Lines are 95% "
        "intervals; the items are the same for all models, so overlapping lines may still differ "
        "significantly.",
        (_names_of(fitted, some), value[some], low[some], high[some]),
        (max(float(low[some].min()) - 0.05, 0.0), min(float(high[some].max()) + 0.05, 1.0)),
        "accuracy",
    )


def _interval_chart(
    name: str,
    title: str,
    caption: str,
    rows: tuple[list[str], Floats, Floats, Floats],
    domain: tuple[float, float],
    axis: str,
    limit: float | None = None,
) -> Chart:
    """Return a chart of a value with its interval per model."""
    names, value, low, high = rows
    flagged = [False] * len(names)
    intervals = shapes.Intervals(
        names, value, low, high, flagged, domain, axis, limit=limit, digits=4
    )
    columns = {"model": names, name.replace("-", "_"): value.tolist()}
    return Chart(
        name=name,
        title=title,
        caption=caption,
        data=columns | {"low": low.tolist(), "high": high.tolist()},
        draw=partial(shapes.interval_rows, intervals),
    )


def _measure_chart(
    name: str, title: str, fitted: pa.Table, wanted: Mapping[str, str]
) -> Chart | None:
    """Return a chart of two measures per model on one line, the first in grey."""
    measures = {label: _numbers(fitted[key]) for key, label in wanted.items()}
    some = ~np.isnan(np.array(list(measures.values()))).all(axis=0)
    if not some.any():
        return None
    names = _names_of(fitted, some)
    series = [(label, values[some]) for label, values in measures.items()]
    lowest = min(float(np.nanmin(values)) for _, values in series if not np.isnan(values).all())
    domain = (min(0.0, lowest), 1.0)
    return Chart(
        name=name,
        title=title,
        caption="1 is best.",
        data={"model": names} | {label: values.tolist() for label, values in series},
        draw=lambda width: shapes.dumbbells(names, series, domain, width, title.lower()),
    )


def _pair_chart(
    name: str, column: str, title: str, fitted: pa.Table, pairs: pa.Table
) -> Chart | None:
    """Return a heat map of a measure of each pair of models that have it."""
    rows = [row for row in pairs.to_pylist() if row[column] is not None]
    with_value = {row[key] for row in rows for key in ("model", "other")}
    names = [model for model in fitted["model"].to_pylist() if model in with_value]
    if not names:
        return None
    index = {model: k for k, model in enumerate(names)}
    share = np.full((len(names), len(names)), np.nan)
    tips = [["" for _ in names] for _ in names]
    for row in rows:
        j, i = sorted((index[row["model"]], index[row["other"]]))
        share[i, j] = row[column]
        tips[i][j] = f"{names[i]} and {names[j]}: {row[column]:.4f}"
    return Chart(
        name=name,
        title=title,
        caption="In hundredths, rounded down; = is 1. A stronger color is closer. Each square compares the "
        "model at the right of its row with the model above its column.",
        data={"model": pairs["model"].to_pylist(), "other": pairs["other"].to_pylist(),
              column: _numbers(pairs[column]).tolist()},
        draw=lambda width: pair_triangle(names, share, width, tips),
    )  # fmt: skip


def _names_of(fitted: pa.Table, some: NDArray[np.bool_]) -> list[str]:
    return [name for name, kept in zip(fitted["model"].to_pylist(), some, strict=True) if kept]


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.array([np.nan if v is None else v for v in column.to_pylist()], dtype=np.float64)
