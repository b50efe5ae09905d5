"""Messages of any other sender: the JSON of the API, with a secret or a signature instead of a token.

One of these headers authenticates a message: ``X-Annotruth-Secret`` (the secret itself),
``X-Signature-256`` (HMAC-SHA256 of the body), or those of Standard Webhooks.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from annotruth.errors import InputError
from annotruth.serve.hooks.cvat import SIGNATURE_HEADER
from annotruth.serve.hooks.label_studio import SECRET_HEADER
from annotruth.serve.hooks.message import (
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    event_id,
)
from annotruth.serve.hooks.signatures import (
    standard_key,
    verify_hex,
    verify_secret,
    verify_standard,
)
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.web.errors import message_of
from annotruth.serve.web.schemas import NewComparison, NewLabel

_LABELS: TypeAdapter[Any] = TypeAdapter(list[NewLabel])
_COMPARISONS: TypeAdapter[Any] = TypeAdapter(list[NewComparison])


class Generic(Platform):
    """Any other program."""

    title = "another program"

    def verify(self, secret: str, message: HookMessage) -> None:
        """Refuse a message with neither the secret nor a right signature."""
        if message.header("webhook-signature"):
            verify_standard(standard_key(secret), message.headers, message.body, message.received)
        elif message.header(SIGNATURE_HEADER):
            verify_hex(secret, message.header(SIGNATURE_HEADER), message.body)
        else:
            verify_secret(message.header(SECRET_HEADER), secret)

    def read(self, payload: Any, project: HookProject) -> HookEvents:
        """Return the labels or comparisons of a message: one object, or a list of them."""
        given = payload if isinstance(payload, list) else [payload]
        model = _LABELS if project.kind == "labels" else _COMPARISONS
        try:
            sent = model.validate_python(given)
        except ValidationError as error:
            raise InputError(message_of(error)) from None
        return HookEvents([_identified(one.to_event()) for one in sent])


def _identified(event: LabelEvent) -> LabelEvent:
    """Return an event with an id, so that a message which is sent again is known.

    Without the time at which it was submitted, the same label may have been given once more.
    """
    if event.event_id is not None or event.submitted is None:
        return event
    return event._replace(event_id=event_id(*event))
