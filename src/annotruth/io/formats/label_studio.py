"""Label Studio's exports: tasks with annotations (JSON), and one row per annotation (JSON-MIN, CSV)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from annotruth.errors import InputError, listed, option
from annotruth.io.formats.source import ANNOTATORS_FIELD, ITEM_FIELD, Format, Record, Source
from annotruth.io.formats.votes import (
    Votes,
    category_of,
    check_scalar,
    choose_answered,
    chosen,
    counted,
    differing,
    mapping,
    pass_question,
    refuse_regions,
    sequence,
    with_note,
)
from annotruth.io.json_lines import is_deep
from annotruth.observations.columns.names import check_further_columns
from annotruth.observations.frames import make_column
from annotruth.observations.options import ALL_QUESTIONS, ParsedLabels
from annotruth.observations.pairs.build import ParsedComparisons
from annotruth.observations.pairs.columns import find_pair_columns

CLASS_KINDS = ("choices", "rating", "number", "taxonomy")
"""The kinds of results that are labels of a whole item."""
# Where a region is: in a picture, on a mask, in a text, in a recording, in a video.
_PLACES = {"x", "y", "points", "rle", "start", "end", "startOffset", "ranges", "sequence"}


def _recognise(source: Source) -> bool:
    """Return whether a JSON file is an export of tasks with annotations."""
    annotations = source.first.get("annotations")
    if annotations is None and "predictions" in source.first:
        annotations = []  # of a model alone, and so nothing to fit
    if not isinstance(annotations, list) or "data" not in source.first:
        return False
    return all(isinstance(one, dict) and "result" in one for one in annotations)


def _read(source: Source) -> ParsedLabels:
    """Read every annotation that was not cancelled; those marked as ground truth are gold.

    Tasks as they are imported have no ids; then they are numbered from 1.
    """
    tasks = list(source.records())
    numbered = not any("id" in task or ITEM_FIELD in data_of(task) for task in tasks)
    kept, cancelled = [], 0
    for number, task in enumerate(tasks, start=1):
        item = number if numbered else item_of(task)
        for annotation in annotations_of(task):
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                cancelled += 1
            else:
                kept.append((item, task, annotation, _results(annotation)))
    question, note, not_read = _question(
        [
            (item, annotator_of(annotation.get("completed_by")), results)
            for item, _, annotation, results in kept
        ],
        source.read.question,
    )
    if not any("completed_by" in annotation for _, _, annotation, _ in kept):
        raise InputError(
            "no annotation says who made it (completed_by): export the tasks from Label Studio as "
            "JSON, or add completed_by to each annotation"
        )
    about = {name for _, task, _, _ in kept for name in data_of(task)}
    check_further_columns("content", sorted(about), source.read.content, ())
    votes, empty = Votes(content={name: [] for name in source.read.content}), 0
    for item, task, annotation, results in kept:
        if question not in results.choices:
            empty += 1
        elif annotation.get("ground_truth"):
            votes.add_gold(item, results.choices[question])
        else:
            annotator = annotator_of(annotation.get("completed_by"))
            times = {"time": annotation.get("created_at"), "seconds": annotation.get("lead_time")}
            votes.add(item, annotator, results.choices[question], data_of(task), times)
    return votes.parsed(
        counted(len(tasks), "task") + (", numbered from 1" if numbered else ""),
        with_note(f"question {question}", note),
        not_read,
        counted(cancelled, "cancelled annotation{s} left out"),
        counted(empty, "annotation{s} without a label"),
        **{"cancelled": cancelled, "without a label": empty},
    )


def annotations_of(task: Record) -> Iterator[Record]:
    """Return the annotations of a task."""
    for one in sequence(task.get("annotations"), "the list of annotations"):
        yield mapping(one, "an annotation")


def item_of(task: Record) -> Any:
    """Return the item of a task: the one that annotruth made it for, else the task's id."""
    return data_of(task).get(ITEM_FIELD, task.get("id"))


def data_of(task: Record) -> Record:
    """Return what is shown to annotators, by name."""
    data = task.get("data")
    return data if isinstance(data, dict) else {}


class _Results(NamedTuple):
    """The results of an annotation, by question: the choices, and the kinds of what is not read."""

    choices: dict[str, list[Any]]
    regions: dict[str, str]
    others: dict[str, str]


def _results(annotation: Record) -> _Results:
    results = _Results({}, {}, {})
    for one in sequence(annotation.get("result"), "the result of an annotation"):
        result = mapping(one, "a result")
        kind, value = result.get("type"), result.get("value")
        if not isinstance(kind, str) or not isinstance(value, dict):
            continue  # a relation between regions
        name = str(result.get("from_name", kind))
        if is_region(kind, value):
            results.regions[name] = kind
        elif kind not in CLASS_KINDS:
            results.others[name] = kind
        elif kind in value:
            here = value[kind] if isinstance(value[kind], list) else [value[kind]]
            results.choices.setdefault(name, []).extend(map(join_path, here))
    return results


