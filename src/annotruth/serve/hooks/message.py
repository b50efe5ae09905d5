"""What platforms send, how it is signed, and what is made of it: events of the store, and known truths.

Standard Webhooks (https://www.standardwebhooks.com) sends three headers: ``webhook-id``,
``webhook-timestamp`` (seconds since 1970) and ``webhook-signature``, a list of ``v1,BASE64`` separated by
spaces. What is signed is ``{id}.{timestamp}.{body}``, by HMAC-SHA256. The timestamp is signed too, so that
a message which somebody recorded is refused after a few minutes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from annotruth.errors import AnnotruthError, InputError, shown
from annotruth.observations.pairs.outcomes import outcome_of_word
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE
from annotruth.serve.store.tables import LabelEvent, ProjectKind

_PREFIX = "whsec_"
_VERSION = "v1"
_HEX_PREFIX = "sha256="
_KEY_BYTES = 32
TOLERANCE = 300
"""How many seconds the clock of a sender may differ, as the specification recommends."""

Fields = Mapping[str, Any]
"""An object of JSON."""
API = ("url", "project", "token")
"""The settings that polling and predictions need."""
_OUTCOMES = {LEFT: "left", RIGHT: "right", TIE: "tie"}
_MAX_SECONDS = 30 * 24 * 3600  # beyond, a time of work is a tab that stayed open, or nonsense


class SignatureError(AnnotruthError):
    """A message is not signed by the secret, or was signed too long ago."""


def new_secret() -> str:
    """Return a new secret of Standard Webhooks: ``whsec_`` and 32 random bytes in base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def standard_key(secret: str) -> bytes:
    """Return the key that a secret of Standard Webhooks stands for.

    It is the base64 after ``whsec_``. A secret without the prefix that is no base64 is its own key.
    """
    text = secret.removeprefix(_PREFIX)
    padded = text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()


