r"""Votes that follow from rankings, which say less than as many votes made one by one.

The k (k - 1) / 2 votes of a ranking of k equal items carry the information of Plackett and Luce's model
if each counts :math:`4 (k - H_k) / (k (k - 1))`, with :math:`H_k = 1 + 1/2 + \dots + 1/k`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations.pairs.table import LEFT, RANKING, TIE, Comparisons

_MIN_TRIADS = 100  # by independent votes, some of so many are circular
_MIN_RANKINGS = 0.99  # of the complete ballots: two rankings may look like a ballot with a circle


def ranking_weights(data: Comparisons) -> tuple[Floats, bool]:
    """Return what each comparison counts, and whether comparisons follow from rankings.

    Where a column says which ranking a comparison follows from, that is known. Otherwise a ballot is what one annotator compared in one context. Comparisons follow from rankings if next to
    no ballot in which all pairs of three or more items were compared has a circle. Other ballots
    with as many votes, such as those of two rankings, then count as rankings of the median size.
    """
    weight = np.ones(data.n_comparisons)
    named = _named_rankings(data)
    if named is not None:
        return ranking_weight(_items_per_ballot(data, named))[named], True
    if data.context is None:
        return weight, False
    annotator = data.annotator_of_comparison()
    n_contexts = int(data.context.max()) + 1
    ballot = np.unique(annotator * n_contexts + data.context, return_inverse=True)[1]
    n_items = _items_per_ballot(data, ballot)
    n_votes = np.bincount(ballot)
    complete = (n_items >= 3) & (n_votes == n_items * (n_items - 1) // 2)
    n_triads = int((n_items * (n_items - 1) * (n_items - 2) // 6)[complete].sum())
    if n_triads < _MIN_TRIADS:
        return weight, False
    circular = has_circles(data, ballot, complete)
    if circular.sum() > (1.0 - _MIN_RANKINGS) * complete.sum():
        return weight, False
    is_ranking = complete & ~circular
    typical = int(np.median(n_items[is_ranking]))
    several = ~is_ranking & (n_votes >= typical * (typical - 1) // 2)
    size = np.where(is_ranking, n_items, np.where(several, typical, 2))
    return ranking_weight(size)[ballot], True


def _named_rankings(data: Comparisons) -> Codes | None:
    """Return the ranking that each comparison follows from, where a column says it.

    A comparison without one is a ranking of two items. None if no ranking has three.
    """
    column = data.further.get(RANKING)
    if column is None:
        return None
    ranking = column.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    alone = ranking < 0
    ranking[alone] = ranking.max(initial=0) + 1 + np.arange(np.count_nonzero(alone))
    ranking = np.unique(ranking, return_inverse=True)[1]
    return ranking if _items_per_ballot(data, ranking).max(initial=0) > 2 else None


def ranking_weight(n_items: Codes) -> Floats:
    """Return what a vote of a ranking of some number of items counts."""
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


def has_circles(data: Comparisons, ballot: Codes, complete: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which complete ballots are no rankings.

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
    against = np.sign(of_left - of_right) != np.sign(won - 0.5)
    found = np.zeros(len(complete), dtype=np.bool_)
    found[group[against]] = True
    return found
