"""NumPy twins of `annotruth.kernels.bwa`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.rows import label_rows


def _scores(block: Block, lo: int, hi: int, a: Arrays) -> Floats:
    """Return the items' scores, items x classes."""
    labels = label_rows(block, lo, hi)
    item, certain = labels.item - lo, np.eye(len(a.mean))
    weights = a.weight[labels.annotator]
    weighted = np.tile(a.strength * a.mean, (hi - lo, 1))
    total = np.full((hi - lo, len(a.mean)), a.strength)
    np.add.at(weighted, item, weights * certain[labels.category])
    np.add.at(total, item, weights)
    known = block.known[lo:hi]
    scores: Floats = np.where(known[:, np.newaxis] < 0, weighted / total, certain[known])
    return scores


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up squared errors by annotator and class, and scores and their squares by class."""
    labels = label_rows(block, lo, hi)
    z = _scores(block, lo, hi, a)
    errors = np.eye(len(a.mean))[labels.category] - z[labels.item - lo]
    np.add.at(a.squares, labels.annotator, errors**2)
    a.scores += np.stack([z.sum(axis=0), (z**2).sum(axis=0)])


def distribution(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the scores as shares, items x classes; add up those of each annotator's labels."""
    labels = label_rows(block, lo, hi)
    z = _scores(block, lo, hi, a)
    a.theta[lo:hi] = z / z.sum(axis=1, keepdims=True)
    np.add.at(a.right, labels.annotator, a.theta[labels.item, labels.category])