def label_of(annotation: Record, question: str | None) -> Any:
    """Return the label that one annotation gives, None if it has none.

    ``question`` is needed if it answers several.
    """
    choices, regions, _ = _results(annotation)
    if question is None and choices:
        question = chosen(choices, None, "question")
    refused = regions if question is None else regions.keys() & {question}
    if refused and question not in choices:
        name = next(iter(refused))
        refuse_regions(name, regions[name])
    return category_of(choices.get(question or "", []))


def is_region(kind: str, value: Record) -> bool:
    """Return whether a result is about a part of an item: a box, a polygon, a span of text."""
    return kind.endswith("labels") or not _PLACES.isdisjoint(value)


def join_path(choice: Any) -> Any:
    """Return a choice; in a taxonomy it is the path from the root."""
    return " / ".join(map(str, choice)) if isinstance(choice, list) else choice


def _question(
    found: Sequence[tuple[Any, Any, _Results]], wanted: str | None
) -> tuple[str, str, str]:
    """Return the question to read, a note on others, and one on what is not read.

    ``found`` are the results by item and annotator.
    """
    given = [
        (item, annotator, name, choices)
        for item, annotator, results in found
        for name, choices in results.choices.items()
    ]
    regions = {name: kind for *_, results in found for name, kind in results.regions.items()}
    others = {name: kind for *_, results in found for name, kind in results.others.items()}
    if regions and (wanted in regions or not given):
        question = wanted if wanted in regions else next(iter(regions))
        refuse_regions(question, regions[question])
    question, note = choose_answered(given, wanted)
    not_read = ", ".join(f"{name} ({kind})" for name, kind in (regions | others).items())
    return question, note, not_read and f"not read: {not_read}"


def annotator_of(completed_by: Any) -> Any:
    """Return the annotator: an id, or the id in a record of a person."""
    if not isinstance(completed_by, dict):
        return completed_by
    known = completed_by.get("id", completed_by.get("email"))
    if known is None:
        raise InputError(
            f"completed_by has neither id nor email ({completed_by!r}): export the file again"
        )
    return known


_CHOICE_OF_KIND = {"pairwise": "selected", "choices": "choices"}
_DATA_ROLES = ("left", "right", "context")  # what a task's data may hold


def _read_comparisons(source: Source) -> ParsedComparisons:
    """Read every annotation that was not cancelled.

    The items are two entries of a task's data, such as text1 and text2; model_a and model_b come
    before what the models wrote.
    """
    tasks = list(source.records())
    rows, cancelled = [], 0
    for task in tasks:
        for annotation in annotations_of(task):
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                cancelled += 1
            else:
                rows.append((data_of(task), annotation, _winners(annotation)))
    question = chosen(
        [name for *_, winners in rows for name in winners], source.read.question, "question"
    )
    names = list(dict.fromkeys(name for data, *_ in rows for name in data))
    for role in source.columns.keys() - set(_DATA_ROLES):
        raise InputError(
            f"{option('columns')} names the {role}, which this export has in its annotations: name "
            f"only {', '.join(_DATA_ROLES)}"
        )
    columns = find_pair_columns([*names, "annotator", "winner"], source.columns).by_role
    values: dict[str, list[Any]] = {role: [] for role in columns}
    for data, annotation, winners in rows:
        of_row = {
            **data,
            "annotator": annotator_of(annotation.get("completed_by")),
            "winner": winners.get(question),
        }
        for role, name in columns.items():
            values[role].append(check_scalar(of_row.get(name)))
    return ParsedComparisons(
        {role: pa.chunked_array([make_column(role, values[role])]) for role in columns},
        title="Label Studio export",
        unused={"cancelled": cancelled},
        notes=(
            counted(len(tasks), "task"),
            f"question {question}",
            f"left = {columns['left']}, right = {columns['right']}",
            counted(cancelled, "cancelled annotation{s} left out"),
        ),
    )


def comparison_of(
    task: Record, annotation: Record, question: str | None, columns: Mapping[str, str]
) -> tuple[Any, Any, Any]:
    """Return the two items that one annotation compares, and the winner, None if it has none.

    ``columns`` names the entries of the task's data that are left and right, where they are not
    recognised.
    """
    winners, data = _winners(annotation), data_of(task)
    if question is None and winners:
        question = chosen(winners, None, "question")
    roles = find_pair_columns([*data, "annotator", "winner"], columns).by_role
    left, right = (check_scalar(data.get(roles[side])) for side in ("left", "right"))
    return left, right, check_scalar(winners.get(question or ""))


