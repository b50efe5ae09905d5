r"""Passes of models whose items belong to one of K latent classes, in double precision.

An item belongs to class k with probability :math:`p_k`. If it does, annotator s gives it the label n
with probability :math:`a_{s,n,k}`. The posterior of item e is

.. math:: w_{e,k} \propto p_k \, t_{z_e,k} \prod_{s \in l_e} a_{s,r_{e,s},k},

where :math:`t_{z,k}` is the likelihood of the known truth z, and 1 if there is none.

``confusion`` and ``counts`` are annotators x labels x classes, so that the classes of a label are one
row in memory. ``known_truth`` is categories x classes. Each kernel processes items ``lo:hi`` of
a block. NumPy twins: `annotruth.kernels.reference.robust_gpm`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import log

LABELS_PER_LOG = 20
"""How many labels are multiplied before a log: entries are 1e-12 or more, so none underflows."""


@compiled
def start(block: Block, lo: int, hi: int, counts: Floats, classes: Floats) -> None:
    """Add up what `step` does, with observed shares or known truths as the posteriors."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for d in range(first, last):
            k = block.cell_category[d] if known < 0 else known
            share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total
            classes[k] += share
            for c in range(first, last):
                n = block.cell_category[c]
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    counts[block.annotator[j], n, k] += share


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by class, and the items' log-likelihood."""
    n_classes = prior.shape[0]
    posterior = np.empty(n_classes)
    rows = _empty_rows(block, lo, hi)
    flat, flat_counts = confusion.reshape(-1), counts.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, confusion.shape[1], n_classes, rows)
        log_likelihood[0] += _posterior(block, e, prior, known_truth, flat, rows, n_rows, posterior)
        for k in range(n_classes):
            classes[k] += posterior[k]
        for j in range(n_rows):
            row = flat_counts[rows[j] : rows[j] + n_classes]
            for k in range(n_classes):
                row[k] += posterior[k]


@compiled
def leave_one_out(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    other: Floats,
    repeated: Floats,
    repeated_label: Codes,
    log_likelihood: Floats,
) -> None:
    r"""Add up each annotator's leave-one-out log-likelihood under every response strategy.

    The posterior of a label's item is that without the label itself,
    :math:`w_{e,k} / a_{s,r_{e,s},k}`. ``other`` and ``repeated`` are labels x classes x
    strategies: the probability of a label. The second table is for the label that the annotator
    would repeat, ``repeated_label[s]``.
    """
    n_classes, n_strategies = prior.shape[0], other.shape[2]
    posterior = np.empty(n_classes)
    mixture = np.empty(n_strategies)
    rows = _empty_rows(block, lo, hi)
    flat = confusion.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, confusion.shape[1], n_classes, rows)
        _posterior(block, e, prior, known_truth, flat, rows, n_rows, posterior)
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                table = repeated[n] if repeated_label[s] == n else other[n]
                total = 0.0
                for g in range(n_strategies):
                    mixture[g] = 0.0
                for k in range(n_classes):
                    without = posterior[k] / confusion[s, n, k]
                    total += without
                    for g in range(n_strategies):
                        mixture[g] += without * table[k, g]
                for g in range(n_strategies):
                    log_likelihood[s, g] += log(mixture[g] / total)


@compiled
def count_agreements(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    place: Codes,
    same: Floats,
    expected: Floats,
    common: Floats,
) -> None:
    r"""Count, for each pair of annotators, equal labels, those expected, and common items.

    Independent labels of s and t are equal with probability :math:`\sum_k w_{e,k} \sum_n a_{s,n,k}
    a_{t,n,k}`. ``place`` is where each annotator is in the sums; pairs are above the diagonal.
    """
    n_labels, n_classes = confusion.shape[1], prior.shape[0]
    posterior = np.empty(n_classes)
    rows = _empty_rows(block, lo, hi)
    flat = confusion.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, n_labels, n_classes, rows)
        _posterior(block, e, prior, known_truth, flat, rows, n_rows, posterior)
        for i in range(n_rows):
            s, label = divmod(rows[i] // n_classes, n_labels)
            for j in range(i):
                t, other_label = divmod(rows[j] // n_classes, n_labels)
                p_equal = 0.0
                for n in range(n_labels):
                    a, b = confusion[s, n], confusion[t, n]
                    for k in range(n_classes):
                        p_equal += posterior[k] * (a[k] * b[k])
                row, column = min(place[s], place[t]), max(place[s], place[t])
                same[row, column] += label == other_label
                expected[row, column] += p_equal
                common[row, column] += 1.0


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
) -> None:
    """Write each item's posterior over the classes, items x classes."""
    rows = _empty_rows(block, lo, hi)
    flat = confusion.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, confusion.shape[1], prior.shape[0], rows)
        _posterior(block, e, prior, known_truth, flat, rows, n_rows, posterior[e])


