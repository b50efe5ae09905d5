"""The same labels in the format of every platform."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

import annotruth as at

# Everybody saw everything, but for cy, who skipped item 3.
VOTES = [
    (item, person, "dog" if (item + len(person)) % 3 == 0 else "cat")
    for item in range(1, 7)
    for person in ("ann", "bob", "cy")
    if (item, person) != (3, "cy")
]
SCORES = [
    (item, person, 1 + (item * len(person)) % 4)
    for item in range(1, 7)
    for person in ("ann", "bob", "cy")
    if (item, person) != (3, "cy")
]


def as_json(value: Any) -> str:
    return json.dumps(value)


def as_lines(records: Iterable[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def votes():
    return list(VOTES)


@pytest.fixture
def scores():
    return list(SCORES)


@pytest.fixture
def by_item(votes):
    """The votes grouped by item: {item: [(person, label), ..]}."""
    grouped: dict[int, list[tuple[str, str]]] = {}
    for item, person, label in votes:
        grouped.setdefault(item, []).append((person, label))
    return grouped


@pytest.fixture
def write(tmp_path):
    def write(content, name):
        path = tmp_path / name
        if not isinstance(content, (str, bytes)):
            content = as_json(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def lines():
    return as_lines


@pytest.fixture
def same(write):
    """Fit a file and the long table it stands for; all three tables must be equal."""

    def same(content, name, long, *, gold=None, long_options=None, **options):
        found = at.fit(write(content, name), **options)
        expected = at.fit(long, gold=gold, **(long_options or {}))
        for table in ("items", "annotators", "labels"):
            assert getattr(found, table)().equals(getattr(expected, table)()), table
        return found

    return same
