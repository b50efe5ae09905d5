"""Potato's webhooks: annotations created and updated.

They are signed as Standard Webhooks are, but the key is the text of the secret itself.
"""

from __future__ import annotations

from typing import Any

from annotruth.io.formats.text_tools import BETWEEN, choice_of
from annotruth.io.formats.votes import category_of, chosen
from annotruth.serve.hooks.message import (
    Fields,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    event_id,
    object_of,
    text_of,
    time_of,
    verify_standard,
)
from annotruth.serve.store.tables import LabelEvent

_TICKED = "on"  # what a form sends for an option without a value of its own
_EMPTY = (None, "", False, "false")


class Potato(Platform):
    """Potato; an annotation is that of a user on an instance."""

    title, only_labels = "Potato", "annotations"
    settings = ("question",)
    actions = ("annotation.created", "annotation.updated")

    def verify(self, secret: str, message: HookMessage) -> None:
        """Refuse a message with a wrong signature, or an old one."""
        verify_standard(secret.encode(), message.headers, message.body, message.received)

    def events(self, action: str, payload: Fields, project: HookProject) -> HookEvents:
        """Return the event; one without an answer to the question counts as deleted."""
        self.refuse_comparisons(project)
        data = object_of(payload.get("data"), "data")
        item = text_of(data.get("instance_id"), "instance_id")
        user = text_of(data.get("user_id"), "user_id")
        submitted = time_of(payload.get("timestamp"))
        label = _label(object_of(data.get("annotations"), "annotations"), project)
        event = LabelEvent(
            item,
            user,
            label,
            event_id=event_id(item, user, submitted, label),
            submitted=submitted,
            deleted=not label,
        )
        return HookEvents([event])


def _label(annotations: Fields, project: HookProject) -> str:
    """Return the label, an empty text for none.

    ``annotations`` has an entry per option that was ticked, ``question:::option`` or
    ``question:option``, and once more the question alone, with the value of its last option.
    """
    marks = [(*_split(name, project.question), value) for name, value in annotations.items()]
    with_options = {question for question, option, _ in marks if option is not None}
    given: dict[str, list[Any]] = {}
    for question, option, value in marks:
        choices = given.setdefault(question, [])
        if value in _EMPTY or (option is None and question in with_options):
            continue
        choices.append(_choice(question, option, value))
    if not given:
        return ""
    label = category_of(given.get(project.question or chosen(given, None, "question")))
    return "" if label is None else text_of(label, "label")


def _choice(question: str, option: str | None, value: Any) -> Any:
    if option is None:
        return value
    return option if value == _TICKED else choice_of(question, option, value)


def _split(name: str, wanted: str | None) -> tuple[str, str | None]:
    """Return the question and the option of an entry's name; None for the question alone."""
    if wanted is not None and name == wanted:
        return name, None
    for between in (BETWEEN, ":"):
        if wanted is not None and name.startswith(wanted + between):
            return wanted, name[len(wanted + between) :]
        if between in name and wanted is None:
            question, _, option = name.partition(between)
            return question, option
    return name, None
