"""Exports of labelling platforms whose answers are nested: Appen, Kili, Labelbox, LightTag, SageMaker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.cells import load_cell
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import (
    FormAnswer,
    check_scalar,
    counted,
    labels_of,
    mapping,
    refuse_regions,
    sequence,
)
from annotruth.observations.options import ParsedLabels

# Appen's JSON report: one unit per line, with its judgments.


def _read_appen(source: Source) -> ParsedLabels:
    answers, n_judgments = [], 0
    for unit in source.records():
        results = mapping(unit.get("results"), "the results of a unit")
        for one in sequence(results.get("judgments"), "the judgments"):
            judgment = mapping(one, "a judgment")
            n_judgments += 1
            times = {"time": judgment.get("created_at")}
            for question, value in mapping(judgment.get("data"), "a judgment's data").items():
                answer = [value] if isinstance(value, str) else value
                answers.append(
                    FormAnswer(unit.get("id"), judgment.get("worker_id"), question, answer, times)
                )
    return labels_of(answers, source, counted(n_judgments, "judgment"))


# Amazon's worker forms: consolidation requests of SageMaker Ground Truth, and A2I's human loops.


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
                content = load_cell(data.get("content"), "annotationData", n_items)
            times = {
                "time": answer.get("submissionTime"),
                "seconds": answer.get("timeSpentInSeconds"),
            }
            answers += _answers(item, answer.get("workerId"), content, times)
    if n_items and not answers:
        refuse_regions("the job", "boxes, polygons or entities")
    return labels_of(answers, source, counted(n_items, "item"))


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


# Labelbox: data rows with the labels of each project.


def _read_labelbox(source: Source) -> ParsedLabels:
    """Read the classifications of data rows, not those of objects in them."""
    answers, n_labels, objects = [], 0, False
    for row in source.records():
        item = mapping(row.get("data_row"), "the data row").get("id")
        for project in mapping(row.get("projects"), "the projects").values():
            for one in sequence(mapping(project, "a project").get("labels"), "the labels"):
                label = mapping(one, "a label")
                details = mapping(label.get("label_details") or {}, "the details of a label")
                spent = mapping(label.get("performance_details") or {}, "the times of a label")
                given = mapping(label.get("annotations") or {}, "the annotations")
                n_labels += 1
                objects = objects or bool(given.get("objects"))
                times = {
                    "time": details.get("created_at"),
                    "seconds": spent.get("seconds_to_create"),
                }
                for each in sequence(given.get("classifications"), "the classifications"):
                    question, value = _classification(mapping(each, "a classification"))
                    answers.append(
                        FormAnswer(item, details.get("created_by"), question, value, times)
                    )
    if objects and not answers:
        refuse_regions("the project", "objects")
    return labels_of(answers, source, counted(n_labels, "label"))


def _classification(answer: Record) -> tuple[str, Any]:
    """Return the question of a classification, and its choices or its text."""
    question = str(answer.get("name"))
    if "radio_answer" in answer:
        return question, [_name(answer["radio_answer"])]
    if "checklist_answers" in answer:
        return question, [_name(one) for one in sequence(answer["checklist_answers"], "answers")]
    return question, mapping(answer.get("text_answer") or {}, "a text").get("content")


def _name(answer: Any) -> Any:
    known = mapping(answer, "an answer")
    return known.get("name", known.get("value"))


# Kili: assets with labels, of which the latest of each author counts.


def _recognise_kili(source: Source) -> bool:
    labels = source.first.get("labels")
    return (
        isinstance(labels, list)
        and bool(labels)
        and isinstance(labels[0], dict)
        and {"author", "jsonResponse"} <= set(labels[0])
    )


def _read_kili(source: Source) -> ParsedLabels:
    answers, n_assets, left_out, regions = [], 0, 0, False
    for asset in source.records():
        n_assets += 1
        item = asset.get("externalId", asset.get("id"))
        for one in sequence(asset.get("labels"), "the labels of an asset"):
            label = mapping(one, "a label")
            is_human = label.get("labelType", "DEFAULT") in ("DEFAULT", "REVIEW")
            if not is_human or label.get("isLatestLabelForUser") is False:
                left_out += 1
                continue
            author = mapping(label.get("author"), "an author")
            times = {"time": label.get("createdAt"), "seconds": label.get("secondsToLabel")}
            for job, given in mapping(label.get("jsonResponse"), "an answer").items():
                answer = mapping(given, "an answer")
                if "categories" in answer:
                    chosen_ones = [_name(each) for each in sequence(answer["categories"], job)]
                    who = author.get("email", author.get("id"))
                    answers.append(FormAnswer(item, who, job, chosen_ones, times))
                regions = regions or "annotations" in answer
    if regions and not answers:
        refuse_regions("the project", "annotations")
    note = counted(left_out, "older or predicted label{s} left out")
    unused = {"older or predicted": left_out}
    return labels_of(answers, source, counted(n_assets, "asset"), note, unused=unused)


# LightTag: examples with classes, each with those who gave it.


def _recognise_lighttag(source: Source) -> bool:
    examples = source.first.get("examples")
    first = examples[0] if isinstance(examples, list) and examples else None
    return isinstance(first, dict) and "example_id" in first


def _read_lighttag(source: Source) -> ParsedLabels:
    given: dict[tuple[Any, Any], list[Any]] = {}
    examples = [
        mapping(one, "an example") for one in sequence(source.first.get("examples"), "the examples")
    ]
    for example in examples:
        for each in sequence(example.get("classifications"), "the classifications"):
            choice = mapping(each, "a classification")
            for by in sequence(choice.get("annotated_by"), "the annotators"):
                who = check_scalar(mapping(by, "an annotator").get("annotator"))
                place = check_scalar(example.get("example_id")), who
                given.setdefault(place, []).append(choice.get("classname"))
    if not given and any(example.get("annotations") for example in examples):
        refuse_regions("the examples", "spans")
    answers = [
        FormAnswer(item, who, "classification", names) for (item, who), names in given.items()
    ]
    return labels_of(answers, source, counted(len(examples), "example"))


# Rayyan: articles whose notes have the decision of each reviewer.

_INCLUSION = re.compile(r'RAYYAN-INCLUSION:\s*\{((?:\s*"[^"]*"\s*=>\s*"[^"]*"\s*,?)*)\s*\}')
_DECISION = re.compile(r'"([^"]*)"\s*=>\s*"([^"]*)"')


def _decisions(note: Any) -> Iterator[tuple[str, str]]:
    found = _INCLUSION.search(str(note or ""))
    yield from _DECISION.findall(found[1]) if found else ()


def _recognise_rayyan(source: Source) -> bool:
    if not {"key", "notes"} <= set(source.names):
        return False
    place = source.names.index("notes")
    return any(len(row) > place and _INCLUSION.search(row[place]) for row in source.rows)


def _read_rayyan(source: Source) -> ParsedLabels:
    item, notes = source.column("item", "key"), source.column("label", "notes")
    rows = source.table([item, notes]).to_pylist()
    answers = [
        FormAnswer(row[item], who, "inclusion", [decision])
        for row in rows
        for who, decision in _decisions(row[notes])
    ]
    return labels_of(answers, source, counted(len(rows), "article"), from_text=source.from_text)


FORMATS = (
    Format(
        "appen",
        "Appen JSON report",
        lambda source: {"results", "judgments_count"} <= set(source.first),
        _read_appen,
    ),
    Format("sagemaker", "SageMaker answers", _recognise_sagemaker, _read_sagemaker),
    Format(
        "labelbox",
        "Labelbox export",
        lambda source: {"data_row", "projects"} <= set(source.first),
        _read_labelbox,
    ),
    Format("kili", "Kili export", _recognise_kili, _read_kili),
    Format("lighttag", "LightTag export", _recognise_lighttag, _read_lighttag),
    Format("rayyan", "Rayyan articles", _recognise_rayyan, _read_rayyan),
)
