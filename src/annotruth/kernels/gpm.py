r"""GPM's passes over the labels (equation numbers are the paper's).

With reliability :math:`\epsilon_s`, item distribution :math:`\theta_e` and irregular behavior
:math:`\pi_s`, a label is serious with probability

.. math:: \mu_{e,s} = \frac{\epsilon_s \theta_{e,r}}
                          {\epsilon_s \theta_{e,r} + (1 - \epsilon_s) \pi_{s,r}}.

Each kernel works on items ``lo:hi`` of a block. ``theta`` has one entry a cell; categories that
nobody chose for an item have :math:`\theta = 0` from the start and keep it. ``pi`` is
annotators x categories when behavior is learned and empty when it is uniform; then ``chance``
stands for all of it. Plain twins: `annotruth.kernels.reference.gpm`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.gpm import e_step, m_step
from annotruth.kernels.simd.simd8 import (
    SIMD8,
    Offsets,
    fill,
    log,
    repeat_by_cell,
    sum_by_cell,
    sum_of,
)

# `step` takes this many labels at once: their annotators stay in the first cache until all is done.
_AT_ONCE = 256
_LOGS_AT_ONCE = 1024  # `support` reads them in one loop, and takes the logs in vectors of many
# From so many annotators on, a megabyte of them, they leave the second cache.
_FAR = 1 << 16
_TURNS = 64  # parts of Q, each of every so many items: sums of few numbers are rounded less
_LINE_BYTES, _DOUBLE_BYTES = 64, 8
_NEXT = np.uint64(1)


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

    Replaces theta by its update and adds to the sums: ``serious[s]`` the sum of mu over s's
    labels, ``irregular[s, n]`` that of 1 - mu over s's labels n (only when pi is learned),
    ``totals[0]`` the log-likelihood before the step, ``totals[1]`` the items' part of Q after
    it, the sum of mu log theta.

    A plain loop over cells spends its time on mispredicted ends of cells and on logs. So some
    items at a time go through short loops over scratch arrays, one thing a loop: 7.7 ns a label
    became 2.5.
    """
    people = np.empty((len(eps), 2))
    for s in range(len(eps)):
        people[s, 0], people[s, 1] = eps[s], 0.0
    product, exponents, q = np.ones(SIMD8), np.zeros(SIMD8, np.int64), np.zeros(_TURNS * SIMD8)
    e, size = lo, _AT_ONCE
    while e < hi:
        size = max(size, _labels_of(block, e, e + 1))
        e = _step_while_they_fit(
            block, e, hi, size, theta, people, pi, chance, irregular, product, exponents, q
        )
    for s in range(len(eps)):
        serious[s] += people[s, 1]
    totals[0] += np.log(product).sum() + exponents.sum() * math.log(2.0)
    totals[1] += q.sum()


@compiled
def _step_while_they_fit(
    block: Block,
    lo: int,
    hi: int,
    size: int,
    theta: Floats,
    people: Floats,
    pi: Floats,
    chance: float,
    irregular: Floats,
    product: Floats,
    exponents: Codes,
    q: Floats,
) -> int:
    """Take the step on items up to one that has more than ``size`` labels; return it, or ``hi``.

    Between some items and the next no array is made, sliced or renamed. That would be counted,
    each time by an instruction that waits for all others: a tenth more time.
    """
    item_ptr, cell_category, cell_ptr, annotator, known = block
    learned, far = pi.shape[0] > 0, len(people) >= _FAR
    category, share, behavior, mu, mass, settled = _scratch(size, chance)
    total = share  # which is not needed any more by then
    e, n_items, turn = lo, 1, 0
    while e < hi:
        after, n_labels = _at_once(block, e, hi, n_items, _AT_ONCE)
        if n_labels > size:
            break
        first, last = item_ptr[e], item_ptr[after]
        begin = np.uint64(cell_ptr[first])

        # E-step: mu, the annotators' sums and the log-likelihood.
        repeat_by_cell(cell_ptr, first, last, theta, share)
        if learned:
            repeat_by_cell(cell_ptr, first, last, cell_category, category)
            for j in range(np.uint64(n_labels)):  # unsigned: no test for places below 0
                behavior[j] = pi[np.uint32(annotator[begin + j]), np.uint32(category[j])]
        for j in range(0, n_labels, _AT_ONCE):
            k = min(j + _AT_ONCE, n_labels)
            if learned:
                e_step(annotator, begin, j, k, people, far, share, behavior, mu, product, exponents)
            else:
                e_step(annotator, begin, j, k, people, far, share, chance, mu, product, exponents)
        if learned:
            for j in range(np.uint64(n_labels)):
                s, n = np.uint32(annotator[begin + j]), np.uint32(category[j])
                irregular[s, n] += 1.0 - mu[j]

        # M-step: theta, and its part of Q.
        sum_by_cell(cell_ptr, first, last, mu, mass)
        some = _totals(item_ptr, cell_ptr, known, e, after, theta, mass, total, settled)
        m_step(theta, first, last, mass, total, q, turn * SIMD8)
        if some:
            for c in range(last - first):
                if total[c] == np.inf:
                    theta[first + c] = settled[c]
        turn = (turn + 1) % _TURNS

        n_items = _next_at_once(after - e, n_labels, _AT_ONCE)
        e = after
    return e


