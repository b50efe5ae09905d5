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
from annotruth.labels import Labels, ScaleKind
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.models.result import Fit
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

    def folders(self, names: tuple[str, ...]) -> list[Path]:
        """Return the folders of those sets of a part that are there, and chosen."""
        chosen = names if self.sets is None else tuple(n for n in names if n in self.sets)
        found = [path for n in chosen if (path := self.data_dir / n / "labels.csv").exists()]
        return [path.parent for path in found]


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
