"""What the parts share: their options, figures that may be missing, and tables as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.readers import read_labels
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.models.result import Fit
from annotruth.observations import Labels, ScaleKind
from benchmarks.honesty.options import PartTable, Target, TargetFigure, fit_model

MISSING = "-"
"""A figure that a model does not have, or that has no value."""


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """The options of the command line; None where a part has its own default."""

    data_dir: Path
    models: tuple[str, ...] | None = None
    sets: tuple[str, ...] | None = None
    runs: int | None = None
    seed: int = 8000

    def models_or(self, default: tuple[str, ...] = (DEFAULT_MODEL,)) -> tuple[str, ...]:
        """Return the models to fit, or the part's default."""
        return default if self.models is None else self.models

    def runs_or(self, default: int) -> int:
        """Return the number of runs, or the part's default."""
        return default if self.runs is None else self.runs

    def folders(self, names: tuple[str, ...], *, truth: bool | None = None) -> list[Path]:
        """Return the folders of a part's sets that are there.

        With ``sets``, these are those of the part and others, which have a truth if ``truth``, or
        none if it is False.
        """
        if self.sets is None:
            return [path for name in names if has_labels(path := self.data_dir / name)]
        missing = [name for name in self.sets if not has_labels(self.data_dir / name)]
        if missing:
            raise InputError(f"no labels.csv in {self.data_dir} for {', '.join(missing)}")
        return [
            path
            for path in (self.data_dir / name for name in self.sets)
            if path.name in names or truth in (None, has_truth(path))
        ]


def has_labels(folder: Path) -> bool:
    """Return whether a folder is a set of labels."""
    return (folder / "labels.csv").exists()


def has_truth(folder: Path) -> bool:
    """Return whether classes or scores of a set's items are known."""
    return (folder / "truth.csv").exists()


def read_set(folder: Path, scale: ScaleKind) -> Labels:
    """Read the labels of a set; repeated labels all count."""
    return read_labels(folder / "labels.csv", scale=scale, duplicates="keep")


def fit_if_supported(labels: Labels, model: str) -> Fit | None:
    """Fit a model with its defaults; return None if it does not support such labels."""
    try:
        return fit_model(labels, model)
    except InputError as error:
        note(f"{model}: {error}")
        return None


def figure(
    value: float | None, target: Target | None = None, digits: int = 3, kind: str = "f"
) -> TargetFigure | str:
    """Return a figure for a table, `MISSING` if it has no value."""
    if value is None or np.isnan(value):
        return MISSING
    return TargetFigure(value, target, digits, kind)


def count(value: float | None, target: Target | None = None) -> TargetFigure | str:
    """Return a whole number for a table."""
    return figure(value, target, 0)


def share(part: float | None, whole: float) -> float | None:
    """Return a quotient; None if there is none."""
    return None if part is None or not whole else part / whole


def mean_of(values: list[float | None]) -> float | None:
    """Return the mean of the values that are there; None if none is."""
    present = [value for value in values if value is not None and not np.isnan(value)]
    return float(np.mean(present)) if present else None


def records(table: PartTable) -> Iterator[dict[str, Any]]:
    """Return the rows of a table by column, with figures as numbers."""
    for cells, figures in table.rows:
        values = [f.value if isinstance(f, TargetFigure) else f for f in figures]
        present = [None if value == MISSING else value for value in values]
        yield dict(zip((*table.heads, *table.columns), (*cells, *present), strict=True))


def note(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)
