"""The page of an experiment: description, table beside the paper's, notes, claims, chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from annotruth.io.atomic import atomic_write_folder
from annotruth.io.writers import write_table
from annotruth.paper import tables
from annotruth.paper.experiment import Claim, Experiment, ExperimentRun, Settings
from annotruth.report.charts.chart import Chart

_HOW_TO_READ = (
    "Figures are means ± standard errors over the runs; where there is one run, over the items. "
    "The lead of a model is computed run by run, or item by item, on the same labels; higher is "
    "better throughout. A claim **holds** or **does not hold** if the figures support this by "
    "more than two standard errors, and is **undecided** in between."
)


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
        means = tables.result_rows(experiment, settings, runs)
        table = tables.to_markdown(experiment, settings, means)
        rows = tables.to_arrow(experiment, settings, means)
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
    return tables.markdown_table(["setting", "value"], body, n_left=2)


def _count_runs(experiment: Experiment, runs: Sequence[ExperimentRun]) -> str:
    if not experiment.is_random:
        return ""
    n_runs = len({run.number for run in runs})
    return f" Mean ± standard error over {n_runs} run{'s' if n_runs > 1 else ''}."


def _not_converged(experiment: Experiment, runs: Sequence[ExperimentRun]) -> list[str]:
    """Return a note for each model with fits that reached the maximum number of iterations."""
    notes = []
    for model, name in experiment.models.items():
        converged = [c for c in tables.values_of(runs, model, "converged") if c is not None]
        n_capped = sum(c == 0.0 for c in converged)
        if n_capped:
            notes.append(
                f"{name} reached its maximum number of iterations in {n_capped} of "
                f"{len(converged)} fits."
            )
    return notes
