"""Predictions for Label Studio: the label of every item with its confidence.

Label Studio shows predictions beside the tasks, and its Data Manager sorts tasks by their score.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write
from annotruth.io.formats.source import ITEM_FIELD
from annotruth.io.json_tables import write_records
from annotruth.io.writers import LazyTable
from annotruth.kernels.arrays import slices
from annotruth.labels.arrays import Columns
from annotruth.labels.scale import Scale

ControlType = Literal["choices", "rating", "number"]

_MAX_RATING = 10  # ordinal scales of integers from 1 up to here are shown as stars
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, kw_only=True)
class LabelControl:
    """The tag of a Label Studio project that takes the labels, such as ``<Choices name="label">``.

    Attributes
    ----------
    name
        Its name.
    to_name
        The name of the tag that shows the content.
    type
        "choices", "rating" or "number"; chosen by the scale where it is None.

    Examples
    --------
    >>> LabelControl.parse({"name": "sentiment"})
    LabelControl(name='sentiment', to_name='text', type=None)
    """

    name: str = "label"
    to_name: str = "text"
    type: ControlType | None = None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> LabelControl:
        """Return the control given as names and values; refuse unknown ones."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise InputError(
                    f"--label-studio has no {name!r}: pass {', '.join(known)}, such as "
                    "`--label-studio name=sentiment,to_name=text`"
                )
        kinds = get_args(ControlType)
        if values.get("type", kinds[0]) not in kinds:
            raise InputError(
                f"--label-studio type={values['type']} is unknown: choose {', '.join(kinds)}"
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
    """Write one task with one prediction per item, in Label Studio's JSON format.

    Parameters
    ----------
    items
        The table of items of a fit.
    content
        The covariates of items, in the same order.
    scale
        The scale of the labels.
    path
        The file, which ends in .json.
    version
        The model version of the predictions, as Label Studio shows it.
    control
        The tag of the project that takes the labels.
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
    control = replace(control, type=control.type or _type_of(scale))
    values = _values(items, scale, control.type)
    for value, score in zip(values, _scores(items), strict=True):
        yield {"model_version": version, "score": score, "result": [_result(value, control)]}


def _result(value: Any, control: LabelControl) -> dict[str, Any]:
    return {
        "from_name": control.name,
        "to_name": control.to_name,
        "type": control.type,
        "value": {control.type: value},
    }


def _scores(table: pa.Table) -> list[float | None]:
    """Return the confidence of each item; a model of scores has none."""
    if "confidence" not in table.column_names:
        return [None] * table.num_rows
    return list(table["confidence"].to_pylist())


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
            f"labels such as {labels[0]!r} are not {kind}s: pass `--label-studio type=choices`"
        )
    return [round(label) for label in labels] if kind == "rating" else labels
