"""Comparisons with others appended: ids and codes of the first stay, new ones follow."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.errors import InputError, listed
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations.append import extend_ids
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import Comparisons, join_further
from annotruth.observations.pairs.votes import covariates_in_order_of_codes, in_order_of_codes


class AppendedComparisons(NamedTuple):
    """Comparisons with others appended.

    Attributes
    ----------
    comparisons
        All comparisons.
    n_repeated
        How many of the new ones were there already, and were left out.
    """

    comparisons: Comparisons
    n_repeated: int


class _Rows(NamedTuple):
    """Comparisons as codes in the order of the input; context is -1 where there is none."""

    left: Codes
    right: Codes
    annotator: Codes
    outcome: Codes
    context: Codes

    def take(self, rows: Codes) -> _Rows:
        return _Rows(*(column[rows] for column in self))


def append_comparisons(base: Comparisons, new: Comparisons) -> AppendedComparisons:
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
            f"{listed(new.covariates)}: pass covariates (`--covariates`) with the same names"
        )
    items, item_code = extend_ids(base.items, new.items)
    annotators, annotator_code = extend_ids(base.annotators, new.annotators)
    contexts, context_code = _extend_contexts(base, new)
    old = _rows_of(base, np.arange(base.n_items), np.arange(base.n_annotators), None)
    more = _rows_of(new, item_code, annotator_code, context_code)
    covariates = _in_row_order(new)
    if not base.sides_known:
        covariates = covariates_in_order_of_codes(more.left, more.right, covariates)
        left, right, outcome = in_order_of_codes(more.left, more.right, more.outcome)
        more = more._replace(left=left, right=right, outcome=outcome)
    added = _added(old, more)
    rows = _Rows(*(np.concatenate([a, b]) for a, b in zip(old, more.take(added), strict=True)))
    order = np.argsort(rows.annotator, kind="stable")
    made = Comparisons.from_codes(
        *rows[:4],
        items=items,
        annotators=annotators,
        covariates={
            name: np.concatenate([values, covariates[name][added]])
            for name, values in _in_row_order(base).items()
        },
        sides_known=base.sides_known,
        frame=base.frame,
    )
    made = replace(
        made,
        further=_append_further(base, new, added, order),
        contexts=contexts,
        context=None if contexts is None else rows.context[order].astype(np.int32),
        n_dropped=base.n_dropped + new.n_dropped,
        n_repeated=base.n_repeated + new.n_repeated,
        read_as=base.read_as,
        left_out=new.left_out or base.left_out,
    )
    return AppendedComparisons(made, new.n_comparisons - len(added))


def _extend_contexts(base: Comparisons, new: Comparisons) -> tuple[pa.Array | None, Codes | None]:
    """Return the contexts of both, and the code of each of ``new``; None where one has none."""
    if base.contexts is None or new.contexts is None:
        return None, None
    return extend_ids(base.contexts, new.contexts)


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


def _rows_of(
    data: Comparisons, item_code: Codes, annotator_code: Codes, context_code: Codes | None
) -> _Rows:
    context = np.full(data.n_comparisons, -1) if data.context is None else data.context
    if context_code is not None:
        context = context_code[context]
    rows = _Rows(
        item_code[data.left].astype(np.int64),
        item_code[data.right].astype(np.int64),
        annotator_code[data.annotator_of_comparison()].astype(np.int64),
        data.outcome.astype(np.int64),
        context.astype(np.int64),
    )
    return rows.take(np.argsort(data.row))


def _added(old: _Rows, new: _Rows) -> Codes:
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


def _in_row_order(data: Comparisons) -> dict[str, Floats]:
    """Return the covariates in the order of the input."""
    return {name: data.in_row_order(values) for name, values in data.covariates.items()}
