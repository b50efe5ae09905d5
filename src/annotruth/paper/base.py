"""What an experiment is: settings, conditions, one run, the figures printed in the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError

Value: TypeAlias = str | int | float | bool
Settings: TypeAlias = Mapping[str, Any]
Condition: TypeAlias = Mapping[str, Any]
Results: TypeAlias = dict[str, dict[str, float | None]]
"""What one run found: model -> measure -> value; None where a measure has no value."""

Verdict = Literal["holds", "does not hold", "undecided", "cannot be tested", "not tested"]


@dataclass(frozen=True)
class Setting:
    """Something the paper leaves open, or a size, with the value that stands unless set."""

    default: Value
    about: str
    choices: tuple[Value, ...] = ()
    least: float = 0.0
    most: float = float("inf")

    def check(self, name: str, value: object) -> Value:
        """Return the value, or refuse it with the values there are."""
        if self.choices:
            # Asked with the type, because True == 1.
            if not any(type(value) is type(c) and value == c for c in self.choices):
                listed = ", ".join(str(choice).lower() for choice in self.choices)
                raise InputError(f"{name} is {value!r}: choose {listed}")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} is {value!r}: give a number")
        elif isinstance(self.default, int) and not isinstance(value, int):
            raise InputError(f"{name} is {value!r}: give a whole number")
        elif not self.least <= value <= self.most:
            upper = "" if self.most == float("inf") else f" to {self.most:g}"
            raise InputError(f"{name} is {value!r}: give a number from {self.least:g}{upper}")
        return value  # type: ignore[return-value]  # narrowed by hand above


@dataclass(frozen=True)
class Measure:
    """One column of a table: the key of its values, its heading, which way is better."""

    key: str
    name: str
    better: Literal["higher", "lower", ""] = ""

    @property
    def heading(self) -> str:
        """The name with an arrow towards the better."""
        return self.name + {"higher": " ↑", "lower": " ↓", "": ""}[self.better]


@dataclass(frozen=True)
class Record:
    """One finished run of one condition."""

    condition: Condition
    run: int
    results: Results


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be true or false, and what was found."""

    text: str
    place: str
    found: str
    verdict: Verdict


@dataclass(frozen=True)
class Chart:
    """A picture: a Vega-Lite spec by name, its records, and the words it needs."""

    spec: str
    records: Sequence[Mapping[str, Any]]
    words: Mapping[str, Any]


@dataclass(frozen=True)
class DataFiles:
    """The real labels that an experiment reads, and where they come from."""

    files: tuple[str, ...]
    source: str


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment of the paper.

    Attributes
    ----------
    name, title, about
        Its name on the command line, its heading, and in a few sentences what is done.
    settings
        What can be set.
    conditions
        From the settings to the conditions, such as the shares of spammers.
    run
        One run of one condition with its own random generator and the folder of real labels.
    measures
        From the settings to the columns of the table.
    models
        The rows within a condition, as named in the results, with their names in the paper.
    paper
        The printed figures: (values of the condition, model) -> measure -> figure.
    notes, claims, chart
        From the records and the settings to lines below the table, to the paper's sentences
        and what was found, and to a picture.
    summary
        From the records and the settings to a text and a table of its own, in place of the
        table of means that every other experiment has.
    drawn_as
        From a condition to the experiment and condition whose random numbers it uses, where
        these are not its own.
    data
        The real labels it needs, if any.
    default_runs
        How often it is repeated unless the caller says.
    repeats
        Whether a run has any randomness; without it one run is all there is.
    """

    name: str
    title: str
    about: str
    settings: Mapping[str, Setting]
    conditions: Callable[[Settings], Sequence[Condition]]
    run: Callable[[Condition, Settings, np.random.Generator, Path | None], Results]
    measures: Callable[[Settings], Sequence[Measure]]
    models: Mapping[str, str]
    paper: Mapping[tuple[Any, ...], Mapping[str, float]] = field(default_factory=dict)
    notes: Callable[[Sequence[Record], Settings], Sequence[str]] | None = None
    claims: Callable[[Sequence[Record], Settings], Sequence[Claim]] | None = None
    chart: Callable[[Sequence[Record], Settings], Chart] | None = None
    summary: Callable[[Sequence[Record], Settings], tuple[str, pa.Table]] | None = None
    drawn_as: Callable[[Condition], tuple[str, Condition]] | None = None
    data: DataFiles | None = None
    default_runs: int = 100
    repeats: bool = True

    def resolve(self, given: Settings) -> dict[str, Value]:
        """Fill the given settings up with the defaults; unknown names and values are refused."""
        for name in given:
            if name not in self.settings:
                known = ", ".join(self.settings)
                raise InputError(f"{self.name} has no setting {name!r}: it has {known}")
        return {
            name: setting.check(name, given.get(name, setting.default))
            for name, setting in self.settings.items()
        }
