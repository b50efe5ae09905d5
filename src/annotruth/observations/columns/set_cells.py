"""Cells of text that hold several labels: lists as JSON or Python, [A] [B], and A|B, by evidence."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from annotruth.errors import InputError, option, shown
from annotruth.observations.encode import encode_column
from annotruth.observations.frames import as_arrow
from annotruth.observations.options import ParsedLabels, ReadOptions
from annotruth.observations.scale import is_text, to_plain
from annotruth.observations.validate import describe_unavailable, missing, not_available

_SEPARATORS = ("|", "\n", ";", ",")
_MOST_PARTS = 2000  # more are texts
_LONGEST = 10_000  # characters of a list in a cell
_GROUPS = re.compile(r"(?:\s*\[[^\[\]]+\]\s*[,;|]?)+")
_GROUP = re.compile(r"\[([^\[\]]+)\]")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_NO_COMMA = re.compile(r"['\"]\s+['\"]")  # as NumPy prints an array of texts
_SCALAR = str | int | float | bool | None


class SetCells(NamedTuple):
    """How cells hold sets of labels: what splits one, and what "read as" says of it."""

    split: Callable[[str], list[Any] | None]
    note: str


def find_set_cells(values: Sequence[str]) -> SetCells | None:
    """Return how distinct cells hold sets of labels; None where they are single labels."""
    lists = [value for value in values if value.lstrip().startswith("[")]
    if lists:
        parsed = [parse_list(value) for value in lists]
        if None not in parsed and len(lists) == len(values):
            return SetCells(parse_list, "labels are lists, read as sets")
        if all(map(_GROUPS.fullmatch, values)) and any(len(_GROUP.findall(v)) > 1 for v in values):
            return SetCells(_split_groups, "labels such as [A] [B] are read as sets")
        if any(each is not None and any(isinstance(one, str) for one in each) for each in parsed):
            other = next(value for value in values if parse_list(value) is None)
            raise InputError(
                f"the label {shown(other)} is not a list, and others are, such as "
                f"{shown(lists[0])}: write each as a list, or pass {option('scale', 'nominal')} if "
                "each is one class"
            )
    separator, _ = find_separator(values)
    if separator is None:
        return None
    return SetCells(
        partial(_split_text, separator=separator),
        f"labels are sets separated by {separator!r}; if each cell is one class, pass "
        f"{option('scale', 'nominal')}",
    )


def parse_list(text: str) -> list[Any] | None:
    """Return the labels of a list as JSON or Python write it; None if the text is no such list."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")) or len(text) > _LONGEST:
        return None
    found = parse_value(text)
    is_flat = isinstance(found, list) and all(isinstance(each, _SCALAR) for each in found)
    return found if is_flat else None


def parse_value(text: str) -> Any:
    """Return the value of a text as JSON or Python write it, or NumPy a list; None for other texts."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    if text.startswith("[") and _NO_COMMA.search(text):
        return [one or other for one, other in _QUOTED.findall(text)]
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(text)
    return None


def find_separator(values: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the text between labels of cells, and otherwise one that it may be.

    The parts of cells must be labels alone as well, or parts of several cells of different
    numbers of parts. A comma is frequent in names, so all of its parts must be labels alone.
    """
    doubtful = None
    for separator in _SEPARATORS:
        joined = [value for value in values if separator in value]
        alone = {value.strip() for value in values if separator not in value}
        sets = [{part.strip() for part in value.split(separator)} - {""} for value in joined]
        parts = Counter(part for each in sets for part in each)
        if not parts or len(parts) > _MOST_PARTS:
            continue
        n_alone = sum(part in alone for part in parts)
        n_again = sum(part in alone or n > 1 for part, n in parts.items())
        if separator == ",":
            is_number = all(part.replace(".", "").isdecimal() for part in parts)
            is_clear = n_alone == len(parts) and len(joined) > 1
            if is_number or not (is_clear or 2 * n_alone >= len(parts)):
                continue  # decimal commas, or names
        else:
            sizes = {len(each) for each in sets} | ({1} if n_alone else set())
            is_clear = n_again == len(parts) and (
                2 * n_alone >= len(parts) or (len(parts) < len(joined) and len(sizes) > 1)
            )
        if is_clear:
            return separator, None
        if n_again and doubtful is None:
            doubtful = separator
    return None, doubtful


