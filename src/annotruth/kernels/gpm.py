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

from annotruth.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.lanes import (
    EIGHT,
    exponent,
    fetch,
    fill,
    fraction,
    log,
    spread,
    sum_of,
    sums,
)

# `step` takes this many labels at once: its scratch arrays stay in the nearest caches.
_AT_ONCE = 1024
_VECTOR = 32  # loops run over whole vectors of this many, which spares them their remainder
# One log serves many labels: a probability is m 2^x with m in [1, 2), the m are multiplied and the
# x added up. After this many factors the product is logged, before it can overflow.
_FACTORS_A_LOG = 512
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
    became 3.9.
    """
    size = 0
    scratch, product, q = _scratch(size), np.ones(size), np.zeros(size)
    exponents = 0
    n_factors = 0
    first, n_items = lo, 1
    while first < hi:
        last, n_labels = _at_once(block, first, hi, n_items)
        if n_labels > size or n_factors == _FACTORS_A_LOG:
            totals[0] += _sum_of_logs(product)
            totals[1] += q.sum()
            size = max(n_labels, min(_AT_ONCE, _labels_of(block, first, hi)))
            scratch = _scratch(size + _VECTOR + EIGHT)
            product, q = np.ones(size + _VECTOR), np.zeros(size + _VECTOR)
            n_factors = 0
        exponents += _step_at_once(
            block, first, last, theta, eps, pi, chance, serious, irregular, scratch, product, q
        )
        n_factors += 1
        n_items = _next_at_once(last - first, n_labels)
        first = last
    totals[0] += _sum_of_logs(product) + exponents * math.log(2.0)
    totals[1] += q.sum()


@compiled
def _step_at_once(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    irregular: Floats,
    scratch: tuple[Floats, Floats, Floats, Floats],
    product: Floats,
    q: Floats,
) -> int:
    """Take the step on a few items, and multiply and add into ``product`` and ``q``.

    Place by place: which labels share one matters to neither. Returns the exponents that
    ``product`` leaves out.
    """
    item_ptr, cell_category, cell_ptr, annotator, _ = block
    learned = pi.shape[0] > 0
    first, last = item_ptr[lo], item_ptr[hi]
    begin, end = cell_ptr[first], cell_ptr[last]
    n_cells, n_labels = last - first, end - begin
    all_theta, theta = theta, theta[first:last]
    annotator = annotator[begin:end]
    half = n_labels // 2
    share, reliability, mu, mass = scratch

    # Each label's theta, eps and pi; past the last label a certain one, which changes nothing.
    whole = _whole(n_labels)
    spread(cell_ptr[first : last + 1], theta, share)
    share[n_labels:whole] = 1.0
    for j in range(np.uint64(n_labels)):  # unsigned places are never negative: no test for it
        reliability[j] = eps[np.uint32(annotator[j])]
    reliability[n_labels:whole] = 1.0
    behavior = mass
    if learned:
        for c in range(n_cells):
            n = cell_category[first + c]
            for j in range(cell_ptr[first + c] - begin, cell_ptr[first + c + 1] - begin):
                behavior[j] = pi[annotator[j], n]
        behavior[n_labels:whole] = chance

    # What the next items need is fetched between the loops: a tenth faster.
    fetch(block.annotator, end, end + half)
    # E-step: mu, and p for the log-likelihood.
    exponents = 0
    for j in range(whole):
        c1 = reliability[j] * share[j]
        p = c1 + (1.0 - reliability[j]) * (behavior[j] if learned else chance)
        mu[j] = c1 / p
        exponents += exponent(p)
        product[j] *= fraction(p)

    fetch(block.annotator, end + half, end + n_labels)
    # M-step: the annotators' sums.
    for j in range(np.uint64(n_labels)):
        serious[np.uint32(annotator[j])] += mu[j]
    if learned:
        for c in range(n_cells):
            n = cell_category[first + c]
            for j in range(cell_ptr[first + c] - begin, cell_ptr[first + c + 1] - begin):
                irregular[annotator[j], n] += 1.0 - mu[j]

    fetch(cell_ptr, last, last + n_cells)
    # M-step: theta, and its part of Q.
    sums(cell_ptr[first : last + 1], mu, mass)
    total, settled, new = share, reliability, mu
    _totals(block, lo, hi, theta, mass, total, settled)
    whole = _whole(n_cells)
    mass[n_cells:whole] = 0.0
    total[n_cells:whole] = 1.0
    fetch(all_theta, last, last + n_cells)
    for c in range(whole):
        new[c] = mass[c] / total[c]
        q[c] += mass[c] * log(new[c])
    for c in range(n_cells):
        theta[c] = new[c] if total[c] < np.inf else settled[c]
    return exponents


@compiled
def _totals(
    block: Block, lo: int, hi: int, theta: Floats, mass: Floats, total: Floats, settled: Floats
) -> None:
    """Set ``total`` to the item's mass, for each of its cells.

    It is infinite, and ``settled`` has the cell's theta, where that is not mass over total: the
    truth is known, or nobody serious has seen the item; then any theta is as likely, and it
    takes the observed shares. Such cells lose their mass, so that they add nothing to Q.
    """
    item_ptr, cell_ptr = block.item_ptr, block.cell_ptr
    base = np.uint64(item_ptr[lo])
    for e in range(np.uint64(lo), np.uint64(hi)):
        first, last = np.uint64(item_ptr[e]) - base, np.uint64(item_ptr[e + _NEXT]) - base
        item_mass = sum_of(mass, first, last)
        if block.known[e] >= 0 or item_mass == 0.0:
            item_mass = np.inf
            n_labels = cell_ptr[base + last] - cell_ptr[base + first]
            for c in range(first, last):
                labels = cell_ptr[base + c + _NEXT] - cell_ptr[base + c]
                settled[c] = theta[c] if block.known[e] >= 0 else labels / n_labels
                mass[c] = 0.0
        fill(total, first, last, item_mass)


@compiled
def _sum_of_logs(values: Floats) -> float:
    """Add up the logs of values, which are then those logs."""
    for i in range(len(values)):
        values[i] = log(values[i])
    return float(values.sum())


@compiled
def _scratch(n: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Make arrays of their own: of rows of one, the compiler fears that they overlap."""
    return np.empty(n), np.empty(n), np.empty(n), np.empty(n)


