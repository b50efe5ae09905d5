"""The page of a comparison: tables of models and of pairs of models, with charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.distribution import Z_95
from annotruth.report.charts import shapes
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.drawing import escaped
from annotruth.report.html import (
    figure,
    make_page,
    pack,
    plain_table,
    rounded,
    section,
    side_by_side,
)

_TITLES = {
    "model": "Model",
    "held_out": "Held-out",
    "held_out_error": "±",
    "accuracy": "Accuracy",
    "f1_macro": "F1",
    "plcc": "PLCC",
    "srocc": "SROCC",
    "rmse": "RMSE",
    "spammers": "Spammers",
    "iterations": "Iterations",
    "converged": "Converged",
    "seconds": "Seconds",
}
_LINKS = {
    "models": "Models",
    "truth": "Truth",
    "agreement": "Agreement",
    "refused": "Not compared",
}


def comparison_page(
    models: pa.Table, pairs: pa.Table, *, why: str, labels: str, source: str | None = None
) -> str:
    """Return the page of a comparison, as HTML.

    Parameters
    ----------
    models, pairs
        The tables of `Comparison`: one row per model, one row per pair of models.
    why
        Which model is best for the labels and why, in one sentence.
    labels
        A description of the labels.
    source
        The name of the labels, such as their file.
    """
    is_refused = models["refused"].is_valid()
    fitted, refused = models.filter(models["refused"].is_null()), models.filter(is_refused)
    charts = comparison_charts(fitted, pairs)
    sections = {
        "models": _model_section(fitted, why, charts),
        "truth": _chart_section("truth", "Against the truth", charts, ("accuracy", "correlation")),
        "agreement": _chart_section(
            "agreement", "Agreement between models", charts, ("same-label", "score-correlation")
        ),
        "refused": _refused_section(refused),
    }
    sections = {name: content for name, content in sections.items() if content}
    return make_page(
        kind="Comparison of models",
        heading=source or "Labels",
        subheading=labels,
        links={name: _LINKS[name] for name in sections},
        sections=sections.values(),
        data=pack({"charts": {n: rounded(chart) for n, chart in charts.items()}, "tables": {}}),
        footer="Numbers are rounded; `annotruth compare --out FILE` writes them in full. This page "
        "works offline.",
    )


def comparison_charts(fitted: pa.Table, pairs: pa.Table) -> dict[str, Chart]:
    """Return the charts that the tables have data for, by name."""
    accuracy = {"f1_macro": "F1 (macro)", "accuracy": "accuracy"}
    correlation = {"srocc": "SROCC", "plcc": "PLCC"}
    charts = [
        _held_out_chart(fitted),
        _measure_chart("accuracy", "Accuracy and F1", fitted, accuracy),
        _measure_chart("correlation", "Correlation of scores with the truth", fitted, correlation),
        _pair_chart(
            "same-label", "same_label", "Share of items with the same label", fitted, pairs
        ),
        _pair_chart(
            "score-correlation", "score_correlation", "Correlation of scores", fitted, pairs
        ),
    ]
    return {chart.name: chart for chart in charts if chart is not None}


def _model_section(fitted: pa.Table, why: str, charts: Mapping[str, Chart]) -> str:
    shown = [name for name in _TITLES if fitted[name].null_count < len(fitted)]
    rows = [[_cell(row[name]) for name in shown] for row in fitted.to_pylist()]
    parts = [f'<p class="lead">{escaped(why)}.</p>']
    if "held-out" in charts:
        parts.append(side_by_side(figure(charts["held-out"])))
    parts.append(plain_table([_TITLES[name] for name in shown], rows))
    parts.append(
        '<p class="quiet">Held-out is the mean log-probability that a model, fitted without a '
        "label, gave to it: higher is better, and ± is its standard error. Seconds are those of "
        "one fit to all labels.</p>"
    )
    return section("models", "Models", *parts)


def _chart_section(
    name: str, title: str, charts: Mapping[str, Chart], wanted: Sequence[str]
) -> str:
    figures = [figure(charts[each]) for each in wanted if each in charts]
    return section(name, title, side_by_side(*figures)) if figures else ""


def _refused_section(refused: pa.Table) -> str:
    if not len(refused):
        return ""
    lines = [
        f"<li><p><b>{escaped(row['model'])}</b> {escaped(row['refused'])}</p></li>"
        for row in refused.to_pylist()
    ]
    listed = f'<div class="steps"><ul>{"".join(lines)}</ul></div>'
    return section("refused", "Models that do not suit these labels", listed)


def _held_out_chart(fitted: pa.Table) -> Chart | None:
    score, error = (_numbers(fitted[name]) for name in ("held_out", "held_out_error"))
    some = ~np.isnan(score)
    if not some.any():
        return None
    names = _names_of(fitted, some)
    value, half = score[some], Z_95 * error[some]
    low, high = value - half, value + half
    ends = np.concatenate([value, low[~np.isnan(low)], high[~np.isnan(high)]])
    margin = 0.04 * (float(np.ptp(ends)) or 1.0)
    intervals = shapes.Intervals(
        names, value, low, high, [False] * len(names),
        (float(ends.min()) - margin, float(ends.max()) + margin), "mean log-probability", digits=4,
    )  # fmt: skip
    return Chart(
        name="held-out",
        title="Prediction of held-out labels",
        caption="Further right is better. Lines are 95% intervals; the held-out labels are the "
        "same for all models, so overlapping bars may still differ significantly.",
        data={"model": names, "held_out": value.tolist(), "low": low.tolist(),
              "high": high.tolist()},
        draw=partial(shapes.interval_rows, intervals),
    )  # fmt: skip


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
    rows = pairs.to_pylist()
    with_value = {row[key] for row in rows if row[column] is not None for key in ("model", "other")}
    names = [model for model in fitted["model"].to_pylist() if model in with_value]
    if not names:
        return None
    index = {model: k for k, model in enumerate(names)}
    share = np.eye(len(names))
    tips = [model for model in names for _ in names]
    for row in rows:
        if row["model"] in index and row["other"] in index:
            value = row[column]
            one, other = index[row["model"]], index[row["other"]]
            share[one, other] = share[other, one] = np.nan if value is None else value
            text = "none" if value is None else f"{value:.4f}"
            for i, j in ((one, other), (other, one)):
                tips[i * len(names) + j] = f"{names[i]} and {names[j]}: {text}"
    numbered = [f"{k}  {model}" for k, model in enumerate(names, start=1)]
    columns = [str(k) for k in range(1, len(names) + 1)]
    return Chart(
        name=name,
        title=title,
        caption="Darker = closer; a square is empty where there is no number. Columns are numbered "
        "like rows.",
        data={"model": pairs["model"].to_pylist(), "other": pairs["other"].to_pylist(),
              column: _numbers(pairs[column]).tolist()},
        draw=lambda width: shapes.heatmap(numbered, columns, share, width, tips),
    )  # fmt: skip


def _names_of(fitted: pa.Table, some: NDArray[np.bool_]) -> list[str]:
    return [name for name, kept in zip(fitted["model"].to_pylist(), some, strict=True) if kept]


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.array([np.nan if v is None else v for v in column.to_pylist()], dtype=np.float64)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else f"{value}"
