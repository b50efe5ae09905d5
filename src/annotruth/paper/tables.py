"""Means and standard errors over the runs, beside the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.paper.experiment import Condition, Experiment, ExperimentRun, Settings


@dataclass(frozen=True)
class MeanWithError:
    """A mean over runs with its standard error, and the figure printed in the paper."""

    mean: float | None
    error: float | None
    n: int
    paper: float | None = None

    def __str__(self) -> str:
        if self.mean is None:
            return ""
        text = f"{self.mean:.4f}"
        return text if self.error is None else f"{text} ± {self.error:.4f}"


@dataclass(frozen=True)
class ResultRow:
    """The means of one condition and one model, by measure."""

    condition: Condition
    model: str
    means: dict[str, MeanWithError]


def mean_with_error(values: Sequence[float | None], paper: float | None = None) -> MeanWithError:
    """Return the mean and its standard error, ``sd / sqrt(n)`` with ``n - 1`` in the sd.

    Runs without a value, such as the correlation with a constant, are left out.
    """
    present = np.array([value for value in values if value is not None], dtype=np.float64)
    if present.size == 0:
        return MeanWithError(None, None, 0, paper)
    error = float(present.std(ddof=1) / math.sqrt(present.size)) if present.size > 1 else None
    return MeanWithError(float(present.mean()), error, int(present.size), paper)


def any_condition(condition: Condition) -> bool:
    """Return True: every condition counts."""
    return True


def values_of(
    runs: Sequence[ExperimentRun],
    model: str,
    measure: str,
    where: Callable[[Condition], bool] = any_condition,
) -> list[float | None]:
    """Return a measure of a model in every run whose condition is selected."""
    return [
        run.results[model].get(measure)
        for run in runs
        if model in run.results and where(run.condition)
    ]


def result_rows(
    experiment: Experiment, settings: Settings, runs: Sequence[ExperimentRun]
) -> list[ResultRow]:
    """Return one row per condition and model that has results."""
    rows = []
    for condition in experiment.conditions(settings):
        for model in experiment.models:
            selected = [run for run in runs if run.condition == condition and model in run.results]
            if not selected:
                continue
            printed = experiment.printed.get((*condition.values(), model), {})
            means = {
                measure.key: mean_with_error(
                    values_of(selected, model, measure.key), printed.get(measure.key)
                )
                for measure in experiment.measures(settings)
            }
            rows.append(ResultRow(condition, model, means))
    return rows


def to_markdown(experiment: Experiment, settings: Settings, rows: Sequence[ResultRow]) -> str:
    """Return the rows as a Markdown table, with the paper's figures beside ours."""
    measures = experiment.measures(settings)
    printed = {m.key for m in measures for row in rows if row.means[m.key].paper is not None}
    head = list(rows[0].condition) + (["model"] if len(experiment.models) > 1 else [])
    n_left = len(head)
    for measure in measures:
        head += [measure.heading, "paper"] if measure.key in printed else [measure.heading]
    body = []
    for row in rows:
        cells = [str(value) for value in row.condition.values()]
        if len(experiment.models) > 1:
            cells.append(experiment.models[row.model])
        for measure in measures:
            mean = row.means[measure.key]
            cells.append(str(mean))
            if measure.key in printed:
                cells.append("" if mean.paper is None else f"{mean.paper:.4f}")
        body.append(cells)
    return markdown_table(head, body, n_left)


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]], n_left: int) -> str:
    """Return a Markdown table with padded cells; columns from ``n_left`` on align right."""
    widths = [max(len(line[column]) for line in (head, *body)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column < n_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if column < n_left else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join([line(head), line(rule), *map(line, body)])


def to_arrow(experiment: Experiment, settings: Settings, rows: Sequence[ResultRow]) -> pa.Table:
    """Return the rows as a long table: one line per condition, model and measure."""
    lines: list[dict[str, Any]] = [
        {
            **row.condition,
            "model": row.model,
            "measure": measure.key,
            "mean": row.means[measure.key].mean,
            "standard_error": row.means[measure.key].error,
            "runs": row.means[measure.key].n,
            "paper": row.means[measure.key].paper,
        }
        for row in rows
        for measure in experiment.measures(settings)
    ]
    return pa.Table.from_pylist(lines)
