"""What the runs of an experiment show: means beside the paper's figures, claims tested, and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.io.atomic import atomic_write_folder
from annotruth.io.writers import write_table
from annotruth.kernels.arrays import Floats
from annotruth.paper.experiment import (
    Claim,
    Condition,
    Experiment,
    ExperimentRun,
    Settings,
    Verdict,
)
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

    def __neg__(self) -> MeanWithError:
        return replace(self, mean=None if self.mean is None else -self.mean)

    def __sub__(self, other: MeanWithError | float) -> MeanWithError:
        """Return the difference from a bound, or from the mean over other runs."""
        if not isinstance(other, MeanWithError):
            return replace(self, mean=None if self.mean is None else self.mean - other)
        if self.mean is None or other.mean is None:
            return MeanWithError(None, None, 0)
        error = math.hypot(self.error or 0.0, other.error or 0.0)
        return MeanWithError(self.mean - other.mean, error, min(self.n, other.n))


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


class ExperimentReport(NamedTuple):
    """What is printed and written for an experiment."""

    name: str
    text: str  # what is printed: the table and the notes
    page: str  # in Markdown
    claims: Sequence[Claim]
    rows: pa.Table
    chart: Chart | None


def make_report(
    experiment: Experiment, settings: Settings, runs: Sequence[ExperimentRun]
) -> ExperimentReport:
    """Return the report of an experiment from its runs."""
    means = result_rows(experiment, settings, runs)
    table = to_markdown(experiment, settings, means)
    heading = f"# {experiment.title}\n\n{experiment.description}"
    if experiment.is_random:
        n_runs = len({run.number for run in runs})
        heading += f" Mean ± standard error over {n_runs} run{'s' if n_runs > 1 else ''}."
    notes = [*experiment.notes(runs, settings), *_not_converged(experiment, runs)]
    text = "\n".join([heading, "", table, *(f"\n{note}" for note in notes)])
    parts = [text]
    chart = None if experiment.chart is None else experiment.chart(runs, settings)
    if chart is not None:
        parts += [f"![{experiment.title}]({experiment.name}.svg)", chart.caption]
    claims = experiment.claims(runs, settings)
    if claims:
        parts += ["## Claims of the paper", claims_table(claims)]
    used = [[name, str(value)] for name, value in settings.items()]
    parts += ["## Settings", markdown_table(["setting", "value"], used, n_left=2)]
    page = "\n\n".join(parts) + "\n"
    rows = to_arrow(experiment, settings, means)
    return ExperimentReport(experiment.name, text, page, claims, rows, chart)


def write_report(report: ExperimentReport, folder: Path) -> list[str]:
    """Write the page, the table and the chart, all or none; return their file names."""
    with atomic_write_folder(folder) as temporary:
        (temporary / f"{report.name}.md").write_text(report.page, "utf-8", newline="\n")
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


# A difference of fewer standard errors than this may be chance.
_N_ERRORS = 2.0
_N_RESAMPLES = 1000


def paired_difference(
    runs: Sequence[ExperimentRun], measure: str, model: str, other: str
) -> MeanWithError:
    """Return the mean difference between two models, run by run on the same labels."""
    pairs = [
        (run.results[model].get(measure), run.results[other].get(measure))
        for run in runs
        if {model, other} <= run.results.keys()
    ]
    return mean_with_error([a - b for a, b in pairs if a is not None and b is not None])


def rmse_lead(runs: Sequence[ExperimentRun], model: str, other: str) -> MeanWithError:
    """Return by how much a model's RMSE is lower than another's."""
    return -paired_difference(runs, "rmse", model, other)


def smallest(means: Iterable[MeanWithError]) -> MeanWithError:
    """Return the smallest; one without a mean is smaller than any."""
    return min(means, key=lambda value: -math.inf if value.mean is None else value.mean)


def verdict_of(difference: MeanWithError) -> Verdict:
    """Return whether a difference is above zero by more than chance."""
    if difference.mean is None:
        return "not tested"
    margin = _N_ERRORS * (difference.error or 0.0)
    if difference.mean > margin:
        return "holds"
    # Without randomness an exact tie is no lead.
    return "does not hold" if difference.mean < -margin or margin == 0.0 else "undecided"


def combine_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several statements together: the worst of theirs."""
    present = set(verdicts)
    for worst in ("does not hold", "cannot be tested", "not tested", "undecided"):
        if worst in present:
            return worst
    return "holds"


Orders = Sequence[tuple[str, Sequence[str], Sequence[str]]]
"""Statements, models, and the others that each of them is said to be ahead of."""


def lead_claims(
    runs: Sequence[ExperimentRun],
    orders: Orders,
    source: str,
    measure: str,
    lead: Callable[[Sequence[ExperimentRun], str, str], MeanWithError],
    names: Mapping[str, str],
) -> list[Claim]:
    """Return the claims that every ``lead`` of a model over another is above zero."""
    claims = []
    for statement, models, others in orders:
        leads = {pair: lead(runs, *pair) for pair in product(models, others)}
        listed = ", ".join(
            f"{names[model]} over {names[other]} {gap}" for (model, other), gap in leads.items()
        )
        verdict = combine_verdicts(map(verdict_of, leads.values()))
        claims.append(Claim(statement, source, f"lead in {measure}: {listed}", verdict))
    return claims


class Crossing(NamedTuple):
    """Where a curve reaches a level, with a 95% interval.

    Minus or plus infinity: before the first or beyond the last point of the curve.
    """

    x: float
    low: float
    high: float

    def describe(self, unit: str, first: float, last: float, scale: float = 1.0) -> str:
        """Return the point and its interval as text."""

        def point(x: float) -> str:
            if np.isfinite(x):
                return f"{scale * x:.1f}{unit}"
            return f"below {scale * first:g}{unit}" if x < 0 else f"beyond {scale * last:g}{unit}"

        return f"{point(self.x)} (95%: {point(self.low)} to {point(self.high)})"


def find_crossing(x: Sequence[float], curve: Sequence[Floats], level: Floats) -> Crossing:
    """Find where the mean of ``curve``, one array of runs per point x, reaches that of ``level``.

    Linear between points. The interval is a bootstrap over the runs.
    """
    crossing = _crossing_point(x, np.array([values.mean() for values in curve]), level.mean())
    rng = np.random.default_rng(0)
    resampled = []
    for _ in range(_N_RESAMPLES):
        means = np.array([rng.choice(values, values.size).mean() for values in curve])
        resampled.append(_crossing_point(x, means, rng.choice(level, level.size).mean()))
    # By rank and not by quantile, which would interpolate between infinities.
    resampled.sort()
    n_outside = round(0.025 * _N_RESAMPLES)
    return Crossing(crossing, resampled[n_outside], resampled[-1 - n_outside])


def _crossing_point(x: Sequence[float], curve: Floats, level: float) -> float:
    """Return the first point where the curve passes the level."""
    above = curve - level
    for left in range(len(x) - 1):
        if above[left] == 0 or above[left] * above[left + 1] < 0:
            step = above[left] / (above[left] - above[left + 1])
            return float(x[left] + step * (x[left + 1] - x[left]))
    if above[-1] == 0:
        return float(x[-1])
    is_rising = curve[-1] > curve[0]
    return -np.inf if (above[0] > 0) == is_rising else np.inf
