"""Responses in columns: one column per question, or one per box of a question with several choices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed, shown
from annotruth.observations.columns.candidates import label_candidates
from annotruth.observations.columns.names import find_columns, find_time_columns
from annotruth.observations.columns.questions import QuestionsFoundError
from annotruth.observations.covariates import to_array
from annotruth.observations.encode import to_text
from annotruth.observations.frames import as_numpy
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions
from annotruth.observations.scale import to_plain
from annotruth.observations.validate import missing

_OPTION = re.compile(r"(.+?)[._ \[](?:option[._ ]?)?([^._ \[\]]+)\]?(?:\.on)?", re.DOTALL)
_TRUE, _FALSE = ("true", "1", "1.0", "yes", "x", "on"), ("false", "0", "0.0", "no", "off")


def find_boxes(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the columns that may be boxes, by question and option: animal.cat, animal.dog; Q3_1, Q3_2.

    What their cells hold decides it (`read_boxes`).
    """
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _OPTION.fullmatch(name)
        if match:
            found.setdefault(match[1], {})[match[2]] = name
    return {question: boxes for question, boxes in found.items() if len(boxes) > 1}


def read_boxes(table: pa.Table, boxes: Mapping[str, str]) -> pa.Array | None:
    """Return the boxes that are ticked, one per row; None if the columns are not boxes.

    Answers are lists, unless exactly one box is ticked in every row, as of radio buttons. A row of
    empty cells is no answer; in columns without a "false", an empty cell is a box left empty.
    """
    ticked, empty = [], []
    has_false = False
    for name in boxes.values():
        column = to_array(table.column(name))
        texts = pc.utf8_lower(pc.utf8_trim_whitespace(to_text(to_plain(column))))
        gone = missing(column)
        is_true, is_false = (
            as_numpy(pc.fill_null(pc.is_in(texts, pa.array(words, texts.type)), False))
            for words in (_TRUE, _FALSE)
        )
        if not (is_true | is_false | gone).all():
            return None
        has_false |= bool(is_false.any())
        ticked.append(is_true)
        empty.append(gone)
    if not has_false or not any(each.any() for each in ticked):
        return None
    chosen = np.stack(ticked, axis=1)
    answered = np.logical_not(np.all(np.stack(empty, axis=1), axis=1))
    options = list(boxes)
    lists = [
        [options[n] for n in np.flatnonzero(row)] if there else None
        for row, there in zip(chosen, answered, strict=True)
    ]
    if (chosen[answered].sum(axis=1) == 1).all():
        return pa.array([each and each[0] for each in lists], pa.string())
    return pa.array(lists, pa.list_(pa.string()))


def with_boxes(table: pa.Table, names: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Return a table with boxes as one column per question, and the names of the columns then."""
    left = list(names)
    for question, boxes in find_boxes(names).items():
        responses = None if question in table.column_names else read_boxes(table, boxes)
        if responses is not None:
            table = table.append_column(question, responses)
            left[left.index(next(iter(boxes.values())))] = question
            left = [name for name in left if name not in boxes.values()]
    return table, left


def find_responses(names: Sequence[str], read: ReadOptions) -> list[str] | None:
    """Return the columns to read of a table with one column per question, or with boxes.

    That is the item, the annotator and what may be answers; None if the table is no such one.
    Without a question, only the boxes of one question are answers.
    """
    ids = _find_ids(names, read)
    if ids is None:
        return None
    others = [name for name in names if name not in ids.values()]
    boxes = find_boxes(others)
    if read.question is None:
        if len(boxes) != 1:
            return None
        others = [name for each in boxes.values() for name in each.values()]
    elif read.question in others:
        others = [read.question]
    elif read.question in boxes:
        others = list(boxes[read.question].values())
    elif len(others) < 2:
        return None
    used = [*ids.values(), *others]
    free = [name for name in names if name not in used] + [
        name for name in others if read.question == ALL_QUESTIONS
    ]
    times = find_time_columns([*used, *free], read.time_columns, ids.values())
    return list(dict.fromkeys([*used, *read.covariates, *read.content, *times.values()]))


def take_responses(table: pa.Table, read: ReadOptions) -> tuple[pa.Table, dict[str, str]] | None:
    """Return a table with the responses to one question, and the column of each role; None if it has none.

    If all questions are asked for, raise their names: they are then read one by one.
    """
    ids = _find_ids(table.column_names, read)
    if ids is None:
        return None
    times = find_time_columns(table.column_names, read.time_columns, ids.values())
    kept = [*ids.values(), *times.values(), *read.covariates, *read.content]
    before = [name for name in table.column_names if name not in kept]
    table, names = with_boxes(table, before)
    if read.question is None:
        names = [name for name in names if name not in before]
        if len(names) != 1:
            return None
    elif read.question == ALL_QUESTIONS:
        labels, _ = label_candidates(table, names, ids["item"], ids["annotator"])
        found = {each.name for each in labels}
        if not found:
            return None
        raise QuestionsFoundError(name for name in names if name in found)
    elif read.question not in names:
        raise InputError(f"no question {shown(read.question)} (found: {listed(names)})")
    name = names[0] if read.question is None else read.question
    used = list(dict.fromkeys([*ids.values(), name, *kept]))
    return table.select(used), {**ids, "label": name, **read.time_columns}


def _find_ids(names: Sequence[str], read: ReadOptions) -> dict[str, str] | None:
    """Return the columns of items and annotators; None if they are not found, or a label is named."""
    given = dict(read.label_columns or {})
    if given.keys() - {"item", "annotator"}:
        return None
    try:
        return find_columns(names, ("item", "annotator"), given)
    except InputError:
        return None
