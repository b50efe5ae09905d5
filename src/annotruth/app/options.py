"""Turning the words of the command line into Python values."""

from __future__ import annotations

import csv
import io
from typing import Any

from annotruth.errors import InputError


def parse_pairs(text: str | None, option: str) -> dict[str, str]:
    """Read ``a=x,b=y``; a pair with a comma in it stands in quotes."""
    pairs: dict[str, str] = {}
    for part in _parts(text or ""):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name or not value:
            raise InputError(f"{option} takes NAME=VALUE pairs, not {part!r}")
        if name in pairs:
            raise InputError(f"{option} names {name!r} twice: keep one")
        pairs[name] = value
    return pairs


def parse_list(text: str | None) -> list[str] | None:
    """Read ``A,B,C``; a word with a comma in it stands in quotes."""
    if text is None:
        return None
    return [part for part in _parts(text) if part]


def _parts(text: str) -> list[str]:
    """Cut at commas, as CSV does."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    except csv.Error as error:
        raise InputError(f"{text[:60]!r}.. cannot be read ({error}): separate by commas") from error
    return [part.strip() for row in rows for part in row]


def parse_bins(text: str | None) -> int | list[float] | None:
    """Read how many bins, ``10``, or their edges, ``0,20,50,100``."""
    if text is None:
        return None
    try:
        return int(text) if "," not in text else [float(edge) for edge in text.split(",")]
    except ValueError:
        raise InputError(
            f"--bins takes a number of bins or edges such as 0,20,50,100, not {text!r}"
        ) from None


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Read the model's own options, ``tol=1e-6`` and the like, as numbers where they are."""
    found: dict[str, Any] = {}
    for setting in settings or []:
        for name, value in parse_pairs(setting, "--set").items():
            found[name.replace("-", "_")] = _value(value)
    return found


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
