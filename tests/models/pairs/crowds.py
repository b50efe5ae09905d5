"""Votes drawn from models of pair comparisons, for tests."""

import numpy as np

from annotruth.observations import Comparisons


def comparisons(
    left, right, outcome, annotator=None, *, n_items=None, n_annotators=None, **options
):
    """Return comparisons from codes; by default all are of one annotator.

    ``options`` are further ones of `Comparisons.from_codes`.
    """
    left, right, outcome = (np.asarray(codes, dtype=np.int64) for codes in (left, right, outcome))
    annotator = np.zeros_like(left) if annotator is None else np.asarray(annotator)
    n_items = n_items or int(max(left.max(), right.max())) + 1
    return Comparisons.from_codes(
        left,
        right,
        annotator,
        outcome,
        items=[f"item {i}" for i in range(n_items)],
        annotators=[f"annotator {s}" for s in range(n_annotators or annotator.max() + 1)],
        **options,
    )


def draw_votes(model, rng, *, n_items=12, n_votes=2000, n_annotators=20, side_bias=0.0, tie=None):
    """Return true scores, and votes on random pairs drawn from a model's probabilities."""
    scores = rng.normal(size=n_items)
    scores -= scores.mean()
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    p = model.probabilities(scores[left] - scores[right] + side_bias, tie)
    outcome = (rng.random((n_votes, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    annotator = np.arange(n_votes) % n_annotators
    return scores, comparisons(left, right, outcome, annotator, n_items=n_items)
