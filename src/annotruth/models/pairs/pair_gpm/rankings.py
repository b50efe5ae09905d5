r"""Votes that follow from rankings, which say less than as many votes made one by one.

The k (k - 1) / 2 votes of a ranking of k equal items carry the information of Plackett and Luce's model
if each counts :math:`4 (k - H_k) / (k (k - 1))`, with :math:`H_k = 1 + 1/2 + \dots + 1/k`.
"""

from __future__ import annotations

import numpy as np

from annotruth.comparisons.table import LEFT, TIE, Comparisons
from annotruth.kernels.arrays import Codes, Floats

_MIN_TRIADS = 100  # of which none is circular: by independent votes that is next to impossible


def ranking_weights(data: Comparisons) -> tuple[Floats, bool]:
    """Return what each comparison counts, and whether comparisons follow from rankings.

    Rankings are recognised by their annotators and contexts: where all pairs of three or more items
    were compared by one annotator in one context, and no such triad of the file is circular.
    """
    weight = np.ones(data.n_comparisons)
    if data.context is None:
        return weight, False
    annotator = data.annotator_of_comparison()
    n_contexts = int(data.context.max()) + 1
    ballot = np.unique(annotator * n_contexts + data.context, return_inverse=True)[1]
    n_items = _items_per_ballot(data, ballot)
    n_votes = np.bincount(ballot)
    complete = (n_items >= 3) & (n_votes == n_items * (n_items - 1) // 2)
    n_triads = int((n_items * (n_items - 1) * (n_items - 2) // 6)[complete].sum())
    if n_triads < _MIN_TRIADS or has_circles(data, ballot, complete):
        return weight, False
    return np.where(complete[ballot], ranking_weight(n_items)[ballot], 1.0), True


def ranking_weight(n_items: Codes) -> Floats:
    """Return what a vote of a ranking of some number of items counts.

    Examples
    --------
    >>> ranking_weight(np.array([2, 3, 4, 5])).round(2).tolist()
    [1.0, 0.78, 0.64, 0.54]
    """
    most = int(n_items.max(initial=2))
    harmonic = np.cumsum(1.0 / np.arange(1, most + 1))
    k = np.maximum(n_items, 2)
    weight: Floats = 4.0 * (k - harmonic[k - 1]) / (k * (k - 1.0))
    return weight


def _items_per_ballot(data: Comparisons, ballot: Codes) -> Codes:
    """Return how many different items each ballot has."""
    both = np.concatenate([data.left, data.right]).astype(np.int64)
    seen = np.unique(np.tile(ballot, 2) * data.n_items + both) // data.n_items
    return np.bincount(seen, minlength=int(ballot.max()) + 1)


def has_circles(data: Comparisons, ballot: Codes, complete: Codes) -> bool:
    """Whether some complete ballot is no ranking.

    All pairs of a ballot are a ranking with ties if and only if the number of items that each item
    beats, counting ties half, orders all pairs as they were decided.
    """
    kept = complete[ballot]
    left, right = data.left[kept].astype(np.int64), data.right[kept].astype(np.int64)
    outcome, group = data.outcome[kept], ballot[kept]
    won = np.where(outcome == TIE, 0.5, outcome == LEFT)
    keys = np.concatenate([group * data.n_items + left, group * data.n_items + right])
    distinct, place = np.unique(keys, return_inverse=True)
    points = np.bincount(place, np.concatenate([won, 1.0 - won]), minlength=len(distinct))
    of_left, of_right = np.split(points[place], 2)
    return bool((np.sign(of_left - of_right) != np.sign(won - 0.5)).any())
