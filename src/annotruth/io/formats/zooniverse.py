"""Zooniverse: its classifications, and what panoptes aggregation extracts of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from annotruth.errors import InputError, listed
from annotruth.io.formats.cells import load_cell
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import (
    FormAnswer,
    Votes,
    choose_answered,
    chosen,
    counted,
    labels_of,
    mapping,
    refuse_regions,
    sequence,
    with_note,
)
from annotruth.observations.options import ParsedLabels

# Zooniverse's classifications: one row each, its answers as JSON.

_ANNOTATIONS, _DATA, _IDS = "annotations", "subject_data", "subject_ids"
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")  # in Markdown, before the text of an answer
_PLACES = {"x", "y", "tool", "points", "x1", "startX"}  # of a mark in a drawing


def _recognise_zooniverse(source: Source) -> bool:
    names = set(source.names)
    return {"classification_id", _ANNOTATIONS} <= names and bool({_DATA, _IDS} & names)


class _Task(NamedTuple):
    """One answer: the key of its task, the wording of the question, and the choices."""

    key: str
    wording: Any
    choices: list[Any]
    is_drawing: bool


def _read_zooniverse(source: Source) -> ParsedLabels:
    """Read one task of every classification; those in gold-standard mode are gold."""
    if not _recognise_zooniverse(source):
        raise InputError(
            f"this is not a classification export (found: {listed(source.names)}), which has the "
            f"columns classification_id, {_ANNOTATIONS} and {_IDS}: pass another input format"
        )
    source.check_cells()
    wanted = ("user_name", "user_ip", "workflow_id", "gold_standard", _ANNOTATIONS, _IDS, _DATA)
    rows: list[Record] = source.table([n for n in wanted if n in source.names]).to_pylist()
    several_workflows = len({row.get("workflow_id") for row in rows}) > 1
    answers: list[tuple[Record, _Task]] = []
    for number, row in enumerate(rows, start=1):
        for task in _tasks(load_cell(row[_ANNOTATIONS], _ANNOTATIONS, number)):
            # The tasks of each workflow are T0, T1, ...
            key = f"{row.get('workflow_id')}:{task.key}" if several_workflows else task.key
            answers.append((row | {"number": number}, task._replace(key=key)))
    question, note = _question_of_tasks(answers, source.read.question)
    votes, wordings = Votes(), set()
    for row, task in answers:
        if task.key != question:
            continue
        wordings.add(str(task.wording))
        if str(row.get("gold_standard")).lower() in ("true", "1"):
            votes.add_gold(_subject(row), task.choices)
        else:
            votes.add(_subject(row), row.get("user_name") or row.get("user_ip"), task.choices)
    parsed = votes.parsed(
        counted(len(rows), "classification"),
        "items by subject",
        with_note(f"task {question}", note),
        f"its question was worded in {len(wordings)} ways" if len(wordings) > 1 else "",
    )
    return replace(parsed, from_text=source.from_text)


def _question_of_tasks(
    answers: Sequence[tuple[Record, _Task]], wanted: str | None
) -> tuple[str, str]:
    drawings = {task.key for _, task in answers if task.is_drawing}
    given = [
        (_subject(row), row.get("user_name") or row.get("user_ip"), task.key, task.choices)
        for row, task in answers
        if task.choices and task.key not in drawings
    ]
    if drawings and (wanted in drawings or not given):
        refuse_regions(wanted if wanted in drawings else min(drawings), "drawing")
    return choose_answered(given, wanted, "task")


def _tasks(annotations: Any) -> Iterator[_Task]:
    for one in sequence(annotations, "the list of annotations"):
        annotation = mapping(one, "an annotation")
        value = annotation.get("value")
        parts = value if isinstance(value, list) else [value]
        if parts and all(isinstance(part, dict) and "task" in part for part in parts):
            yield from _tasks(parts)  # a task that combines others
            continue
        key, wording = str(annotation.get("task")), annotation.get("task_label")
        is_drawing = any(isinstance(part, dict) and not _PLACES.isdisjoint(part) for part in parts)
        choices = [] if is_drawing else [_choice(part) for part in parts if part is not None]
        yield _Task(key, wording, choices, is_drawing)


def _choice(answer: Any) -> Any:
    """Return a choice: of a question its text, of a survey what was seen, of a menu its value."""
    if isinstance(answer, dict):
        answer = answer.get("choice", answer.get("label", answer.get("value")))
    if isinstance(answer, str):
        return _PICTURE.sub("", answer).strip() or answer
    return answer


def _subject(row: Record) -> Any:
    """Return the subject, which older exports name only as the key of its data."""
    if row.get(_IDS):
        return row[_IDS]
    subjects = mapping(load_cell(row.get(_DATA), _DATA, row["number"]), "the data of the subject")
    return next(iter(subjects), None)


# Zooniverse's extracts of panoptes aggregation: one column per answer.

_EXTRACT = {"classification_id", "subject_id", "task", "extractor"}
_ANSWER, _VERSION = "data.", "data.aggregation_version"


def _read_extracts(source: Source) -> ParsedLabels:
    names = [name for name in source.names if name.startswith(_ANSWER) and name != _VERSION]
    if not set(source.names) >= _EXTRACT or not names:
        raise InputError("these are no extracts of questions: give the classification export")
    rows = source.table(list(source.names)).to_pylist()
    task = chosen((row["task"] for row in rows), source.read.question, "task")
    answers = [
        FormAnswer(
            row["subject_id"],
            row.get("user_name") or row.get("user_id"),
            task,
            [name.removeprefix(_ANSWER) for name in names if row[name] not in (None, "", "0", 0)],
            {"time": row.get("created_at")},
        )
        for row in rows
        if row["task"] == task
    ]
    note = counted(len(rows), "classification")
    return labels_of(answers, source, note, from_text=source.from_text)


FORMATS = (
    Format("zooniverse", "Zooniverse classifications", _recognise_zooniverse, _read_zooniverse),
    Format(
        "zooniverse-extracts",
        "Zooniverse extracts",
        lambda source: set(source.names) >= _EXTRACT,
        _read_extracts,
    ),
)
