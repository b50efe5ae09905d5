"""What platforms send, and what is made of it: events of the store, and known truths."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from annotruth.comparisons.outcomes import outcome_of_word
from annotruth.comparisons.table import LEFT, RIGHT, TIE
from annotruth.errors import InputError, shown
from annotruth.serve.store.records import LabelEvent, ProjectKind

Fields = Mapping[str, Any]
"""An object of JSON."""
_OUTCOMES = {LEFT: "left", RIGHT: "right", TIE: "tie"}
_MAX_SECONDS = 30 * 24 * 3600  # beyond, a time of work is a tab that stayed open, or nonsense


class HookMessage(NamedTuple):
    """A request that a platform sent: its headers by name in lower case, and its body.

    Examples
    --------
    >>> message = HookMessage({"x-annotruth-secret": "..."}, b"{}", datetime(2026, 1, 1, tzinfo=UTC))
    >>> message.header("X-Annotruth-Secret")
    '...'
    """

    headers: Mapping[str, str]
    body: bytes
    received: datetime

    def header(self, name: str) -> str:
        """Return a header, an empty text if it was not sent."""
        return self.headers.get(name.lower(), "")


class HookEvents(NamedTuple):
    """What a message says.

    Attributes
    ----------
    events
        Labels that were given, edited or deleted.
    gold
        Known truths by item.
    is_known
        Whether the message is about labels; others are answered and counted.
    needs_poll
        Whether the message says that labels changed, but not which: the platform must be read.

    Examples
    --------
    >>> HookEvents([LabelEvent("film 1", "ann", "good")]).needs_poll
    False
    """

    events: list[LabelEvent]
    gold: Mapping[str, str] = {}
    is_known: bool = True
    needs_poll: bool = False


UNKNOWN = HookEvents([], is_known=False)
"""What a message says that is not about labels."""


class HookProject(NamedTuple):
    """What a hook must know of the project that its labels go to.

    ``settings`` are those of the connection.

    Examples
    --------
    >>> HookProject("labels", {"question": "sentiment"}).question
    'sentiment'
    """

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


class Platform(NamedTuple):
    """A labelling tool: how its messages are verified and read.

    ``verify`` takes the secret and the message, and raises a `SignatureError`; ``read`` takes the
    content of the message and the project.

    Examples
    --------
    >>> from annotruth.serve.hooks.platforms import PLATFORMS
    >>> PLATFORMS["cvat"].title
    'CVAT'
    """

    title: str
    verify: Callable[[str, HookMessage], None]
    read: Callable[[Any, HookProject], HookEvents]


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
