"""Argilla's webhooks: responses created, updated and deleted, signed by Standard Webhooks.

A message that is sent again has a new ``webhook-id``, so events are identified by the response and
its time. Argilla sends the events of all datasets to every webhook.
"""

from __future__ import annotations

from annotruth.io.formats.text_tools import NOT_SUBMITTED, responses_of
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
            event = LabelEvent(
                annotation=number, event_id=event_id(number, "deleted"), submitted=sent
            )
            return HookEvents([event._replace(deleted=True)])
        asked = object_of(response.get("record"), "record")
        wanted = project.settings.get("dataset")
        if wanted is not None:
            dataset = object_of(asked.get("dataset"), "dataset")
            if wanted not in (dataset.get("id"), dataset.get("name")):
                return UNKNOWN
        number = text_of(response.get("id"), "id of the response")
        item = text_of(asked.get("external_id") or asked.get("id"), "id of the record")
        user = text_of(object_of(response.get("user"), "user").get("id"), "id of the user")
        label = _label(response, project)
        submitted = time_of(response.get("updated_at")) or sent
        event = LabelEvent(
            item,
            user,
            label,
            event_id=state_id(number, submitted, item, user, label),
            annotation=number,
            submitted=submitted,
            deleted=not label,
        )
        return HookEvents([event])


def _label(response: Fields, project: HookProject) -> str:
    """Return the label given to the question, an empty text for none."""
    responses = responses_of({"responses": [dict(response)]})
    given = {one.question: one.answer for one in responses if one.status not in NOT_SUBMITTED}
    if not given:
        return ""
    question = project.question or chosen(given, None, "question")
    label = category_of(given.get(question))
    return "" if label is None else text_of(label, "label")
