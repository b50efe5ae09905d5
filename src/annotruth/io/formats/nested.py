"""Labels in JSON objects of two levels: by item and annotator, in either order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from annotruth.errors import InputError, counted, option, shown
from annotruth.io.formats.matrix import cells_overlap
from annotruth.io.formats.source import Format, Source
from annotruth.io.formats.votes import Votes
from annotruth.kernels.arrays import Codes
from annotruth.observations.options import ParsedLabels

BY_ITEM, BY_ANNOTATOR = "by-item", "by-annotator"

# Ids that say what they are.
_ANNOTATOR_ID = re.compile(
    r"(annotator|worker|rater|coder|judge|user|observer|subject|participant|respondent|labell?er"
    r"|reviewer|expert|assessor|evaluator|turker|person|w)[\W_]*(\d+|[a-z])"
    r"|a(?=\w*\d)[0-9a-z]{11,20}"  # of Mechanical Turk
    r"|[^@\s]+@[^@\s]+\.\w+",
    re.IGNORECASE,
)
_ITEM_ID = re.compile(
    r"(item|task|question|image|img|picture|pic|photo|video|clip|audio|text|doc|document|sentence"
    r"|tweet|post|comment|stimulus|sample|example|unit|hit|frame|article|i|q)[\W_]*\d+"
    r"|.*\.(jpe?g|png|gif|bmp|tiff?|webp|svg|mp[34]|wav|flac|ogg|avi|mov|mkv|webm|txt|html?|pdf|xml)"
    r"|https?://.*|(\S+\s+){3,}\S+",  # the last is a text
    re.IGNORECASE | re.DOTALL,
)
_MOST_IDS = 0.9
_MAX_IDS = 1000  # looked at
_UNEVEN = 0.5  # coefficient of variation of the labels per annotator
_MANY_MORE = 3  # items per annotator, and the reverse
_CLEARLY = 0.1  # one agreement above the other
_MAX_CLASSES = 12  # more numbers than that are positions on a scale


class _Cells(NamedTuple):
    """The labels of two levels in codes: outer, inner and the value."""

    outer: Codes
    inner: Codes
    value: Codes
    is_numeric: bool


def is_nested(data: Any) -> bool:
    """Return whether data are an object of objects of labels, each a scalar or a list of them."""
    return (
        isinstance(data, Mapping)
        and bool(data)
        and all(
            isinstance(inner, Mapping) and not any(map(_is_nested_label, inner.values()))
            for inner in data.values()
        )
    )


def _is_nested_label(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value)
    )


def annotators_first(data: Mapping[Any, Mapping[Any, Any]]) -> bool | None:
    """Return whether the outer keys are the annotators, the inner the items; None where it is open.

    Ids that say what they are decide. Otherwise labels of one item agree, and labels of one
    annotator do not; annotators differ more in how many labels they have; and there are more items.
    What these say must not conflict, and numbers of keys alone decide nothing.
    """
    inner = dict.fromkeys(key for labels in data.values() for key in labels)
    by_ids = _judge_ids(data, inner)
    if by_ids is not None:
        return by_ids
    cells = _encode(data)
    if not len(cells.value):
        return None
    per_outer, per_inner = np.bincount(cells.outer), np.bincount(cells.inner)
    by_agreement = _judge_agreement(cells)
    by_evenness = _judge_evenness(per_outer, per_inner)
    by_numbers = None
    if max(len(data), len(inner)) >= _MANY_MORE * min(len(data), len(inner)):
        by_numbers = len(data) < len(inner)
    found = {by_agreement, by_evenness, by_numbers} - {None}
    is_enough = by_agreement is not None or None not in (by_evenness, by_numbers)
    return found.pop() if len(found) == 1 and is_enough else None


def _judge_ids(outer: Collection[Any], inner: Collection[Any]) -> bool | None:
    """Return whether the outer ids are those of annotators, or the inner ones those of items."""
    kinds = [
        (_share(keys, _ANNOTATOR_ID) >= _MOST_IDS, _share(keys, _ITEM_ID) >= _MOST_IDS)
        for keys in (outer, inner)
    ]
    (outer_annotator, outer_item), (inner_annotator, inner_item) = kinds
    says_outer = outer_annotator or inner_item
    says_inner = inner_annotator or outer_item
    return None if says_outer == says_inner else says_outer


def _share(keys: Collection[Any], pattern: re.Pattern[str]) -> float:
    looked_at = [str(key).strip() for key, _ in zip(keys, range(_MAX_IDS), strict=False)]
    return sum(pattern.fullmatch(key) is not None for key in looked_at) / max(1, len(looked_at))


def _judge_evenness(per_outer: Codes, per_inner: Codes) -> bool | None:
    """Return whether the inner keys have about the same number of labels, and the outer do not."""
    outer, inner = (float(n.std() / n.mean()) for n in (per_outer, per_inner))
    if max(outer, inner) < _UNEVEN or max(outer, inner) < 2 * min(outer, inner):
        return None
    return inner < outer


def _judge_agreement(cells: _Cells) -> bool | None:
    """Return whether labels of one inner key agree, and those of one outer key clearly less."""
    agreements = [_agreement(unit, cells) for unit in (cells.outer, cells.inner)]
    (outer, n_outer), (inner, n_inner) = agreements
    if not (n_outer and n_inner):
        return None
    margin = max(_CLEARLY, 2 * float(np.sqrt(1 / n_outer + 1 / n_inner)))
    return None if abs(inner - outer) < margin else inner > outer


def _agreement(unit: Codes, cells: _Cells) -> tuple[float, int]:
    """Return how much more labels of a unit agree than any labels, and the degrees of freedom."""
    size = np.bincount(unit)
    several = size > 1
    freedom = int((size[several] - 1).sum())
    value = cells.value
    if not freedom or (value == value[0]).all():
        return 0.0, 0
    if cells.is_numeric:
        rank = (value - value.mean()) / value.std()
        total, squares = np.bincount(unit, rank), np.bincount(unit, rank**2)
        within = squares[several] - total[several] ** 2 / size[several]
        return 1.0 - float(within.sum()) / freedom, freedom
    counts = np.bincount(value)
    n = len(value)
    chance = float((counts * (counts - 1.0)).sum() / (n * (n - 1.0)))
    cell, count = np.unique(unit * len(counts) + value, return_counts=True)
    same = np.bincount(cell // len(counts), count * (count - 1.0), minlength=len(size))
    observed = float((same[several] / (size[several] - 1)).sum() / size[several].sum())
    return (observed - chance) / (1.0 - chance), freedom


def _encode(data: Mapping[Any, Mapping[Any, Any]]) -> _Cells:
    """Return the labels in codes; those of numbers are their ranks."""
    place: dict[Any, int] = {}
    rows = [
        (at, place.setdefault(key, len(place)), label)
        for at, labels in enumerate(data.values())
        for key, label in labels.items()
        if label is not None and label != ""
    ]
    labels = [label for _, _, label in rows]
    is_number = all(isinstance(label, int | float) for label in labels)
    texts = labels if is_number else [str(label) for label in labels]
    values, value = np.unique(np.array(texts), return_inverse=True)
    outer, inner = (np.array([row[n] for row in rows], dtype=np.int64) for n in (0, 1))
    is_numeric = is_number and len(values) > _MAX_CLASSES
    return _Cells(outer, inner, value.ravel().astype(np.int64), is_numeric)


def describe_order(data: Mapping[Any, Any], input_format: str) -> str:
    """Return a note on how many keys there are, and which option reads them the other way around."""
    is_by_item = input_format == BY_ITEM
    n = counted(len(data), "item" if is_by_item else "annotator")
    other = BY_ANNOTATOR if is_by_item else BY_ITEM
    return f"{n}; if not, pass {option('input_format', other)}"


def _either() -> str:
    """Return the options of which one is right."""
    return " or ".join(option("input_format", name) for name in (BY_ITEM, BY_ANNOTATOR))


def refuse_open_order(data: Mapping[Any, Mapping[Any, Any]]) -> None:
    """Refuse two levels of which either may be the annotators."""
    first, inner = next(iter(data.items()))
    n_inner = len({key for labels in data.values() for key in labels})
    raise InputError(
        f"the outer keys ({len(data):,}, such as {shown(first)}) may be the items, and the inner "
        f"({n_inner:,}, such as {shown(next(iter(inner), ''))}) the annotators, or the other way "
        f"around: pass {_either()}"
    )


def _check_labels(data: Mapping[Any, Mapping[Any, Any]]) -> None:
    """Refuse values that are not labels of one scale, such as the fields of records."""
    inner = list(dict.fromkeys(key for labels in data.values() for key in labels))
    if _judge_ids(data, inner) is not None:
        return
    found: dict[str, Any] = {}
    for labels in data.values():
        for key, label in labels.items():
            if label is not None and found.setdefault(str(label), key) != key:
                return  # a label of two keys
    rows = [
        ["" if labels.get(key) is None else str(labels[key]) for key in inner[:_MAX_IDS]]
        for labels in list(data.values())[:_MAX_IDS]
    ]
    if len(inner) < 2 or cells_overlap(rows):
        return
    raise InputError(
        f"the values of {shown(next(iter(data)))} and the other keys are not labels of one scale, "
        "so these may be fields of records: write one row per label with item, annotator, label; "
        f"if they are labels, pass {_either()}"
    )


# The two orders as file formats.


def _recognise_nested(source: Source, *, by_annotator: bool) -> bool:
    first = source.first
    if not is_nested(first) and not _has_lists(first):
        return False
    data = source.whole
    if not is_nested(data):
        return not by_annotator and _has_lists(data)
    is_first = annotators_first(data)
    return bool(is_first) == by_annotator


def _has_lists(data: Any) -> bool:
    """Return whether data are an object of lists of labels alone."""
    return (
        isinstance(data, Mapping)
        and bool(data)
        and all(
            isinstance(each, list)
            and each
            and not any(isinstance(label, dict | list) for label in each)
            for each in data.values()
        )
    )


def _read_nested(source: Source, *, name: str) -> ParsedLabels:
    data = source.document
    if _has_lists(data):
        key = next(iter(data))
        raise InputError(
            f"the labels of {shown(key)} and the other keys are lists, which do not say whose they "
            "are, or of which items: write objects, such as {item: {annotator: label}}, or a table "
            "with item, annotator, label"
        )
    if not is_nested(data):
        raise InputError(
            "the file is not an object of objects of labels, such as {item: {annotator: label}}: "
            f"pass another {option('input_format')}"
        )
    if source.read.input_format is None:
        _check_labels(data)
        if annotators_first(data) is None:
            refuse_open_order(data)
    votes = Votes()
    for row in nested_rows(data, name):
        votes.add(*row)
    return replace(votes.parsed("JSON", describe_order(data, name)), from_text=True)


def nested_rows(data: Mapping[Any, Mapping[Any, Any]], name: str) -> list[tuple[Any, Any, Any]]:
    """Return (item, annotator, label) of all labels of two levels in an order."""
    rows = [(a, b, label) for a, labels in data.items() for b, label in labels.items()]
    return rows if name == BY_ITEM else [(b, a, label) for a, b, label in rows]


TITLES = {BY_ITEM: "items with their annotators", BY_ANNOTATOR: "annotators with their items"}

FORMATS = tuple(
    Format(
        name,
        TITLES[name],
        partial(_recognise_nested, by_annotator=name == BY_ANNOTATOR),
        partial(_read_nested, name=name),
    )
    for name in (BY_ANNOTATOR, BY_ITEM)
)
