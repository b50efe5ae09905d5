"""Which group each annotator is in, by the annotators' traits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.analyses.groups.coupling import NO_GROUP
from annotruth.errors import InputError, counted, listed, shown
from annotruth.kernels.arrays import Codes
from annotruth.observations import Labels
from annotruth.observations.encode import to_text
from annotruth.observations.scale import parse_numbers
from annotruth.observations.validate import missing

MAX_NUMBERS = 12
"""The most different numbers in a column of traits that are taken as groups."""

MAX_GROUPS = 50
"""The most groups."""

_SEPARATOR = ", "  # between the values of several columns


@dataclass(frozen=True, eq=False)
class AnnotatorGroups:
    """The groups of annotators."""

    by: tuple[str, ...]  # the columns of traits
    names: tuple[str, ...]  # the names of the groups, in the order of their text
    group: Codes  # the group of each annotator: a place in ``names``, or `NO_GROUP`

    @classmethod
    def of(cls, labels: Labels, by: str | Sequence[str]) -> AnnotatorGroups:
        """Return the groups by one column of the annotators' traits, or by several together."""
        columns = tuple(dict.fromkeys([by] if isinstance(by, str) else by))
        traits = labels.covariates.annotators
        for name in columns:
            _check_column(name, traits)
        values = [_trait_values(traits[name]) for name in columns]
        names: list[str | None] = [
            None if None in each else _SEPARATOR.join(map(str, each))
            for each in zip(*values, strict=True)
        ]
        known = sorted({name for name in names if name is not None})
        _check_groups(columns, known)
        place = {name: code for code, name in enumerate(known)}
        group = np.array([NO_GROUP if name is None else place[name] for name in names])
        return cls(columns, tuple(known), group)

    @property
    def title(self) -> str:
        """The columns in words, such as "gender and age"."""
        return " and ".join(self.by)

    @property
    def n_without(self) -> int:
        """The number of annotators without a group."""
        return int((self.group == NO_GROUP).sum())


def check_by(by: Any) -> None:
    """Refuse columns that are not named by text."""
    names = [by] if isinstance(by, str) else by
    if not (isinstance(names, Sequence) and names and all(isinstance(n, str) for n in names)):
        raise InputError(
            f"by is {shown(by)}: give the name of a column of annotators, or a list of names"
        )


def _check_column(name: str, traits: Any) -> None:
    """Refuse a column that is not there, or whose values are not groups."""
    if name not in traits:
        raise InputError(
            f"annotators have no column {shown(name)} (`--by`): choose {listed(traits)}"
        )
    column = traits[name]
    if pa.types.is_nested(column.type):
        raise InputError(f"column {shown(name)} holds {column.type}: give text or numbers")
    values = column.filter(pa.array(~missing(column))).unique()
    if len(values) > MAX_NUMBERS and parse_numbers(values) is not None:
        raise InputError(
            f"column {shown(name)} has {len(values):,} different numbers, each of which would be a "
            "group: replace them by bands, such as 18-34 and 35-64, and name that column"
        )


def _trait_values(column: pa.Array) -> list[str | None]:
    """Return the values of a column as text without blanks around it, None where there is none."""
    text = to_text(column).to_pylist()
    is_missing = missing(column)
    return [None if gone else value.strip() for value, gone in zip(text, is_missing, strict=True)]


def _check_groups(columns: tuple[str, ...], names: list[str]) -> None:
    """Refuse a single group, and too many."""
    what = " and ".join(map(shown, columns))
    if len(names) < 2:
        found = f"all annotators are in the group {shown(names[0])}" if names else "there are none"
        raise InputError(
            f"there are no two groups by {what}: {found}; choose another column (`--by`)"
        )
    if len(names) > MAX_GROUPS:
        raise InputError(
            f"there are {counted(len(names), 'group')} by {what}, and at most {MAX_GROUPS} are "
            "compared: choose a column with fewer values, or merge some"
        )
