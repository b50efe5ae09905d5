"""Plain lists of labels: a JSON list of records, peerannot's answers, and three columns without names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed, option, shorten
from annotruth.io.batches import read_columns
from annotruth.io.formats.matrix import normalise
from annotruth.io.formats.nested import is_nested
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import Votes, counted, mapping
from annotruth.observations.columns.names import (
    LABEL_ROLES,
    describe_columns,
    find_columns,
    find_time_columns,
    is_known_name,
    is_platform_export,
)
from annotruth.observations.encode import encode_column
from annotruth.observations.frames import as_arrow, make_column
from annotruth.observations.options import ParsedLabels
from annotruth.observations.scale import parse_numbers
from annotruth.observations.validate import describe_unavailable, not_available

# A JSON list of records, each with an item, an annotator and a label.


def _recognise_records(source: Source) -> bool:
    if is_platform_export(source.first):
        return False
    try:
        find_columns(list(source.first), LABEL_ROLES, source.read.label_columns)
    except InputError:
        return False
    return True


def _read_records(source: Source) -> ParsedLabels:
    return read_rows(source, list(source.records()))


def read_rows(source: Source, rows: Sequence[Record]) -> ParsedLabels:
    """Return the labels of records with a field for each role."""
    names = list({name: None for row in rows for name in row})
    columns = find_columns(names, LABEL_ROLES, source.read.label_columns)
    times = find_time_columns(names, source.read.time_columns, columns.values())
    table = {
        role: make_column(name, [row.get(name) for row in rows])
        for role, name in (*columns.items(), *((name, name) for name in times.values()))
    }
    return ParsedLabels(
        pa.table(table),
        columns=times,
        origin=columns,
        notes=(counted(len(rows), "record"), describe_columns(columns, source.columns)),
    )


# peerannot's answers.json, ``{task: {worker: label}}``, beside metadata.json.

_MOST_CLASSES = 1 << 20  # a larger count is an error, not a number of classes
_MOST_BYTES = 1 << 24  # of metadata


def _recognise_peerannot(source: Source) -> bool:
    return is_nested(source.first) and "n_classes" in _metadata(source.path)


def _read_peerannot(source: Source) -> ParsedLabels:
    votes = Votes()
    tasks = mapping(source.document, "the file")
    for task, labels in tasks.items():
        for worker, label in mapping(labels, f"the labels of task {task!r}").items():
            votes.add(task, worker, label)
    categories = _classes(source.path, votes.labels)
    parsed = votes.parsed(
        counted(len(tasks), "task"),
        f"{len(categories)} classes by metadata.json" if categories else "",
    )
    return replace(parsed, from_text=True, categories=categories, nominal=True)


def _classes(path: Path, labels: Sequence[Any]) -> list[int] | None:
    """Return the classes 0, 1, ... that metadata.json counts, where labels are their numbers."""
    n_classes = _metadata(path).get("n_classes")
    if type(n_classes) is not int or n_classes > _MOST_CLASSES:
        return None
    fits = all(type(label) is int and 0 <= label < n_classes for label in labels)
    return list(range(n_classes)) if fits else None


def _metadata(path: Path) -> Record:
    """Return the content of metadata.json beside the file; empty if there is none."""
    metadata = path.with_name("metadata.json")
    if not metadata.is_file() or metadata.stat().st_size > _MOST_BYTES:
        return {}
    try:
        return mapping(json.loads(metadata.read_bytes()), "metadata.json")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{metadata.name} beside the file cannot be read ({error}): correct or remove it"
        ) from error


# Item, annotator and label in three columns without a header, as in many published data sets.

_MIN_ROWS = 6  # in fewer, values repeat by chance
_NUMBERED = (["0", "1", "2"], ["1", "2", "3"])  # may be names that a program gave to columns


def _recognise_triples(source: Source) -> bool:
    """Return whether the first row is like the others, and pairs of ids have a label each.

    A matrix of three annotators is something else: its columns share their values, and pairs of
    labels repeat.
    """
    if source.kind != "text" or len(source.names) != 3 or any(map(is_known_name, source.names)):
        return False
    table = source.unnamed_table
    if table.num_rows < _MIN_ROWS or not _begins_with_data(table):
        return False
    first, second, label = map(encode_column, table.columns)
    n_ids = max(len(first.values), len(second.values))
    pairs = len(np.unique(first.codes.astype(np.int64) * len(second.values) + second.codes))
    return (
        2 * len(label.values) <= n_ids
        and 2 * n_ids <= table.num_rows
        and 10 * pairs >= 9 * table.num_rows
    )


def _begins_with_data(table: pa.Table) -> bool:
    """Return whether the first row has values of the same kind as the others, which occur again."""
    occurs: list[bool] = []
    for column in table.columns:
        first, rest = column[0].as_py(), column[1:]
        if first is None:
            return False
        numbers = parse_numbers(pc.drop_null(rest).combine_chunks())
        if numbers is not None and parse_numbers(pa.array([first])) is None:
            return False
        occurs.append(pc.any(pc.equal(rest, first)).as_py())
    return occurs[2] and (occurs[0] or occurs[1])


def _read_triples(source: Source) -> ParsedLabels:
    if source.kind != "text" or len(source.names) != 3:
        raise InputError(
            "this format is text with three columns, and the file is not: pass another "
            f"{option('input_format')}"
        )
    table = source.unnamed_table
    if source.columns:
        columns = find_columns(table.column_names, LABEL_ROLES, source.read.label_columns)
    else:
        columns = _decide_columns(source, table)
    other = [columns[role] for role in ("annotator", "item", "label")]
    table = table.select(list(columns.values())).rename_columns(list(columns))
    unavailable = not_available(table.column("label"), source.read.categories)
    return ParsedLabels(
        table.filter(as_arrow(~unavailable)),
        from_text=True,
        unused={"NA or the like": int(unavailable.sum())},
        notes=(
            ", ".join(f"{role} = column {name}" for role, name in columns.items())
            + ("" if source.columns else f"; if not, pass {_options(other)}"),
            describe_unavailable(int(unavailable.sum())),
        ),
    )


def _decide_columns(source: Source, table: pa.Table) -> dict[str, str]:
    """Return the columns of the roles; refuse a table where items and annotators look alike.

    There are more items than annotators, and items have about the same number of labels each. The
    usual order is item, annotator, label; the other order needs clear evidence.
    """
    if [normalise(name) for name in source.names] in _NUMBERED:
        named = dict(zip(LABEL_ROLES, map(shorten, source.names), strict=True))
        raise InputError(
            f"the first row, {listed(source.names)}, may be the names of the columns or a label: "
            f"pass {option('columns', named)} if it is names, or {_options('123')}"
        )
    # How many labels the values of each column have, and how much that varies, relative to the mean.
    counts = [np.bincount(encode_column(column).codes) for column in table.columns[:2]]
    (n_first, n_second), (first, second) = map(len, counts), (c.std() / c.mean() for c in counts)
    if n_first > n_second and first <= second:
        order = ("1", "2", "3")
    elif n_second >= 2 * n_first and second < first:
        order = ("2", "1", "3")
    else:
        raise InputError(
            f"these are three columns without a header, and either of the first two, with "
            f"{n_first:,} and {n_second:,} different values, may be the item: "
            f"pass {_options('123')} or {_options('213')}"
        )
    return dict(zip(LABEL_ROLES, order, strict=True))


def _options(columns: Iterable[str]) -> str:
    """Return what to pass where the item, annotator and label are in these columns."""
    by_role = dict(zip(LABEL_ROLES, columns, strict=True))
    return f"{option('input_format', 'triples')} and {option('columns', by_role)}"


# GLAD's data: numbers of labels, annotators and items and the prior of label 1, then the labels.

_GLAD = re.compile(rb"(\d+) (\d+) (\d+) [\d.eE-]+ *\r?\n(?=\d+ \d+ \d+ *\r?\n)")


def recognise_glad(source: Source) -> bool:
    """Return whether the first line has counts, and the second item, annotator and label."""
    if source.kind != "text":
        return False
    return _GLAD.match(bytes(source.content.data[:200])) is not None


def _read_glad(source: Source) -> ParsedLabels:
    counts = _GLAD.match(bytes(source.content.data[:200])) if source.kind == "text" else None
    if counts is None:
        raise InputError(
            "the first line does not have the numbers of labels, annotators and items and a prior: "
            f"pass another {option('input_format')}"
        )
    header = " ".join(LABEL_ROLES).encode() + b"\n"
    rows = pa.py_buffer(header + bytes(source.content.data[counts.end() :]))
    table = read_columns(source.content._replace(data=rows), lambda names: names)
    if table.num_rows != int(counts[1]):
        raise InputError(
            f"the first line says that there are {int(counts[1]):,} labels, and {table.num_rows:,} "
            "follow: the file may be truncated, copy it again"
        )
    return ParsedLabels(table, from_text=True, notes=(f"{table.num_rows:,} labels",))


FORMATS = (
    Format("glad", "GLAD data", recognise_glad, _read_glad),
    Format("records", "JSON list of labels", _recognise_records, _read_records),
    Format("peerannot", "peerannot answers", _recognise_peerannot, _read_peerannot),
    Format("triples", "three columns without a header", _recognise_triples, _read_triples),
)
