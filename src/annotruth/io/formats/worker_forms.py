"""Answers of Amazon's worker forms, as JSON: Mechanical Turk, SageMaker Ground Truth, A2I."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from annotruth.errors import InputError, shown
from annotruth.io.formats.answers import FormAnswer, labels_of
from annotruth.io.formats.crowdsourcing import (
    is_batch,
    read_batch,
    review_columns,
    without_rejected,
)
from annotruth.io.formats.source import INPUT_PREFIX, ITEM_FIELD, Format, Record, Source
from annotruth.io.formats.votes import counted, mapping, refuse_regions, sequence
from annotruth.io.json_lines import is_deep
from annotruth.observations.options import ParsedLabels

_FORM = "Answer.taskAnswers"


def _answers(item: Any, worker: Any, content: Any, times: Record) -> Iterator[FormAnswer]:
    """Return the answers in what a form returned, ``{question: answer}``."""
    for question, value in mapping(content, "the answers of a worker").items():
        if isinstance(value, dict) and not {"boundingBoxes", "polygons", "entities"} & set(value):
            value = _choices(value)
        if not isinstance(value, dict):
            yield FormAnswer(item, worker, question, value, times)


def _choices(value: Record) -> list[Any]:
    """Return what was chosen: of a classifier the label or labels, of boxes those ticked."""
    if "labels" in value:
        return sequence(value["labels"], "the labels")
    if "label" in value:
        return [value["label"]]
    on = {name: box.get("on") if isinstance(box, dict) else box for name, box in value.items()}
    return [name for name, is_on in on.items() if is_on is True]


def _load(text: Any, where: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise InputError(f"{where} is {shown(text)}, which is not JSON: export it again") from error
    if is_deep([value]):
        raise InputError(f"{where} is nested too deeply: export the file again")
    return value


def _read_mturk(source: Source) -> ParsedLabels:
    """Read a batch; a form that answers in one column has JSON in it."""
    if _FORM not in source.names or "label" in source.columns:
        return read_batch(source)
    source.check_cells()
    ours = f"{INPUT_PREFIX}{ITEM_FIELD}"
    item = source.column("item", ours if ours in source.names else "HITId")
    worker = source.column("annotator", "WorkerId")
    times = source.time_columns({"time": "SubmitTime", "seconds": "WorkTimeInSeconds"})
    read = [item, worker, _FORM, *review_columns(source.names), *times.values()]
    table = source.table(list(dict.fromkeys(read)))
    kept = without_rejected(table)
    answers: list[FormAnswer] = []
    for number, row in enumerate(kept.to_pylist(), start=1):
        form = _load(row[_FORM] or "[]", f"{_FORM} in row {number}")
        when = {role: row[name] for role, name in times.items()}
        for part in form if isinstance(form, list) else [form]:
            answers += _answers(row[item], row[worker], part, when)
    n_rejected = table.num_rows - kept.num_rows
    return labels_of(
        answers,
        source,
        counted(table.num_rows, "assignment"),
        f"items by {item}",
        counted(n_rejected, "rejected left out", "rejected left out"),
        from_text=source.from_text,
        unused={"rejected": n_rejected},
    )


def _recognise_sagemaker(source: Source) -> bool:
    first = set(source.first)
    return any(
        known <= first
        for known in ({"datasetObjectId", "annotations"}, {"humanLoopName", "humanAnswers"})
    ) or _is_response(source.first)


def _is_response(record: Record) -> bool:
    """Return whether a file has the answers about one item."""
    answers = record.get("answers")
    first = answers[0] if isinstance(answers, list) and answers else None
    return isinstance(first, dict) and "answerContent" in first


def _read_sagemaker(source: Source) -> ParsedLabels:
    if _is_response(source.first):
        raise InputError(
            "these are the answers about one item, which the file's folder names: give the "
            "consolidation request of the labeling job, which has all items"
        )
    answers: list[FormAnswer] = []
    n_items = 0
    for record in source.records():
        n_items += 1
        if "humanAnswers" in record:
            item, given = record.get("humanLoopName"), record["humanAnswers"]
        else:
            item, given = record.get("datasetObjectId"), record.get("annotations")
        for one in sequence(given, "the list of answers"):
            answer = mapping(one, "an answer")
            content = answer.get("answerContent")
            if content is None:
                data = mapping(answer.get("annotationData"), "annotationData")
                content = _load(data.get("content"), "the content of an annotation")
            times = {
                "time": answer.get("submissionTime"),
                "seconds": answer.get("timeSpentInSeconds"),
            }
            answers += _answers(item, answer.get("workerId"), content, times)
    if n_items and not answers:
        refuse_regions("the job", "boxes, polygons or entities")
    return labels_of(answers, source, counted(n_items, "item"))


FORMATS = (
    Format("mturk", "MTurk batch results", lambda source: is_batch(source.names), _read_mturk),
    Format("sagemaker", "SageMaker answers", _recognise_sagemaker, _read_sagemaker),
)
