"""File formats of labelling platforms, recognised by content; a module has those of one family."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.io.formats.source import Format, Source
    from annotruth.observations.options import ParsedLabels
    from annotruth.observations.pairs.build import ParsedComparisons

# In the order in which they are tried; the plainest come last, as they fit many files.
_MODULES = {
    "label-studio": "label_studio",
    "label-studio-min": "label_studio",
    "argilla": "text_tools",
    "prodigy": "text_tools",
    "doccano": "text_tools",
    "sureal": "sureal",
    "crowdflower": "crowdsourcing",
    "zooniverse": "crowdsourcing",
    "mturk": "crowdsourcing",
    "toloka": "crowdsourcing",
    "potato": "text_tools",
    "json-table": "json_table",
    "records": "plain",
    "peerannot": "plain",
    "by-annotator": "nested",
    "by-item": "nested",
    "triples": "plain",
    "wide-counted": "matrix",
    "wide-transposed": "matrix",
    "wide": "matrix",
    "mace": "matrix",
}

_OF_COMPARISONS = ("label-studio", "sureal")

# Files that hold no labels of items, by the fields of their first object or by a line.
_REGION_FIELDS = {
    "LabelMe": {"shapes", "imagePath"},
    "COCO": {"images", "annotations", "categories"},
}
_REGION_LINES = {
    "brat": re.compile(rb"\AT\d+\t\S+ \d+ \d[\d; ]*\t"),
    "INCEpTION or WebAnno": re.compile(rb"^1-1\t(?:\d+-\d+\t)?\S", re.MULTILINE),
}
_START = 1 << 14  # bytes in which such a line is looked for

INPUT_FORMATS = ("long", *_MODULES)
"""The values of the option input_format."""


def recognise(source: Source) -> ParsedLabels | None:
    """Read a file that is not a long table; return None if no format recognises it."""
    from annotruth.observations.frames import LABEL_ROLES  # loads PyArrow

    first = source.first
    is_flat = not isinstance(first.get("item"), dict | list)  # unlike a table by column
    if source.in_lines and is_flat and set(LABEL_ROLES) <= set(first):
        return None
    format = next((each for each in map(_named, _MODULES) if each.recognise(source)), None)
    if format is None:
        _refuse_regions(source)
    if format is None or (format.name == "records" and source.in_lines):
        return None
    return replace(format.read(source), title=format.title)


def _refuse_regions(source: Source) -> None:
    """Refuse, by name, files of tools that mark parts of a text or an image."""
    from annotruth.io.content import refuse_marks  # loads PyArrow

    if source.kind == "json":
        fields = set(source.first)
        tool = next((tool for tool, known in _REGION_FIELDS.items() if known <= fields), None)
    else:
        start = bytes(source.content.data[:_START])
        tool = next((tool for tool, line in _REGION_LINES.items() if line.search(start)), None)
    if tool is not None:
        refuse_marks(tool)


def recognise_comparisons(source: Source) -> ParsedComparisons | None:
    """Read pair comparisons of a tool, from JSON or Python; None if no format recognises them."""
    is_python = source.path.suffix.lower() == ".py"
    for format in map(_named, ("sureal",) if is_python else _OF_COMPARISONS):
        if format.read_comparisons is not None and (is_python or format.recognise(source)):
            return format.read_comparisons(source)
    return None


def read_as(name: str, source: Source) -> ParsedLabels:
    """Read a file in the format of that name."""
    format = _named(name)
    return replace(format.read(source), title=format.title)


def check_name(name: str | None) -> None:
    """Refuse an unknown format."""
    if name is not None and name not in INPUT_FORMATS:
        raise InputError(f"unknown input format {name!r}: choose {', '.join(INPUT_FORMATS)}")


def read_several(path: Path, *, max_size: str | int | None = None) -> ParsedLabels | None:
    """Read a folder or zip of one file per user, or a Python file; return None for everything else."""
    if path.suffix.lower() == ".py":
        from annotruth.io.content import read_content
        from annotruth.io.formats.source import Source

        return read_as("sureal", Source(path, read_content(path, max_size=max_size)))
    if path.is_dir() or path.suffix.lower() == ".zip":
        from annotruth.io.formats.text_tools import read_users

        users = read_users(path, max_size=max_size)
        return users and replace(users, title=_named("doccano").title)
    return None


def _named(name: str) -> Format:
    module = importlib.import_module(f"annotruth.io.formats.{_MODULES[name]}")
    formats_of_module: tuple[Format, ...] = module.FORMATS
    return next(format for format in formats_of_module if format.name == name)
