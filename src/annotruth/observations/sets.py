"""Answers that are sets of labels, as categories of `Labels`.

Each distinct set is a category whose name is the JSON list of its labels in order; ``[]`` is the
empty set, an answer with no label. So sets are encoded, sorted and stored as other labels are, and
no label can be taken for a separator. `Scale.set_labels` lists all labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, counted, listed, option, shown
from annotruth.observations.arrays import LabelArrays
from annotruth.observations.columns.names import TRUTH_ROLES, find_columns
from annotruth.observations.columns.set_cells import propose_separator, split_known
from annotruth.observations.covariates import to_array
from annotruth.observations.frames import as_arrow, is_list
from annotruth.observations.options import ReadOptions
from annotruth.observations.scale import Scale, is_text, to_plain
from annotruth.observations.truth import match_rows, truth_table
from annotruth.observations.validate import missing

Members = NDArray[np.bool_]
"""Which labels are in each set: sets x labels."""

MAX_LABELS = 2000
"""More labels than these are free text or ids, not labels to choose from."""


def with_keys(batch: pa.Table, columns: Mapping[str, str], options: ReadOptions) -> pa.Table:
    """Return rows whose label is the text of a set: one row per answer.

    Labels are lists, or text that ``options.separator`` separates; otherwise each row has one label
    of a set, and the rows of an item and annotator are one answer.
    """
    name = columns["label"]
    column = batch.column(name)
    if is_list(column.type):
        sets = column.to_pylist()
    elif options.separator is not None:
        column = to_plain(column)
        cells = (column if is_text(column.type) else column.cast(pa.string())).to_pylist()
        sets = [
            [part.strip() for part in cell.split(options.separator)]
            if cell and cell.strip()
            else None  # an empty cell is no answer
            for cell in cells
        ]
    else:
        batch = _one_row_per_answer(batch, columns)
        sets = batch.column(name).to_pylist()
    keys = pa.array([None if each is None else key_of(each) for each in sets], pa.string())
    return batch.set_column(batch.column_names.index(name), name, keys)


def _one_row_per_answer(batch: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Return rows of one label each as rows of lists; of other columns the first value is kept."""
    item, annotator, label = (columns[role] for role in ("item", "annotator", "label"))
    plain = pa.table([to_plain(column) for column in batch.columns], batch.column_names)
    others = [name for name in batch.column_names if name not in (item, annotator, label)]
    kept = plain.filter(as_arrow(~missing(plain.column(label).combine_chunks())))
    grouped = kept.group_by([item, annotator], use_threads=False).aggregate(
        [(label, "list"), *((name, "first") for name in others)]
    )
    renamed = {f"{label}_list": label, **{f"{name}_first": name for name in others}}
    return grouped.rename_columns([renamed.get(name, name) for name in grouped.column_names])


def key_of(labels: Iterable[Any]) -> str:
    """Return the text of a set of labels; what is missing or blank in it is left out."""
    if isinstance(labels, str):
        raise InputError(f"{shown(labels)} is one text, not a set of labels: give lists of labels")
    names = {name for name in map(_label_name, labels) if name}
    return json.dumps(sorted(names), ensure_ascii=False)


def _label_name(value: Any) -> str:
    """Return a label as text, empty if it is missing."""
    if isinstance(value, dict | list | bytes):
        raise InputError(f"{shown(value)} in a set is not a label: labels are text or numbers")
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return ""
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if "\0" in text:
        raise InputError(f"label {shown(text)} contains a NUL character: remove it")
    return text if text.strip() else ""


def labels_in(key: str) -> list[str]:
    """Return the labels of a set, given as its text."""
    labels: list[str] = json.loads(key)
    return labels


def scale_of_sets(keys: pa.Array, given: Sequence[Any] | None = None) -> Scale:
    """Return the scale of sets; ``given`` are all labels in order, where the caller lists them."""
    sets = [labels_in(key) for key in keys.to_pylist()]
    found = {label for labels in sets for label in labels}
    if given is None:
        # Numbers by value, text by letters.
        numbers = all(name.isdecimal() for name in found)
        names = sorted(found, key=lambda name: (int(name), name) if numbers else (0, name))
    else:
        names = list(dict.fromkeys(map(_label_name, given)))
        unknown = sorted(found - set(names))
        if unknown:
            raise InputError(
                f"label {shown(unknown[0])} is not among the categories {listed(names)}: list every "
                "category, or correct the label"
            )
    _check_labels(sets, names)
    values = np.arange(1.0, len(keys) + 1)
    return Scale("nominal", keys, values, set_labels=as_arrow(names))


