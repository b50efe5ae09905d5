"""Tasks and predictions for labelling tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, did_you_mean, option, shown
from annotruth.io.atomic import atomic_write
from annotruth.io.formats.source import ANNOTATORS_FIELD, INPUT_PREFIX, ITEM_FIELD
from annotruth.io.writers import LazyTable, write_records, write_table
from annotruth.kernels.arrays import slices
from annotruth.observations.arrays import Columns
from annotruth.observations.scale import Scale

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
    """An item that needs labels."""

    item: Any
    content: Mapping[str, Any]
    """Its covariates by name: text, the URL of an image, ..."""
    annotators: Sequence[Any]
    """Whom to ask; nobody if all of those to ask have labelled the item."""
    n_labels: int
    """How many labels to add; more than there are annotators where new people are needed."""
    gain: float
    """What one more label is expected to gain."""


def task_format(path: str | os.PathLike[str], format: str | None = None) -> TaskFormat:
    """Return the format by its name, or by the suffix of the path."""
    known: tuple[TaskFormat, ...] = get_args(TaskFormat)
    for each in known:
        if format == each:
            return each
    if format is not None:
        raise InputError(
            f"unknown format {format!r}: choose {', '.join(known)}{did_you_mean(format, known)}"
        )
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"{os.fspath(path)}: assignments are written to a name that ends in "
            f"{', '.join(_SUFFIXES)}; or pass {option('assign_format')}"
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


ControlType = Literal["choices", "rating", "number"]

_MAX_RATING = 10  # ordinal scales of integers from 1 up to here are shown as stars
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, kw_only=True)
class LabelControl:
    """The tag of a Label Studio project that takes the labels, such as ``<Choices name="label">``."""

    name: str = "label"
    to_name: str = "text"
    """The name of the tag that shows the content."""
    type: ControlType | None = None
    """Chosen by the scale where it is None."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> LabelControl:
        """Return the control given as names and values; refuse unknown ones."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise InputError(
                    f"{option('label_studio')} has no {name!r}: pass {', '.join(known)}, such as "
                    f"{option('label_studio', {'name': 'sentiment', 'to_name': 'text'})}"
                )
        kinds = get_args(ControlType)
        if values.get("type", kinds[0]) not in kinds:
            raise InputError(
                f"the type {shown(values['type'])} for {option('label_studio')} is unknown: choose "
                f"{', '.join(kinds)}{did_you_mean(values['type'], kinds)}"
            )
        return cls(**values)


def check_predictions_path(path: str | os.PathLike[str]) -> None:
    """Refuse a file name that Label Studio would not import."""
    if not os.fspath(path).lower().endswith(".json"):
        raise InputError(f"{os.fspath(path)}: predictions are written to a name that ends in .json")


def write_predictions(
    items: pa.Table | LazyTable,
    content: Columns,
    scale: Scale,
    path: str | os.PathLike[str],
    *,
    version: str,
    control: LabelControl,
) -> None:
    """Write one task with one prediction per item of a fit, in Label Studio's JSON format.

    ``content`` are covariates of the items, ``version`` is the model version that Label Studio shows,
    and ``control`` the tag of the project that takes the labels.
    """
    check_predictions_path(path)
    with atomic_write(path) as temporary:
        write_records(_tasks(items, content, scale, version, control), temporary)


def _tasks(
    items: pa.Table | LazyTable, content: Columns, scale: Scale, version: str, control: LabelControl
) -> Iterator[dict[str, Any]]:
    """Return the tasks; items with whole numbers as ids may be tasks of Label Studio."""
    for part in slices(items.num_rows, _ROWS_AT_ONCE):
        table = items.slice(part.start, part.stop - part.start)
        columns = {name: column[part.start : part.stop] for name, column in content.items()}
        data = pa.table({**columns, ITEM_FIELD: table["item"]}).to_pylist()
        are_task_ids = pa.types.is_integer(table["item"].type)
        predictions = make_predictions(table, scale, version=version, control=control)
        for record, prediction in zip(data, predictions, strict=True):
            yield {
                **({"id": record[ITEM_FIELD]} if are_task_ids else {}),
                "data": record,
                "predictions": [prediction],
            }


def make_predictions(
    items: pa.Table, scale: Scale, *, version: str, control: LabelControl
) -> Iterator[dict[str, Any]]:
    """Return the prediction of each item: its label, with its confidence as the score."""
    kind = control.type or _type_of(scale)
    result = {"from_name": control.name, "to_name": control.to_name, "type": kind}
    scores: list[float | None] = [None] * items.num_rows  # a model of scores has no confidence
    if "confidence" in items.column_names:
        scores = items["confidence"].to_pylist()
    for value, score in zip(_values(items, scale, kind), scores, strict=True):
        answer = {**result, "value": {kind: value}}
        yield {"model_version": version, "score": score, "result": [answer]}


def _type_of(scale: Scale) -> ControlType:
    """Return how labels of a scale are given: choices, stars, or a number."""
    if not scale.is_ordinal or not _is_numeric(scale):
        return "choices"
    are_stars = np.isin(scale.values, np.arange(1, _MAX_RATING + 1)).all()
    return "rating" if are_stars else "number"


def _is_numeric(scale: Scale) -> bool:
    kind = scale.categories.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _values(table: pa.Table, scale: Scale, kind: str | None) -> list[Any]:
    """Return each item's label as the control takes it; a model of scores has the nearest one."""
    if kind == "number" and "expectation" in table.column_names:
        return list(table["expectation"].to_pylist())
    if "label" in table.column_names:
        labels = table["label"].to_pylist()
    else:
        score = table["expectation"].to_numpy()
        nearest = np.abs(scale.values - score[:, np.newaxis]).argmin(axis=1)
        labels = scale.categories.take(pa.array(nearest)).to_pylist()
    if kind == "choices":
        return [[str(label)] for label in labels]
    if not _is_numeric(scale):
        raise InputError(
            f"labels such as {labels[0]!r} are not {kind}s: pass "
            f"{option('label_studio', {'type': 'choices'})}"
        )
    return [round(label) for label in labels] if kind == "rating" else labels
