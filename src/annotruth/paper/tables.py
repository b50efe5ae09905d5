"""Means and standard errors over the runs beside the paper's figures, and the page of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.io.atomic import atomic_write_folder
from annotruth.io.writers import write_table
from annotruth.paper.experiment import Claim, Condition, Experiment, ExperimentRun, Settings
from annotruth.report.charts.chart import Chart

_HOW_TO_READ = (
    "Figures are means ± standard errors over the runs; where there is one run, over the items. "
    "The lead of a model is computed run by run, or item by item, on the same labels; higher is "
    "better throughout. A claim **holds** or **does not hold** if the figures support this by "
    "more than two standard errors, and is **undecided** in between."
)


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


def values_of(runs: Sequence[ExperimentRun], model: str, measure: str) -> list[float | None]:
    """Return a measure of a model in every run that has the model."""
    return [run.results[model].get(measure) for run in runs if model in run.results]


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
                for measure in experiment.columns(settings)
            }
            rows.append(ResultRow(condition, model, means))
    return rows


def to_markdown(experiment: Experiment, settings: Settings, rows: Sequence[ResultRow]) -> str:
    """Return the rows as a Markdown table, with the paper's figures beside ours."""
    measures = experiment.columns(settings)
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
        for measure in experiment.columns(settings)
    ]
    return pa.Table.from_pylist(lines)


@dataclass(frozen=True)
class ExperimentReport:
    """What is printed and written for an experiment."""

    name: str
    heading: str
    table: str
    notes: tuple[str, ...]
    claims: tuple[Claim, ...]
    settings: Settings
    rows: pa.Table
    chart: Chart | None

    def text(self) -> str:
        """Return what is printed: the table and the notes."""
        return "\n".join([self.heading, "", self.table, *(f"\n{note}" for note in self.notes)])

    def page(self) -> str:
        """Return the Markdown page."""
        parts = [self.text()]
        if self.chart is not None:
            title = self.heading.splitlines()[0].lstrip("# ")
            parts += [f"![{title}]({self.name}.svg)", self.chart.caption]
        if self.claims:
            parts += ["## Claims of the paper", claims_table(self.claims)]
        parts += ["## Settings", _settings_table(self.settings)]
        return "\n\n".join(parts) + "\n"


def make_report(
    experiment: Experiment, settings: Settings, runs: Sequence[ExperimentRun]
) -> ExperimentReport:
    """Return the report of an experiment from its runs."""
    if experiment.summary is not None:
        table, rows = experiment.summary(runs, settings)
    else:
        means = result_rows(experiment, settings, runs)
        table = to_markdown(experiment, settings, means)
        rows = to_arrow(experiment, settings, means)
    notes = experiment.notes(runs, settings) if experiment.notes else []
    return ExperimentReport(
        name=experiment.name,
        heading=f"# {experiment.title}\n\n{experiment.description}{_count_runs(experiment, runs)}",
        table=table,
        notes=(*notes, *_not_converged(experiment, runs)),
        claims=tuple(experiment.claims(runs, settings)) if experiment.claims else (),
        settings=settings,
        rows=rows,
        chart=experiment.chart(runs, settings) if experiment.chart else None,
    )


def write_report(report: ExperimentReport, folder: Path) -> list[str]:
    """Write the page, the table and the chart, all or none; return their file names."""
    with atomic_write_folder(folder) as temporary:
        (temporary / f"{report.name}.md").write_text(report.page(), "utf-8", newline="\n")
        write_table(report.rows, temporary / f"{report.name}.csv")
        if report.chart is not None:
            (temporary / f"{report.name}.svg").write_text(report.chart.svg(), "utf-8")
        return sorted(path.name for path in temporary.iterdir())


def write_claims(claims: Iterable[Claim], folder: Path) -> None:
    """Write one page with every claim, its evidence and verdict."""
    text = f"# The paper's claims, tested\n\n{_HOW_TO_READ}\n\n{claims_table(claims)}\n"
    with atomic_write_folder(folder) as temporary:
        (temporary / "claims.md").write_text(text, "utf-8", newline="\n")


def claims_table(claims: Iterable[Claim]) -> str:
    """Return claims as a Markdown table."""
    lines = [
        f"| {claim.statement} | {claim.source} | {claim.evidence} | **{claim.verdict}** |"
        for claim in claims
    ]
    return "\n".join(["| claim | section | evidence | verdict |", "|---|---|---|---|", *lines])


def _settings_table(settings: Settings) -> str:
    body = [[name, str(value)] for name, value in settings.items()]
    return markdown_table(["setting", "value"], body, n_left=2)


def _count_runs(experiment: Experiment, runs: Sequence[ExperimentRun]) -> str:
    if not experiment.is_random:
        return ""
    n_runs = len({run.number for run in runs})
    return f" Mean ± standard error over {n_runs} run{'s' if n_runs > 1 else ''}."


def _not_converged(experiment: Experiment, runs: Sequence[ExperimentRun]) -> list[str]:
    """Return a note for each model with fits that reached the maximum number of iterations."""
    notes = []
    for model, name in experiment.models.items():
        converged = [c for c in values_of(runs, model, "converged") if c is not None]
        n_capped = sum(c == 0.0 for c in converged)
        if n_capped:
            notes.append(
                f"{name} reached its maximum number of iterations in {n_capped} of "
                f"{len(converged)} fits."
            )
    return notes
