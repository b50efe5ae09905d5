"""File formats of labelling platforms, recognised by content; a module has those of one family."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from annotruth.io.formats.source import Format, Source
    from annotruth.observations.options import ParsedLabels
    from annotruth.observations.pairs.build import ParsedComparisons

# In the order in which they are tried; the plainest come last, as they fit many files.
_MODULES = {
    "label-studio": "label_studio",
    "label-studio-min": "label_studio",
    "appen": "platforms",
    "labelbox": "platforms",
    "kili": "platforms",
    "lighttag": "platforms",
    "sagemaker": "platforms",
    "argilla": "text_tools",
    "prodigy": "text_tools",
    "doccano": "text_tools",
    "sureal": "sureal",
    "crowdflower": "crowdsourcing",
    "zooniverse": "zooniverse",
    "zooniverse-extracts": "zooniverse",
    "mturk": "crowdsourcing",
    "toloka": "crowdsourcing",
    "potato": "text_tools",
    "rayyan": "platforms",
    "survey": "surveys",
    "jspsych": "experiments",
    "gorilla": "experiments",
    "otree": "experiments",
    "sujson": "item_lists",
    "lists": "item_lists",
    "indicators": "indicators",
    "glad": "plain",
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

# Of comparisons alone: where labels are read, they are refused by what they are.
_JUDGMENTS = dict.fromkeys(("pandalm", "multipref", "summaries", "wmt"), "judgments")
_OF_COMPARISONS = ("label-studio", "sureal", *_JUDGMENTS)

INPUT_FORMATS = ("long", *_MODULES)
"""The values of the option input_format."""


def recognise_glad(source: Source) -> ParsedLabels | None:
    """Read GLAD's data, whose first line is not one of a table; None for other text."""
    format = _named("glad")
    return replace(format.read(source), title=format.title) if format.recognise(source) else None


def recognise(source: Source) -> ParsedLabels | None:
    """Read a file that is not a long table; return None if no format recognises it."""
    from annotruth.observations.columns.names import LABEL_ROLES  # loads PyArrow

    first = source.first
    is_flat = not isinstance(first.get("item"), dict | list)  # unlike a table by column
    if source.in_lines and is_flat and set(LABEL_ROLES) <= set(first):
        return None
    format = next(
        (each for each in map(_named, (*_JUDGMENTS, *_MODULES)) if each.recognise(source)), None
    )
    if format is None:
        from annotruth.io.formats.refusals import refuse_other_files  # loads PyArrow

        refuse_other_files(source)
    if format is None or (format.name == "records" and source.in_lines):
        return None
    return replace(format.read(source), title=format.title)


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
        near = did_you_mean(name, INPUT_FORMATS)
        raise InputError(
            f"unknown input format {name!r}: `annotruth fit --help-all` lists all{near}"
        )


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
    module = importlib.import_module(f"annotruth.io.formats.{(_JUDGMENTS | _MODULES)[name]}")
    formats_of_module: tuple[Format, ...] = module.FORMATS
    return next(format for format in formats_of_module if format.name == name)
