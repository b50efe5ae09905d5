"""The page of a comparison of models: the finding, the models, and how far pairs of them agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Floats
from annotruth.report.charts import matrices
from annotruth.report.charts.chart import Chart
from annotruth.report.page import Page, check_name
from annotruth.report.render import (
    Section,
    Settings,
    SideBySide,
    SmallTable,
    Text,
    fill,
)

if TYPE_CHECKING:
    from annotruth.selection.compare import Comparison

_MEANING = Text(
    "Held-out is the mean log-probability that a model, fitted without a label, gave to it: higher is "
    "better. Behind is how far a model is behind the best one on the same labels, with the standard "
    "error of the difference. Accuracy has its 95% interval. Spammers are annotators with a reliability "
    "below 0.5; robust-gpm counts those whom it flags as careless or consistently wrong. Seconds are "
    "those of one fit to all labels.",
    "quiet",
)
_COLUMNS = {  # by heading: the column of the table, the cell, and whether it needs a large screen
    "Held-out": ("held_out", "{held_out:.4f}", True),
    "Behind": ("behind", "{behind:.4f} (± {behind_error:.4f})", False),
    "Accuracy": ("accuracy", "{accuracy:.3f} ({accuracy_low:.3f} to {accuracy_high:.3f})", False),
    "F1": ("f1_macro", "{f1_macro:.4f}", True),
    "PLCC": ("plcc", "{plcc:.4f}", True),
    "SROCC": ("srocc", "{srocc:.4f}", False),
    "RMSE": ("rmse", "{rmse:.4f}", True),
    "Spammers": ("spammers", "{spammers:,}", True),
    "Iterations": ("iterations", "{iterations:,}", True),
    "Converged": ("converged", "{converged}", True),
    "Seconds": ("seconds", "{seconds:.2f}", True),
}


def write_comparison(
    compared: Comparison, path: str | Path, *, source: str | None = None, title: str | None = None
) -> None:
    """Write the page of a comparison of models; ``source`` names the labels, such as their file."""
    check_name(path)
    models = compared.model_table()
    fitted = models.filter(models["refused"].is_null())
    refused = models.filter(models["refused"].is_valid()).to_pylist()
    pairs = compared.agreement_table()
    figures = [
        _pair_chart("same-label", "same_label", "Items with the same label", fitted, pairs),
        _pair_chart(
            "score-correlation", "score_correlation", "Correlation of scores", fitted, pairs
        ),
    ]
    found = [chart for chart in figures if chart is not None]
    why = Text("" if compared.why == compared.finding else f"{compared.why}.", "quiet")
    reasons = Settings({row["model"]: row["refused"] for row in refused})
    Page(
        kind="Comparison of models",
        heading="Labels",
        described=compared.data.describe(),
        sections=[
            Section("finding", "Finding", [Text(f"{compared.finding}.", "lead"), why]),
            Section("models", "Models", [_model_table(fitted), _MEANING]),
            Section(
                "agreement",
                "Agreement between models",
                [SideBySide(found)] if found else [],
                "Agreement",
            ),
            Section(
                "refused",
                "Models that do not suit these labels",
                [reasons] if refused else [],
                "Not compared",
            ),
        ],
        footer="Numbers are rounded; `annotruth compare --out FILE` writes them in full.",
    ).headed(source, title).write(path)


def _model_table(fitted: pa.Table) -> SmallTable:
    """Return the table of models; a phone shows only the columns that matter most."""
    known = [name for name in fitted.column_names if fitted[name].null_count < len(fitted)]
    shown = {heading: rest for heading, rest in _COLUMNS.items() if rest[0] in known}
    rows = [
        [row["model"], *(fill(template, row) for _, template, _ in shown.values())]
        for row in fitted.to_pylist()
    ]
    minor = [
        k
        for k, (name, _, needs_room) in enumerate(shown.values(), start=1)
        if needs_room or (name == "srocc" and "accuracy" in known)
    ]
    return SmallTable(["Model", *shown], rows, "models", minor)


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
    columns = {key: pairs[key].to_pylist() for key in ("model", "other")}
    return Chart(
        name=name,
        title=title,
        caption="In hundredths, rounded down; = is 1. A stronger color is closer. Each square "
        "compares the model at the right of its row with the model above its column.",
        data={**columns, column: _numbers(pairs[column]).tolist()},
        draw=lambda width: matrices.pair_triangle(names, share, width, tips),
    )


def _numbers(column: pa.ChunkedArray) -> Floats:
    return np.array([np.nan if v is None else v for v in column.to_pylist()], dtype=np.float64)
