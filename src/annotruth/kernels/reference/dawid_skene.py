"""Plain twins of Dawid and Skene's kernels, in logarithms throughout.

They write ``rows`` as the kernels do, but find their way by the block.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import label_rows


def start(block: Block, lo: int, hi: int, rows: Floats, counts: Floats, classes: Floats) -> None:
    """LabelRows of the rates, and sums with the observed shares or known truths as posteriors."""
    labels = label_rows(block, lo, hi)
    row = np.ravel_multi_index((labels.category, labels.annotator), counts.shape[:2])
    rows.view(np.uint64)[labels.place] = row * len(classes)

    known = block.known[labels.item]
    says = np.where(known < 0, labels.category, known)
    shares = np.zeros((hi - lo, len(classes)))
    np.add.at(shares, (labels.item - lo, says), 1.0 / np.bincount(labels.item)[labels.item])
    np.add.at(counts, (labels.category, labels.annotator), shares[labels.item - lo])
    classes += shares.sum(axis=0)


def _posterior(
    block: Block, lo: int, hi: int, prior: Floats, rates: Floats
) -> tuple[Floats, float]:
    labels = label_rows(block, lo, hi)
    known = block.known[lo:hi, np.newaxis]
    ruled_out = (known >= 0) & (known != np.arange(len(prior)))
    with np.errstate(divide="ignore"):
        log_joint = np.where(ruled_out, -np.inf, np.log(prior))
        np.add.at(log_joint, labels.item - lo, np.log(rates)[labels.category, labels.annotator])

    # Labels that no class can give tell nothing: the prior, or the known truth, stands.
    top = log_joint.max(axis=1, keepdims=True)
    possible = np.isfinite(top)
    beforehand = np.where(known < 0, prior, ~ruled_out)
    joint = np.where(possible, np.exp(log_joint - np.where(possible, top, 0.0)), beforehand)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, float((top + np.log(total)).sum())


def step(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    prior: Floats,
    rates: Floats,
    counts: Floats,
    classes: Floats,
    totals: Floats,
) -> None:
    """E-step, and the sums of the M-step."""
    labels = label_rows(block, lo, hi)
    found, log_likelihood = _posterior(block, lo, hi, prior, rates)
    np.add.at(counts, (labels.category, labels.annotator), found[labels.item - lo])
    classes += found.sum(axis=0)
    totals[0] += log_likelihood


def posterior(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    posterior: Floats,
    prior: Floats,
    rates: Floats,
    totals: Floats,
) -> None:
    """Posterior of every item."""
    posterior[lo:hi], log_likelihood = _posterior(block, lo, hi, prior, rates)
    totals[0] += log_likelihood
