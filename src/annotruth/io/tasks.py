"""Tasks for labelling tools: the items that need labels, with their content and whom to ask.

Every tool gets one task per item. The tools keep an annotator from doing a task twice, which tasks
per label would allow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write
from annotruth.io.formats.source import ANNOTATORS_FIELD, INPUT_PREFIX, ITEM_FIELD
from annotruth.io.json_tables import write_records
from annotruth.io.writers import write_table

TaskFormat = Literal["csv", "parquet", "label-studio", "prodigy", "mturk"]
"""A table of item and annotator, or what a labelling tool imports."""

_SUFFIXES: Mapping[str, TaskFormat] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "label-studio",
    ".jsonl": "prodigy",
}
# What Prodigy's interfaces show.
_PRODIGY_CONTENT = ("text", "image", "html", "audio", "video")


class Task(NamedTuple):
    """An item that needs labels.

    Attributes
    ----------
    item
        Its id.
    content
        Its covariates by name: text, the URL of an image, ...
    annotators
        Whom to ask; nobody if all of those to ask have labelled the item.
    n_labels
        How many labels to add; more than there are annotators where new people are needed.
    gain
        What one more label is expected to gain.

    Examples
    --------
    >>> label_studio_task(Task("a", {"text": "Hello"}, ["ann"], 2, 0.01))["data"]
    {'text': 'Hello', 'annotruth_item': 'a', 'annotruth_annotators': 'ann'}
    """

    item: Any
    content: Mapping[str, Any]
    annotators: Sequence[Any]
    n_labels: int
    gain: float


def task_format(path: str | os.PathLike[str], format: str | None = None) -> TaskFormat:
    """Return the format by its name, or by the suffix of the path."""
    known: tuple[TaskFormat, ...] = get_args(TaskFormat)
    for each in known:
        if format == each:
            return each
    if format is not None:
        raise InputError(f"unknown format {format!r}: choose {', '.join(known)}")
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"{os.fspath(path)}: assignments are written to a name that ends in "
            f"{', '.join(_SUFFIXES)}; or pass --assign-format"
        )
    return _SUFFIXES[suffix]


def write_tasks(tasks: Sequence[Task], path: str | os.PathLike[str], format: TaskFormat) -> None:
    """Write tasks for a labelling tool.

    In a CSV file, text that a spreadsheet would run as a formula has ' before it.
    """
    if format == "mturk":
        write_table(mturk_table(tasks), path, "csv", safe_cells=True)
        return
    record = prodigy_task if format == "prodigy" else label_studio_task
    with atomic_write(path) as temporary:
        write_records(map(record, tasks), temporary, as_lines=format == "prodigy")


def label_studio_task(task: Task) -> dict[str, Any]:
    """Return a task in Label Studio's basic JSON format.

    The annotators are also part of the data, by which its Data Manager can filter.
    """
    names = ", ".join(map(str, task.annotators))
    return {
        "data": {**task.content, ITEM_FIELD: task.item, ANNOTATORS_FIELD: names},
        "meta": {"annotators": list(task.annotators), "labels": task.n_labels, "gain": task.gain},
    }


def prodigy_task(task: Task) -> dict[str, Any]:
    """Return a task for Prodigy; a task router can read whom to ask."""
    content = dict(task.content)
    if not any(name in content for name in _PRODIGY_CONTENT):
        texts = [value for value in content.values() if isinstance(value, str)]
        content["text"] = texts[0] if texts else str(task.item)
    return {
        **content,
        ITEM_FIELD: task.item,
        ANNOTATORS_FIELD: list(task.annotators),
        "meta": {"item": task.item, "labels": task.n_labels, "gain": task.gain},
    }


def mturk_table(tasks: Sequence[Task]) -> pa.Table:
    """Return the input of a Mechanical Turk batch: one row per HIT, one column per variable.

    Content that was read from the results of a batch, such as Input.text, is the variable text.
    """
    names = list(dict.fromkeys(name for task in tasks for name in task.content))
    columns = {
        name.removeprefix(INPUT_PREFIX): [task.content.get(name) for task in tasks]
        for name in names
    }
    return pa.table(
        {
            **columns,
            ITEM_FIELD: [task.item for task in tasks],
            ANNOTATORS_FIELD: [", ".join(map(str, task.annotators)) for task in tasks],
            "assignments": pa.array([task.n_labels for task in tasks], pa.int64()),
            "gain": pa.array([task.gain for task in tasks], pa.float64()),
        }
    )
