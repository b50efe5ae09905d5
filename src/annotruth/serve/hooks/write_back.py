"""Predictions for a project of Label Studio: each task's label, with its confidence as the score.

The Data Manager sorts tasks by the score, so that those to label again come first. Label Studio
already has the predictions of the last time: only what changed is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from annotruth.errors import InputError, listed
from annotruth.io.formats.label_studio import item_of
from annotruth.io.tasks import ControlType, LabelControl, make_predictions
from annotruth.observations.scale import Scale
from annotruth.serve.hooks.label_studio import LabelStudioProject
from annotruth.serve.hooks.message import Fields

MODEL_VERSION = "annotruth"
"""The name under which Label Studio shows the predictions."""
_AT_ONCE = 500
_SCORE_STEP = 0.005  # a smaller change of the confidence is not sent
_TYPES: Mapping[str, ControlType] = {"choices": "choices", "rating": "rating", "number": "number"}


class WrittenBack(NamedTuple):
    """How many predictions were added, changed, left as they were, and refused by Label Studio."""

    n_added: int
    n_changed: int
    n_unchanged: int
    n_refused: int

    @property
    def summary(self) -> str:
        """The counts in words."""
        refused = f", {self.n_refused:,} refused" if self.n_refused else ""
        return (
            f"{self.n_added:,} added, {self.n_changed:,} changed, {self.n_unchanged:,} unchanged"
            + refused
        )


class _Existing(NamedTuple):
    """A task, and the predictions that were written to it before."""

    task: int
    predictions: Sequence[Fields]


def write_back(
    client: LabelStudioProject, items: pa.Table, scale: Scale, *, question: str | None = None
) -> WrittenBack:
    """Write predictions to Label Studio, for the items that are tasks there.

    Where the project shows the predictions of no model, it shows these from now on. Otherwise the
    Data Manager has no score of them. ``question`` is the tag that takes the labels; by default the
    only one.
    """
    settings = client.project()
    control = find_control(settings, question)
    tasks = _tasks_by_item(client.tasks())
    new: list[dict[str, Any]] = []
    n_changed = n_unchanged = 0
    names = map(str, items["item"].to_pylist())
    predictions = make_predictions(items, scale, version=MODEL_VERSION, control=control)
    for name, prediction in zip(names, predictions, strict=True):
        for task, before in tasks.get(name, ()):
            if not before:
                new.append({"task": task, **prediction})
            elif _is_same(before[0], prediction):
                n_unchanged += 1
            else:
                client.change_prediction(before[0]["id"], prediction)
                n_changed += 1
            for repeated in before[1:]:  # of an attempt whose answer was lost
                client.delete_prediction(repeated["id"])
    starts = range(0, len(new), _AT_ONCE)
    n_added = sum(client.add_predictions(new[start : start + _AT_ONCE]) for start in starts)
    if not settings.get("model_version") and n_added + n_changed + n_unchanged:
        client.choose_model(MODEL_VERSION)
    return WrittenBack(n_added, n_changed, n_unchanged, len(new) - n_added)


def find_control(settings: Fields, question: str | None) -> LabelControl:
    """Return the tag of a project that takes the labels, from its labelling interface."""
    tags = settings.get("parsed_label_config")
    controls = {
        name: LabelControl(
            name=name, to_name=tag["to_name"][0], type=_TYPES[str(tag["type"]).lower()]
        )
        for name, tag in (tags if isinstance(tags, dict) else {}).items()
        if isinstance(tag, dict) and str(tag.get("type")).lower() in _TYPES and tag.get("to_name")
    }
    if question is not None and question in controls:
        return controls[question]
    if question is None and len(controls) == 1:
        return next(iter(controls.values()))
    wanted = "one tag" if question is None else f"a tag {question!r}"
    raise InputError(
        f"the labelling interface needs {wanted} of type Choices, Rating or Number (found: "
        f"{listed(controls)}): set the question of the connection"
    )


def _tasks_by_item(tasks: Iterable[Fields]) -> dict[str, list[_Existing]]:
    found: dict[str, list[_Existing]] = {}
    for task in tasks:
        predictions = task.get("predictions")
        ours = [
            each
            for each in (predictions if isinstance(predictions, list) else ())
            if isinstance(each, dict) and each.get("model_version") == MODEL_VERSION
        ]
        found.setdefault(str(item_of(dict(task))), []).append(_Existing(task["id"], ours))
    return found


def _is_same(before: Fields, prediction: Fields) -> bool:
    """Return whether a prediction has the label and, nearly, the score that it had before."""
    old, new = before.get("score"), prediction["score"]
    if isinstance(old, int | float) and isinstance(new, int | float):
        is_near = abs(old - new) < _SCORE_STEP
    else:
        is_near = old is new
    return is_near and _value(before) == _value(prediction)


def _value(prediction: Fields) -> Any:
    """Return the value of a prediction's result; Label Studio may add further entries to it."""
    result = prediction.get("result")
    first = result[0] if isinstance(result, list) and result else {}
    return (first.get("from_name"), first.get("value")) if isinstance(first, dict) else None
