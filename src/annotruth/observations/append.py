"""Labels or comparisons with others appended: ids and codes of the first stay, new ones follow."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, listed, option, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import validate
from annotruth.observations.arrays import REPLACED, Covariates, take_rows
from annotruth.observations.covariates import append_rows, merge_by_code
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import DuplicatePolicy, RowCodes
from annotruth.observations.pairs.table import Comparisons, join_further
from annotruth.observations.pairs.votes import covariates_in_order_of_codes, in_order_of_codes
from annotruth.observations.table import Labels
from annotruth.observations.truth import match_truth

Table = TypeVar("Table", Labels, Comparisons)


class AppendedRows(NamedTuple, Generic[Table]):
    """Labels or comparisons with others appended.

    ``n_repeated`` is how many of the new ones were there already, and were left out.
    """

    table: Table
    n_repeated: int


def append_labels(
    base: Labels, new: Labels, *, gold: Any = None, duplicates: DuplicatePolicy = "refuse"
) -> AppendedRows[Labels]:
    """Return the labels of ``base`` followed by those of ``new``.

    Items and annotators of ``base`` keep their codes, new ones follow. The scale is that of
    ``base``: new labels must name its categories. ``gold`` are known truths of new or old items.

    ``duplicates`` says what to do when an annotator labels the same item again. With "keep", every
    row is a vote. Otherwise rows with the same label as in ``base`` are left out, and those with
    another label are refused ("refuse") or replace the old ones ("last").
    """
    items, item_codes = extend_ids(base.items, new.items)
    annotators, annotator_codes = extend_ids(base.annotators, new.annotators)
    category = base.scale.codes_of(new.scale.categories)
    used = np.unique(np.concatenate([new.cell_category, new.known[new.known >= 0]]))
    categories = new.scale.categories.take(pa.array(used))
    validate.check_known_categories(category[used], categories, base.scale, of_fit=True)
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
    known = np.full(labels.n_items, -1, dtype=np.int32)
    known[: base.n_items] = base.known
    truths = np.flatnonzero(new.known >= 0)  # a file may hold known truths itself
    known[item_codes[truths]] = category[new.known[truths]]
    if gold is not None:
        truth = match_truth(gold, labels, role="gold")
        known[truth.item] = truth.categories()
    reasons = {**base.unused, **new.unused}
    unused = {
        reason: add_counts(base.unused.get(reason, 0), new.unused.get(reason, 0))
        for reason in reasons
    }
    n_replaced = base.n_labels - int(np.count_nonzero(kept))
    if n_replaced:
        unused[REPLACED] = unused.get(REPLACED, 0) + n_replaced
    made = replace(
        labels,
        known=known,
        annotator_prior=_with_rows(base.annotator_prior, labels.n_annotators, 0.0),
        classifier=_with_rows(base.classifier, labels.n_items, np.nan),  # without a prediction
        covariates=covariates,
        n_repeated=add_counts(base.n_repeated, new.n_repeated),
        unused=unused,
        read_as=_read_as(base, new),
        left_out=new.left_out or base.left_out,
    )
    return AppendedRows(made, n_repeated)


def _read_as(base: Labels | Comparisons, new: Labels | Comparisons) -> str:
    """Return how both were read, if in one form; counts in parentheses are those of one file."""
    forms = {each.read_as.partition(" (")[0] for each in (base, new)}
    return forms.pop() if len(forms) == 1 else ""


def _rows_of(labels: Labels) -> RowCodes:
    """Return the codes of labels in row order."""
    columns = (labels.item_of_label(), labels.annotator, labels.category_of_label())
    return RowCodes(*(labels.in_row_order(column).astype(np.int64) for column in columns))


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
    old_rows, new_rows = np.argsort(base.row)[kept], np.argsort(new.row)[added]
    old_columns = take_rows(base.covariates.labels, old_rows)
    new_columns = take_rows(new.covariates.labels, new_rows)
    return take_rows(append_rows(old_columns, len(old_rows), new_columns, len(new_rows)), row)


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
        f"pass {option('duplicates', 'last')} to count the later label, or "
        f"{option('duplicates', 'keep')} to count both"
    )


def append_comparisons(base: Comparisons, new: Comparisons) -> AppendedRows[Comparisons]:
    """Return the comparisons of ``base`` followed by those of ``new``.

    Items and annotators of ``base`` keep their codes, new ones follow. If all comparisons of
    ``base`` are among ``new``, as in a later export, these are left out. Otherwise every row is a
    vote, as an annotator may compare two items several times.
    """
    if base.sides_known != new.sides_known:
        known, other = ("", " not") if base.sides_known else (" not", "")
        raise InputError(
            f"the sides of the items are{known} known in the fit, and{other} known in the new "
            "comparisons: rank all comparisons again"
        )
    if base.covariates.keys() != new.covariates.keys():
        raise InputError(
            f"the fit has the covariates {listed(base.covariates)}, and the new comparisons "
            f"{listed(new.covariates)}: pass {option('covariates')} with the same names"
        )
    items, item_code = extend_ids(base.items, new.items)
    annotators, annotator_code = extend_ids(base.annotators, new.annotators)
    contexts, context_code = None, None
    if base.contexts is not None and new.contexts is not None:
        contexts, context_code = extend_ids(base.contexts, new.contexts)
    old = _votes_of(base, np.arange(base.n_items), np.arange(base.n_annotators), None)
    more = _votes_of(new, item_code, annotator_code, context_code)
    covariates = {name: new.in_row_order(values) for name, values in new.covariates.items()}
    if not base.sides_known:
        covariates = covariates_in_order_of_codes(more.left, more.right, covariates)
        left, right, outcome = in_order_of_codes(more.left, more.right, more.outcome)
        more = more._replace(left=left, right=right, outcome=outcome)
    added = _added(old, more)
    rows = old.followed_by(more, added)
    order = np.argsort(rows.annotator, kind="stable")
    made = Comparisons.from_codes(
        *rows[:4],
        items=items,
        annotators=annotators,
        covariates={
            name: np.concatenate([base.in_row_order(values), covariates[name][added]])
            for name, values in base.covariates.items()
        },
        sides_known=base.sides_known,
        frame=base.frame,
    )
    made = replace(
        made,
        further=_append_further(base, new, added, order),
        contexts=contexts,
        context=None if contexts is None else rows.context[order],
        n_dropped=base.n_dropped + new.n_dropped,
        n_repeated=base.n_repeated + new.n_repeated,
        unused=Counter(base.unused) + Counter(new.unused),
        read_as=_read_as(base, new),
        left_out=new.left_out or base.left_out,
    )
    return AppendedRows(made, new.n_comparisons - len(added))


def _append_further(
    base: Comparisons, new: Comparisons, added: Codes, order: Codes
) -> dict[str, pa.Array]:
    """Return the further columns of both, null where one has none; rankings get new numbers."""
    found: dict[str, pa.Array] = {}
    for name in dict.fromkeys([*base.further, *new.further]):
        halves = [
            data.further[name].take(as_arrow(np.argsort(data.row)))
            if name in data.further
            else pa.nulls(data.n_comparisons)
            for data in (base, new)
        ]
        halves[1] = halves[1].take(as_arrow(added))
        found[name] = join_further(name, halves).take(as_arrow(order))
    return found


class _RowVotes(NamedTuple):
    """The codes of comparisons in the order of the input."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    annotator: NDArray[np.int32]
    outcome: NDArray[np.int8]
    context: NDArray[np.int32]

    def followed_by(self, others: _RowVotes, chosen: Codes) -> _RowVotes:
        """Return these with the chosen rows of others after them."""
        pairs: Any = zip(self, others, strict=True)
        return _RowVotes(*(np.concatenate([own, other[chosen]]) for own, other in pairs))