def sign(secret: str, message_id: str, timestamp: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that sign a message by Standard Webhooks."""
    seconds = str(int(timestamp.timestamp()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": _standard(standard_key(secret), message_id, seconds, body),
    }


def verify_standard(key: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Refuse a message whose signature of Standard Webhooks is wrong, missing or too old.

    The key is `standard_key` of the secret, or the bytes of the secret itself where a sender does not
    decode it. Names of headers are in lower case.
    """
    message_id, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    expected = _standard(key, message_id, seconds, body)
    given = headers.get("webhook-signature", "").split(" ")
    if not key or not message_id or not any(_equal(one, expected) for one in given):
        raise SignatureError("the signature (webhook-signature) is wrong or missing")
    is_number = seconds.isascii() and seconds.isdigit() and len(seconds) <= 12
    if not is_number or abs(now.timestamp() - int(seconds)) > TOLERANCE:
        raise SignatureError(
            f"webhook-timestamp differs by more than {TOLERANCE // 60} minutes from the time here: "
            "set the clocks of both machines, or send the message again"
        )


def sign_hex(secret: str, body: bytes) -> str:
    """Return ``sha256=`` and the HMAC-SHA256 of a body in hexadecimal."""
    return _HEX_PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def verify_hex(secret: str, given: str, body: bytes) -> None:
    """Refuse a body whose HMAC-SHA256 in hexadecimal, with or without ``sha256=``, is wrong."""
    with_prefix = given if given.startswith(_HEX_PREFIX) else _HEX_PREFIX + given
    if not secret or not _equal(with_prefix, sign_hex(secret, body)):
        raise SignatureError("the signature is wrong or missing")


def verify_secret(given: str, secret: str) -> None:
    """Refuse a secret that is not the expected one."""
    if not secret or not _equal(given, secret):
        raise SignatureError("the secret is wrong or missing")


def _standard(key: bytes, message_id: str, seconds: str, body: bytes) -> str:
    signed = f"{message_id}.{seconds}.".encode() + body
    return f"{_VERSION},{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def _equal(given: str, expected: str) -> bool:
    """Compare in constant time; text of a header may have any character."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode())


class HookMessage(NamedTuple):
    """A request that a platform sent: its headers by name in lower case, and its body."""

    headers: Mapping[str, str]
    body: bytes
    received: datetime

    def header(self, name: str) -> str:
        """Return a header, an empty text if it was not sent."""
        return self.headers.get(name.lower(), "")


class HookEvents(NamedTuple):
    """What a message says: labels that were given, edited or deleted, and known truths by item."""

    events: list[LabelEvent]
    gold: Mapping[str, str] = {}
    is_known: bool = True  # whether it is about labels; others are answered and counted
    needs_poll: bool = False  # labels changed, but it does not say which: the platform must be read


UNKNOWN = HookEvents([], is_known=False)
"""What a message says that is not about labels."""


class HookProject(NamedTuple):
    """The kind of the project that labels go to, and the settings of the connection."""

    kind: ProjectKind
    settings: Fields

    @property
    def question(self) -> str | None:
        """The question whose answers are the labels; None if there is only one."""
        question = self.settings.get("question")
        return None if question is None else str(question)

    @property
    def sides(self) -> dict[str, str]:
        """The names of the entries of a task that are left and right, where they are given."""
        return {side: self.settings[side] for side in ("left", "right") if side in self.settings}


class PolledAnnotation(NamedTuple):
    """An annotation as a platform has it now: its event, and a known truth if it is one."""

    annotation: str
    event: LabelEvent | None  # None where it cannot be read; `problem` says why
    gold: Mapping[str, str] = {}
    problem: str = ""


class PlatformState(NamedTuple):
    """What a platform says now: its annotations, and whether one that is not among them exists."""

    annotations: Iterable[PolledAnnotation]
    still_exists: Callable[[str], bool]


class Platform:
    """A labelling tool: how its messages are verified and read, and how it is polled.

    A platform's class says what differs: the field of a message with the action, which actions are
    about labels, the names of the settings of its connections, and what one of its answers is called.
    """

    title = ""
    settings: tuple[str, ...] = ()
    action = "event"
    actions: tuple[str, ...] = ()
    only_labels = ""  # what is refused in projects of comparisons

    def verify(self, secret: str, message: HookMessage) -> None:
        """Raise a `SignatureError` for a message with a wrong signature, or an old one."""
        raise NotImplementedError

    def read(self, payload: Any, project: HookProject) -> HookEvents:
        """Return what the content of a message says."""
        payload = object_of(payload, "object")
        action = payload.get(self.action)
        if not isinstance(action, str):
            raise InputError(
                f"the message has no {self.action}: is it one of {self.title}'s webhooks?"
            )
        return self.events(action, payload, project) if action in self.actions else UNKNOWN

    def events(self, action: str, payload: Fields, project: HookProject) -> HookEvents:
        """Return what a message says whose action is about labels."""
        raise NotImplementedError

    @contextmanager
    def open(self, project: HookProject, **options: Any) -> Iterator[PlatformState]:
        """Return what the platform says now; the options are those of `PlatformClient`."""
        raise InputError(f"{self.title} is not polled")
        yield

    def refuse_comparisons(self, project: HookProject) -> None:
        """Refuse a project of comparisons, where answers of the platform are labels."""
        if project.kind == "comparisons":
            raise InputError(
                f"{self.title}'s {self.only_labels} are labels, not comparisons: use a project of "
                "labels"
            )


def event_id(*parts: Any) -> str:
    """Return an id made of values: the same event again has the same one."""
    text = json.dumps(parts, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def state_id(annotation: str, time: datetime | None, *answer: Any) -> str:
    """Return the id of an annotation's state: what it says, and since when."""
    return f"{event_id(annotation, *answer)}-{event_id(time)[:16]}"


def says_the_same(one: str | None, other: str | None) -> bool:
    """Return whether two ids of an annotation's states stand for the same answer."""
    return one is not None and other is not None and one.split("-")[0] == other.split("-")[0]


def text_of(value: Any, what: str) -> str:
    """Return an id or label as text; refuse an empty one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise InputError(f"the message has no {what} ({shown(value)})")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{shown(value)} is not a valid {what}")
        return str(int(value)) if value.is_integer() else repr(value)
    try:
        return str(value)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        raise InputError(f"{shown(value)} is not a valid {what}") from None


def object_of(value: Any, what: str) -> dict[str, Any]:
    """Return an object; refuse anything else under its name."""
    if not isinstance(value, dict):
        raise InputError(f"the message has no {what} ({shown(value)})")
    return value


def time_of(value: Any) -> datetime | None:
    """Return a time as platforms write it; without a zone it is in UTC. None if there is none."""
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InputError(
            f"{shown(value)} is not a time: write it as 2026-01-31T12:00:00Z"
        ) from None
    try:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise InputError(f"the time {shown(value)} is out of range") from None


def start_of(submitted: datetime | None, seconds: Any) -> datetime | None:
    """Return when an annotator began, from the seconds it took; None if it is not known."""
    if submitted is None or isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds <= _MAX_SECONDS:
        return None
    return submitted - timedelta(seconds=seconds)


def outcome_of(winner: Any, left: str, right: str) -> str:
    """Return the outcome of a comparison: left, right or tie."""
    if winner in (left, right) and left != right:
        return "left" if winner == left else "right"
    found = _OUTCOMES.get(outcome_of_word(winner))
    if found is None:
        raise InputError(
            f"winner {shown(winner)} is neither left, right or tie nor one of the two items"
        )
    return found
