r"""Passes of Dawid and Skene's model.

With class prior :math:`p_k` and confusion :math:`\pi_{s,k,l}`, the probability that annotator s gives
the label l to an item of class k, item e is of class k with probability

.. math:: T_{e,k} \propto p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}}.

Each kernel processes items ``lo:hi`` of a block. ``confusion`` and ``counts`` are labels x annotators
x classes, ``confusion[l, s, k]``, so that the classes of a label are one row in memory. ``rows`` holds,
for each label, where that row begins, as integers in the bytes of floats, so that passes need not
compute it again. What is known about item e beside its labels has the likelihood
``truth_likelihood[known[e]]``, one row per class of a known truth, then other rows. NumPy twins: `annotruth.kernels.reference.dawid_skene`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import prefetch

RowStarts = NDArray[np.uint64]

# The log of a product of probabilities is taken before it can underflow.
_LOG_BELOW = 1e-100
# Larger tables do not fit into the caches, so rows are prefetched: that of the confusion some labels
# ahead, and that of the counts of the current label. With 50,000 annotators and 5 classes this reduced
# a pass from 27 to 22 ns per label; with smaller tables it would take longer.
_MAX_CACHED = 400_000
_AHEAD = np.uint64(20)


@compiled
def start(block: Block, lo: int, hi: int, rows: Floats, counts: Floats, classes: Floats) -> None:
    """Write the rows, and add up what `step` does with observed shares as the posteriors.

    A known truth replaces the shares.
    """
    starts = rows.view(np.uint64)
    n_annotators, n_classes = counts.shape[1], counts.shape[2]
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for c in range(first, last):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                starts[j] = (n * n_annotators + block.annotator[j]) * n_classes
        for d in range(first, last):
            k = known if 0 <= known < n_classes else block.cell_category[d]
            share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total
            classes[k] += share
            for c in range(first, last):
                n = block.cell_category[c]
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    counts[n, block.annotator[j], k] += share


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    prior: Floats,
    truth_likelihood: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Take one E-step and add up what the M-step needs (the paper's eq. 2.5, 2.3 and 2.4).

    ``counts[l, s, k]`` is the sum of the posteriors of class k over s's labels l, ``classes[k]``
    that over the items, ``log_likelihood[0]`` the log-likelihood before the step.
    """
    starts = rows.view(np.uint64)
    flat_confusion, flat_counts = confusion.reshape(-1), counts.reshape(-1)
    n_classes = prior.shape[0]
    joint = np.empty(n_classes)
    prefetching, last_label = flat_confusion.size > _MAX_CACHED, np.uint64(len(starts) - 1)
    total_log = 0.0
    items_product = 1.0
    for e in range(lo, hi):
        known = block.known[e]
        # Unsigned indices are never negative, which saves a test at every access.
        begin = np.uint64(block.cell_ptr[block.item_ptr[e]])
        end = np.uint64(block.cell_ptr[block.item_ptr[e + 1]])
        if prefetching:
            for j in range(begin, end):
                prefetch(flat_counts, np.int64(starts[j]))
                prefetch(flat_confusion, np.int64(starts[min(j + _AHEAD, last_label)]))
        # Class by class, so that the product stays in a register.
        total = 0.0
        for k in range(n_classes):
            product = prior[k] if known < 0 else prior[k] * truth_likelihood[known, k]
            for j in range(begin, end):
                product *= flat_confusion[starts[j] + np.uint64(k)]
            joint[k] = product
            total += product
        # Products only decrease, so one that underflows beside a larger total is negligible.
        if total < _LOG_BELOW:
            total, log_scale = _joint_in_logs(
                starts[begin:end], known, prior, truth_likelihood, flat_confusion, joint
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
                flat_counts[starts[j] + np.uint64(k)] += posterior
    log_likelihood[0] += total_log + math.log(items_product)


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    posterior: Floats,
    prior: Floats,
    truth_likelihood: Floats,
    confusion: Floats,
    log_likelihood: Floats,
) -> None:
    """Write the posterior, items x classes, and add up the log-likelihood."""
    starts = rows.view(np.uint64)
    flat_confusion = confusion.reshape(-1)
    for e in range(lo, hi):
        begin, end = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
        total, log_scale = _joint_in_logs(
            starts[begin:end],
            block.known[e],
            prior,
            truth_likelihood,
            flat_confusion,
            posterior[e],
        )
        posterior[e] /= total
        log_likelihood[0] += log_scale + math.log(total)


@compiled
def _joint_in_logs(
    starts: RowStarts,
    known: int,
    prior: Floats,
    truth_likelihood: Floats,
    flat_confusion: Floats,
    joint: Floats,
) -> tuple[float, float]:
    """Multiply an item's probabilities class by class, whatever the number of labels.

    Small products are replaced by logarithms. Sets ``joint`` to the products of the classes divided by
    the largest, and returns their sum and the logarithm of the largest. That is -inf if the labels are
    impossible in every class: then the prior, or what is known beside the labels, remains.
    """
    top = -np.inf
    for k in range(prior.shape[0]):
        log_joint = 0.0 if known < 0 else np.log(truth_likelihood[known, k])
        product = prior[k]
        for row in starts:
            probability = flat_confusion[row + np.uint64(k)]
            if product * probability < _LOG_BELOW:
                log_joint += np.log(product)
                product = 1.0
            product *= probability
        joint[k] = log_joint + np.log(product)
        top = max(top, joint[k])
    total = 0.0
    for k in range(prior.shape[0]):
        if top > -np.inf:
            joint[k] = math.exp(joint[k] - top)
        elif known < 0:
            joint[k] = prior[k]
        else:
            joint[k] = truth_likelihood[known, k]
        total += joint[k]
    return total, top
