r"""Passes of GPM (equation names are the paper's).

With reliability :math:`\epsilon_s`, item distribution :math:`\theta_e` and irregular behavior
:math:`\pi_s`, a label is serious with probability

.. math:: \mu_{e,s} = \frac{\epsilon_s \theta_{e,r}}
                          {\epsilon_s \theta_{e,r} + (1 - \epsilon_s) \pi_{s,r}}.

Each kernel processes items ``lo:hi`` of a block. ``theta`` has one entry per cell; categories without
labels have :math:`\theta = 0` from the start and keep it. ``pi`` is annotators x categories if behavior
is learned, and empty if it is uniform; then it is ``chance`` for all. NumPy twins:
`annotruth.kernels.reference.gpm`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd import SIMD8
from annotruth.kernels.simd.gpm import e_step, m_step
from annotruth.kernels.simd.simd8 import Offsets, fill, log, repeat_by_cell, sum_by_cell, sum_of

# How many labels `step` processes at once: their annotators then stay in the first cache.
_BATCH_LABELS = 256
_LOG_BATCH_LABELS = 1024  # the same for `log_likelihood_by_annotator`, which has longer loops
# From so many annotators on, a megabyte of parameters, they do not fit into the second cache.
_MANY_ANNOTATORS = 1 << 16
_PARTIAL_SUMS = 64  # of Q, each over every 64th batch: shorter sums have less rounding
_LINE_BYTES, _DOUBLE_BYTES = 64, 8
_ONE = np.uint64(1)


@compiled
def start(block: Block, lo: int, hi: int, theta: Floats) -> None:
    """Set theta to the observed shares, or to certainty where the truth is known."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for c in range(first, last):
            if known >= 0:
                theta[c] = 1.0 if block.cell_category[c] == known else 0.0
            else:
                theta[c] = (block.cell_ptr[c + 1] - block.cell_ptr[c]) / total


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    irregular: Floats,
    totals: Floats,
) -> None:
    """Take one EM step on the items (eq. Qfunction and updates).

    Updates theta and adds to the sums: ``serious[s]`` is the sum of mu over s's labels,
    ``irregular[s, n]`` that of 1 - mu over s's labels n (only if pi is learned), ``totals[0]`` the
    log-likelihood before the step, ``totals[1]`` the items' part of Q after it, the sum of
    mu log theta.

    A plain loop over cells spends its time on mispredicted ends of cells and on logs. Instead, a batch
    of items is processed in short loops over scratch arrays, one operation per loop, which takes a
    third of the time.
    """
    by_annotator = np.empty((len(eps), 2))  # reliability, sum of mu
    for s in range(len(eps)):
        by_annotator[s, 0], by_annotator[s, 1] = eps[s], 0.0
    product, exponents = np.ones(SIMD8), np.zeros(SIMD8, np.int64)
    q = np.zeros(_PARTIAL_SUMS * SIMD8)
    e, size = lo, _BATCH_LABELS
    while e < hi:
        size = max(size, _count_labels(block, e, e + 1))
        e = _step_in_batches(
            block, e, hi, size, theta, by_annotator, pi, chance, irregular, product, exponents, q
        )
    for s in range(len(eps)):
        serious[s] += by_annotator[s, 1]
    for j in range(SIMD8):
        totals[0] += math.log(product[j]) + exponents[j] * math.log(2.0)
    for j in range(len(q)):
        totals[1] += q[j]


@compiled
def _step_in_batches(
    block: Block,
    lo: int,
    hi: int,
    size: int,
    theta: Floats,
    by_annotator: Floats,
    pi: Floats,
    chance: float,
    irregular: Floats,
    product: Floats,
    exponents: Codes,
    q: Floats,
) -> int:
    """Take the step on items up to one that has more than ``size`` labels; return it, or ``hi``.

    Arrays are not made, sliced or assigned between batches: that would change reference counts by
    atomic instructions, which takes a tenth more time.
    """
    item_ptr, cell_category, cell_ptr, annotator, known = block
    learned, far = pi.shape[0] > 0, len(by_annotator) >= _MANY_ANNOTATORS
    category, share, behavior, mu, mass, fixed = _scratch(size, chance)
    total = share  # its first content is not needed any more by then
    e, n_items, n_batches = lo, 1, 0
    while e < hi:
        after, n_labels = _next_batch(block, e, hi, n_items, _BATCH_LABELS)
        if n_labels > size:
            break
        first, last = item_ptr[e], item_ptr[after]
        begin = np.uint64(cell_ptr[first])

        # E-step: mu, the annotators' sums and the log-likelihood.
        repeat_by_cell(cell_ptr, first, last, theta, share)
        if learned:
            repeat_by_cell(cell_ptr, first, last, cell_category, category)
            for j in range(np.uint64(n_labels)):  # unsigned: no test for negative indices
                behavior[j] = pi[np.uint32(annotator[begin + j]), np.uint32(category[j])]
        for j in range(0, n_labels, _BATCH_LABELS):
            k = min(j + _BATCH_LABELS, n_labels)
            if learned:
                e_step(
                    annotator,
                    begin,
                    j,
                    k,
                    by_annotator,
                    far,
                    share,
                    behavior,
                    mu,
                    product,
                    exponents,
                )
            else:
                e_step(
                    annotator, begin, j, k, by_annotator, far, share, chance, mu, product, exponents
                )
        if learned:
            for j in range(np.uint64(n_labels)):
                s, n = np.uint32(annotator[begin + j]), np.uint32(category[j])
                irregular[s, n] += 1.0 - mu[j]

        # M-step: theta and its part of Q.
        sum_by_cell(cell_ptr, first, last, mu, mass)
        any_fixed = _item_totals(item_ptr, cell_ptr, known, e, after, theta, mass, total, fixed)
        m_step(theta, first, last, mass, total, q, n_batches % _PARTIAL_SUMS * SIMD8)
        if any_fixed:
            for c in range(last - first):
                if total[c] == np.inf:
                    theta[first + c] = fixed[c]
        n_batches += 1

        n_items = _guess_batch(after - e, n_labels, _BATCH_LABELS)
        e = after
    return e


