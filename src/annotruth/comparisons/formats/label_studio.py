"""Label Studio's JSON export of a project with a Pairwise tag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from annotruth.comparisons.columns import find_pair_columns
from annotruth.comparisons.rows import ParsedComparisons
from annotruth.errors import InputError
from annotruth.io.formats.label_studio import annotations_of, annotator_of, data_of
from annotruth.io.formats.source import Record, Source
from annotruth.io.formats.votes import check_scalar, chosen, counted, mapping, sequence
from annotruth.labels.frames import make_column

_CHOICE_OF_KIND = {"pairwise": "selected", "choices": "choices"}
_DATA_ROLES = ("left", "right", "context")  # what a task's data may hold


def read_label_studio(source: Source) -> ParsedComparisons:
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
        [name for *_, winners in rows for name in winners], source.question, "question"
    )
    names = list(dict.fromkeys(name for data, *_ in rows for name in data))
    for role in source.columns.keys() - set(_DATA_ROLES):
        raise InputError(
            f"columns names the {role}, which this export has in its annotations: name only "
            f"{', '.join(_DATA_ROLES)} (`--columns left=NAME,right=NAME`)"
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
        notes=(
            counted(len(tasks), "task", "tasks"),
            f"question {question}",
            f"left = {columns['left']}, right = {columns['right']}",
            counted(cancelled, "cancelled annotation left out", "cancelled annotations left out"),
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