def _votes_of(
    data: Comparisons, item_code: Codes, annotator_code: Codes, context_code: Codes | None
) -> _RowVotes:
    context = np.full(data.n_comparisons, -1) if data.context is None else data.context
    if context_code is not None:
        context = context_code[context]
    row = np.argsort(data.row)
    return _RowVotes(
        item_code[data.left].astype(np.int32)[row],
        item_code[data.right].astype(np.int32)[row],
        annotator_code[data.annotator_of_comparison()].astype(np.int32)[row],
        data.outcome[row],
        context.astype(np.int32)[row],
    )


def _added(old: _RowVotes, new: _RowVotes) -> Codes:
    """Return which of the new rows to append: all, or those beyond the old ones if it has all."""
    both = np.stack([np.concatenate([a, b]) for a, b in zip(old, new, strict=True)], axis=1)
    _, key = np.unique(both, axis=0, return_inverse=True)
    key = key.ravel()
    n_old = len(old.left)
    old_key, new_key = key[:n_old], key[n_old:]
    n_keys = int(key.max()) + 1
    n_left_out = np.bincount(old_key, minlength=n_keys)
    if (n_left_out > np.bincount(new_key, minlength=n_keys)).any():
        return np.arange(len(new_key))
    # The first rows of each kind are the old ones.
    order = np.argsort(new_key, kind="stable")
    starts = np.searchsorted(new_key[order], np.arange(n_keys))
    occurrence = np.empty(len(new_key), dtype=np.int64)
    occurrence[order] = np.arange(len(new_key)) - starts[new_key[order]]
    return np.flatnonzero(occurrence >= n_left_out[new_key])
