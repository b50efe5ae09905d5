"""Label Studio's webhooks: annotations created, updated and deleted.

Label Studio signs nothing and sends nothing again. The secret is in a header of the webhook's
settings, and `annotruth.serve.hooks.polling` finds what was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from annotruth.comparisons.formats.label_studio import comparison_of
from annotruth.errors import InputError
from annotruth.io.formats.label_studio import annotator_of, item_of, label_of
from annotruth.serve.hooks.message import (
    UNKNOWN,
    Fields,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    event_id,
    object_of,
    outcome_of,
    start_of,
    state_id,
    text_of,
    time_of,
)
from annotruth.serve.hooks.signatures import verify_secret
from annotruth.serve.store.records import LabelEvent

SECRET_HEADER = "X-Annotruth-Secret"
"""The header of Label Studio's webhook that holds the secret."""
_GIVEN = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")


class _Answer(NamedTuple):
    """Who said what: the items, the annotator, and the label, empty for none."""

    item: str
    other_item: str
    annotator: str
    label: str


def verify(secret: str, message: HookMessage) -> None:
    """Refuse a message without the secret."""
    verify_secret(message.header(SECRET_HEADER), secret)


def read(payload: Any, project: HookProject) -> HookEvents:
    """Return what a message of Label Studio says.

    The deletion of a task names neither its annotations nor its item, so the project is polled.
    """
    payload = object_of(payload, "object")
    action = payload.get("action")
    if action in _GIVEN:
        return _given(payload, project)
    if action == "ANNOTATIONS_DELETED":
        return HookEvents([_deletion(number) for number in _ids(payload.get("annotations"))])
    if action == "TASKS_DELETED":
        return HookEvents([], needs_poll=True)
    if not isinstance(action, str):
        raise InputError("the message has no action: is it one of Label Studio's webhooks?")
    return UNKNOWN


def _deletion(annotation: str) -> LabelEvent:
    """Return the event that an annotation was deleted; the time is that of receipt."""
    return LabelEvent(annotation=annotation, event_id=event_id(annotation, "deleted"), deleted=True)


def annotation_event(task: Fields, annotation: Fields, project: HookProject) -> LabelEvent:
    """Return the event of an annotation's present state, whether a message or an export has it.

    The id depends on the state alone: found by polling after a message came, it is the same event.
    An annotation that was skipped, has no label, or became a known truth counts as deleted.
    """
    number = text_of(annotation.get("id"), "id of the annotation")
    submitted = time_of(annotation.get("updated_at") or annotation.get("created_at"))
    answer = _answer(task, annotation, project)
    is_vote = bool(answer.label) and not is_skipped(annotation)
    is_vote = is_vote and not (is_gold(annotation) and project.kind == "labels")
    return LabelEvent(
        item=answer.item,
        annotator=answer.annotator,
        label=answer.label if is_vote else "",
        event_id=state_id(number, submitted, is_vote, *answer),
        annotation=number,
        other_item=answer.other_item,
        started=start_of(submitted, annotation.get("lead_time")),
        submitted=submitted,
        deleted=not is_vote,
    )


def known_truth(task: Fields, annotation: Fields, project: HookProject) -> dict[str, str]:
    """Return the item and its label if an annotation is a known truth (ground truth)."""
    if project.kind != "labels" or not is_gold(annotation) or is_skipped(annotation):
        return {}
    answer = _answer(task, annotation, project)
    return {answer.item: answer.label} if answer.label else {}


def is_skipped(annotation: Fields) -> bool:
    """Return whether the annotator skipped the task."""
    return bool(annotation.get("was_cancelled") or annotation.get("skipped"))


def is_gold(annotation: Fields) -> bool:
    """Return whether an annotation is marked as ground truth."""
    return bool(annotation.get("ground_truth"))


def _given(payload: Fields, project: HookProject) -> HookEvents:
    events: list[LabelEvent] = []
    gold: dict[str, str] = {}
    for task, annotation in _pairs(payload):
        events.append(annotation_event(task, annotation, project))
        gold |= known_truth(task, annotation, project)
    return HookEvents(events, gold)


def _pairs(payload: Fields) -> Iterator[tuple[Fields, Fields]]:
    """Return the annotations of a message with their tasks; there may be several of both."""
    tasks = {_task_id(task.get("id")): task for task in _several(payload.get("task"), "task")}
    for annotation in _several(payload.get("annotation"), "annotation"):
        task = tasks.get(_task_id(annotation.get("task")))
        if task is None:
            raise InputError(
                "the message has no task of the annotation: switch on 'Send payload' in the "
                "settings of the webhook"
            )
        yield task, annotation


def _task_id(number: Any) -> str:
    return text_of(number, "id of the task")


def _several(value: Any, what: str) -> Iterable[dict[str, Any]]:
    values = value if isinstance(value, list) else [value]
    return [object_of(one, what) for one in values]


def _ids(annotations: Any) -> list[str]:
    if not isinstance(annotations, list):
        raise InputError("the message has no list of annotations that were deleted")
    return [
        text_of(object_of(one, "annotation").get("id"), "id of the annotation")
        for one in annotations
    ]


def _answer(task: Fields, annotation: Fields, project: HookProject) -> _Answer:
    task, annotation = dict(task), dict(annotation)
    annotator = text_of(annotator_of(annotation.get("completed_by")), "annotator (completed_by)")
    if project.kind == "comparisons":
        one, other, winner = comparison_of(task, annotation, project.question, project.sides)
        left, right = text_of(one, "left item"), text_of(other, "right item")
        outcome = "" if winner is None else outcome_of(winner, left, right)
        return _Answer(left, right, annotator, outcome)
    label = label_of(annotation, project.question)
    return _Answer(
        text_of(item_of(task), "item"),
        "",
        annotator,
        "" if label is None else text_of(label, "label"),
    )


PLATFORM = Platform("Label Studio", verify, read)
