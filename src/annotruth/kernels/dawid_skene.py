r"""Passes of Dawid and Skene's model.

With class prior :math:`p_k` and confusion :math:`\pi_{s,k,l}`, the probability that annotator s gives
the label l to an item of class k, item e is of class k with probability

.. math:: T_{e,k} \propto p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}}.

Each kernel processes items ``lo:hi`` of a block. ``confusion`` and ``counts`` are labels x annotators
x classes, ``confusion[l, s, k]``, so that the classes of a label are one row in memory. ``rows`` holds,
for each label, where that row begins, as integers in the bytes of floats, so that passes need not
compute it again (`annotruth.kernels.simd.short_rows`). What is known about item e beside its labels
has the likelihood ``known_truth[known[e]]``: one row per class of a known truth, then other rows.
NumPy twins: `annotruth.kernels.reference.dawid_skene`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.short_rows import (
    MAX_WIDTH,
    MIN_WIDTH,
    add_to_short_rows,
    multiply_short_rows,
    row_entry,
    row_start,
    scale_short_row,
    set_row_start,
    sum_short_row,
)
from annotruth.kernels.simd.simd8 import prefetch

# The log of a product of probabilities is taken before it can underflow.
_LOG_BELOW = 1e-100
# Larger tables do not fit into the caches, so rows are prefetched: that of the confusion some labels
# ahead, and that of the counts of the current label. With 50,000 annotators and 5 classes a pass takes
# a fifth less time; with smaller tables it would take longer.
_MAX_CACHED = 400_000
_AHEAD = 20
# Many items at once, so that one table is in the second cache, then the other.
_ITEMS_AT_ONCE = 4096


@compiled
def start(block: Block, lo: int, hi: int, rows: Floats, counts: Floats, classes: Floats) -> None:
    """Write the rows, and add up what `step` does with observed shares as the posteriors.

    A known truth replaces the shares.
    """
    n_annotators, n_classes = counts.shape[1], counts.shape[2]
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for c in range(first, last):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                set_row_start(rows, j, (n * n_annotators + block.annotator[j]) * n_classes)
        for d in range(first, last):
            k = known if 0 <= known < n_classes else block.cell_category[d]
            share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total
            classes[k] += share
            for c in range(first, last):
                n = block.cell_category[c]
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    counts[n, block.annotator[j], k] += share


def step(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Take one E-step and add up what the M-step needs (the paper's eq. 2.5, 2.3 and 2.4).

    ``counts[l, s, k]`` is the sum of the posteriors of class k over s's labels l, ``classes[k]``
    that over the items, ``log_likelihood[0]`` the log-likelihood before the step.
    """
    variant = step_short if MIN_WIDTH <= len(prior) <= MAX_WIDTH else step_any
    variant(
        block,
        lo,
        hi,
        rows,
        prior,
        known_truth,
        confusion,
        counts,
        classes,
        log_likelihood,
    )


