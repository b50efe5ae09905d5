"""Plain twins of RobustGPM's passes in single precision, in doubles throughout."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import rows_of


def step(
    block: Block,
    lo: int,
    hi: int,
    begin: Floats,
    log_rates: Singles,
    counts: Floats | Singles,
    classes: Floats,
    totals: Floats,
) -> None:
    """Posteriors by annotator and label, by kind, and the log of the items' sums."""
    labels = rows_of(block, lo, hi)
    log_joint = begin.astype(np.float64)[
        block.known[lo:hi]
    ]  # -1, an unknown truth, is the last row
    np.add.at(log_joint, labels.item - lo, log_rates[labels.annotator, labels.category])
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    found = joint / total
    np.add.at(counts, (labels.annotator, labels.category), found[labels.item - lo])
    classes += found.sum(axis=0)
    totals[0] += float((top + np.log(total)).sum())


def support(
    block: Block,
    lo: int,
    hi: int,
    begin: Singles,
    log_rates: Singles,
    ways: Singles,
    repeating: Singles,
    repeated: Codes,
    log_likelihood: Floats,
) -> None:
    """Each annotator's log-likelihood in every way of answering, from the others' labels."""
    labels = rows_of(block, lo, hi)
    without = _log_joint(block, lo, hi, begin, log_rates)[labels.item - lo]
    without -= log_rates[labels.annotator, labels.category]
    without = np.exp(without - without.max(axis=1, keepdims=True))
    without /= without.sum(axis=1, keepdims=True)
    n_ways = log_likelihood.shape[1]
    for kinds, s, n in zip(without, labels.annotator, labels.category, strict=True):
        table = repeating[n] if repeated[s] == n else ways[n]
        log_likelihood[s] += np.log(kinds @ table[:, :n_ways])


def _log_joint(block: Block, lo: int, hi: int, begin: Singles, log_rates: Singles) -> Floats:
    labels = rows_of(block, lo, hi)
    log_joint = begin.astype(np.float64)[block.known[lo:hi]]  # -1, an unknown truth, is the last
    np.add.at(log_joint, labels.item - lo, log_rates[labels.annotator, labels.category])
    return log_joint
