"""Labels in other shapes than a long table: matrices, wide frames, dicts of dicts.

A frame is long if it has columns for item, annotator and label, by known names or by the option
``columns``; otherwise it is wide if its columns hold labels of one scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from annotruth.errors import InputError, listed, shown
from annotruth.io.formats.matrix import cells_agree, cells_overlap, summary_columns, unpivot
from annotruth.io.formats.nested import (
    BY_ANNOTATOR,
    BY_ITEM,
    TITLES,
    annotators_first,
    describe_order,
    nested_rows,
)
from annotruth.observations.columns.names import LABEL_ROLES, NAMES_OF, find_columns, pass_columns
from annotruth.observations.frames import (
    default_frame,
    distributed_library,
    make_column,
    tuples_to_arrow,
)
from annotruth.observations.options import ParsedLabels, ReadOptions
from annotruth.observations.scale import to_plain

_ITEM_NAMES = NAMES_OF["item"] | {"id", "index"}
_NUMBERED = re.compile(r"\w*?[ _.-]?\d+")
_MAX_ROWS = 1000  # of a wide frame to look at


def to_long(data: Any, read: ReadOptions) -> tuple[ParsedLabels, str] | None:
    """Return labels of another shape as a long table, and the name of the caller's frame library.

    None for long tables, tuples and records.
    """
    if isinstance(data, np.ndarray):
        return _from_matrix(data, read), default_frame()
    if type(data).__module__.partition(".")[0] == "datasets":
        return _from_dataset(data, read), default_frame()
    if isinstance(data, Mapping):
        return _from_dicts(data, read), default_frame()
    if isinstance(data, Sequence) or distributed_library(data) is not None:
        return None
    try:
        frame = nw.from_native(data, pass_through=True)
    except DuplicateError:
        return None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    parsed = _from_frame(frame, data, read) if isinstance(frame, nw.DataFrame) else None
    return None if parsed is None else (parsed, frame.implementation.name.lower())


def _from_matrix(matrix: np.ndarray[Any, Any], read: ReadOptions) -> ParsedLabels:
    """Return the labels of an array of items x annotators, both numbered from 0."""
    if matrix.ndim != 2:
        raise InputError(
            f"an array of labels has two dimensions, items x annotators, and this has {matrix.ndim}"
        )
    n_items, n_annotators = matrix.shape
    columns = [_whole(make_column(f"{n}", column.tolist())) for n, column in enumerate(matrix.T)]
    has_fractions = any(pa.types.is_floating(column.type) for column in columns)
    if n_annotators == 3 and n_items and not _is_matrix(columns, may_be_numbers=has_fractions):
        raise InputError(
            "the columns of this array share few labels: pass rows of (item, annotator, label) as a "
            "list of tuples, or labels of three annotators as a frame with items in a column 'item'"
        )
    return _unpivot(columns, pa.array(range(n_items)), range(n_annotators), read)


def _from_dataset(data: Any, read: ReadOptions) -> ParsedLabels:
    """Return the labels of a dataset of Hugging Face, long or wide, with the names of its classes."""
    if isinstance(data, Mapping):
        name = next(iter(data), "train")
        raise InputError(
            f"a DatasetDict holds several datasets ({listed(data)}): pass one, such as "
            f"dataset[{name!r}]"
        )
    if not hasattr(data, "with_format") or not hasattr(data, "num_rows"):
        raise InputError(
            f"cannot read labels from {type(data).__name__}: pass a datasets.Dataset, which "
            "load_dataset returns unless it streams"
        )
    table = data.with_format("arrow")[:]
    classes = {
        name: list(feature.names)
        for name, feature in data.features.items()
        if type(feature).__name__ == "ClassLabel"
    }
    for name, names in classes.items():
        place = table.column_names.index(name)
        codes = table.column(name)
        named = pc.if_else(pc.less(codes, 0), None, codes)  # -1 is no label, as in test sets
        table = table.set_column(place, name, pc.take(pa.array(names), named))
    parsed = _from_frame(nw.from_native(table), table, read)
    if parsed is None:
        label = find_columns(table.column_names, LABEL_ROLES, read.label_columns)["label"]
        parsed, of_labels = ParsedLabels(table, read.columns), classes.get(label)
    else:
        lists = [each for name, each in classes.items() if name.strip().lower() not in _ITEM_NAMES]
        of_labels = lists[0] if lists and all(names == lists[0] for names in lists) else None
    if of_labels is None or not read.infers_scale:
        return parsed
    return replace(parsed, categories=of_labels, nominal=True)


def _from_dicts(data: Mapping[Any, Any], read: ReadOptions) -> ParsedLabels:
    """Return the labels of ``{item: {annotator: label}}``, or of the other order where that is clear."""
    for item, given in data.items():
        if not isinstance(given, Mapping):
            raise InputError(
                f"the value of {shown(item)} is {shown(given)}: give {{item: {{annotator: label}}}}"
            )
    name = read.input_format or (BY_ANNOTATOR if annotators_first(data) else BY_ITEM)
    if name not in TITLES:
        raise InputError(f"input_format {name!r} is for files: leave it out, or give {BY_ITEM!r}")
    return ParsedLabels(
        tuples_to_arrow(nested_rows(data, name), LABEL_ROLES),
        read.columns,
        title=TITLES[name],
        notes=(describe_order(data, name),),
    )


def _from_frame(frame: nw.DataFrame[Any], native: Any, read: ReadOptions) -> ParsedLabels | None:
    """Return the labels of a wide frame, one row per item and one column per annotator."""
    spelling = {name: str(name).strip().lower() for name in frame.columns}
    known = set(spelling.values()) & (NAMES_OF["annotator"] | NAMES_OF["label"])
    of_items = [name for name, text in spelling.items() if text in _ITEM_NAMES]
    annotators = [name for name in frame.columns if name not in of_items]
    summaries = summary_columns(annotators)
    annotators = [name for name in annotators if name not in summaries]
    if read.columns or known or len(of_items) > 1 or len(annotators) < 2:
        return None
    if len(frame) < 2:  # one row does not show that columns hold labels of one scale
        return None
    try:
        columns = [_whole(make_column(str(n), frame.get_column(n).to_list())) for n in annotators]
    except InputError:  # of a column that a long table may not need
        return None
    index = _index_of_items(native)
    is_named = bool(of_items) or index is not None
    if not _is_matrix(columns, may_be_numbers=is_named):
        return None
    if not is_named:
        _refuse_unclear(annotators, columns)
    if of_items:
        items = make_column("item", frame.get_column(of_items[0]).to_list())
    else:
        items = make_column("item", list(range(len(frame))) if index is None else index)
    parsed = _unpivot(columns, items, annotators, read)
    names = ", ".join(map(str, summaries))
    return replace(parsed, notes=(f"not {names}, by name",)) if summaries else parsed


def _index_of_items(frame: Any) -> list[Any] | None:
    """Return the index of a pandas frame; None where it only counts rows."""
    index: Any = getattr(frame, "index", None)
    if not hasattr(index, "names") or getattr(index, "nlevels", 1) != 1:
        return None
    is_count = index.name is None and type(index).__name__ == "RangeIndex"
    return None if is_count else list(index.tolist())


def _is_matrix(columns: Sequence[pa.Array], *, may_be_numbers: bool) -> bool:
    """Return whether columns hold labels of one scale, as in files that are matrices."""
    cells = [
        ["" if v is None else str(v) for v in column[:_MAX_ROWS].to_pylist()] for column in columns
    ]
    rows = list(zip(*cells, strict=True))
    return cells_agree(rows) or (may_be_numbers and cells_overlap(rows))


def _refuse_unclear(names: Sequence[Any], columns: Sequence[pa.Array]) -> None:
    """Refuse three columns that may be those of a long table as well as three annotators."""
    n_full = sum(column.null_count == 0 for column in columns)
    if len(names) != 3 or n_full < 2 or all(_NUMBERED.fullmatch(str(name)) for name in names):
        return
    texts = [str(name) for name in names]
    raise InputError(
        f"columns {', '.join(map(repr, texts))} may be the item, annotator and label, or three "
        f"annotators: {pass_columns(dict(zip(LABEL_ROLES, texts, strict=True)))}, or name the items "
        "in a column 'item' or, in pandas, by frame.rename_axis('item')"
    )


def _whole(column: pa.Array) -> pa.Array:
    """Return numbers as integers where all are whole: NaN has made them floats."""
    column = to_plain(column)
    if not pa.types.is_floating(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _unpivot(
    columns: Sequence[pa.Array], items: pa.Array, annotators: Sequence[Any], read: ReadOptions
) -> ParsedLabels:
    parsed = unpivot(
        [pa.chunked_array([column]) for column in columns],
        items,
        list(annotators),
        from_text=False,
        categories=read.categories,
    )
    return replace(parsed, columns=read.columns, title="matrix of items by annotators")
