"""Simulated crowds of six kinds with a known class per item, to measure how models are chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.observations import Labels, Scale
from benchmarks.truth.sets import TruthSet

ALL = "all of these"
KINDS = {
    "one accuracy": "annotators are right with a probability of their own, else uniform",
    "confusion": "every annotator has a confusion matrix",
    "hard items": "one accuracy; a third of the items look like another class to everybody",
    "spammers": "one accuracy; a third of the annotators ignore the item",
    "difficulty": "one accuracy; every item has a share of labels that are a guess",
    ALL: "confusion matrices, hard items, spammers and difficulty at once",
}


def draw_crowd(kind: str, rng: np.random.Generator) -> TruthSet:
    """Return a crowd of random size: 150 or 400 items, 3 to 8 labels each, 2 to 5 classes."""
    n_items, n_annotators = int(rng.choice([150, 400])), int(rng.choice([15, 60]))
    n, per_item = int(rng.choice([2, 3, 5])), int(rng.choice([3, 5, 8]))
    truth = rng.choice(n, size=n_items, p=rng.dirichlet(np.full(n, 3.0)))
    item = np.repeat(np.arange(n_items), per_item)
    activity = rng.dirichlet(np.ones(n_annotators)) + 0.2 / n_annotators
    activity /= activity.sum()
    annotator = np.concatenate(
        [rng.choice(n_annotators, per_item, replace=False, p=activity) for _ in range(n_items)]
    )
    confusion = _confusion_matrices(kind, n_annotators, n, rng)
    p = _label_probabilities(kind, confusion, truth, item, annotator, rng)
    label = (rng.random((len(item), 1)) > p.cumsum(axis=1)).sum(axis=1)
    _, annotator = np.unique(annotator, return_inverse=True)
    labels = Labels.from_codes(
        item,
        annotator,
        np.minimum(label, n - 1),
        items=list(range(n_items)),
        annotators=list(range(int(annotator.max()) + 1)),
        scale=Scale.nominal([str(k) for k in range(n)]),
    )
    return TruthSet(kind, kind, labels, np.arange(n_items), truth.astype(np.int32))


def _confusion_matrices(kind: str, n_annotators: int, n: int, rng: np.random.Generator) -> Floats:
    """Return the annotators' confusion matrices, annotators x classes x labels."""
    right = np.eye(n)
    if kind in ("confusion", ALL):
        weight = rng.uniform(1.0, 12.0, size=(n_annotators, n))
        rows = [
            [rng.dirichlet(1.5 + weight[s, k] * right[k]) for k in range(n)]
            for s in range(n_annotators)
        ]
        return np.array(rows)
    accuracy = rng.beta(4.0, 1.5, n_annotators)[:, np.newaxis, np.newaxis]
    matrices: Floats = accuracy * right + (1.0 - accuracy) * (1.0 - right) / (n - 1)
    return matrices


def _label_probabilities(
    kind: str, confusion: Floats, truth: NDArray[np.int64], item: NDArray[np.int64],
    annotator: NDArray[np.int64], rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """Return the probability of every category, one row per label."""
    n_annotators, n, _ = confusion.shape
    p: Floats = confusion[annotator, truth[item]]
    if kind in ("hard items", ALL):
        is_hard = rng.random(len(truth)) < 0.35
        other = (truth + rng.integers(1, n, len(truth))) % n
        share = np.where(is_hard, rng.uniform(0.3, 0.8, len(truth)), 0.0)[item][:, np.newaxis]
        p = (1.0 - share) * p + share * confusion[annotator, other[item]]
    if kind in ("difficulty", ALL):
        guessed = rng.beta(2.0, 2.0, len(truth))[item][:, np.newaxis]
        p = (1.0 - guessed) * p + guessed / n
    if kind in ("spammers", ALL):
        ignores = rng.random(len(confusion)) < 0.35
        favorites = rng.dirichlet(np.full(n, 0.7), n_annotators)
        p = np.where(ignores[annotator][:, np.newaxis], favorites[annotator], p)
    return p
