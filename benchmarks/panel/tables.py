"""The description of a table of the panel, and its computation as means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from annotruth.errors import InputError
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.paper.experiment import Measure
from annotruth.paper.measures import Measured, fit_model
from annotruth.paper.tables import markdown_table, mean_with_error

FIRST_SEED = 3000

Trial = Callable[[str], Measured]
"""One simulated set of labels: from the name of a model to its measures on them."""


@dataclass(frozen=True)
class Case:
    """Rows of a table: a description of the labels, and how to draw them from a seed."""

    cells: tuple[str, ...]
    trial: Callable[[int], Trial]
    models: tuple[str, ...] | None = None
    """The models compared, if not those on the command line."""
    seeded: bool = True
    """Whether results depend on the seed; if not, there is one run."""


@dataclass(frozen=True)
class PanelTable:
    """A table: its cases and their measures."""

    title: str
    description: str
    heads: tuple[str, ...]
    measures: tuple[Measure, ...]
    cases: tuple[Case, ...]


def fit_if_supported(labels: Labels, model: str) -> Fit | None:
    """Fit a model; return None if it does not support such labels."""
    try:
        return fit_model(labels, model)
    except InputError:
        return None


def trial_on(labels: Labels, measure: Callable[[Fit], Measured]) -> Trial:
    """Return the trial that fits a model to the labels and measures the result."""

    def trial(model: str) -> Measured:
        fit = fit_if_supported(labels, model)
        return {} if fit is None else measure(fit)

    return trial


def to_markdown(table: PanelTable, models: Sequence[str], runs: int) -> str:
    """Compute a table; models without any of the measures have no row."""
    head = [*table.heads, "model", *(measure.heading for measure in table.measures)]
    body = [row for case in table.cases for row in _rows(table, case, models, runs)]
    return markdown_table(head, body, n_left=len(table.heads) + 1)


def _rows(table: PanelTable, case: Case, models: Sequence[str], runs: int) -> list[list[str]]:
    compared = models if case.models is None else case.models
    results: dict[str, list[Measured]] = {model: [] for model in compared}
    for seed in range(FIRST_SEED, FIRST_SEED + (runs if case.seeded else 1)):
        # All models are fitted to the same labels.
        trial = case.trial(seed)
        for model in compared:
            results[model].append(trial(model))
    rows = []
    for model, measured in results.items():
        figures = [
            str(mean_with_error([run.get(m.key) for run in measured])) for m in table.measures
        ]
        if any(figures):
            rows.append([*case.cells, model, *figures])
    return rows
