"""CVAT's webhooks: jobs that changed.

They are signed by HMAC-SHA256 (``X-Signature-256``), without a time. They say which job changed, but
no labels: these are read by `annotruth.serve.hooks.polling`.
"""

from __future__ import annotations

from typing import Any

from annotruth.errors import InputError
from annotruth.serve.hooks.message import (
    UNKNOWN,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    object_of,
)
from annotruth.serve.hooks.signatures import verify_hex

SIGNATURE_HEADER = "X-Signature-256"
"""The header that holds the signature."""
_ACTIONS = ("create:job", "update:job", "delete:job", "update:task", "delete:task")


def verify(secret: str, message: HookMessage) -> None:
    """Refuse a message with a wrong signature."""
    verify_hex(secret, message.header(SIGNATURE_HEADER), message.body)


def read(payload: Any, project: HookProject) -> HookEvents:
    """Return that the project must be polled, if a job or task changed."""
    action = object_of(payload, "object").get("event")
    if not isinstance(action, str):
        raise InputError("the message has no event: is it one of CVAT's webhooks?")
    return HookEvents([], needs_poll=True) if action in _ACTIONS else UNKNOWN


PLATFORM = Platform("CVAT", verify, read)
