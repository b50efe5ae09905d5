"""The description of an experiment: settings, conditions, a run, and the printed figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from annotruth.errors import InputError
from annotruth.report.charts.chart import Chart

Value: TypeAlias = str | int | float | bool
Settings: TypeAlias = Mapping[str, Any]
Condition: TypeAlias = Mapping[str, Any]
Results: TypeAlias = dict[str, dict[str, float | None]]
"""The results of one run: model -> measure -> value; None where a measure has no value."""

Verdict = Literal["holds", "does not hold", "undecided", "cannot be tested", "not tested"]


@dataclass(frozen=True)
class ExperimentSetting:
    """A size, or a choice that the paper leaves open, with its default."""

    default: Value
    description: str
    choices: tuple[Value, ...] = ()
    minimum: float = 0.0
    maximum: float = float("inf")

    def check(self, name: str, value: object) -> Value:
        """Return the value; raise InputError with the accepted values if it is not one."""
        if self.choices:
            # The type is compared too, because True == 1.
            if not any(type(value) is type(c) and value == c for c in self.choices):
                listed = ", ".join(str(choice).lower() for choice in self.choices)
                raise InputError(f"{name} is {value!r}: choose {listed}")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} is {value!r}: give a number")
        elif isinstance(self.default, int) and not isinstance(value, int):
            raise InputError(f"{name} is {value!r}: give a whole number")
        elif not self.minimum <= value <= self.maximum:
            upper = "" if self.maximum == float("inf") else f" to {self.maximum:g}"
            raise InputError(f"{name} is {value!r}: give a number from {self.minimum:g}{upper}")
        return value  # type: ignore[return-value]  # narrowed above


@dataclass(frozen=True)
class Measure:
    """A column of a results table: the key of its values, its name, and which way is better."""

    key: str
    name: str
    better: Literal["higher", "lower", ""] = ""

    @property
    def heading(self) -> str:
        """The name with an arrow in the better direction."""
        return self.name + {"higher": " ↑", "lower": " ↓", "": ""}[self.better]


SCORE_MEASURES = (
    Measure("plcc", "PLCC", "higher"),
    Measure("srocc", "SROCC", "higher"),
    Measure("rmse", "RMSE", "lower"),
)


@dataclass(frozen=True)
class ExperimentRun:
    """One finished run of one condition."""

    condition: Condition
    number: int
    results: Results


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it is made, the evidence for or against it, a verdict."""

    statement: str
    source: str
    evidence: str
    verdict: Verdict


@dataclass(frozen=True)
class RequiredFiles:
    """The files of real labels that an experiment reads, and where to get them."""

    paths: tuple[str, ...]
    source: str


def nothing(runs: Sequence[ExperimentRun], settings: Settings) -> list[Any]:
    """Return no notes, or no claims."""
    return []


def single_condition(settings: Settings) -> list[Condition]:
    """Return one empty condition, for experiments that vary nothing."""
    return [{}]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment of the paper."""

    # its name on the command line, its heading, and what is done, in a few sentences
    name: str
    title: str
    description: str
    settings: Mapping[str, ExperimentSetting]  # the settings and their defaults
    # from the settings to the conditions, such as the shares of spammers
    conditions: Callable[[Settings], Sequence[Condition]] = single_condition
    # one run of one condition, with its own random generator and the folder of real labels
    run: Callable[[Condition, Settings, np.random.Generator, Path | None], Results]
    # the columns of the table; settings in braces stand for their values
    measures: Sequence[Measure] = ()
    # the models compared: the name in the results and the name in the paper
    models: Mapping[str, str]
    # the figures printed in the paper: (values of the condition, model) -> measure -> figure
    printed: Mapping[tuple[Any, ...], Mapping[str, float]] = field(default_factory=dict)
    # from the runs and the settings to lines below the table, to the paper's claims with their
    # verdicts, and to a chart
    notes: Callable[[Sequence[ExperimentRun], Settings], Sequence[str]] = nothing
    claims: Callable[[Sequence[ExperimentRun], Settings], Sequence[Claim]] = nothing
    chart: Callable[[Sequence[ExperimentRun], Settings], Chart] | None = None
    required_files: RequiredFiles | None = None  # the real labels it needs, if any
    default_runs: int = 100  # the number of runs per condition, unless given
    is_random: bool = True  # whether runs differ; without randomness there is one run

    def columns(self, settings: Settings) -> list[Measure]:
        """Return the columns of the table, given the settings."""
        return [replace(each, key=each.key.format(**settings)) for each in self.measures]

    def resolve(self, given: Settings) -> dict[str, Value]:
        """Return all settings, given or default; raise InputError for unknown ones."""
        for name in given:
            if name not in self.settings:
                known = ", ".join(self.settings)
                raise InputError(f"{self.name} has no setting {name!r}: it has {known}")
        return {
            name: setting.check(name, given.get(name, setting.default))
            for name, setting in self.settings.items()
        }
