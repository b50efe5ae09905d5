"""NumPy twins of `annotruth.kernels.robust_gpm`, in logarithms throughout."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.rows import LabelRows, cell_shares, class_posteriors, label_rows


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up with the observed shares or known truths as posteriors."""
    labels = label_rows(block, lo, hi)
    item, category, cell_share = cell_shares(block, lo, hi)
    known = block.known[item]
    shares = np.zeros((hi - lo, len(a.classes)))
    np.add.at(shares, (item - lo, np.where(known < 0, category, known)), cell_share)
    np.add.at(a.counts, (labels.annotator, labels.category), shares[labels.item - lo])
    a.classes += shares.sum(axis=0)


def _posterior(
    block: Block, lo: int, hi: int, labels: LabelRows, a: Arrays
) -> tuple[Floats, Floats]:
    """Return the items' posteriors, and their log-likelihoods."""
    p = a.confusion[labels.annotator, labels.category]
    return class_posteriors(block, lo, hi, labels.item, p, a)


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up posteriors by annotator and label, by class, and the items' log-likelihood."""
    labels = label_rows(block, lo, hi)
    posteriors, logs = _posterior(block, lo, hi, labels, a)
    np.add.at(a.counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    a.classes += posteriors.sum(axis=0)
    a.log_likelihood[0] += logs.sum()


def leave_one_out(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy."""
    labels = label_rows(block, lo, hi)
    posteriors, _ = _posterior(block, lo, hi, labels, a)
    without = posteriors[labels.item - lo] / a.confusion[labels.annotator, labels.category]
    without /= without.sum(axis=1, keepdims=True)
    repeats = a.repeated_label[labels.annotator] == labels.category
    for n in range(len(a.other)):
        for table, is_given in ((a.other[n], ~repeats), (a.repeated[n], repeats)):
            given = is_given & (labels.category == n)
            np.add.at(a.log_likelihood, labels.annotator[given], np.log(without[given] @ table))


def count_agreements(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Count, for each pair of annotators, equal labels, those expected, and common items."""
    labels = label_rows(block, lo, hi)
    posteriors, _ = _posterior(block, lo, hi, labels, a)
    bounds = np.searchsorted(labels.item, np.arange(lo, hi + 1))
    for e, of_item in enumerate(map(slice, bounds[:-1], bounds[1:])):
        annotator, category = labels.annotator[of_item], labels.category[of_item]
        one, other = np.tril_indices(len(annotator), -1)
        s, t = a.place[annotator[one]], a.place[annotator[other]]
        pair = np.minimum(s, t), np.maximum(s, t)
        rows = a.confusion[annotator]
        n = len(rows)
        p_equal = (rows * posteriors[e]).reshape(n, -1) @ rows.reshape(n, -1).T
        np.add.at(a.same, pair, 1.0 * (category[one] == category[other]))
        np.add.at(a.expected, pair, p_equal[one, other])
        np.add.at(a.common, pair, 1.0)


def posterior(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write each item's posterior over the classes."""
    a.posterior[lo:hi], _ = _posterior(block, lo, hi, label_rows(block, lo, hi), a)


def summarize(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Summarize each item's posterior, and write how likely each label was serious."""
    labels = label_rows(block, lo, hi)
    posteriors, logs = _posterior(block, lo, hi, labels, a)
    categories = a.theta.shape[1]
    known = block.known[lo:hi]
    is_known = known[:, np.newaxis] >= 0
    certain = np.eye(categories)[known]
    a.theta[lo:hi] = np.where(is_known, certain, posteriors @ a.opinions)
    a.leading[lo:hi] = np.where(is_known, certain, posteriors @ np.eye(categories)[a.modes])
    mean = posteriors @ a.scores
    top = a.theta[lo:hi].argmax(axis=1)
    deviation = (a.opinions[:, top] - a.theta[np.arange(lo, hi), top]).T
    a.spread[lo:hi, 0] = mean
    a.spread[lo:hi, 1] = (posteriors * (a.scores - mean[:, np.newaxis]) ** 2).sum(axis=1)
    a.spread[lo:hi, 2] = (posteriors * deviation**2).sum(axis=1)
    rows = a.serious[labels.annotator, labels.category]
    a.p_serious[labels.place] = (posteriors[labels.item - lo] * rows).sum(axis=1)
    a.log_likelihood[0] += logs.sum()
