r"""RobustGPM's passes where labels are many and kinds of items are 32 shapes, in single precision.

What `annotruth.kernels.robust_gpm` computes, from logarithms:

.. math:: w_{e,k} \propto \exp \left(b_k + \sum_{s \in l_e} \log a_{s,r_{e,s},k}\right).

A row of 32 singles is two lines of the cache, which a step spends its time on: one row is read
and one added to for each label. Sums of few logs are singles; those of many, and the
log-likelihood, are doubles. Plain twins: `annotruth.kernels.reference.robust_shapes`.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.item_rows import find_rows, item_labels, most_labels
from annotruth.kernels.simd.simd8 import SIMD8, Offsets
from annotruth.kernels.simd.simd32 import (
    SIMD32,
    add_to_rows,
    add_weighted_rows,
    exp_and_sum,
    largest,
    log_row,
    scale_row,
    sum_rows,
)

_ITEMS = 512  # at once: posteriors stay near, and one table at a time has the caches
_LABELS = 16  # whose logs are added up in single precision


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    begin: Singles,
    log_rates: Singles,
    counts: Floats | Singles,
    classes: Floats,
    totals: Floats,
) -> None:
    """Add up posteriors by annotator and label, by kind, and the log of the items' sums.

    ``begin`` is (categories + 1) x kinds: the log-prior with what each known truth says of the
    kinds, and at the end without. ``log_rates`` and ``counts`` are annotators x labels x kinds.
    """
    n_labels = log_rates.shape[1]
    begin, table, counts = begin.reshape(-1), log_rates.reshape(-1), counts.reshape(-1)
    size = most_labels(block, lo, hi, _ITEMS) + SIMD8
    category, rows = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    in_turn, none = SIMD32 * np.arange(_ITEMS), np.zeros(SIMD32, dtype=np.float32)
    posterior = np.empty(_ITEMS * SIMD32, dtype=np.float32)
    mass = np.empty(_ITEMS, dtype=np.float32)
    for some in range(lo, hi, _ITEMS):
        end = min(some + _ITEMS, hi)
        find_rows(block, some, end, n_labels, SIMD32, category, rows)
        totals[0] += _add_up_items(block, some, end, begin, table, rows, posterior)
        mass[:] = 1.0
        for e in range(end - some):
            top = largest(posterior, SIMD32 * e)
            mass[e] = exp_and_sum(posterior, SIMD32 * e, top)
            scale_row(posterior, SIMD32 * e, np.float32(1.0) / mass[e])
            totals[0] += float(top)
        for at in range(0, _ITEMS, SIMD32):
            log_row(mass, at)
        for e in range(_ITEMS):
            totals[0] += float(mass[e])
        for e in range(some, end):
            first, last = item_labels(block, some, e)
            add_to_rows(counts, rows, first, last, posterior, SIMD32 * (e - some))
        sum_rows(none, 0, posterior, in_turn, 0, end - some, posterior, 0)
        add_to_rows(classes, in_turn, 0, 1, posterior, 0)


@compiled
def support(
    block: Block,
    lo: int,
    hi: int,
    begin: Singles,
    log_rates: Singles,
    ways: Singles,
    repeating: Singles,
    repeated: Codes,
    log_likelihood: Floats,
) -> None:
    """Add up each annotator's log-likelihood in every way of answering, from the others' labels.

    An item's kind is judged without the annotator's own label. ``ways`` and ``repeating`` are
    labels x kinds x ways, filled up to a multiple of 32; the second is for the label that the
    annotator would repeat.
    """
    n_labels, n_kinds, n_ways = ways.shape
    begin, table = begin.reshape(-1), log_rates.reshape(-1)
    size = most_labels(block, lo, hi, _ITEMS) + SIMD8
    category, rows = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    logs = np.empty(_ITEMS * SIMD32, dtype=np.float32)
    without, mix = np.empty(SIMD32, dtype=np.float32), np.empty(n_ways, dtype=np.float32)
    here, taken_off = np.zeros(1, dtype=np.int64), np.full(1, -1.0, dtype=np.float32)
    kinds = n_ways * np.arange(n_kinds)
    for some in range(lo, hi, _ITEMS):
        end = min(some + _ITEMS, hi)
        find_rows(block, some, end, n_labels, SIMD32, category, rows)
        _add_up_items(block, some, end, begin, table, rows, logs)
        annotator = block.annotator[block.cell_ptr[block.item_ptr[some]] :]
        for e in range(some, end):
            first, last = item_labels(block, some, e)
            for j in range(first, last):
                sum_rows(logs, SIMD32 * (e - some), table, rows, 0, 0, without, 0)
                add_weighted_rows(table, here, rows[j], taken_off, 1, without, 0)
                total = exp_and_sum(without, 0, largest(without, 0))
                scale_row(without, 0, np.float32(1.0) / total)
                s, n = annotator[j], category[j]
                of_label = (repeating if repeated[s] == n else ways)[n].reshape(-1)
                mix[:] = 0.0
                for at in range(0, n_ways, SIMD32):
                    add_weighted_rows(of_label, kinds, at, without, n_kinds, mix, at)
                    log_row(mix, at)
                row = log_likelihood[s]
                for g in range(len(row)):
                    row[g] += mix[g]


@compiled
def _add_up_items(
    block: Block,
    lo: int,
    hi: int,
    begin: Singles,
    table: Singles,
    rows: Offsets,
    sums: Singles,
) -> float:
    """Add up the rows of each item, and return what was taken off the sums of all."""
    n_labels = len(begin) // SIMD32 - 1
    off = 0.0
    for e in range(lo, hi):
        first, last = item_labels(block, lo, e)
        known, at = block.known[e], SIMD32 * (e - lo)
        which = SIMD32 * (n_labels if known < 0 else int(known))
        if last - first <= _LABELS:
            sum_rows(begin, which, table, rows, first, last, sums, at)
        else:
            off += _add_up_many(begin, which, table, rows, first, last, sums, at)
    return off


@compiled
def _add_up_many(
    begin: Singles,
    which: int,
    table: Singles,
    rows: Offsets,
    first: int,
    last: int,
    sums: Singles,
    at: int,
) -> float:
    """Add up rows in double precision; return the largest sum, which is taken off all."""
    total = np.zeros(SIMD32)
    none = np.zeros(SIMD32, dtype=np.float32)
    some = np.empty(SIMD32, dtype=np.float32)
    total += begin[which : which + SIMD32]
    for j in range(first, last, _LABELS):
        sum_rows(none, 0, table, rows, j, min(j + _LABELS, last), some, 0)
        total += some
    top = float(total.max())
    for k in range(SIMD32):
        sums[at + k] = total[k] - top
    return top
