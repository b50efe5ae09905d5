"""Parsing the values of command-line options."""

from __future__ import annotations

import csv
import io
from typing import Any

from annotruth.errors import InputError


def parse_pairs(text: str | None, option: str) -> dict[str, str]:
    """Parse ``a=x,b=y``; a pair that contains a comma is quoted."""
    pairs: dict[str, str] = {}
    for pair in _split_at_commas(text or ""):
        name, equals, value = (each.strip() for each in pair.partition("="))
        if not equals or not name or not value:
            raise InputError(f"{option} takes NAME=VALUE pairs, not {pair!r}")
        if name in pairs:
            raise InputError(f"{option} names {name!r} twice: keep one")
        pairs[name] = value
    return pairs


def parse_list(text: str | None) -> list[str] | None:
    """Parse ``A,B,C``; an entry that contains a comma is quoted."""
    if text is None:
        return None
    return [entry for entry in _split_at_commas(text) if entry]


def _split_at_commas(text: str) -> list[str]:
    """Return what is between commas, with the quotes of CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    except csv.Error as error:
        raise InputError(
            f"{text[:60]!r} cannot be parsed ({error}): separate entries by commas"
        ) from error
    return [entry.strip() for row in rows for entry in row]


def parse_bins(text: str | None) -> int | list[float] | None:
    """Parse the number of bins, ``10``, or their edges, ``0,20,50,100``."""
    if text is None:
        return None
    try:
        return int(text) if "," not in text else [float(edge) for edge in text.split(",")]
    except ValueError:
        raise InputError(
            f"--bins takes a number of bins or edges such as 0,20,50,100, not {text!r}"
        ) from None


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Parse the model's options, such as ``tol=1e-6``; numbers become numbers."""
    options: dict[str, Any] = {}
    for setting in settings or []:
        for name, value in parse_pairs(setting, "--set").items():
            options[name.replace("-", "_")] = _parse_value(value)
    return options


def _parse_value(text: str) -> Any:
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