@compiled
def summarize(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    leading: Floats,
    spread: Floats,
    p_serious: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    opinions: Floats,
    modes: Codes,
    scores: Floats,
    serious: Floats,
    log_likelihood: Floats,
) -> None:
    """Summarize each item's posterior, and write how likely each label was serious.

    ``opinions`` is classes x categories: the distribution of serious labels. ``modes`` is the most
    likely category of each class and ``scores`` its score. ``serious`` is annotators x labels x
    classes: how likely the label is serious. ``theta`` gets the mean distribution, ``leading`` the
    probability of each category to be the mode, and ``spread`` the mean and variance of the score
    and the variance of theta's largest entry.
    """
    posterior = np.empty(prior.shape[0])
    rows = _empty_rows(block, lo, hi)
    flat = confusion.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, confusion.shape[1], prior.shape[0], rows)
        log_likelihood[0] += _posterior(block, e, prior, known_truth, flat, rows, n_rows, posterior)
        known = block.known[e]
        mean = posterior @ scores
        variance, top_variance, top = 0.0, 0.0, 0
        for n in range(theta.shape[1]):
            theta[e, n] = leading[e, n] = 0.0
        for k in range(prior.shape[0]):
            variance += posterior[k] * (scores[k] - mean) ** 2
            leading[e, modes[k]] += posterior[k]
            for n in range(theta.shape[1]):
                theta[e, n] += posterior[k] * opinions[k, n]
        for n in range(theta.shape[1]):
            if known >= 0:
                theta[e, n] = leading[e, n] = 1.0 if n == known else 0.0
            if theta[e, n] > theta[e, top]:
                top = n
        for k in range(prior.shape[0]):
            top_variance += posterior[k] * (opinions[k, top] - theta[e, top]) ** 2
        spread[e, 0], spread[e, 1], spread[e, 2] = mean, variance, top_variance
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                p_serious[j] = posterior @ serious[block.annotator[j], n]


@compiled
def _empty_rows(block: Block, lo: int, hi: int) -> Codes:
    """Return an array for the rows of the item with the most labels."""
    most = 0
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        most = max(most, block.cell_ptr[last] - block.cell_ptr[first])
    return np.empty(most, dtype=np.int64)


@compiled
def _find_rows(block: Block, e: int, n_labels: int, n_classes: int, rows: Codes) -> int:
    """Write where the row of each label of an item begins, and return the number of labels.

    Done once per item, and then read in one loop: short loops over cells cost more than the work.
    """
    n_rows = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            rows[n_rows] = (np.int64(block.annotator[j]) * n_labels + n) * n_classes
            n_rows += 1
    return n_rows


@compiled
def _posterior(
    block: Block,
    e: int,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    rows: Codes,
    n_rows: int,
    posterior: Floats,
) -> float:
    """Write the posterior of one item and return its log-likelihood."""
    n_classes = prior.shape[0]
    known = block.known[e]
    for k in range(n_classes):
        posterior[k] = prior[k] if known < 0 else prior[k] * known_truth[known, k]
    if n_rows <= LABELS_PER_LOG:
        _multiply(confusion, rows, 0, n_rows, posterior)
        return _normalise(posterior)
    logs = np.empty(n_classes)
    for k in range(n_classes):
        logs[k] = 0.0
    for first in range(0, n_rows, LABELS_PER_LOG):
        _multiply(confusion, rows, first, min(first + LABELS_PER_LOG, n_rows), posterior)
        for k in range(n_classes):
            logs[k] += np.log(posterior[k])
            posterior[k] = 1.0
    top = -np.inf
    for k in range(n_classes):
        top = max(top, logs[k])
    for k in range(n_classes):
        posterior[k] = math.exp(logs[k] - top)
    return top + _normalise(posterior)


@compiled
def _multiply(confusion: Floats, rows: Codes, first: int, last: int, product: Floats) -> None:
    """Multiply the product by the rows of the labels ``first:last``, class by class."""
    n_classes = len(product)
    j = first
    # Four labels at once: the product is read and written a quarter as often.
    while j + 4 <= last:
        a = confusion[rows[j] : rows[j] + n_classes]
        b = confusion[rows[j + 1] : rows[j + 1] + n_classes]
        c = confusion[rows[j + 2] : rows[j + 2] + n_classes]
        d = confusion[rows[j + 3] : rows[j + 3] + n_classes]
        for k in range(n_classes):
            product[k] *= (a[k] * b[k]) * (c[k] * d[k])
        j += 4
    while j < last:
        a = confusion[rows[j] : rows[j] + n_classes]
        for k in range(n_classes):
            product[k] *= a[k]
        j += 1


@compiled
def _normalise(values: Floats) -> float:
    """Make the values sum to 1 and return the log of their sum."""
    # Four partial sums, which do not wait for one another.
    a = b = c = d = 0.0
    end = len(values) // 4 * 4
    for k in range(0, end, 4):
        a += values[k]
        b += values[k + 1]
        c += values[k + 2]
        d += values[k + 3]
    for k in range(end, len(values)):
        a += values[k]
    total = (a + b) + (c + d)
    over = 1.0 / total
    for k in range(len(values)):
        values[k] *= over
    return math.log(total)
