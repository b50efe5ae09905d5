"""Files of labels from the platforms people use, recognised by content, one platform a file."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.io.formats.base import Format, ParsedLabels
    from annotruth.io.formats.source import Source

# In the order in which they are asked; the plainest come last, for they fit many files.
_HOMES = {
    "label-studio": "label_studio",
    "label-studio-min": "label_studio_min",
    "argilla": "argilla",
    "prodigy": "prodigy",
    "doccano": "doccano",
    "sureal": "sureal",
    "mturk": "mturk",
    "toloka": "toloka",
    "records": "records",
    "peerannot": "peerannot",
    "wide-counted": "wide",
    "wide-transposed": "wide",
    "wide": "wide",
    "mace": "mace",
}

INPUT_FORMATS = ("long", *_HOMES)
"""What may be asked for by name."""


def recognised(source: Source) -> ParsedLabels | None:
    """Read a file that is no plain long table, or return None when nobody recognises it."""
    if source.in_lines and _named("records").recognise(source):
        return None
    found = next((format for format in _all() if format.recognise(source)), None)
    return None if found is None else _read(found, source)


def read_as(name: str, source: Source) -> ParsedLabels:
    """Read a file in the format that the user names."""
    return _read(_named(name), source)


def check_name(name: str | None) -> None:
    """Refuse a format that there is not."""
    if name is not None and name not in INPUT_FORMATS:
        raise InputError(f"unknown input format {name!r}: choose {', '.join(INPUT_FORMATS)}")


def read_several(path: Path) -> ParsedLabels | None:
    """Read what is no single file of data: a folder or zip of one file a user.

    Returns None for everything else, and refuses a program, which is never run.
    """
    if path.suffix.lower() == ".py":
        from annotruth.io.formats.sureal import refuse_program

        refuse_program()
    if path.is_dir() or path.suffix.lower() == ".zip":
        from annotruth.io.formats.doccano import FORMATS, read_users

        found = read_users(path)
        return found and replace(found, title=FORMATS[0].title)
    return None


def _read(format: Format, source: Source) -> ParsedLabels:
    return replace(format.read(source), title=format.title)


def _named(name: str) -> Format:
    module = importlib.import_module(f"annotruth.io.formats.{_HOMES[name]}")
    formats: tuple[Format, ...] = module.FORMATS
    return next(format for format in formats if format.name == name)


def _all() -> Iterator[Format]:
    return (_named(name) for name in _HOMES)
