"""NumPy twins of `annotruth.kernels.bwa`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.reference.rows import label_rows


def _scores(
    block: Block, lo: int, hi: int, weight: Floats, mean: Floats, strength: float
) -> Floats:
    """Return the items' scores, items x classes."""
    labels = label_rows(block, lo, hi)
    item, given = labels.item - lo, np.eye(len(mean))[labels.category]
    weights = weight[labels.annotator]
    weighted = np.tile(strength * mean, (hi - lo, 1))
    total = np.full((hi - lo, len(mean)), strength)
    np.add.at(weighted, item, weights * given)
    np.add.at(total, item, weights)
    known = block.known[lo:hi]
    scores: Floats = np.where(known[:, np.newaxis] < 0, weighted / total, np.eye(len(mean))[known])
    return scores


def step(
    block: Block,
    lo: int,
    hi: int,
    weight: Floats,
    mean: Floats,
    strength: float,
    squares: Floats,
    scores: Floats,
) -> None:
    """Add up squared errors by annotator and class, and scores and their squares by class."""
    labels = label_rows(block, lo, hi)
    z = _scores(block, lo, hi, weight, mean, strength)
    errors = np.eye(len(mean))[labels.category] - z[labels.item - lo]
    np.add.at(squares, labels.annotator, errors**2)
    scores += np.stack([z.sum(axis=0), (z**2).sum(axis=0)])


def distribution(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    weight: Floats,
    mean: Floats,
    strength: float,
    right: Floats,
) -> None:
    """Write the scores as shares, items x classes; add up those of each annotator's labels."""
    labels = label_rows(block, lo, hi)
    z = _scores(block, lo, hi, weight, mean, strength)
    theta[lo:hi] = z / z.sum(axis=1, keepdims=True)
    np.add.at(right, labels.annotator, theta[labels.item, labels.category])
