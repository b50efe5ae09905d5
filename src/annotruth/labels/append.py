"""Labels with others appended: ids and codes of the first stay, new ones follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes
from annotruth.labels import validate
from annotruth.labels.arrays import Covariates
from annotruth.labels.covariates import append_rows, merge_by_code
from annotruth.labels.encode import match_ids, to_text
from annotruth.labels.options import DuplicatePolicy
from annotruth.labels.table import Labels
from annotruth.labels.truth import match_truth_to_items


def append_labels(
    base: Labels, new: Labels, *, gold: Any = None, duplicates: DuplicatePolicy = "refuse"
) -> Labels:
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
        What to do when an annotator labels the same item again: "refuse", "keep" (two votes) or "last"
        (the new label replaces the old one).
    """
    items, item_codes = _extend(base.items, new.items)
    annotators, annotator_codes = _extend(base.annotators, new.annotators)
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
    kept = np.ones(base.n_labels, dtype=np.bool_)
    if duplicates != "keep":
        again = _repeated(old_columns, new_columns, len(annotators))
        if duplicates == "refuse":
            item, annotator = (column[again] for column in old_columns[:2])
            validate.check_no_repeats(np.arange(len(item)), items, item, annotators, annotator)
        kept = ~again
        old_columns = [column[kept] for column in old_columns]
    item, annotator, label = map(np.concatenate, zip(old_columns, new_columns, strict=True))
    labels = Labels.from_codes(
        item,
        annotator,
        label,
        items=items,
        annotators=annotators,
        scale=base.scale,
        n_dropped=base.n_dropped + new.n_dropped,
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
    covariates = Covariates(
        labels=_append_label_covariates(base, kept, new, labels.row),
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
    return replace(labels, annotator_prior=prior, covariates=covariates, read_as=base.read_as)


def _append_label_covariates(
    base: Labels, kept: NDArray[np.bool_], new: Labels, row: NDArray[np.integer[Any]]
) -> Mapping[str, pa.Array]:
    """Return the covariates of the kept rows of ``base`` and of all of ``new``, as laid out."""
    old_rows = np.argsort(base.row)[kept]
    new_rows = np.argsort(new.row)
    none = np.empty(0, dtype=np.int64)
    old_columns = base.covariates.take(old_rows, none, none).labels
    new_columns = new.covariates.take(new_rows, none, none).labels
    columns = append_rows(old_columns, len(old_rows), new_columns, len(new_rows))
    return Covariates(labels=columns).take(row, none, none).labels


def _extend(ids: pa.Array, new: pa.Array) -> tuple[pa.Array, Codes]:
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


def _repeated(old: list[Codes], new: list[Codes], n_annotators: int) -> NDArray[np.bool_]:
    """Return which old labels have an item and an annotator that a new label has."""
    old_pair, new_pair = (item * n_annotators + annotator for item, annotator, _ in (old, new))
    return np.isin(old_pair, new_pair)
