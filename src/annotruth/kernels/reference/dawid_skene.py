"""NumPy twins of `annotruth.kernels.dawid_skene`, in logarithms throughout.

They write ``rows`` as the kernels do, but do not read it.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.reference.rows import cell_shares, label_rows


def start(block: Block, lo: int, hi: int, rows: Floats, counts: Floats, classes: Floats) -> None:
    """Write the rows, and add up with the observed shares or known truths as posteriors."""
    labels = label_rows(block, lo, hi)
    row = np.ravel_multi_index((labels.category, labels.annotator), counts.shape[:2])
    rows.view(np.uint64)[labels.place] = row * len(classes)

    item, category, cell_share = cell_shares(block, lo, hi)
    known = block.known[item]
    is_truth = (known >= 0) & (known < len(classes))
    shares = np.zeros((hi - lo, len(classes)))
    np.add.at(shares, (item - lo, np.where(is_truth, known, category)), cell_share)
    np.add.at(counts, (labels.category, labels.annotator), shares[labels.item - lo])
    classes += shares.sum(axis=0)


def _posterior(
    block: Block, lo: int, hi: int, prior: Floats, known_truth: Floats, confusion: Floats
) -> tuple[Floats, float]:
    labels = label_rows(block, lo, hi)
    known = block.known[lo:hi, np.newaxis]
    truth = known_truth[known[:, 0]]
    with np.errstate(divide="ignore"):
        log_joint = np.log(prior) + np.where(known < 0, 0.0, np.log(truth))
        np.add.at(log_joint, labels.item - lo, np.log(confusion)[labels.category, labels.annotator])

    # If the labels are impossible in every class, the prior, or what is known beside them, remains.
    top = log_joint.max(axis=1, keepdims=True)
    possible = np.isfinite(top)
    without_labels = np.where(known < 0, prior, truth)
    joint = np.where(possible, np.exp(log_joint - np.where(possible, top, 0.0)), without_labels)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, float((top + np.log(total)).sum())


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
    """Take one E-step and add up what the M-step needs."""
    labels = label_rows(block, lo, hi)
    posteriors, total = _posterior(block, lo, hi, prior, known_truth, confusion)
    np.add.at(counts, (labels.category, labels.annotator), posteriors[labels.item - lo])
    classes += posteriors.sum(axis=0)
    log_likelihood[0] += total


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
    """Write the posterior of every item, and add up the log-likelihood."""
    posterior[lo:hi], total = _posterior(block, lo, hi, prior, known_truth, confusion)
    log_likelihood[0] += total