@compiled
def _totals(
    item_ptr: Offsets,
    cell_ptr: Offsets,
    known: NDArray[np.int32],
    lo: int,
    hi: int,
    theta: Floats,
    mass: Floats,
    total: Floats,
    settled: Floats,
) -> bool:
    """Set ``total`` to the item's mass, for each of its cells, and say whether some are settled.

    These have an infinite total, and their theta in ``settled``, as it is not mass over total: the
    truth is known, or nobody serious has seen the item; then any theta is as likely, and it
    takes the observed shares. Such cells lose their mass, so that they add nothing to Q.
    """
    base, first, some = np.uint64(item_ptr[lo]), np.uint64(0), False
    for e in range(np.uint64(lo), np.uint64(hi)):
        last = np.uint64(item_ptr[e + _NEXT]) - base
        item_mass = sum_of(mass, first, last)
        if known[e] >= 0 or item_mass == 0.0:
            item_mass, some = np.inf, True
            n_labels = cell_ptr[base + last] - cell_ptr[base + first]
            for c in range(first, last):
                labels = cell_ptr[base + c + _NEXT] - cell_ptr[base + c]
                settled[c] = theta[base + c] if known[e] >= 0 else labels / n_labels
                mass[c] = 0.0
        fill(total, first, last, item_mass)
        first = last
    return some


@compiled
def _scratch(
    n_labels: int, chance: float
) -> tuple[NDArray[np.int32], Floats, Floats, Floats, Floats, Floats]:
    """Make arrays for some labels: categories, shares, behaviors (filled) and three more."""
    n = n_labels + SIMD8
    behavior = _on_lines(n)
    behavior[:] = chance
    category = np.empty(n, np.int32)
    return category, _on_lines(n), behavior, _on_lines(n), _on_lines(n), _on_lines(n)


@compiled
def _on_lines(n: int) -> Floats:
    """Make an empty array that begins where a line of the cache does: vectors lie on one, not two."""
    room = np.empty(n + _LINE_BYTES // _DOUBLE_BYTES)
    begin = -room.ctypes.data % _LINE_BYTES // _DOUBLE_BYTES
    return room[begin : begin + n]


@compiled
def _at_once(block: Block, first: int, hi: int, n_items: int, most: int) -> tuple[int, int]:
    """Say which items after ``first`` to take at once, ``n_items`` or less, and their labels.

    These are ``most`` or fewer, unless one item has more.
    """
    last = min(first + n_items, hi)
    n_labels = _labels_of(block, first, last)
    while n_labels > most and last > first + 1:
        last = first + (last - first) // 2
        n_labels = _labels_of(block, first, last)
    return last, n_labels


@compiled
def _next_at_once(n_items: int, n_labels: int, most: int) -> int:
    """Guess how many items to take next, from the labels of those before."""
    return max(1, n_items * most * 7 // (8 * n_labels))


@compiled
def _labels_of(block: Block, lo: int, hi: int) -> int:
    """Count the labels of items ``lo:hi``."""
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
    totals: Floats,
) -> None:
    """Write mu of every label and add the log-likelihood to ``totals[0]``."""
    learned = pi.shape[0] > 0
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                c1 = eps[s] * theta[c]
                p = c1 + (1.0 - eps[s]) * (pi[s, n] if learned else chance)
                p_serious[j] = c1 / p
                totals[0] += math.log(p)


@compiled
def support(
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

    Some items at a time, as in `step`, for vectors of logs: 10.8 ns a label became 4.7.
    """
    cell_ptr, annotator = block.cell_ptr, block.annotator
    learned = pi.shape[0] > 0
    size = _LOGS_AT_ONCE
    category, share, behavior, reliability, logs, slopes = _scratch(size, chance)
    e, n_items = lo, 1
    while e < hi:
        after, n_labels = _at_once(block, e, hi, n_items, _LOGS_AT_ONCE)
        if n_labels > size:
            size = n_labels
            category, share, behavior, reliability, logs, slopes = _scratch(size, chance)
        first, last = block.item_ptr[e], block.item_ptr[after]
        begin = np.uint64(cell_ptr[first])
        repeat_by_cell(cell_ptr, first, last, theta, share)
        for j in range(np.uint64(n_labels)):  # unsigned places are never negative: no test for it
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
        n_items = _next_at_once(after - e, n_labels, _LOGS_AT_ONCE)
        e = after
