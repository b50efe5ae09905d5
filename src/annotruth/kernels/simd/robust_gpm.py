"""`annotruth.kernels.robust_gpm.step` for eight latent classes or fewer.

Rows are padded to eight numbers, one cache line and one vector, in tables that the kernel makes for
itself. NumPy twin: `annotruth.kernels.reference.robust_gpm.step`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD8
from annotruth.kernels.simd.item_rows import find_rows, item_labels, most_labels
from annotruth.kernels.simd.simd8 import Offsets, add_to_rows, multiply_rows

LABELS_PER_LOG = 20
"""How many labels are multiplied before a log: entries are 1e-12 or more, so none underflows."""

_ITEMS_AT_ONCE = 64


@compiled
def step8(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    truth_likelihood: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by class, and the items' log-likelihood."""
    n_annotators, n_labels, n_classes = confusion.shape
    n_rows = n_annotators * n_labels
    table, padded_counts = _aligned_rows(n_rows), _aligned_rows(n_rows)
    _copy_rows(confusion.reshape(-1), n_classes, table)
    size = most_labels(block, lo, hi, _ITEMS_AT_ONCE) + SIMD8
    category, rows = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    posterior = np.zeros(SIMD8)
    for start in range(lo, hi, _ITEMS_AT_ONCE):
        end = min(start + _ITEMS_AT_ONCE, hi)
        find_rows(block, start, end, n_labels, SIMD8, category, rows)
        for e in range(start, end):
            first, last = item_labels(block, start, e)
            known = block.known[e]
            for k in range(n_classes):
                posterior[k] = prior[k] if known < 0 else prior[k] * truth_likelihood[known, k]
            if last - first <= LABELS_PER_LOG:
                multiply_rows(table, rows, first, last, posterior)
            else:
                log_likelihood[0] += _multiply_many(table, rows, first, last, n_classes, posterior)
            total = 0.0
            for k in range(n_classes):
                total += posterior[k]
            over = 1.0 / total
            for k in range(n_classes):
                posterior[k] *= over
                classes[k] += posterior[k]
            log_likelihood[0] += math.log(total)
            add_to_rows(padded_counts, rows, first, last, posterior)
    flat = counts.reshape(-1)
    for row in range(n_rows):
        for k in range(n_classes):
            flat[row * n_classes + k] += padded_counts[row * SIMD8 + k]


@compiled
def _multiply_many(
    table: Floats, rows: Offsets, first: int, last: int, n_classes: int, product: Floats
) -> float:
    """Multiply by many rows; divide the products by the largest and return its log."""
    logs = np.zeros(n_classes)
    for j in range(first, last, LABELS_PER_LOG):
        multiply_rows(table, rows, j, min(j + LABELS_PER_LOG, last), product)
        for k in range(n_classes):
            logs[k] += np.log(product[k])
            product[k] = 1.0
    top = -math.inf
    for k in range(n_classes):  # logs.max() takes several times as long to compile
        top = max(top, logs[k])
    for k in range(n_classes):
        product[k] = math.exp(logs[k] - top)
    return top


@compiled
def _aligned_rows(n_rows: int) -> Floats:
    """Return rows of eight zeros that begin where cache lines do."""
    buffer = np.zeros((n_rows + 1) * SIMD8)
    begin = -(buffer.ctypes.data // buffer.itemsize) % SIMD8
    return buffer[begin : begin + n_rows * SIMD8]


@compiled
def _copy_rows(rows: Floats, n_classes: int, out: Floats) -> None:
    """Copy rows of ``n_classes`` numbers into rows of eight."""
    for row in range(len(out) // SIMD8):
        for k in range(n_classes):
            out[row * SIMD8 + k] = rows[row * n_classes + k]
