"""`annotruth.kernels.robust_gpm.step` where items are of eight kinds or fewer: classes.

Rows are filled up to eight numbers, a line of the cache and a vector, in tables of the kernel's own.
Plain twin: `annotruth.kernels.reference.robust_few`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.item_rows import find_rows, item_labels, most_labels
from annotruth.kernels.simd.simd8 import SIMD8, Offsets, add_to_rows, multiply_rows

_ITEMS = 64  # at once
# Rates are 1e-12 or more, so that the product of this many does not underflow.
_LABELS_A_LOG = 20


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    counts: Floats,
    classes: Floats,
    totals: Floats,
) -> None:
    """Add up posteriors by annotator and label, by kind, and the log of the items' sums."""
    n_people, n_labels, n_kinds = rates.shape
    table, filled_up = _on_lines(n_people * n_labels), _on_lines(n_people * n_labels)
    _copy_rows(rates.reshape(-1), n_kinds, table)
    size = most_labels(block, lo, hi, _ITEMS) + SIMD8
    category, rows = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    posterior = np.zeros(SIMD8)
    for some in range(lo, hi, _ITEMS):
        end = min(some + _ITEMS, hi)
        find_rows(block, some, end, n_labels, SIMD8, category, rows)
        for e in range(some, end):
            first, last = item_labels(block, some, e)
            known = block.known[e]
            for k in range(n_kinds):
                posterior[k] = prior[k] if known < 0 else prior[k] * gate[known, k]
            if last - first <= _LABELS_A_LOG:
                multiply_rows(table, rows, first, last, posterior)
            else:
                totals[0] += _multiply_many(table, rows, first, last, n_kinds, posterior)
            total = 0.0
            for k in range(n_kinds):
                total += posterior[k]
            over = 1.0 / total
            for k in range(n_kinds):
                posterior[k] *= over
                classes[k] += posterior[k]
            totals[0] += math.log(total)
            add_to_rows(filled_up, rows, first, last, posterior)
    flat = counts.reshape(-1)
    for row in range(n_people * n_labels):
        for k in range(n_kinds):
            flat[row * n_kinds + k] += filled_up[row * SIMD8 + k]


@compiled
def _multiply_many(
    table: Floats, rows: Offsets, first: int, last: int, n_kinds: int, product: Floats
) -> float:
    """Multiply by logs; return that of the largest product, by which all are divided."""
    logs = np.zeros(n_kinds)
    for j in range(first, last, _LABELS_A_LOG):
        multiply_rows(table, rows, j, min(j + _LABELS_A_LOG, last), product)
        for k in range(n_kinds):
            logs[k] += np.log(product[k])
            product[k] = 1.0
    top = float(logs.max())
    for k in range(n_kinds):
        product[k] = math.exp(logs[k] - top)
    return top


@compiled
def _on_lines(n_rows: int) -> Floats:
    """Make rows of eight zeros that begin where lines of the cache do."""
    room = np.zeros((n_rows + 1) * SIMD8)
    begin = -(room.ctypes.data // room.itemsize) % SIMD8
    return room[begin : begin + n_rows * SIMD8]


@compiled
def _copy_rows(rows: Floats, n_kinds: int, out: Floats) -> None:
    """Copy rows of n_kinds numbers into those of eight."""
    for row in range(len(out) // SIMD8):
        for k in range(n_kinds):
            out[row * SIMD8 + k] = rows[row * n_kinds + k]
