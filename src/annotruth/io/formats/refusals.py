"""Files without labels of whole items by named annotators, refused by what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from annotruth.errors import InputError, listed
from annotruth.io.content import refuse_marks
from annotruth.io.formats.source import Source

# Tools that mark parts of a text or an image, by the fields of the first object, by columns, or by a
# line.
_REGION_FIELDS = {
    "LabelMe": {"shapes", "imagePath"},
    "COCO": {"images", "annotations", "categories"},
    "VGG Image Annotator": {"region_shape_attributes", "region_attributes"},
}
_REGION_LINES = {
    "brat": re.compile(rb"\AT\d+\t\S+ \d+ \d[\d; ]*\t"),
    "INCEpTION or WebAnno": re.compile(rb"^1-1\t(?:\d+-\d+\t)?\S", re.MULTILINE),
}
_START = 1 << 14  # bytes in which such a line is looked for
_ASK = "give the file with one row per label and annotator"


class _Sort(NamedTuple):
    """A sort of file: what it is, and how the names of its fields or columns show it."""

    what: str
    name: re.Pattern[str]
    n_names: int = 1
    """How many names match, at least."""


_SORTS = (
    _Sort(
        "aggregated results, one per item",
        re.compile(r"confidence:.*|.*:confidence|.*-metadata|mos|dmos|mos_.*|sentiment values"),
    ),
    _Sort(
        "counts of labels",
        re.compile(r"label_counts?|label_counter|vote_counts?|n_votes|label_dist"),
    ),
)
_DIGITS = re.compile(r"\s*[0-9]{1,9}\s*")
_COUNTS = re.compile(r"data\..+")  # of a reduction of Zooniverse
_POSITIONS = re.compile(r"(?:label|answer|rating|annotation)[ _]?(\d+)")
_IN_ORDER = "annotator_labels"
_SCALE = {"task_id", "params", "response"}  # tasks of Scale


def refuse_other_files(source: Source) -> None:
    """Refuse, by what it is, a file that no format reads; do nothing where that is not known."""
    names = list(source.first) if source.kind == "json" else _names(source)
    tool = _tool_of_regions(source, names)
    if tool is not None:
        refuse_marks(tool)
    lower = [name.strip().lower() for name in names]
    for sort in _SORTS:
        found = [name for name, text in zip(names, lower, strict=True) if sort.name.fullmatch(text)]
        if len(found) >= sort.n_names:
            _refuse(sort.what, found)
    if set(lower) >= _SCALE:
        _refuse("tasks with one answer each", ["response"])
    if "reducer" in lower:
        _refuse("counts of labels", [name for name in names if _COUNTS.fullmatch(name)])
    positions = [
        name for name, text in zip(names, lower, strict=True) if _POSITIONS.fullmatch(text)
    ]
    if len(positions) > 1 or _IN_ORDER in lower:
        _refuse("labels of each item in no order of annotators", positions or [_IN_ORDER])
    counts = _counted(source, names)
    if counts:
        _refuse("counts of labels", counts)


def _names(source: Source) -> list[str]:
    try:
        return list(source.names)
    except InputError:  # no table
        return []


def _refuse(what: str, names: list[str]) -> None:
    raise InputError(
        f"these are {what} ({listed(names)}), which do not say who gave a label: {_ASK}"
    )


def _tool_of_regions(source: Source, names: list[str]) -> str | None:
    of_fields: Mapping[str, set[str]] = _REGION_FIELDS
    tool = next((tool for tool, known in of_fields.items() if known <= set(names)), None)
    if tool is None and source.kind != "json":
        start = bytes(source.content.data[:_START])
        tool = next((tool for tool, line in _REGION_LINES.items() if line.search(start)), None)
    return tool


def _counted(source: Source, names: list[str]) -> list[str]:
    """Return the columns whose sum a column ``count`` has in every row; none if there is none."""
    lower = [name.strip().lower() for name in names]
    if "count" not in lower or source.kind != "text" or len(source.rows) < 4:
        return []
    total = lower.index("count")
    rows = [
        [int(cell) if _DIGITS.fullmatch(cell) else None for cell in row] for row in source.rows[1:]
    ]
    if any(len(row) != len(names) for row in rows):
        return []
    for end in range(len(names), total + 2, -1):
        parts = [row[total + 1 : end] for row in rows]
        if all(
            None not in part and sum(filter(None, part)) == row[total]
            for part, row in zip(parts, rows, strict=True)
        ):
            return names[total + 1 : end]
    return []
