"""The platforms whose webhooks are understood, by the kind of their connections, and its settings.

Any other sender sends the JSON of the API, with one of these headers instead of a token:
``X-Annotruth-Secret`` (the secret itself), ``X-Signature-256`` (HMAC-SHA256 of the body), or those of
Standard Webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from annotruth.errors import InputError, listed, shown
from annotruth.serve.hooks.cvat import SIGNATURE_HEADER, Cvat
from annotruth.serve.hooks.label_studio import SECRET_HEADER, LabelStudio
from annotruth.serve.hooks.message import (
    API,
    Fields,
    HookEvents,
    HookMessage,
    HookProject,
    Platform,
    event_id,
    standard_key,
    verify_hex,
    verify_secret,
    verify_standard,
)
from annotruth.serve.hooks.text_tools import Argilla, Potato
from annotruth.serve.outgoing import checked_url
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.web.guard import message_of
from annotruth.serve.web.schemas import NewComparison, NewLabel

_LABELS: TypeAdapter[Any] = TypeAdapter(list[NewLabel])
_COMPARISONS: TypeAdapter[Any] = TypeAdapter(list[NewComparison])

_HIDDEN = "***"
_SECRET = "token"


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


PLATFORMS: Mapping[str, Platform] = {
    "label-studio": LabelStudio(),
    "argilla": Argilla(),
    "potato": Potato(),
    "cvat": Cvat(),
    "generic": Generic(),
}


def _checked_text(value: str) -> str:
    if not value.isprintable():
        raise ValueError("give a text without control characters")
    return value


def _checked_address(value: str) -> str:
    checked_url(value)
    return value


_Text = Annotated[str, Field(min_length=1, max_length=2_000), AfterValidator(_checked_text)]


class _Settings(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    question: _Text | None = None
    dataset: _Text | None = None
    left: _Text | None = None
    right: _Text | None = None
    url: Annotated[_Text, AfterValidator(_checked_address)] | None = None
    project: Annotated[int, Field(gt=0, lt=2**53)] | None = None
    token: _Text | None = None
    predictions: bool | None = None


def check_settings(kind: str, settings: Fields, *, strict: bool = True) -> dict[str, Any]:
    """Return the settings of a connection; refuse unknown and wrong ones.

    Unless strict, numbers may be given as text.
    """
    if kind not in PLATFORMS:
        raise InputError(
            f"there is no kind {shown(kind)} of connections: choose {listed(PLATFORMS)}"
        )
    known = PLATFORMS[kind].settings
    for name in settings:
        if name not in known:
            raise InputError(
                f"connections of {kind} have no setting {shown(name)}: choose {listed(known)}"
            )
    try:
        checked = _Settings.model_validate(dict(settings), strict=strict)
    except ValidationError as error:
        raise InputError(message_of(error)) from None
    given = [name for name in API if name in settings]
    if given and len(given) < len(API):
        missing = next(name for name in API if name not in settings)
        raise InputError(f"the connection has no {missing}: polling needs {', '.join(API)}")
    if settings.get("predictions") and not given:
        raise InputError(f"the connection has no url: predictions need {', '.join(API)}")
    return checked.model_dump(exclude_none=True)


def parse_settings(kind: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that were entered in a form; what is empty is left out."""
    entered = {name: texts.get(name, "").strip() for name in _Settings.model_fields}
    return check_settings(kind, {k: v for k, v in entered.items() if v}, strict=False)


def can_poll(settings: Fields) -> bool:
    """Return whether a connection has what polling needs."""
    return all(name in settings for name in API)


def public_settings(settings: Fields) -> dict[str, Any]:
    """Return settings as they may be shown: without the platform's token."""
    return {name: _HIDDEN if name == _SECRET else value for name, value in settings.items()}
