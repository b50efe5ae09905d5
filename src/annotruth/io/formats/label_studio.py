"""Label Studio's JSON export: tasks with annotations, each a list of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.source import ITEM_FIELD, Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, chosen, counted, mapping, sequence
from annotruth.labels.frames import check_further_columns

_OLD = "completions"  # the name of annotations before version 1.0


def _recognise(source: Source) -> bool:
    annotations = source.first.get("annotations", source.first.get(_OLD))
    if not isinstance(annotations, list) or "data" not in source.first:
        return False
    return all(isinstance(one, dict) and "result" in one for one in annotations)


def _read(source: Source) -> ParsedLabels:
    """Read every annotation that was not cancelled; those marked as ground truth are gold."""
    kept, cancelled, n_tasks = [], 0, 0
    for task in source.records():
        n_tasks += 1
        annotations = task.get("annotations", task.get(_OLD))
        for one in sequence(annotations, "the list of annotations"):
            annotation = mapping(one, "an annotation")
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                cancelled += 1
            else:
                kept.append((task, annotation, dict(_choices(annotation))))
    names = (name for _, _, choices in kept for name in choices)
    question = chosen(names, source.question, "question")
    about = {name for task, _, _ in kept for name in _data(task)}
    check_further_columns("content", sorted(about), source.items_content, ())
    votes, empty = Votes(content={name: [] for name in source.items_content}), 0
    for task, annotation, choices in kept:
        item = _item(task)
        if question not in choices:
            empty += 1
        elif annotation.get("ground_truth"):
            votes.add_gold(item, choices[question])
        else:
            annotator = _annotator(annotation.get("completed_by"))
            votes.add(item, annotator, choices[question], _data(task))
    return votes.parsed(
        counted(n_tasks, "task", "tasks"),
        f"question {question}",
        counted(cancelled, "cancelled annotation left out", "cancelled annotations left out"),
        counted(empty, "annotation without a label", "annotations without a label"),
    )


def _item(task: Record) -> Any:
    """Return the item of a task: the one that annotruth made it for, else the task's id."""
    return _data(task).get(ITEM_FIELD, task.get("id"))


def _data(task: Record) -> Record:
    """Return what is shown to annotators, by name."""
    data = task.get("data")
    return data if isinstance(data, dict) else {}


def _choices(annotation: Record) -> Iterator[tuple[str, Any]]:
    """Return the choices of an annotation for each question; those of a region are its labels."""
    choices: dict[str, list[Any]] = {}
    for one in sequence(annotation.get("result"), "the result of an annotation"):
        result = mapping(one, "a result")
        kind, value = result.get("type"), result.get("value")
        if not isinstance(kind, str) or not isinstance(value, dict) or kind not in value:
            continue  # a relation between regions, or a region without a label
        if kind in ("textarea", "ranker", "pairwise"):
            continue
        chosen_here = value[kind]
        name = str(result.get("from_name", kind))
        choices.setdefault(name, []).extend(
            chosen_here if isinstance(chosen_here, list) else [chosen_here]
        )
    for name, values in choices.items():
        # In a taxonomy, a choice is the path from its root.
        yield name, [" / ".join(map(str, one)) if isinstance(one, list) else one for one in values]


def _annotator(completed_by: Any) -> Any:
    """Return the annotator: an id, or the id in a record of a person."""
    if not isinstance(completed_by, dict):
        return completed_by
    known = completed_by.get("id", completed_by.get("email"))
    if known is None:
        raise InputError(
            f"completed_by has neither id nor email ({completed_by!r}): export the file again"
        )
    return known


FORMATS = (Format("label-studio", "Label Studio export", _recognise, _read),)