@compiled
def _at_once(block: Block, first: int, hi: int, n_items: int) -> tuple[int, int]:
    """Say which items after ``first`` to take at once, ``n_items`` or less, and their labels."""
    last = min(first + n_items, hi)
    n_labels = _labels_of(block, first, last)
    while n_labels > _AT_ONCE and last > first + 1:
        last = first + (last - first) // 2
        n_labels = _labels_of(block, first, last)
    return last, n_labels


@compiled
def _next_at_once(n_items: int, n_labels: int) -> int:
    """Guess how many items to take next, from the labels of those before."""
    return max(1, n_items * _AT_ONCE * 7 // (8 * n_labels))


@compiled
def _labels_of(block: Block, lo: int, hi: int) -> int:
    """Count the labels of items ``lo:hi``."""
    return int(block.cell_ptr[block.item_ptr[hi]] - block.cell_ptr[block.item_ptr[lo]])


@compiled
def _whole(n: int) -> int:
    """Round up to whole vectors."""
    return (n + _VECTOR - 1) // _VECTOR * _VECTOR


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
    scratch, size = _scratch(0), 0
    first, n_items = lo, 1
    while first < hi:
        last, n_labels = _at_once(block, first, hi, n_items)
        if n_labels > size:
            size = max(n_labels, _AT_ONCE)
            scratch = _scratch(size + EIGHT)
        _support_at_once(block, first, last, theta, eps, pi, chance, log_likelihood, slope, scratch)
        n_items = _next_at_once(last - first, n_labels)
        first = last


@compiled
def _support_at_once(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
    slope: Floats,
    scratch: tuple[Floats, Floats, Floats, Floats],
) -> None:
    learned = pi.shape[0] > 0
    first, last = block.item_ptr[lo], block.item_ptr[hi]
    begin, end = block.cell_ptr[first], block.cell_ptr[last]
    annotator, n_labels = block.annotator[begin:end], end - begin
    share, reliability, behavior, logs = scratch
    spread(block.cell_ptr[first : last + 1], theta[first:last], share)
    for j in range(np.uint64(n_labels)):
        reliability[j] = eps[np.uint32(annotator[j])]
    if learned:
        for c in range(first, last):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c] - begin, block.cell_ptr[c + 1] - begin):
                behavior[j] = pi[annotator[j], n]
    for j in range(n_labels):
        other = behavior[j] if learned else chance
        p = reliability[j] * share[j] + (1.0 - reliability[j]) * other
        logs[j] = log(p)
        share[j] = (share[j] - other) / p
    for j in range(np.uint64(n_labels)):
        s = np.uint32(annotator[j])
        log_likelihood[s] += logs[j]
        slope[s] += share[j]