def propose_separator(values: Sequence[str]) -> str:
    """Return what to pass if cells hold several labels; empty where nothing looks like a separator."""
    found = next(filter(None, find_separator(values)), None)
    return f"pass {option('separator', found)}" if found else ""


def _split_groups(text: str) -> list[str] | None:
    return [group.strip() for group in _GROUP.findall(text)]


def _split_text(text: str, separator: str) -> list[str] | None:
    return [part.strip() for part in text.split(separator) if part.strip()]


def split_known(text: str, known: Sequence[str], separator: str | None) -> list[Any]:
    """Return the labels of a cell, which are among the known ones where nothing says the separator."""
    found = parse_list(text)
    if found is not None and text not in known:
        return found
    if separator is not None:
        return [part.strip() for part in text.split(separator)]
    if text.strip() not in known:
        for each in _SEPARATORS:
            parts = _split_text(text, each)
            if parts and set(parts) <= set(known):
                return parts
        groups = _split_groups(text)
        if groups and set(groups) <= set(known):
            return groups
    return [text.strip()]


def with_sets_of_cells(parsed: ParsedLabels, read: ReadOptions, name: str) -> ParsedLabels:
    """Return labels, in a column of text, with those cells as lists that hold sets of labels, and a note that says so."""
    says_no = read.scale != "auto" or read.bins is not None
    if says_no and not read.has_sets:
        return parsed
    column = to_plain(parsed.table.column(name))
    codes, values, _ = encode_column(column)
    unavailable = missing(values)
    n_unavailable = 0
    if parsed.na_is_empty:
        is_na = not_available(values, read.categories)
        n_unavailable = int(is_na[codes].sum())
        unavailable = unavailable | is_na
    texts = values.to_pylist()
    cells = [text for text, is_gone in zip(texts, unavailable, strict=True) if not is_gone]
    found = None if set(cells) <= set(map(str, read.categories or ())) else find_set_cells(cells)
    if found is not None and read.separator is not None and found.split is not parse_list:
        found = None  # the caller says how to split
    if found is None:
        advice = "" if read.has_sets or read.categories else propose_separator(cells)
        note = f"if cells hold several labels, {advice}" if advice else ""
        return replace(parsed, notes=(*parsed.notes, note))
    split = {text: found.split(text) for text in cells}
    is_single = all(labels is not None and len(labels) == 1 for labels in split.values())

    def converted(each: str | None) -> Any:
        labels = split.get(each) if each is not None else None
        if labels is None:
            return None
        names = [str(label) for label in labels if label is not None]
        return names[0] if is_single else names

    kind = pa.string() if is_single else pa.list_(pa.string())
    made = pa.array([converted(text) for text in texts], kind).take(as_arrow(codes))
    table = parsed.table
    note = "labels are lists of one label each" if is_single else found.note
    return replace(
        parsed,
        table=table.set_column(table.column_names.index(name), name, made),
        gold=_with_lists(parsed.gold, found, is_single=is_single),
        notes=(*parsed.notes, note, describe_unavailable(n_unavailable)),
    )


def _with_lists(gold: pa.Table | None, cells: SetCells, *, is_single: bool) -> pa.Table | None:
    """Return known truths of a file as its labels are given."""
    if gold is None or not is_text(to_plain(gold.column("label")).type):
        return gold
    texts: list[str | None] = gold.column("label").to_pylist()
    sets = [None if text is None else cells.split(text) for text in texts]
    values: list[Any] = [each and [str(label) for label in each] for each in sets]
    if is_single:
        values = [each[0] if each else None for each in values]
    place = gold.column_names.index("label")
    kind = pa.string() if is_single else pa.list_(pa.string())
    return gold.set_column(place, "label", pa.array(values, kind))
