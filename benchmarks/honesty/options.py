"""What the parts share: their options, a fit, and tables that say which targets are met."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import annotruth
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.paper.tables import markdown_table


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """The options of the command line; ``runs`` is None where a part has its own default."""

    model: str = "robust-gpm"
    runs: int | None = None
    seed: int = 7000
    data_dir: Path | None = None

    def runs_or(self, default: int) -> int:
        """Return the number of runs, or the part's default."""
        return default if self.runs is None else self.runs

    def data(self) -> Path:
        """Return the folder of real labels; raise where none was given."""
        if self.data_dir is None:
            raise InputError("this part needs real labels: pass `--data-dir DIR`")
        return self.data_dir


Parts: TypeAlias = "Mapping[str, Callable[[PartOptions], list[PartTable]]]"
"""The parts of a benchmark by name."""


def run_parts(
    parts: Parts, names: Iterable[str], options: PartOptions, parser: argparse.ArgumentParser
) -> None:
    """Run parts and print their tables; what a part misses is an error of the command line."""
    for name in names:
        start = perf_counter()
        try:
            tables = parts[name](options)
        except InputError as error:
            parser.error(f"{name}: {error}")
        for table in tables:
            print(f"\n{table.to_markdown()}", flush=True)
        print(f"\n{name}: {perf_counter() - start:.0f} s, first seed {options.seed}", flush=True)


@dataclass(frozen=True)
class Target:
    """The range that a figure should lie in, ends included."""

    low: float = float("-inf")
    high: float = float("inf")

    def is_met(self, figure: float) -> bool:
        """Return whether the figure lies in the range; nan never does."""
        return self.low <= figure <= self.high

    def __str__(self) -> str:
        if self.low == float("-inf"):
            return f"at most {self.high:g}"
        if self.high == float("inf"):
            return f"at least {self.low:g}"
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class TargetFigure:
    """A figure and its target; without a target it is information."""

    value: float
    target: Target | None = None
    digits: int = 3
    kind: str = "f"

    def __str__(self) -> str:
        text = f"{self.value:.{self.digits}{self.kind}}"
        return text if self.target is None or self.target.is_met(self.value) else f"**{text}**"


@dataclass(frozen=True)
class PartTable:
    """A table whose last column says whether all targets of a row are met."""

    title: str
    description: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Sequence[tuple[Sequence[str], Sequence[TargetFigure | str]]]

    def to_markdown(self) -> str:
        """Return title, description, table, and how many rows meet their targets."""
        met = [word for _, figures in self.rows if (word := _met(figures))]
        count = f"{met.count('yes')} of {len(met)} rows meet their targets." if met else ""
        return "\n\n".join(
            part for part in (f"## {self.title}", self.description, self.table(), count) if part
        )

    def table(self) -> str:
        """Return the table alone."""
        body = [[*cells, *map(str, figures), _met(figures)] for cells, figures in self.rows]
        return markdown_table([*self.heads, *self.columns, "met"], body, len(self.heads))


def _met(figures: Sequence[TargetFigure | str]) -> str:
    checked = [f for f in figures if isinstance(f, TargetFigure) and f.target is not None]
    if not checked:
        return ""
    missed = any(f.target is not None and not f.target.is_met(f.value) for f in checked)
    return "no" if missed else "yes"


def fit_model(labels: Labels, model: str) -> Fit:
    """Fit a model with its defaults, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)
        fit = annotruth.fit(labels, model)
    assert isinstance(fit, Fit)
    return fit


def says_chance(fit: Fit) -> bool:
    """Return whether a fit reports that its labels agree no better than chance."""
    return "chance" in str(getattr(fit, "verdict", ""))


def probabilities(fit: Fit) -> Floats:
    """Return the items' probabilities, items x categories."""
    assert fit.distribution is not None
    return fit.distribution.dense(fit.data.n_categories)