@compiled
def _item_totals(
    item_ptr: Offsets,
    cell_ptr: Offsets,
    known: NDArray[np.int32],
    lo: int,
    hi: int,
    theta: Floats,
    mass: Floats,
    total: Floats,
    fixed: Floats,
) -> bool:
    """Set ``total`` of each cell to its item's mass, and return whether some items are fixed.

    These are items whose theta is not mass over total: the truth is known, or no label is serious;
    then any theta is equally likely, and theta is set to the observed shares. Their cells get an
    infinite total, theta in ``fixed``, and no mass, so that they add nothing to Q.
    """
    base, first, any_fixed = np.uint64(item_ptr[lo]), np.uint64(0), False
    for e in range(np.uint64(lo), np.uint64(hi)):
        last = np.uint64(item_ptr[e + _ONE]) - base
        item_mass = sum_of(mass, first, last)
        if known[e] >= 0 or item_mass == 0.0:
            item_mass, any_fixed = np.inf, True
            n_labels = cell_ptr[base + last] - cell_ptr[base + first]
            for c in range(first, last):
                labels = cell_ptr[base + c + _ONE] - cell_ptr[base + c]
                fixed[c] = theta[base + c] if known[e] >= 0 else labels / n_labels
                mass[c] = 0.0
        fill(total, first, last, item_mass)
        first = last
    return any_fixed


@compiled
def _scratch(
    n_labels: int, chance: float
) -> tuple[NDArray[np.int32], Floats, Floats, Floats, Floats, Floats]:
    """Return arrays for a batch: categories, shares, behaviors (filled) and three more."""
    n = n_labels + SIMD8
    behavior = _aligned_empty(n)
    behavior[:] = chance
    category = np.empty(n, np.int32)
    return (
        category,
        _aligned_empty(n),
        behavior,
        _aligned_empty(n),
        _aligned_empty(n),
        _aligned_empty(n),
    )


@compiled
def _aligned_empty(n: int) -> Floats:
    """Return an empty array that begins at a cache line: vectors are in one line, not two."""
    buffer = np.empty(n + _LINE_BYTES // _DOUBLE_BYTES)
    begin = -buffer.ctypes.data % _LINE_BYTES // _DOUBLE_BYTES
    return buffer[begin : begin + n]


@compiled
def _next_batch(block: Block, first: int, hi: int, n_items: int, most: int) -> tuple[int, int]:
    """Return the end of a batch of at most ``n_items`` from ``first`` on, and its number of labels.

    That is at most ``most``, unless the first item has more.
    """
    last = min(first + n_items, hi)
    n_labels = _count_labels(block, first, last)
    while n_labels > most and last > first + 1:
        last = first + (last - first) // 2
        n_labels = _count_labels(block, first, last)
    return last, n_labels


@compiled
def _guess_batch(n_items: int, n_labels: int, most: int) -> int:
    """Return how many items the next batch should have, given the labels of this one."""
    return max(1, n_items * most * 7 // (8 * n_labels))


@compiled
def _count_labels(block: Block, lo: int, hi: int) -> int:
    """Return the number of labels of items ``lo:hi``."""
    return int(block.cell_ptr[block.item_ptr[hi]] - block.cell_ptr[block.item_ptr[lo]])


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    p_serious: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
) -> None:
    """Write mu of every label and add up the log-likelihood."""
    learned = pi.shape[0] > 0
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                c1 = eps[s] * theta[c]
                p = c1 + (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                p_serious[j] = c1 / p
                log_likelihood[0] += math.log(p)


@compiled
def log_likelihood_by_annotator(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
    slope: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps.

    Items are processed in batches as in `step`, for vectors of logs.
    """
    cell_ptr, annotator = block.cell_ptr, block.annotator
    learned = pi.shape[0] > 0
    size = _LOG_BATCH_LABELS
    category, share, behavior, reliability, logs, slopes = _scratch(size, chance)
    e, n_items = lo, 1
    while e < hi:
        after, n_labels = _next_batch(block, e, hi, n_items, _LOG_BATCH_LABELS)
        if n_labels > size:
            size = n_labels
            category, share, behavior, reliability, logs, slopes = _scratch(size, chance)
        first, last = block.item_ptr[e], block.item_ptr[after]
        begin = np.uint64(cell_ptr[first])
        repeat_by_cell(cell_ptr, first, last, theta, share)
        for j in range(np.uint64(n_labels)):  # unsigned: no test for negative indices
            reliability[j] = eps[np.uint32(annotator[begin + j])]
        if learned:
            repeat_by_cell(cell_ptr, first, last, block.cell_category, category)
            for j in range(np.uint64(n_labels)):
                behavior[j] = pi[np.uint32(annotator[begin + j]), np.uint32(category[j])]
        for j in range(n_labels):
            p = reliability[j] * share[j] + (1.0 - reliability[j]) * behavior[j]
            logs[j] = log(p)
            slopes[j] = (share[j] - behavior[j]) / p
        for j in range(np.uint64(n_labels)):
            s = np.uint32(annotator[begin + j])
            log_likelihood[s] += logs[j]
            slope[s] += slopes[j]
        n_items = _guess_batch(after - e, n_labels, _LOG_BATCH_LABELS)
        e = after
