"""The page of a comparison: the finding, tables of models and of pairs of models, with charts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from annotruth.report.charts.chart import Chart
from annotruth.report.charts.comparison_charts import comparison_charts
from annotruth.report.render import (
    Fact,
    Facts,
    Link,
    Part,
    Section,
    Settings,
    SideBySide,
    Small,
    SmallTable,
    Text,
    make_page,
    write_page,
)

_MEANING = Text(
    "Held-out is the mean log-probability that a model, fitted without a label, gave to it: higher is "
    "better. Behind is how far a model is behind the best one on the same labels, in standard errors "
    "of the difference. Accuracy has its 95% interval. Spammers are annotators with a reliability "
    "below 0.5; robust-gpm counts those whom it flags as careless or consistently wrong. Seconds are "
    "those of one fit to all labels.",
    "quiet",
)


def write_comparison(
    path: str | Path,
    models: pa.Table,
    pairs: pa.Table,
    *,
    finding: str,
    recommended: str | None,
    chosen: str | None,
    why: str,
    labels: str,
    source: str | None = None,
    reports: str | None = None,
) -> None:
    """Write the page of a comparison of models.

    ``models``, ``pairs``: the tables of `Comparison`: one row per model, one row per pair of
      models.
    ``finding``, ``recommended``: which model to take, one sentence, and its name.
    ``chosen``, ``why``: the model that ``--model auto`` takes, and why, one sentence.
    ``labels``: a description of the labels.
    ``source``: the name of the labels, such as their file.
    ``reports``: the name of the folder beside the page that holds the report of each model, if
      there is one.
    """
    is_refused = models["refused"].is_valid()
    fitted, refused = models.filter(models["refused"].is_null()), models.filter(is_refused)
    charts = comparison_charts(fitted, pairs)
    page = make_page(
        kind="Comparison of models",
        heading=source or "Labels",
        subheading=labels,
        sections=[
            _finding_section(fitted, finding, recommended, chosen, why),
            _model_section(fitted, charts, reports),
            Section("truth", "Scores against the truth", _figures(charts, "correlation"), "Truth"),
            Section(
                "agreement",
                "Agreement between models",
                _figures(charts, "same-label", "score-correlation"),
                "Agreement",
            ),
            _refused_section(refused),
        ],
        footer="Numbers are rounded; `annotruth compare --out FILE` writes them in full. This page "
        "works offline.",
    )
    write_page(page, path)


def _finding_section(
    fitted: pa.Table, finding: str, recommended: str | None, chosen: str | None, why: str
) -> Section:
    rows = fitted.to_pylist()
    listed: list[Fact] = []
    if recommended is not None and chosen is not None:
        best = rows[0]
        listed = [
            ("Recommended", recommended, "the simplest within one standard error of the best"),
            ("Best prediction", best["model"], f"{best['held_out']:.4f} per held-out label"),
            ("--model auto takes", chosen, "the default unless another is better"),
        ]
    measured = [row for row in rows if row["accuracy"] is not None]
    if measured:
        top = max(measured, key=lambda row: row["accuracy"])
        listed.append(("Highest accuracy", top["model"], _with_interval(top)))
    parts: list[Part] = [Text(f"{finding}.", "lead"), Facts(listed) if listed else ""]
    if why != finding:
        parts.append(Text(f"{why}.", "quiet"))
    return Section("finding", "Finding", parts)


def _figures(charts: Mapping[str, Chart], *wanted: str) -> list[Part]:
    """Return those of some charts that there are, side by side."""
    found = [charts[name] for name in wanted if name in charts]
    return [SideBySide(found)] if found else []


def _model_section(fitted: pa.Table, charts: Mapping[str, Chart], reports: str | None) -> Section:
    figures = _figures(charts, "held-out", "accuracy")
    return Section("models", "Models", [*figures, _model_table(fitted, reports), _MEANING])


def _model_table(fitted: pa.Table, reports: str | None) -> SmallTable:
    """Return the table of models; a phone shows only the columns that matter most."""
    has_accuracy = fitted["accuracy"].null_count < len(fitted)
    columns: dict[str, tuple[str, bool]] = {  # the title, and whether it is for large screens only
        "held_out": ("Held-out", True),
        "behind": ("Behind", False),
        "accuracy": ("Accuracy", False),
        "f1_macro": ("F1", True),
        "plcc": ("PLCC", True),
        "srocc": ("SROCC", has_accuracy),
        "rmse": ("RMSE", True),
        "spammers": ("Spammers", True),
        "iterations": ("Iterations", True),
        "seconds": ("Seconds", True),
    }
    shown = {k: v for k, v in columns.items() if fitted[k].null_count < len(fitted)}
    header = ["Model", *(title for title, _ in shown.values())]
    rows = [[row["model"], *(_cell(name, row) for name in shown)] for row in fitted.to_pylist()]
    if reports is not None:
        header.append("Report")
        for row in rows:
            address = f"{quote(reports, safe='')}/{quote(row[0], safe='')}.html"
            row.append(Link("open", address=address))
    minor = [k for k, (_, large) in enumerate(shown.values(), start=1) if large]
    return SmallTable(header, rows, "models", minor, left=[len(shown) + 1])


def _cell(name: str, row: Mapping[str, Any]) -> Part:
    """Return a cell of the table of models."""
    value = row[name]
    if value is None:
        return ""
    if name == "behind":
        return _behind(value, row["behind_error"])
    if name == "accuracy":
        ends = f"{row['accuracy_low']:.3f} to {row['accuracy_high']:.3f}"
        return [f"{value:.3f} ", Small(ends)]
    if name == "iterations":
        return [f"{value:,}", *([] if row["converged"] else [" ", Small("not converged")])]
    if name == "seconds":
        return f"{value:.2f}"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def _behind(behind: float, error: float | None) -> Part:
    if behind == 0.0:
        return "best"
    exact = f"{behind:.4f} ± {'unknown' if error is None else f'{error:.4f}'}"
    return [f"{behind / error:.1f} ", Small(exact)] if error else Small(exact)


def _with_interval(row: Mapping[str, Any]) -> str:
    return (
        f"{row['accuracy']:.3f} (95% interval {row['accuracy_low']:.3f} to "
        f"{row['accuracy_high']:.3f})"
    )


def _refused_section(refused: pa.Table) -> Section:
    reasons = {row["model"]: row["refused"] for row in refused.to_pylist()}
    parts = [Settings(reasons)] if reasons else []
    return Section("refused", "Models that do not suit these labels", parts, "Not compared")
