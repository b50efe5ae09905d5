"""Labels with others appended: ids and codes of the first stay, new ones follow."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Codes
from annotruth.labels import validate
from annotruth.labels.arrays import Covariates
from annotruth.labels.covariates import append_rows, merge_by_code
from annotruth.labels.encode import match_ids, to_text
from annotruth.labels.options import DuplicatePolicy
from annotruth.labels.table import Labels
from annotruth.labels.truth import match_truth_to_items


class AppendedLabels(NamedTuple):
    """Labels with others appended.

    Attributes
    ----------
    labels
        All labels.
    n_repeated
        How many of the new ones were there already, with the same label, and were left out.

    Examples
    --------
    >>> base = Labels.of([("a", "ann", 1), ("a", "bob", 2)])
    >>> export = Labels.of([("a", "ann", 1), ("a", "bob", 2), ("a", "eve", 2)])
    >>> appended = append_labels(base, export)
    >>> appended.labels.n_labels, appended.n_repeated
    (3, 2)
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
    category = base.scale.codes_of(new.scale.categories)
    used = np.unique(np.concatenate([new.cell_category, new.known[new.known >= 0]]))
    validate.check_no_new_categories(
        category[used], new.scale.categories.take(pa.array(used)), base.scale
    )
    old_columns = [
        base.in_row_order(column).astype(np.int64)
        for column in (base.item_of_label(), base.annotator, base.category_of_label())
    ]
    new_columns = [
        codes[new.in_row_order(column)].astype(np.int64)
        for codes, column in (
            (item_codes, new.item_of_label()),
            (annotator_codes, new.annotator),
            (category, new.category_of_label()),
        )
    ]
    kept, added = np.ones(base.n_labels, np.bool_), np.ones(new.n_labels, np.bool_)
    if duplicates != "keep":
        added = ~_found(new_columns, old_columns, len(annotators))
        changed = [column[added] for column in new_columns]
        again = _found(old_columns[:2], changed[:2], len(annotators))
        if duplicates == "refuse" and again.any():
            ids = (items, annotators, base.scale.categories)
            _refuse_changed([column[again] for column in old_columns], changed, ids)
        kept = ~again
        old_columns = [column[kept] for column in old_columns]
        new_columns = changed
    n_repeated = int(np.count_nonzero(~added))
    # A later export of all labels has the same rows without a label, and the same repeated rows.
    add_counts = max if n_repeated else operator.add
    item, annotator, label = map(np.concatenate, zip(old_columns, new_columns, strict=True))
    labels = Labels.from_codes(
        item,
        annotator,
        label,
        items=items,
        annotators=annotators,
        scale=replace(base.scale, reason=""),  # these labels do not decide it
        n_dropped=add_counts(base.n_dropped, new.n_dropped),
        frame=base.frame,
    )
    known = labels.known
    known[: base.n_items] = base.known
    truths = np.flatnonzero(new.known >= 0)  # a file may hold known truths itself
    known[item_codes[truths]] = category[new.known[truths]]
    if gold is not None:
        truth = match_truth_to_items(gold, items, base.scale, role="gold")
        known[truth.item] = truth.categories()
    prior = base.annotator_prior
    if prior is not None:
        prior = np.pad(prior, ((0, labels.n_annotators - base.n_annotators), (0, 0)))
    classifier = base.classifier
    if classifier is not None:  # new items have no prediction
        n_new = labels.n_items - base.n_items
        classifier = np.pad(classifier, ((0, n_new), (0, 0)), constant_values=np.nan)
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
        annotator_prior=prior,
        classifier=classifier,
        covariates=covariates,
        n_repeated=add_counts(base.n_repeated, new.n_repeated),
        read_as=base.read_as,
        left_out=new.left_out or base.left_out,
    )
    return AppendedLabels(made, n_repeated)


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
        try:
            more = more.cast(ids.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            ids, more = to_text(ids), to_text(more)  # text among numbers
    return pa.concat_arrays([ids, more]), codes


def _found(rows: list[Codes], among: list[Codes], n_annotators: int) -> NDArray[np.bool_]:
    """Return which rows of codes (item, annotator, and perhaps label) are among others."""
    pair, other_pair = (columns[0] * n_annotators + columns[1] for columns in (rows, among))
    pairs = np.sort(other_pair)
    found = _is_in(pair, pairs)
    if len(rows) == 2 or not found.any():
        return found
    # Places of pairs, unlike the pairs, fit into 64 bits together with the label.
    n_categories = 1 + max(int(columns[2].max()) for columns in (rows, among))
    key, other_key = (
        np.searchsorted(pairs, each) * n_categories + labels
        for each, labels in ((pair, rows[2]), (other_pair, among[2]))
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
    old: list[Codes], new: list[Codes], ids: tuple[pa.Array, pa.Array, pa.Array]
) -> NoReturn:
    """Refuse labels that differ from those in the fit; name the first."""
    item, annotator, before = (
        shown(names[int(codes[0])].as_py()) for names, codes in zip(ids, old, strict=True)
    )
    first = np.flatnonzero((new[0] == old[0][0]) & (new[1] == old[1][0]))[0]
    now = shown(ids[2][int(new[2][first])].as_py())
    more = f" and {len(old[0]) - 1:,} more" if len(old[0]) > 1 else ""
    raise InputError(
        f"labelled twice: annotator {annotator} on item {item} (label {before}, now {now}){more}; "
        "pass duplicates='last' (`--duplicates last`) to count the later label, or 'keep' to count "
        "both"
    )
