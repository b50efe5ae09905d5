"""Turning the words of the command line into Python values."""

from __future__ import annotations

from typing import Any

from annotruth.errors import InputError


def parse_pairs(text: str | None, option: str) -> dict[str, str]:
    """Read ``a=x,b=y``."""
    pairs = {}
    for part in (text or "").split(",") if text else []:
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"{option} takes NAME=VALUE pairs, not {part!r}")
        pairs[name.strip()] = value.strip()
    return pairs


def parse_list(text: str | None) -> list[str] | None:
    """Read ``A,B,C``."""
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


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
