"""Means and standard errors over the runs, beside the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.paper.base import Condition, Experiment, Record, Settings


@dataclass(frozen=True)
class Figure:
    """A mean over runs with its standard error, and what the paper printed."""

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
class Row:
    """One condition and one model: a figure a measure, in the order of the measures."""

    condition: Condition
    model: str
    figures: dict[str, Figure]


def figure(values: Sequence[float | None], paper: float | None = None) -> Figure:
    """Return the mean and its standard error, ``sd / sqrt(n)`` with ``n - 1`` in the sd.

    Runs without a value, such as the correlation with a constant, are left out.
    """
    some = np.array([value for value in values if value is not None], dtype=np.float64)
    if some.size == 0:
        return Figure(None, None, 0, paper)
    error = float(some.std(ddof=1) / math.sqrt(some.size)) if some.size > 1 else None
    return Figure(float(some.mean()), error, int(some.size), paper)


def values_of(
    records: Sequence[Record],
    model: str,
    measure: str,
    where: Callable[[Condition], bool] = lambda condition: True,
) -> list[float | None]:
    """Return a measure of a model in the runs whose condition is asked for."""
    return [
        record.results[model].get(measure)
        for record in records
        if model in record.results and where(record.condition)
    ]


def rows(experiment: Experiment, settings: Settings, records: Sequence[Record]) -> list[Row]:
    """Summarise the records: one row a condition and model that gave results."""
    found = []
    for condition in experiment.conditions(settings):
        for model in experiment.models:
            mine = [r for r in records if r.condition == condition and model in r.results]
            if not mine:
                continue
            printed = experiment.paper.get((*condition.values(), model), {})
            figures = {
                measure.key: figure(values_of(mine, model, measure.key), printed.get(measure.key))
                for measure in experiment.measures(settings)
            }
            found.append(Row(condition, model, figures))
    return found


def to_markdown(experiment: Experiment, settings: Settings, rows: Sequence[Row]) -> str:
    """Write the rows as a table; a measure the paper printed has its figures beside ours."""
    measures = experiment.measures(settings)
    printed = {m.key for m in measures for row in rows if row.figures[m.key].paper is not None}
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
            found = row.figures[measure.key]
            cells.append(str(found))
            if measure.key in printed:
                cells.append("" if found.paper is None else f"{found.paper:.4f}")
        body.append(cells)
    return aligned(head, body, n_left)


def aligned(head: Sequence[str], body: Sequence[Sequence[str]], n_left: int) -> str:
    """Write a Markdown table that reads well as plain text; numbers from ``n_left`` on."""
    widths = [max(len(line[at]) for line in (head, *body)) for at in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if at < n_left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if at < n_left else "-" * (width - 1) + ":" for at, width in enumerate(widths)
    ]
    return "\n".join([line(head), line(rule), *map(line, body)])


def to_arrow(experiment: Experiment, settings: Settings, rows: Sequence[Row]) -> pa.Table:
    """Write the rows as a long table: one line a condition, model and measure."""
    lines: list[dict[str, Any]] = [
        {
            **row.condition,
            "model": row.model,
            "measure": measure.key,
            "mean": row.figures[measure.key].mean,
            "standard_error": row.figures[measure.key].error,
            "runs": row.figures[measure.key].n,
            "paper": row.figures[measure.key].paper,
        }
        for row in rows
        for measure in experiment.measures(settings)
    ]
    return pa.Table.from_pylist(lines)
