"""An experiment's page: what was done, the table beside the paper's, notes, claims, a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from annotruth.io.atomic import atomic_write_folder
from annotruth.io.writers import write_table
from annotruth.paper import tables
from annotruth.paper.base import Claim, Experiment, Record, Settings
from annotruth.report import charts

_READING = (
    "Figures are means ± standard errors over the runs; where there is one run, over the items. "
    "A lead of a model is taken run by run, or item by item, on the same labels; higher is better "
    "throughout. A sentence **holds** or **does not hold** when the figures say so by more than "
    "two standard errors, and is **undecided** in between."
)


@dataclass(frozen=True)
class Report:
    """What is printed and written of an experiment."""

    name: str
    heading: str
    table: str
    notes: tuple[str, ...]
    claims: tuple[Claim, ...]
    settings: Settings
    rows: pa.Table
    spec: charts.Spec | None

    def text(self) -> str:
        """Return what is printed: the table and the notes."""
        return "\n".join([self.heading, "", self.table, *(f"\n{note}" for note in self.notes)])

    def page(self) -> str:
        """Return the Markdown page."""
        parts = [self.text()]
        if self.spec is not None:
            parts.append(f"![{self.heading.splitlines()[0].lstrip('# ')}]({self.name}.png)")
        if self.claims:
            parts += ["## What the paper says", claims_table(self.claims)]
        parts += ["## Settings", _settings_table(self.settings)]
        return "\n\n".join(parts) + "\n"


def report(experiment: Experiment, settings: Settings, records: Sequence[Record]) -> Report:
    """Make the report of an experiment from its runs."""
    if experiment.summary is not None:
        table, rows = experiment.summary(records, settings)
    else:
        summarised = tables.rows(experiment, settings, records)
        table = tables.to_markdown(experiment, settings, summarised)
        rows = tables.to_arrow(experiment, settings, summarised)
    chart = experiment.chart(records, settings) if experiment.chart else None
    notes = experiment.notes(records, settings) if experiment.notes else []
    return Report(
        name=experiment.name,
        heading=f"# {experiment.title}\n\n{experiment.about}{_how_often(experiment, records)}",
        table=table,
        notes=(*notes, *_unsettled(experiment, records)),
        claims=tuple(experiment.claims(records, settings)) if experiment.claims else (),
        settings=settings,
        rows=rows,
        spec=charts.filled(chart.spec, chart.records, chart.words) if chart else None,
    )


def write(report: Report, folder: Path) -> list[str]:
    """Write the page, the table and the picture, whole or not at all; return their names."""
    with atomic_write_folder(folder) as aside:
        (aside / f"{report.name}.md").write_text(report.page(), "utf-8", newline="\n")
        write_table(report.rows, aside / f"{report.name}.csv")
        if report.spec is not None:
            (aside / f"{report.name}.png").write_bytes(charts.png(report.spec))
            (aside / f"{report.name}.svg").write_text(charts.svg(report.spec), "utf-8")
        return sorted(path.name for path in aside.iterdir())


def write_claims(claims: Iterable[Claim], folder: Path) -> None:
    """Write one page of every claim and what was found."""
    text = f"# What the paper says, and what was found\n\n{_READING}\n\n{claims_table(claims)}\n"
    with atomic_write_folder(folder) as aside:
        (aside / "claims.md").write_text(text, "utf-8", newline="\n")


def claims_table(claims: Iterable[Claim]) -> str:
    """Write claims as a Markdown table."""
    body = [[claim.text, claim.place, claim.found, f"**{claim.verdict}**"] for claim in claims]
    lines = [f"| {' | '.join(cells)} |" for cells in body]
    return "\n".join(["| claim | where | found | |", "|---|---|---|---|", *lines])


def _settings_table(settings: Settings) -> str:
    body = [[name, str(value)] for name, value in settings.items()]
    return tables.aligned(["setting", "value"], body, n_left=2)


def _how_often(experiment: Experiment, records: Sequence[Record]) -> str:
    if not experiment.repeats:
        return ""
    runs = len({record.run for record in records})
    return f" Mean ± standard error over {runs} run{'s' if runs > 1 else ''}."


def _unsettled(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """Say which models reached their cap of iterations before they settled."""
    found = []
    for model, name in experiment.models.items():
        ends = [end for end in tables.values_of(records, model, "converged") if end is not None]
        capped = sum(end == 0.0 for end in ends)
        if capped:
            found.append(f"{name} reached its cap of iterations in {capped} of {len(ends)} fits.")
    return found
