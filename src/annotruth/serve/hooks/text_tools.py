"""Webhooks of Argilla and Potato, which are signed by Standard Webhooks.

A message that is sent again has a new ``webhook-id``, so events are identified by what they say. Argilla
sends the events of all datasets to every webhook.
"""

from __future__ import annotations

from typing import Any

from annotruth.io.formats.text_tools import BETWEEN, NOT_SUBMITTED, choice_of, responses_of
from annotruth.io.formats.votes import category_of, chosen
from annotruth.serve.hooks.message import (
    UNKNOWN,
    Fields,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    event_id,
    object_of,
    standard_key,
    state_id,
    text_of,
    time_of,
    verify_standard,
)
from annotruth.serve.store.tables import LabelEvent

_TICKED = "on"  # what a form sends for an option without a value of its own
_EMPTY = (None, "", False, "false")


class Argilla(Platform):
    """Argilla; messages of other datasets than the connection's are not about labels."""

    title, action, only_labels = "Argilla", "type", "responses"
    settings = ("question", "dataset")
    actions = ("response.created", "response.updated", "response.deleted")

    def verify(self, secret: str, message: HookMessage) -> None:
        """Refuse a message with a wrong signature, or an old one."""
        verify_standard(standard_key(secret), message.headers, message.body, message.received)

    def events(self, action: str, payload: Fields, project: HookProject) -> HookEvents:
        """Return the event of a response; one that is not submitted, or empty, counts as deleted."""
        self.refuse_comparisons(project)
        response = object_of(payload.get("data"), "data")
        sent = time_of(payload.get("timestamp"))
        if action == "response.deleted":
            number = text_of(response.get("id"), "id of the response")
            id_ = event_id(number, "deleted")
            return HookEvents(
                [LabelEvent(annotation=number, event_id=id_, submitted=sent, deleted=True)]
            )
        asked = object_of(response.get("record"), "record")
        wanted = project.settings.get("dataset")
        if wanted is not None:
            dataset = object_of(asked.get("dataset"), "dataset")
            if wanted not in (dataset.get("id"), dataset.get("name")):
                return UNKNOWN
        number = text_of(response.get("id"), "id of the response")
        item = text_of(asked.get("external_id") or asked.get("id"), "id of the record")
        user = text_of(object_of(response.get("user"), "user").get("id"), "id of the user")
        responses = responses_of({"responses": [dict(response)]})
        given = {one.question: one.answer for one in responses if one.status not in NOT_SUBMITTED}
        label = _label_among(given, project)
        submitted = time_of(response.get("updated_at")) or sent
        id_ = state_id(number, submitted, item, user, label)
        event = LabelEvent(item, user, label, id_, number, submitted=submitted, deleted=not label)
        return HookEvents([event])


class Potato(Platform):
    """Potato; an annotation is that of a user on an instance."""

    title, only_labels = "Potato", "annotations"
    settings = ("question",)
    actions = ("annotation.created", "annotation.updated")

    def verify(self, secret: str, message: HookMessage) -> None:
        """Refuse a message with a wrong signature, or an old one; the key is the secret's text."""
        verify_standard(secret.encode(), message.headers, message.body, message.received)

    def events(self, action: str, payload: Fields, project: HookProject) -> HookEvents:
        """Return the event; one without an answer to the question counts as deleted."""
        self.refuse_comparisons(project)
        data = object_of(payload.get("data"), "data")
        item = text_of(data.get("instance_id"), "instance_id")
        user = text_of(data.get("user_id"), "user_id")
        submitted = time_of(payload.get("timestamp"))
        responses = _responses(object_of(data.get("annotations"), "annotations"), project.question)
        label = _label_among(responses, project)
        id_ = event_id(item, user, submitted, label)
        event = LabelEvent(item, user, label, id_, submitted=submitted, deleted=not label)
        return HookEvents([event])


def _label_among(responses: Fields, project: HookProject) -> str:
    if not responses:
        return ""
    question = project.question or chosen(responses, None, "question")
    label = category_of(responses.get(question))
    return "" if label is None else text_of(label, "label")


def _responses(annotations: Fields, wanted: str | None) -> dict[str, list[Any]]:
    """Return the responses of an annotation in Potato by question.

    ``annotations`` has an entry per option that was ticked, ``question:::option`` or
    ``question:option``, and once more the question alone, with the value of its last option.
    """
    marks = [(*_split(name, wanted), value) for name, value in annotations.items()]
    with_options = {question for question, option, _ in marks if option is not None}
    given: dict[str, list[Any]] = {}
    for question, option, value in marks:
        choices = given.setdefault(question, [])
        if value in _EMPTY or (option is None and question in with_options):
            continue
        if option is not None:
            value = option if value == _TICKED else choice_of(question, option, value)
        choices.append(value)
    return given


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
