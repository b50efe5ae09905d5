"""Labels on their way from nested records to a long table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.formats.base import ParsedLabels
from annotruth.io.formats.source import Record
from annotruth.labels import formatting
from annotruth.labels.formatting import listed, shown
from annotruth.labels.frames import column_of

_JOINED = " + "


@dataclass
class Votes:
    """Labels being collected from nested records, and the truths found among them."""

    items: list[Any] = field(default_factory=list)
    annotators: list[Any] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    gold: dict[Any, Any] = field(default_factory=dict)
    joined: int = 0

    def add(self, item: Any, annotator: Any, answer: Any) -> None:
        """Add an answer; a list of choices counts as one category, the set of them."""
        self.items.append(simple(item))
        self.annotators.append(simple(annotator))
        self.labels.append(self._one(answer))

    def know(self, item: Any, answer: Any) -> None:
        """Add a known truth, if the answer is one."""
        item, answer = simple(item), self._one(answer)
        if answer is not None and self.gold.setdefault(item, answer) != answer:
            raise InputError(
                f"item {shown(item)} has two truths, {shown(self.gold[item])} and "
                f"{shown(answer)}: keep one"
            )

    def found(self, *notes: str) -> ParsedLabels:
        """Make the long table; truths of items without labels are left out and counted."""
        labelled = {
            item for item, label in zip(self.items, self.labels, strict=True) if label is not None
        }
        gold = {item: truth for item, truth in self.gold.items() if item in labelled}
        lost = len(self.gold) - len(gold)
        ids = _ids([*self.items, *gold])
        return ParsedLabels(
            pa.table(
                {
                    "item": ids.slice(0, len(self.items)),
                    "annotator": _ids(self.annotators),
                    "label": column_of("label", self.labels),
                }
            ),
            gold=pa.table(
                {"item": ids.slice(len(self.items)), "label": column_of("gold", [*gold.values()])}
            )
            if gold
            else None,
            notes=(
                *notes,
                counted(len(gold), "truth taken as gold", "truths taken as gold"),
                counted(lost, "truth of an item without labels", "truths of items without labels"),
                counted(self.joined, "answer of several choices", "answers of several choices")
                + (", each set one category" if self.joined else ""),
            ),
        )

    def _one(self, answer: Any) -> Any:
        if isinstance(answer, list):
            chosen = list(dict.fromkeys(simple(choice) for choice in answer if choice is not None))
            if len(chosen) > 1:
                self.joined += 1
                return _JOINED.join(sorted(map(str, chosen)))
            return chosen[0] if chosen else None
        return simple(answer)


def simple(value: Any) -> Any:
    """Let a text or a number through as a label or id, and refuse what is nested."""
    if isinstance(value, dict | list):
        raise InputError(f"{shown(value)} is no label or id: labels are words or numbers")
    return None if isinstance(value, float) and math.isnan(value) else value


def mapping(value: Any, what: str) -> Record:
    """Let an object through, and refuse anything else under its name."""
    if not isinstance(value, dict):
        raise InputError(f"{what} is {shown(value)}, not an object: export the file again")
    return value


def sequence(value: Any, what: str) -> list[Any]:
    """Let a list through, none for nothing, and refuse anything else under its name."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{what} is {shown(value)}, not a list: export the file again")
    return value


def chosen(names: Iterable[str], wanted: str | None, what: str) -> str:
    """Take the question that is wanted, or the only one there is."""
    known = list(dict.fromkeys(names))
    if wanted is not None:
        if wanted not in known:
            raise InputError(f"no {what} {wanted!r} (found: {listed(known)})")
        return wanted
    if not known:
        raise InputError(f"there is no {what} with an answer in it: nothing to fit")
    if len(known) > 1:
        raise InputError(f"there are several {what}s, {listed(known)}: say which, question NAME")
    return known[0]


def counted(number: int, one: str, many: str) -> str:
    """Say how many there are of what, nothing for none."""
    return formatting.counted(number, one, many) if number else ""


def _ids(values: list[Any]) -> pa.Array:
    """Make a column of ids; where numbers and words are mixed, all are formatting."""
    if len({type(value) for value in values if value is not None}) > 1:
        values = [None if value is None else str(value) for value in values]
    return column_of("id", values)
