"""Potato's annotated_instances: a table of all users, or JSON lines in a folder of each user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.io.formats.votes import Votes, chosen, counted, mapping, refuse_regions

_USER, _INSTANCE = "user", "instance_id"
BETWEEN = ":::"
"""Stands between the name of a question and an option of it."""
_LABELS = "label_annotations"
_SPANS = "["  # at the start of a cell that holds spans of the text


class _Mark(NamedTuple):
    """What a user entered for one option of a question."""

    item: object
    user: object
    question: str
    option: str
    value: object

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
    for mark in marks:
        given = choices.setdefault((mark.item, mark.user), [])
        if mark.question == question:
            given.append(mark.choice)
    votes = Votes()
    for (item, user), given in choices.items():
        votes.add(item, user, given)
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
            yield _Mark(row[item], row[user], question, option, row[name])


def _in_lines(source: Source) -> Iterator[_Mark]:
    """Return the marks of one user, whose name is that of the folder."""
    user = source.path.resolve().parent.name
    for record in source.records():
        for question, options in mapping(record.get(_LABELS), _LABELS).items():
            for option, value in mapping(options, f"{_LABELS} of {question!r}").items():
                yield _Mark(record.get("id"), user, question, option, value)


FORMATS = (Format("potato", "Potato annotations", _recognise, _read),)
