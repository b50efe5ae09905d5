"""The platforms whose webhooks are understood, by the kind of their connections, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annotruth.errors import InputError, listed, shown
from annotruth.serve.hooks.argilla import Argilla
from annotruth.serve.hooks.client import checked_url
from annotruth.serve.hooks.cvat import Cvat
from annotruth.serve.hooks.generic import Generic
from annotruth.serve.hooks.label_studio import LabelStudio
from annotruth.serve.hooks.message import API, Fields, Platform
from annotruth.serve.hooks.potato import Potato

PLATFORMS: Mapping[str, Platform] = {
    "label-studio": LabelStudio(),
    "argilla": Argilla(),
    "potato": Potato(),
    "cvat": Cvat(),
    "generic": Generic(),
}

_HIDDEN = "***"
_SECRET = "token"
_MAX_LENGTH = 2_000
_MAX_DIGITS = 15


def check_settings(kind: str, settings: Fields) -> dict[str, Any]:
    """Return the settings of a connection; refuse unknown and wrong ones."""
    if kind not in PLATFORMS:
        raise InputError(
            f"there is no kind {shown(kind)} of connections: choose {listed(PLATFORMS)}"
        )
    known = PLATFORMS[kind].settings
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"connections of {kind} have no setting {shown(name)}: choose {listed(known)}"
            )
        _check(name, value)
    given = [name for name in API if name in settings]
    if given and len(given) < len(API):
        missing = next(name for name in API if name not in settings)
        raise InputError(f"the connection has no {missing}: polling needs {', '.join(API)}")
    if settings.get("predictions") and not given:
        raise InputError(f"the connection has no url: predictions need {', '.join(API)}")
    return dict(settings)


def parse_settings(kind: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that were entered in a form; what is empty is left out."""
    names = dict.fromkeys(name for each in PLATFORMS.values() for name in each.settings)
    entered = {name: texts[name].strip() for name in names if texts.get(name, "").strip()}
    settings: dict[str, Any] = dict(entered)
    number = entered.get("project", "")
    if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS:
        settings["project"] = int(number)
    if "predictions" in entered:
        settings["predictions"] = entered["predictions"] == "true"
    return check_settings(kind, settings)


def can_poll(settings: Fields) -> bool:
    """Return whether a connection has what polling needs."""
    return all(name in settings for name in API)


def public_settings(settings: Fields) -> dict[str, Any]:
    """Return settings as they may be shown: without the platform's token."""
    return {name: _HIDDEN if name == _SECRET else value for name, value in settings.items()}


def _check(name: str, value: Any) -> None:
    if name == "predictions":
        if not isinstance(value, bool):
            raise InputError(f"predictions is {shown(value)}: give true or false")
    elif name == "project":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**53:
            raise InputError(
                f"project is {shown(value)}: give the number of the platform's project"
            )
    elif not isinstance(value, str) or not 0 < len(value) <= _MAX_LENGTH or not value.isprintable():
        shown_value = _HIDDEN if name == _SECRET else shown(value)
        raise InputError(f"{name} is {shown_value}: give a text")
    elif name == "url":
        checked_url(value)
