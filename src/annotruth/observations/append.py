"""Labels with others appended: ids and codes of the first stay, new ones follow."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import validate
from annotruth.observations.arrays import Covariates
from annotruth.observations.covariates import append_rows, merge_by_code
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.layout import RowCodes
from annotruth.observations.options import DuplicatePolicy
from annotruth.observations.scale import Scale
from annotruth.observations.table import Labels
from annotruth.observations.truth import match_truth_to_items


class AppendedLabels(NamedTuple):
    """Labels with others appended.

    Attributes
    ----------
    labels
        All labels.
    n_repeated
        How many of the new ones were there already, with the same label, and were left out.
    """

    labels: Labels
    n_repeated: int


def append_labels(
    base: Labels, new: Labels, *, gold: Any = None, duplicates: DuplicatePolicy = "refuse"
) -> AppendedLabels:
    """Return the labels of ``base`` followed by those of ``new``.

    Items and annotators of ``base`` keep their codes, new ones follow. The scale is that of
    ``base``: new labels must name its categories.

    Parameters
    ----------
    base, new
        The labels so far and those to append.
    gold
        Known truths of new or old items.
    duplicates
        What to do when an annotator labels the same item again. With "keep", every row is a vote.
        Otherwise rows with the same label as in ``base`` are left out, and those with another
        label are refused ("refuse") or replace the old ones ("last").
    """
    items, item_codes = extend_ids(base.items, new.items)
    annotators, annotator_codes = extend_ids(base.annotators, new.annotators)
    category = _codes_on_scale(new, base.scale)
    old, more = _rows_of(base), _rows_of(new)
    more = RowCodes(item_codes[more.item], annotator_codes[more.annotator], category[more.label])
    kept, added = np.ones(base.n_labels, np.bool_), np.ones(new.n_labels, np.bool_)
    if duplicates != "keep":
        added = ~_found(more, old, len(annotators))
        changed = more.take(added)
        again = _found(old, changed, len(annotators), with_label=False)
        if duplicates == "refuse" and again.any():
            ids = (items, annotators, base.scale.categories)
            _refuse_changed(old.take(again), changed, ids)
        kept = ~again
    n_repeated = int(np.count_nonzero(~added))
    # A later export of all labels has the same rows without a label, and the same repeated rows.
    add_counts = max if n_repeated else operator.add
    labels = Labels.from_codes(
        *old.take(kept).append(more.take(added)),
        items=items,
        annotators=annotators,
        scale=replace(base.scale, reason=""),  # these labels do not decide it
        n_dropped=add_counts(base.n_dropped, new.n_dropped),
        frame=base.frame,
    )
    covariates = Covariates(
        labels=_append_label_covariates(base, kept, new, added, labels.row),
        annotators=merge_by_code(
            base.covariates.annotators,
            new.covariates.annotators,
            annotator_codes,
            labels.n_annotators,
        ),
        items=merge_by_code(
            base.covariates.items, new.covariates.items, item_codes, labels.n_items
        ),
    )
    made = replace(
        labels,
        known=_known_truths(base, new, items, item_codes, category, gold),
        annotator_prior=_with_rows(base.annotator_prior, labels.n_annotators, 0.0),
        classifier=_with_rows(base.classifier, labels.n_items, np.nan),  # without a prediction
        covariates=covariates,
        n_repeated=add_counts(base.n_repeated, new.n_repeated),
        read_as=base.read_as,
        left_out=new.left_out or base.left_out,
    )
    return AppendedLabels(made, n_repeated)


def _codes_on_scale(new: Labels, scale: Scale) -> NDArray[np.int32]:
    """Return the code of each category of new labels on a scale; refuse labels that are not on it."""
    category = scale.codes_of(new.scale.categories)
    used = np.unique(np.concatenate([new.cell_category, new.known[new.known >= 0]]))
    categories = new.scale.categories.take(pa.array(used))
    validate.check_no_new_categories(category[used], categories, scale)
    return category


def _rows_of(labels: Labels) -> RowCodes:
    """Return the codes of labels in row order."""
    columns = (labels.item_of_label(), labels.annotator, labels.category_of_label())
    return RowCodes(*(labels.in_row_order(column).astype(np.int64) for column in columns))


def _known_truths(
    base: Labels,
    new: Labels,
    items: pa.Array,
    item_codes: Codes,
    category: NDArray[np.int32],
    gold: Any,
) -> NDArray[np.int32]:
    """Return the known truths of all items: those of ``gold``, else of new labels, else of the old."""
    known = np.full(len(items), -1, dtype=np.int32)
    known[: base.n_items] = base.known
    truths = np.flatnonzero(new.known >= 0)  # a file may hold known truths itself
    known[item_codes[truths]] = category[new.known[truths]]
    if gold is not None:
        truth = match_truth_to_items(gold, items, base.scale, role="gold")
        known[truth.item] = truth.categories()
    return known


def _with_rows(table: Floats | None, n: int, value: float) -> Floats | None:
    """Return a table with rows of a value after its own, n in all."""
    if table is None:
        return None
    return np.pad(table, ((0, n - len(table)), (0, 0)), constant_values=value)


def _append_label_covariates(
    base: Labels,
    kept: NDArray[np.bool_],
    new: Labels,
    added: NDArray[np.bool_],
    row: NDArray[np.integer[Any]],
) -> Mapping[str, pa.Array]:
    """Return the covariates of the kept rows of ``base`` and the added ones of ``new``, as laid out."""
    old_rows = np.argsort(base.row)[kept]
    new_rows = np.argsort(new.row)[added]
    none = np.empty(0, dtype=np.int64)
    old_columns = base.covariates.take(old_rows, none, none).labels
    new_columns = new.covariates.take(new_rows, none, none).labels
    columns = append_rows(old_columns, len(old_rows), new_columns, len(new_rows))
    return Covariates(labels=columns).take(row, none, none).labels


def extend_ids(ids: pa.Array, new: pa.Array) -> tuple[pa.Array, Codes]:
    """Return the ids followed by the new ones among ``new``, and the code of each of ``new``."""
    codes = match_ids(new, ids)
    unseen = np.flatnonzero(codes < 0)
    codes[unseen] = len(ids) + np.arange(len(unseen))
    if len(unseen) == 0:
        return ids, codes
    more = new.take(pa.array(unseen))
    if more.type != ids.type:
        text = to_text(more)
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            more = more.cast(ids.type)
        if more.type != ids.type or not to_text(more).equals(text):
            ids, more = to_text(ids), text  # words among numbers, or 007, which is not 7
    return pa.concat_arrays([ids, more]), codes


def _found(
    rows: RowCodes, among: RowCodes, n_annotators: int, *, with_label: bool = True
) -> NDArray[np.bool_]:
    """Return which rows are among others: with the same item, annotator and, unless said, label."""
    pair, other_pair = (each.item * n_annotators + each.annotator for each in (rows, among))
    pairs = np.sort(other_pair)
    found = _is_in(pair, pairs)
    if not with_label or not found.any():
        return found
    # Places of pairs, unlike the pairs, fit into 64 bits together with the label.
    n_categories = 1 + max(int(each.label.max()) for each in (rows, among))
    key, other_key = (
        np.searchsorted(pairs, each) * n_categories + labels
        for each, labels in ((pair, rows.label), (other_pair, among.label))
    )
    return found & _is_in(key, np.sort(other_key))


def _is_in(values: Codes, ascending: Codes) -> NDArray[np.bool_]:
    """Return which values are among others; faster than `numpy.isin`, which hashes."""
    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    place = np.searchsorted(ascending, values)
    same: NDArray[np.bool_] = ascending.take(place, mode="clip") == values
    return same


def _refuse_changed(
    old: RowCodes, new: RowCodes, ids: tuple[pa.Array, pa.Array, pa.Array]
) -> NoReturn:
    """Refuse labels that differ from those in the fit; name the first."""
    item, annotator, before = (
        shown(names[int(codes[0])].as_py()) for names, codes in zip(ids, old, strict=True)
    )
    first = np.flatnonzero((new.item == old.item[0]) & (new.annotator == old.annotator[0]))[0]
    now = shown(ids[2][int(new.label[first])].as_py())
    more = f" and {len(old.item) - 1:,} more" if len(old.item) > 1 else ""
    raise InputError(
        f"labelled twice: annotator {annotator} on item {item} (label {before}, now {now}){more}; "
        "pass duplicates='last' (`--duplicates last`) to count the later label, or 'keep' to count "
        "both"
    )