def _winners(annotation: Record) -> dict[str, Any]:
    """Return what was selected, by question."""
    winners: dict[str, Any] = {}
    for one in sequence(annotation.get("result"), "the result of an annotation"):
        result = mapping(one, "a result")
        kind, value = result.get("type"), result.get("value")
        if not isinstance(kind, str) or not isinstance(value, dict) or kind not in _CHOICE_OF_KIND:
            continue
        selected = value.get(_CHOICE_OF_KIND[kind])
        if isinstance(selected, list):
            if len(selected) > 1:
                raise InputError(
                    f"an annotation selects several of {result.get('from_name', kind)!r}: a "
                    "comparison has one winner, or is a tie"
                )
            selected = selected[0] if selected else None
        winners[str(result.get("from_name", kind))] = selected
    return winners


# JSON-MIN and CSV: one row per annotation, questions among the data.

_OURS = {"annotator", "annotation_id", "lead_time"}
_KNOWN = _OURS | {"id", "created_at", "updated_at", "agreement", ITEM_FIELD, ANNOTATORS_FIELD}


def _read_short(source: Source) -> ParsedLabels:
    rows = list(source.records()) if source.kind == "json" else _rows_of_table(source)
    question, note = _question_of_rows(rows, source.read.question)
    votes = Votes()
    for row in rows:
        times = {"time": row.get("created_at"), "seconds": row.get("lead_time")}
        votes.add(_item_of_row(row), row.get("annotator"), _unwrap(row.get(question)), times=times)
    parsed = votes.parsed(counted(len(rows), "annotation"), with_note(f"question {question}", note))
    item = ITEM_FIELD if any(ITEM_FIELD in row for row in rows) else "id"
    origin = {"item": item, "annotator": "annotator", "label": question}
    return replace(parsed, from_text=source.from_text, origin=origin)


def _item_of_row(row: Record) -> Any:
    """Return the item of a row: the one that annotruth made its task for, else the task's id."""
    return row.get(ITEM_FIELD, row.get("id"))


def _rows_of_table(source: Source) -> list[Record]:
    source.check_cells()
    rows: list[Record] = source.table(list(source.names)).to_pylist()
    return [
        {name: value if name in _KNOWN else _parse_cell(value) for name, value in row.items()}
        for row in rows
    ]


def _parse_cell(value: Any) -> Any:
    """Return the value of a cell, which is JSON where an answer is more than one text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):  # text that only begins like JSON
            parsed = json.loads(value)
            return value if is_deep([parsed]) else parsed
    return value


def _question_of_rows(rows: list[Record], wanted: str | None) -> tuple[str, str]:
    """Return the question: a field that differs between the annotations of an item is not data."""
    names = list(dict.fromkeys(name for row in rows for name in row if name not in _KNOWN))
    named = wanted not in (None, ALL_QUESTIONS)
    if named and wanted not in names:
        raise InputError(f"no question {wanted!r} (found: {listed(names)})")
    regions = {name: kind for row in rows for name in names if (kind := _region(row.get(name)))}
    if wanted in regions:
        refuse_regions(wanted, regions[wanted])
    if wanted is not None and named:
        return wanted, ""
    classes = [name for name in names if name not in regions]
    possible = classes if len(names) == 1 else differing(rows, _item_of_row, classes)
    if len(possible) == 1 or (possible and wanted == ALL_QUESTIONS):
        return _choose(rows, possible, wanted)
    if len(possible) > 1 and wanted is None:
        with suppress(InputError):  # several questions
            return _choose(rows, possible, wanted)
    if regions and not possible:
        refuse_regions(*next(iter(regions.items())))
    possible = possible or classes
    raise InputError(
        f"the question could be any of {listed(possible)}, as this export does not mark "
        f"which fields are labels: {pass_question(possible[0])}"
        if possible
        else "there is no question with a label: nothing to fit"
    )


def _choose(rows: Sequence[Record], names: Sequence[str], wanted: str | None) -> tuple[str, str]:
    given = [
        (_item_of_row(row), row.get("annotator"), name, _unwrap(row[name]))
        for row in rows
        for name in names
        if row.get(name) is not None
    ]
    return choose_answered(given, wanted)


def _region(value: Any) -> str:
    """Return the kind of the regions that a field holds, an empty text if it holds none."""
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            kind = next((key for key in one if key.endswith("labels")), "")
            if is_region(kind, one):
                return kind or "regions without a label"
    return ""


def _unwrap(value: Any) -> Any:
    """Return the label in a value: text, ``{"choices": [..]}``, or ``[{"rating": 4}]``."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for kind in CLASS_KINDS:
            if kind in value:
                value = value[kind]
                break
    return list(map(join_path, value)) if isinstance(value, list) else value


FORMATS = (
    Format("label-studio", "Label Studio export", _recognise, _read, _read_comparisons),
    Format(
        "label-studio-min",
        "Label Studio short export",
        lambda source: set(source.first) >= _OURS or set(source.names) >= _OURS,
        _read_short,
    ),
)