def _check_labels(sets: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Refuse answers that are no sets of a few labels."""
    if not names:
        raise InputError("no answer has a label: nothing to fit")
    if len(names) > MAX_LABELS:
        raise InputError(
            f"the sets have {len(names):,} different labels, more than {MAX_LABELS:,}: they are "
            "text, not labels to choose from"
        )
    if all(len(labels) == 1 for labels in sets):
        advice = propose_separator(names) or f"pass their {option('separator', '|')}"
        raise InputError(
            f"every answer has exactly one label, so these are no sets: leave out {option('sets')} "
            f"and give labels instead of lists; if labels are joined in one cell, {advice}"
        )


def members(scale: Scale) -> Members:
    """Return which labels are in each category of a scale of sets: categories x labels."""
    assert scale.set_labels is not None
    code = {label: n for n, label in enumerate(scale.set_labels.to_pylist())}
    table = np.zeros((len(scale), len(code)), dtype=np.bool_)
    for row, key in zip(table, scale.categories.to_pylist(), strict=True):
        row[[code[label] for label in labels_in(key)]] = True
    return table


class KnownSets(NamedTuple):
    """Known truths of some items: the code of each item, and the text of its set."""

    item: NDArray[np.int64]
    keys: list[str]


def match_known_sets(
    data: Any, answers: LabelArrays, *, role: str, separator: str | None = None
) -> KnownSets:
    """Match known truths that are sets with the items of answers, as `match_truth` does.

    ``data`` is a frame with a column of lists, or of text that the separator separates (without
    one, text is one label); or a mapping of items to sets. An empty cell is the empty set.
    """
    table = truth_table(data)
    names = find_columns(table.column_names, TRUTH_ROLES)
    ids, values = (to_array(table.column(names[each])) for each in TRUTH_ROLES)
    if not is_list(values.type) and not is_text(values.type):
        values = values.cast(pa.string())
    if missing(ids).any():
        raise InputError(f"the {role} has a row without an item: remove it")
    rows, item = match_rows(ids, answers.items, role)
    assert answers.scale.set_labels is not None
    known = answers.scale.set_labels.to_pylist()
    keys = []
    for value in values.take(as_arrow(rows)).to_pylist():
        if isinstance(value, str):
            value = split_known(value, known, separator)
        keys.append(key_of(value or []))
    unknown = {label for key in keys for label in labels_in(key)} - set(known)
    for label in (label for key in keys for label in labels_in(key) if label in unknown):
        hint = "" if separator else f"; where a cell has several, pass {option('separator')}"
        raise InputError(
            f"the {role} names label {shown(label)}, which is not among the labels "
            f"{listed(known)}{hint}"
        )
    return KnownSets(item, keys)


def known_members(known: KnownSets, scale: Scale) -> Members:
    """Return which labels are in each known set: known items x labels."""
    keys = pa.array(known.keys, pa.string())
    return members(Scale("nominal", keys, np.zeros(len(keys)), set_labels=scale.set_labels))


def with_sets(scale: Scale, keys: Sequence[str]) -> Scale:
    """Return a scale of sets with further sets after its own."""
    own = set(scale.names)
    more = [key for key in dict.fromkeys(keys) if key not in own]
    categories = pa.concat_arrays([scale.categories.cast(pa.string()), pa.array(more, pa.string())])
    values = np.arange(1.0, len(categories) + 1)
    return Scale("nominal", categories, values, set_labels=scale.set_labels)


def describe_sets(n_answers: int, n_items: int, n_annotators: int, n_labels: int) -> str:
    """Return one line on how many answers, items, annotators and labels there are."""
    return (
        f"{counted(n_answers, 'answer')} of {counted(n_items, 'item')} by "
        f"{counted(n_annotators, 'annotator')}, sets of {counted(n_labels, 'label')}"
    )
