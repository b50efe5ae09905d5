"""What a part of the panel is, and how it becomes a table of means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from annotruth.errors import InputError
from annotruth.labels import Labels
from annotruth.models.result import Fit
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured, fit_model
from annotruth.paper.tables import markdown_table, mean_with_error

FIRST_SEED = 3000

Trial = Callable[[str], Measured]
"""One draw of labels: from a model's name to how well it did on them."""


@dataclass(frozen=True)
class Case:
    """Some rows of a table: what the labels are like, and how they are drawn from a seed."""

    cells: tuple[str, ...]
    trial: Callable[[int], Trial]
    models: tuple[str, ...] | None = None
    """Who is compared, where it is not the models asked for."""
    seeded: bool = True
    """Whether seeds differ; where they do not, one run says it all."""


@dataclass(frozen=True)
class Part:
    """One table: its cases, and the measures they share."""

    title: str
    about: str
    heads: tuple[str, ...]
    measures: tuple[Measure, ...]
    cases: tuple[Case, ...]


def answer(labels: Labels, model: str) -> Fit | None:
    """Fit a model, or return None where it is not made for such labels."""
    try:
        return fit_model(labels, model)
    except InputError:
        return None


def trial_on(labels: Labels, measure: Callable[[Fit], Measured]) -> Trial:
    """Make the trial that fits a model to the labels and measures what it found."""

    def trial(model: str) -> Measured:
        fit = answer(labels, model)
        return {} if fit is None else measure(fit)

    return trial


def to_markdown(part: Part, models: Sequence[str], runs: int) -> str:
    """Run a part and write its table; models that give none of the measures have no row."""
    head = [*part.heads, "model", *(measure.heading for measure in part.measures)]
    body = [row for case in part.cases for row in _rows(part, case, models, runs)]
    return markdown_table(head, body, n_left=len(part.heads) + 1)


def _rows(part: Part, case: Case, models: Sequence[str], runs: int) -> list[list[str]]:
    compared = models if case.models is None else case.models
    found: dict[str, list[Measured]] = {model: [] for model in compared}
    for seed in range(FIRST_SEED, FIRST_SEED + (runs if case.seeded else 1)):
        # Every model sees the same draw.
        trial = case.trial(seed)
        for model in compared:
            found[model].append(trial(model))
    rows = []
    for model, measured in found.items():
        figures = [
            str(mean_with_error([run.get(m.key) for run in measured])) for m in part.measures
        ]
        if any(figures):
            rows.append([*case.cells, model, *figures])
    return rows
