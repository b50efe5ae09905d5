"""The page of a comparison: the finding, tables of models and of pairs of models, with charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from annotruth.report.charts.chart import Chart
from annotruth.report.charts.comparison_charts import comparison_charts
from annotruth.report.charts.drawing import escaped
from annotruth.report.html import (
    facts,
    figure,
    make_page,
    pack,
    rounded,
    section,
    settings,
    side_by_side,
)

_LINKS = {
    "finding": "Finding",
    "models": "Models",
    "truth": "Truth",
    "agreement": "Agreement",
    "refused": "Not compared",
}


def comparison_page(
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
) -> str:
    """Return the page of a comparison, as HTML.

    Parameters
    ----------
    models, pairs
        The tables of `Comparison`: one row per model, one row per pair of models.
    finding, recommended
        Which model to take, one sentence, and its name.
    chosen, why
        The model that ``--model auto`` takes, and why, one sentence.
    labels
        A description of the labels.
    source
        The name of the labels, such as their file.
    reports
        The name of the folder beside the page that holds the report of each model, if there is one.
    """
    is_refused = models["refused"].is_valid()
    fitted, refused = models.filter(models["refused"].is_null()), models.filter(is_refused)
    charts = comparison_charts(fitted, pairs)
    sections = {
        "finding": _finding_section(fitted, finding, recommended, chosen, why),
        "models": _model_section(fitted, charts, reports),
        "truth": _chart_section("truth", "Scores against the truth", charts, ("correlation",)),
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


def _finding_section(
    fitted: pa.Table, finding: str, recommended: str | None, chosen: str | None, why: str
) -> str:
    rows = fitted.to_pylist()
    listed: list[tuple[str, object, str]] = []
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
    parts = [f'<p class="lead">{escaped(finding)}.</p>', facts(listed) if listed else ""]
    if why != finding:
        parts.append(f'<p class="quiet">{escaped(why)}.</p>')
    return section("finding", "Finding", *parts)


def _model_section(fitted: pa.Table, charts: Mapping[str, Chart], reports: str | None) -> str:
    figures = [figure(charts[name]) for name in ("held-out", "accuracy") if name in charts]
    return section(
        "models",
        "Models",
        side_by_side(*figures) if figures else "",
        _model_table(fitted, reports),
        '<p class="quiet">Held-out is the mean log-probability that a model, fitted without a '
        "label, gave to it: higher is better. Behind is how far a model is behind the best one on "
        "the same labels, in standard errors of the difference. Accuracy has its 95% interval. "
        "Spammers are annotators with a reliability below 0.5; robust-gpm counts those whom it flags "
        "as careless or consistently wrong. Seconds are those of one fit to all labels.</p>",
    )


def _model_table(fitted: pa.Table, reports: str | None) -> str:
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
    heads = ['<th scope="col">Model</th>']
    heads += [
        f'<th scope="col" class="{_cell_class(large)}">{t}</th>' for t, large in shown.values()
    ]
    heads += ['<th scope="col">Report</th>'] if reports is not None else []
    lines = []
    for row in fitted.to_pylist():
        cells = [f'<th scope="row">{escaped(row["model"])}</th>']
        cells += [
            f'<td class="{_cell_class(large)}">{_cell(name, row)}</td>'
            for name, (_, large) in shown.items()
        ]
        if reports is not None:
            address = f"{quote(reports, safe='')}/{quote(row['model'], safe='')}.html"
            cells.append(f'<td><a href="{escaped(address)}">open</a></td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="plain models"><table><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell_class(large_screens_only: bool) -> str:
    return "right minor" if large_screens_only else "right"


def _cell(name: str, row: Mapping[str, Any]) -> str:
    """Return a cell of the table of models, escaped."""
    value = row[name]
    if value is None:
        return ""
    if name == "behind":
        return _behind(value, row["behind_error"])
    if name == "accuracy":
        ends = f"{row['accuracy_low']:.3f} to {row['accuracy_high']:.3f}"
        return f"{value:.3f} <small>{ends}</small>"
    if name == "iterations":
        return f"{value:,}" + ("" if row["converged"] else " <small>not converged</small>")
    if name == "seconds":
        return f"{value:.2f}"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def _behind(behind: float, error: float | None) -> str:
    if behind == 0.0:
        return "best"
    exact = f"{behind:.4f} ± {'unknown' if error is None else f'{error:.4f}'}"
    return f"{behind / error:.1f} <small>{exact}</small>" if error else f"<small>{exact}</small>"


def _with_interval(row: Mapping[str, Any]) -> str:
    return (
        f"{row['accuracy']:.3f} (95% interval {row['accuracy_low']:.3f} to "
        f"{row['accuracy_high']:.3f})"
    )


def _chart_section(
    name: str, title: str, charts: Mapping[str, Chart], wanted: Sequence[str]
) -> str:
    figures = [figure(charts[each]) for each in wanted if each in charts]
    return section(name, title, side_by_side(*figures)) if figures else ""


def _refused_section(refused: pa.Table) -> str:
    if not len(refused):
        return ""
    reasons = {row["model"]: row["refused"] for row in refused.to_pylist()}
    return section("refused", "Models that do not suit these labels", settings(reasons))
