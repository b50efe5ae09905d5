"""Label Studio's JSON export: tasks with annotations, each a list of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.base import Format, ParsedLabels
from annotruth.io.formats.source import Record, Source
from annotruth.io.formats.votes import Votes, chosen, counted, mapping, sequence

_OLD = "completions"  # what annotations were called before version 1.0


def _recognise(source: Source) -> bool:
    annotations = source.first.get("annotations", source.first.get(_OLD))
    if not isinstance(annotations, list) or "data" not in source.first:
        return False
    return all(isinstance(one, dict) and "result" in one for one in annotations)


def _read(source: Source) -> ParsedLabels:
    """Take every annotation that was not cancelled; those marked as ground truth are gold."""
    kept, cancelled, n_tasks = [], 0, 0
    for task in source.records():
        n_tasks += 1
        annotations = task.get("annotations", task.get(_OLD))
        for one in sequence(annotations, "the list of annotations"):
            annotation = mapping(one, "an annotation")
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                cancelled += 1
            else:
                kept.append((task.get("id"), annotation, dict(_answers(annotation))))
    names = (name for _, _, answers in kept for name in answers)
    question = chosen(names, source.question, "question")
    votes, empty = Votes(), 0
    for item, annotation, answers in kept:
        if question not in answers:
            empty += 1
        elif annotation.get("ground_truth"):
            votes.know(item, answers[question])
        else:
            votes.add(item, _person(annotation.get("completed_by")), answers[question])
    return votes.found(
        counted(n_tasks, "task", "tasks"),
        f"question {question}",
        counted(cancelled, "cancelled annotation left out", "cancelled annotations left out"),
        counted(empty, "annotation without an answer", "annotations without an answer"),
    )


def _answers(annotation: Record) -> Iterator[tuple[str, Any]]:
    """Gather what an annotation says to each question; regions say what they are labelled."""
    answers: dict[str, list[Any]] = {}
    for one in sequence(annotation.get("result"), "the result of an annotation"):
        result = mapping(one, "a result")
        kind, value = result.get("type"), result.get("value")
        if not isinstance(kind, str) or not isinstance(value, dict) or kind not in value:
            continue  # a relation between regions, or a region that nobody labelled
        if kind in ("textarea", "ranker", "pairwise"):
            continue
        said = value[kind]
        name = str(result.get("from_name", kind))
        answers.setdefault(name, []).extend(said if isinstance(said, list) else [said])
    for name, said in answers.items():
        if any(isinstance(one, list) for one in said):  # a taxonomy: paths from the root
            said = [" / ".join(map(str, one)) if isinstance(one, list) else one for one in said]
        yield name, said


def _person(completed_by: Any) -> Any:
    """Name who annotated: an id, or a record of a person with one."""
    if not isinstance(completed_by, dict):
        return completed_by
    known = completed_by.get("id", completed_by.get("email"))
    if known is None:
        raise InputError(f"completed_by names nobody ({completed_by!r}): export the file again")
    return known


FORMATS = (Format("label-studio", "Label Studio export", _recognise, _read),)
