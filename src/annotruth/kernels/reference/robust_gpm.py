"""Plain twins of the kernels of items of one of K kinds, in logarithms throughout."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import rows_of


def start(block: Block, lo: int, hi: int, counts: Floats, classes: Floats) -> None:
    """Add up with the observed shares or known truths as posteriors."""
    labels = rows_of(block, lo, hi)
    known = block.known[labels.item]
    says = np.where(known < 0, labels.category, known)
    shares = np.zeros((hi - lo, len(classes)))
    np.add.at(shares, (labels.item - lo, says), 1.0 / np.bincount(labels.item)[labels.item])
    np.add.at(counts, (labels.annotator, labels.category), shares[labels.item - lo])
    classes += shares.sum(axis=0)


def _posterior(
    block: Block, lo: int, hi: int, prior: Floats, gate: Floats, rates: Floats
) -> tuple[Floats, float]:
    labels = rows_of(block, lo, hi)
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        told = np.where(known[:, np.newaxis] < 0, 0.0, np.log(gate)[known])
    log_joint = np.log(prior) + told
    np.add.at(log_joint, labels.item - lo, np.log(rates)[labels.annotator, labels.category])
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, float((top + np.log(total)).sum())


def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    counts: Floats,
    classes: Floats,
    totals: Floats,
) -> None:
    """Posteriors by annotator and label, by kind, and the log of the items' sums."""
    labels = rows_of(block, lo, hi)
    found, log_likelihood = _posterior(block, lo, hi, prior, gate, rates)
    np.add.at(counts, (labels.annotator, labels.category), found[labels.item - lo])
    classes += found.sum(axis=0)
    totals[0] += log_likelihood


def support(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    ways: Floats,
    repeating: Floats,
    repeated: Codes,
    log_likelihood: Floats,
) -> None:
    """Each annotator's log-likelihood in every way of answering, from the others' labels."""
    labels = rows_of(block, lo, hi)
    found, _ = _posterior(block, lo, hi, prior, gate, rates)
    without = found[labels.item - lo] / rates[labels.annotator, labels.category]
    without /= without.sum(axis=1, keepdims=True)
    for kinds, s, n in zip(without, labels.annotator, labels.category, strict=True):
        table = repeating[n] if repeated[s] == n else ways[n]
        log_likelihood[s] += np.log(kinds @ table)


def judge(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    gate: Floats,
    rates: Floats,
) -> None:
    """Each item's posterior over the kinds."""
    posterior[lo:hi], _ = _posterior(block, lo, hi, prior, gate, rates)


def read_out(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    leading: Floats,
    spread: Floats,
    p_serious: Floats,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    opinions: Floats,
    modes: Codes,
    values: Floats,
    serious: Floats,
    totals: Floats,
) -> None:
    """Write what is known of each item, and how likely each label was serious."""
    labels = rows_of(block, lo, hi)
    found, log_likelihood = _posterior(block, lo, hi, prior, gate, rates)
    categories = theta.shape[1]
    known = block.known[lo:hi]
    is_known = known[:, np.newaxis] >= 0
    certain = np.eye(categories)[known]
    theta[lo:hi] = np.where(is_known, certain, found @ opinions)
    leading[lo:hi] = np.where(is_known, certain, found @ np.eye(categories)[modes])
    mean = found @ values
    top = theta[lo:hi].argmax(axis=1)
    of_top = (opinions[:, top] - theta[np.arange(lo, hi), top]).T
    spread[lo:hi, 0] = mean
    spread[lo:hi, 1] = (found * (values - mean[:, np.newaxis]) ** 2).sum(axis=1)
    spread[lo:hi, 2] = (found * of_top**2).sum(axis=1)
    rows = serious[labels.annotator, labels.category]
    p_serious[labels.place] = (found[labels.item - lo] * rows).sum(axis=1)
    totals[0] += log_likelihood
