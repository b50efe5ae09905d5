"""Potato's annotated_instances: a table of all users, or JSON lines in a folder of each user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from annotruth.io.formats.source import Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, chosen, counted, mapping, refuse_regions

_USER, _INSTANCE = "user", "instance_id"
BETWEEN = ":::"
"""Stands between the name of a question and an option of it."""
_LABELS = "label_annotations"
_SPANS = "["  # at the start of a cell that holds spans of the text
_BEHAVIOR = "behavioral_data"
_TIME_SPENT = re.compile(r"(\d+)d (\d+)h (\d+)m (\d+)s")  # as in "Time spent: 0d 0h 1m 5s"


class _Mark(NamedTuple):
    """What a user entered for one option of a question."""

    item: object
    user: object
    question: str
    option: str
    value: object
    times: Record

    @property
    def choice(self) -> object:
        """The option if it was ticked, else the value of a slider or a field."""
        return choice_of(self.question, self.option, self.value)


def choice_of(question: str, option: str, value: object) -> object:
    """Return the option if the value says that it was ticked, else the value."""
    return option if str(value) in ("true", "True", f"{question}{BETWEEN}{option}") else value


def _recognise(source: Source) -> bool:
    if source.kind == "json":
        return {"id", _LABELS} <= set(source.first)
    names = source.names
    return {_USER, _INSTANCE} <= set(names) and any(BETWEEN in name for name in names)


def _read(source: Source) -> ParsedLabels:
    """Read the options that were ticked, or the values that were given, for one question."""
    marks = list(_in_lines(source) if source.kind == "json" else _in_table(source))
    spans = {mark.question for mark in marks if str(mark.value).startswith(_SPANS)}
    questions = [mark.question for mark in marks if mark.question not in spans]
    if spans and not questions:
        refuse_regions(min(spans), "spans")
    question = chosen(questions, source.question, "question")
    choices: dict[tuple[object, object], list[object]] = {}
    times: dict[tuple[object, object], Record] = {}
    for mark in marks:
        given = choices.setdefault((mark.item, mark.user), [])
        times[mark.item, mark.user] = mark.times
        if mark.question == question:
            given.append(mark.choice)
    votes = Votes()
    for (item, user), given in choices.items():
        votes.add(item, user, given, times=times[item, user])
    parsed = votes.parsed(
        counted(len(choices), "annotation", "annotations"),
        f"question {question}",
        f"spans of {', '.join(sorted(spans))} left out" if spans else "",
    )
    return replace(parsed, from_text=True)


def _in_table(source: Source) -> Iterator[_Mark]:
    item, user = source.column("item", _INSTANCE), source.column("annotator", _USER)
    columns = [name for name in source.names if BETWEEN in name]
    for row in source.table(list(source.names)).to_pylist():
        for name in columns:
            question, _, option = name.partition(BETWEEN)
            yield _Mark(row[item], row[user], question, option, row[name], {})


def _in_lines(source: Source) -> Iterator[_Mark]:
    """Return the marks of one user, whose name is that of the folder."""
    user = source.path.resolve().parent.name
    for record in source.records():
        times = _times(record.get(_BEHAVIOR))
        for question, options in mapping(record.get(_LABELS), _LABELS).items():
            for option, value in mapping(options, f"{_LABELS} of {question!r}").items():
                yield _Mark(record.get("id"), user, question, option, value, times)


def _times(behavior: object) -> Record:
    """Return when an instance was left, and the seconds that it took.

    Version 1 writes the time spent as text; version 2 seconds since 1970 and milliseconds.
    """
    known = behavior if isinstance(behavior, dict) else {}
    spent, took = _TIME_SPENT.search(str(known.get("time_string"))), known.get("total_time_ms")
    seconds: float | None = took / 1000 if isinstance(took, int | float) else None
    if spent:
        days, hours, minutes, rest = map(int, spent.groups())
        seconds = ((24 * days + hours) * 60 + minutes) * 60 + rest
    end = known.get("session_end")
    return {"time": known.get("session_start") if end is None else end, "seconds": seconds}


FORMATS = (Format("potato", "Potato annotations", _recognise, _read),)
