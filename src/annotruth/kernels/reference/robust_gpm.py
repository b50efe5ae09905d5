"""NumPy twins of `annotruth.kernels.robust_gpm`, in logarithms throughout."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.rows import cell_shares, label_rows


def start(block: Block, lo: int, hi: int, counts: Floats, classes: Floats) -> None:
    """Add up with the observed shares or known truths as posteriors."""
    labels = label_rows(block, lo, hi)
    item, category, cell_share = cell_shares(block, lo, hi)
    known = block.known[item]
    shares = np.zeros((hi - lo, len(classes)))
    np.add.at(shares, (item - lo, np.where(known < 0, category, known)), cell_share)
    np.add.at(counts, (labels.annotator, labels.category), shares[labels.item - lo])
    classes += shares.sum(axis=0)


def _posterior(
    block: Block, lo: int, hi: int, prior: Floats, known_truth: Floats, confusion: Floats
) -> tuple[Floats, float]:
    """Return the items' posteriors and their log-likelihood."""
    labels = label_rows(block, lo, hi)
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        log_truth = np.where(known[:, np.newaxis] < 0, 0.0, np.log(known_truth)[known])
    log_joint = np.log(prior) + log_truth
    np.add.at(log_joint, labels.item - lo, np.log(confusion)[labels.annotator, labels.category])
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, float((top + np.log(total)).sum())


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
    labels = label_rows(block, lo, hi)
    posteriors, total = _posterior(block, lo, hi, prior, known_truth, confusion)
    np.add.at(counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    classes += posteriors.sum(axis=0)
    log_likelihood[0] += total


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
    """Add up each annotator's leave-one-out log-likelihood under every response strategy."""
    labels = label_rows(block, lo, hi)
    posteriors, _ = _posterior(block, lo, hi, prior, known_truth, confusion)
    without = posteriors[labels.item - lo] / confusion[labels.annotator, labels.category]
    without /= without.sum(axis=1, keepdims=True)
    repeats = repeated_label[labels.annotator] == labels.category
    for n in range(len(other)):
        for table, is_given in ((other[n], ~repeats), (repeated[n], repeats)):
            given = is_given & (labels.category == n)
            np.add.at(log_likelihood, labels.annotator[given], np.log(without[given] @ table))


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
    """Count, for each pair of annotators, equal labels, those expected, and common items."""
    labels = label_rows(block, lo, hi)
    posteriors, _ = _posterior(block, lo, hi, prior, known_truth, confusion)
    bounds = np.searchsorted(labels.item, np.arange(lo, hi + 1))
    for e, of_item in enumerate(map(slice, bounds[:-1], bounds[1:])):
        annotator, category = labels.annotator[of_item], labels.category[of_item]
        one, other = np.tril_indices(len(annotator), -1)
        s, t = place[annotator[one]], place[annotator[other]]
        pair = np.minimum(s, t), np.maximum(s, t)
        rows = confusion[annotator]
        n = len(rows)
        p_equal = (rows * posteriors[e]).reshape(n, -1) @ rows.reshape(n, -1).T
        np.add.at(same, pair, 1.0 * (category[one] == category[other]))
        np.add.at(expected, pair, p_equal[one, other])
        np.add.at(common, pair, 1.0)


def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
) -> None:
    """Write each item's posterior over the classes."""
    posterior[lo:hi], _ = _posterior(block, lo, hi, prior, known_truth, confusion)


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
    """Summarize each item's posterior, and write how likely each label was serious."""
    labels = label_rows(block, lo, hi)
    posteriors, total = _posterior(block, lo, hi, prior, known_truth, confusion)
    categories = theta.shape[1]
    known = block.known[lo:hi]
    is_known = known[:, np.newaxis] >= 0
    certain = np.eye(categories)[known]
    theta[lo:hi] = np.where(is_known, certain, posteriors @ opinions)
    leading[lo:hi] = np.where(is_known, certain, posteriors @ np.eye(categories)[modes])
    mean = posteriors @ scores
    top = theta[lo:hi].argmax(axis=1)
    deviation = (opinions[:, top] - theta[np.arange(lo, hi), top]).T
    spread[lo:hi, 0] = mean
    spread[lo:hi, 1] = (posteriors * (scores - mean[:, np.newaxis]) ** 2).sum(axis=1)
    spread[lo:hi, 2] = (posteriors * deviation**2).sum(axis=1)
    rows = serious[labels.annotator, labels.category]
    p_serious[labels.place] = (posteriors[labels.item - lo] * rows).sum(axis=1)
    log_likelihood[0] += total