@compiled
def step_short(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Do what `step` does, for four to eight classes.

    Items are processed together, one operation at a time, as an item's own operations wait for one
    another.
    """
    n_classes = prior.shape[0]
    joint = np.zeros(min(_ITEMS_AT_ONCE, hi - lo) * n_classes + MAX_WIDTH)
    given, totals = np.empty(n_classes), np.zeros(MAX_WIDTH)
    prefetching = confusion.size > _MAX_CACHED
    total_log, items_product = 0.0, 1.0
    for start in range(lo, hi, _ITEMS_AT_ONCE):
        stop = min(start + _ITEMS_AT_ONCE, hi)
        for e in range(start, stop):
            begin, end = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
            known, at = block.known[e], (e - start) * n_classes
            if prefetching:
                _prefetch_rows(rows, begin, end, confusion, counts)
            if known < 0:
                multiply_short_rows(confusion, rows, begin, end, n_classes, prior, joint, at)
            else:
                for k in range(n_classes):
                    given[k] = prior[k] * known_truth[known, k]
                multiply_short_rows(confusion, rows, begin, end, n_classes, given, joint, at)
        for e in range(start, stop):
            at = (e - start) * n_classes
            total = sum_short_row(joint, at, n_classes)
            # Products only decrease, so one that underflows beside a larger total is negligible.
            if total < _LOG_BELOW:
                total, log_scale = _joint_in_logs(
                    block, e, rows, prior, known_truth, confusion, joint, at
                )
                total_log += log_scale
            items_product *= total
            if not _LOG_BELOW < items_product < 1.0 / _LOG_BELOW:
                total_log += math.log(items_product)
                items_product = 1.0
            scale_short_row(joint, at, n_classes, 1.0 / total, totals)
        for e in range(start, stop):
            begin, end = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
            add_to_short_rows(counts, rows, begin, end, n_classes, joint, (e - start) * n_classes)
    for k in range(n_classes):
        classes[k] += totals[k] if k < MIN_WIDTH else totals[MAX_WIDTH - n_classes + k]
    log_likelihood[0] += total_log + math.log(items_product)


@compiled
def step_any(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Do what `step` does, for any number of classes."""
    flat_counts = counts.reshape(-1)
    n_classes = prior.shape[0]
    joint = np.empty(n_classes)
    prefetching = confusion.size > _MAX_CACHED
    total_log, items_product = 0.0, 1.0
    for e in range(lo, hi):
        known = block.known[e]
        begin, end = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
        if prefetching:
            _prefetch_rows(rows, begin, end, confusion, counts)
        # Class by class, so that the product stays in a register.
        total = 0.0
        for k in range(n_classes):
            product = prior[k] if known < 0 else prior[k] * known_truth[known, k]
            for j in range(begin, end):
                product *= row_entry(confusion, rows, j, k)
            joint[k] = product
            total += product
        if total < _LOG_BELOW:  # as in `step_short`
            total, log_scale = _joint_in_logs(
                block, e, rows, prior, known_truth, confusion, joint, 0
            )
            total_log += log_scale
        items_product *= total
        if not _LOG_BELOW < items_product < 1.0 / _LOG_BELOW:
            total_log += math.log(items_product)
            items_product = 1.0
        for k in range(n_classes):
            posterior = joint[k] / total
            classes[k] += posterior
            for j in range(begin, end):
                flat_counts[row_start(rows, j) + np.uint64(k)] += posterior
    log_likelihood[0] += total_log + math.log(items_product)


@compiled
def _prefetch_rows(rows: Floats, begin: int, end: int, confusion: Floats, counts: Floats) -> None:
    """Ask for the rows of an item's counts, and for rows of the confusion that are needed later."""
    for j in range(begin, end):
        prefetch(counts, np.int64(row_start(rows, j)))
        ahead = min(j + _AHEAD, len(rows) - 1)
        prefetch(confusion, np.int64(row_start(rows, ahead)))


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    posterior: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    log_likelihood: Floats,
) -> None:
    """Write the posterior, items x classes, and add up the log-likelihood."""
    joint = np.empty(len(prior))
    for e in range(lo, hi):
        total, log_scale = _joint_in_logs(block, e, rows, prior, known_truth, confusion, joint, 0)
        for k in range(len(prior)):
            posterior[e, k] = joint[k] / total
        log_likelihood[0] += log_scale + math.log(total)


@compiled
def _joint_in_logs(
    block: Block,
    e: int,
    rows: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    joint: Floats,
    at: int,
) -> tuple[float, float]:
    """Multiply an item's probabilities class by class, whatever the number of labels.

    Small products are replaced by logarithms. Sets ``joint`` from ``at`` on to the products of the
    classes divided by the largest, and returns their sum and the logarithm of the largest. That is
    -inf if the labels are impossible in every class: then the prior, or what is known beside the
    labels, remains.
    """
    known = block.known[e]
    begin, end = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
    top = -np.inf
    for k in range(len(prior)):
        log_joint = 0.0 if known < 0 else np.log(known_truth[known, k])
        product = prior[k]
        for j in range(begin, end):
            probability = row_entry(confusion, rows, j, k)
            if product * probability < _LOG_BELOW:
                log_joint += np.log(product)
                product = 1.0
            product *= probability
        joint[at + k] = log_joint + np.log(product)
        top = max(top, joint[at + k])
    total = 0.0
    for k in range(len(prior)):
        if top > -np.inf:
            joint[at + k] = math.exp(joint[at + k] - top)
        elif known < 0:
            joint[at + k] = prior[k]
        else:
            joint[at + k] = known_truth[known, k]
        total += joint[at + k]
    return total, top
