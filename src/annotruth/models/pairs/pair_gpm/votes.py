r"""The votes of a fit, laid out for the kernels of PairGPM.

Votes that follow from rankings say less than as many made one by one: the k (k - 1) / 2 votes of a ranking
of k equal items carry the information of Plackett and Luce's model if each counts
:math:`4 (k - H_k) / (k (k - 1))`, with :math:`H_k = 1 + 1/2 + \dots + 1/k`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, get_engine
from annotruth.engines.memory import MemoryEngine, ReferenceEngine
from annotruth.errors import InputError
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Codes, Floats, map_on_all_cores
from annotruth.kernels.pairs import ContextLayout, Outcomes, make_quadrature
from annotruth.models.pairs.graph import MAX_DENSE_ITEMS, connected_parts
from annotruth.observations.pairs.table import LEFT, RANKING, TIE, Comparisons

MIN_SHARED_CONTEXTS = 5
"""Contexts with two annotators or more, from which on scores may differ between contexts."""

SLIP = 0.015
"""The share of votes that are any outcome."""

_MAX_TABLE = 4  # entries per comparison in a table of all pairs; with more, pairs are sorted


@dataclass(frozen=True, eq=False)
class PairVotes:
    """Votes sorted by annotator, then by context."""

    data: Comparisons
    order: Codes  # the place of each vote in these
    outcomes: Outcomes
    layout: ContextLayout  # has the covariates divided by their root mean squares
    left: Codes
    right: Codes
    pair: Codes
    pairs: tuple[Codes, Codes]  # the left and the right item of each pair
    part: Codes  # the connected part of each item
    context: Codes | None  # also where scores do not depend on it; None without contexts
    cell: Codes | None  # the pair and context of each vote; None without contexts or ties
    own_cell: Codes  # the cell and annotator
    varies: NDArray[
        np.bool_
    ]  # whether each of ``layout.items`` may score differently in its context
    covariate_scale: Floats  # root mean squares
    is_shared: NDArray[np.bool_]  # whether annotators evaluated contexts that others did, too
    is_ranked: bool  # whether votes follow from rankings

    @property
    def covariates(self) -> Floats:
        """The covariates divided by their root mean squares: votes x covariates."""
        return self.layout.covariates

    @property
    def has_contexts(self) -> bool:
        """Whether scores may differ between contexts."""
        return len(self.layout.item_ptr) > 1

    @property
    def n_annotators(self) -> int:
        """The number of annotators."""
        return self.data.n_annotators

    @property
    def annotator(self) -> Codes:
        """The code of each vote's annotator."""
        return self.data.annotator_of_comparison()


def make_votes(data: Comparisons) -> PairVotes:
    """Lay out comparisons. Contexts matter from `MIN_SHARED_CONTEXTS` shared ones on."""
    annotator = data.annotator_of_comparison()
    context = _contexts(data)
    is_shared, n_shared = np.ones(data.n_annotators, dtype=np.bool_), 0
    order: Codes | slice = slice(None)
    if context is not None:
        seen = np.unique(context * data.n_annotators + annotator) // data.n_annotators
        shared = np.bincount(seen, minlength=int(context.max()) + 1) > 1
        n_shared = int(np.count_nonzero(shared))
        is_shared = np.zeros(data.n_annotators, dtype=np.bool_)
        is_shared[annotator[shared[context]]] = True
        order = np.lexsort((data.right, data.left, context, annotator))
        context = context[order]
    left, right = (codes[order].astype(np.int64) for codes in (data.left, data.right))
    pair_codes, pair = _distinct_pairs(left, right, data.n_items)
    pairs = np.divmod(pair_codes, data.n_items)
    values, covariate_scale = standardised_covariates(data)
    values = np.ascontiguousarray(values[order])
    none, zero = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    layout = ContextLayout(none, left, right, zero, none, zero, none, zero, values)
    varies = np.empty(0, dtype=np.bool_)
    if context is not None and n_shared >= MIN_SHARED_CONTEXTS and data.n_items <= MAX_DENSE_ITEMS:
        in_contexts = _context_layout(left, right, context, values, data.n_items)
        in_several = np.bincount(in_contexts.items, minlength=data.n_items) > 1
        if in_several.any():
            layout, varies = in_contexts, in_several[in_contexts.items]
    cell, own_cell = None, none
    if context is not None and len(layout.items) and data.has_ties:
        cell = np.unique(context * len(pair_codes) + pair, return_inverse=True)[1]
        own_cell = np.unique(cell * data.n_annotators + annotator, return_inverse=True)[1]
    weight, is_ranked = ranking_weights(data)
    outcomes = Outcomes(
        ptr=data.annotator_ptr,
        outcome=np.ascontiguousarray(data.outcome[order]),
        weight=weight[order],
        tie_odds=np.ones(data.n_comparisons),
        has_ties=data.has_ties,
        has_sides=data.sides_known,
        slip=SLIP,
        rules=make_quadrature(),
    )
    return PairVotes(
        data=data,
        order=np.arange(data.n_comparisons)[order],
        outcomes=outcomes,
        layout=layout,
        left=left,
        right=right,
        pair=pair,
        pairs=pairs,
        part=connected_parts(data.n_items, *pairs),
        context=context,
        cell=cell,
        own_cell=own_cell,
        varies=varies,
        covariate_scale=covariate_scale,
        is_shared=is_shared,
        is_ranked=is_ranked,
    )


def _contexts(data: Comparisons) -> Codes | None:
    """Return the context of each comparison; one that is missing is a context of its own."""
    if data.context is None or data.contexts is None:
        return None
    context = data.context.astype(np.int64)
    unnamed = np.flatnonzero(data.contexts.is_null().to_numpy(zero_copy_only=False))
    missing = np.isin(context, unnamed) | (context < 0)
    context[missing] = len(data.contexts) + np.arange(np.count_nonzero(missing))
    return np.unique(context, return_inverse=True)[1].astype(np.int64)


def _context_layout(
    left: Codes, right: Codes, context: Codes, covariates: Floats, n_items: int
) -> ContextLayout:
    """Return votes by context."""
    n_contexts = int(context.max()) + 1
    key = np.unique(np.concatenate([context * n_items + left, context * n_items + right]))
    item_ptr = np.searchsorted(key // n_items, np.arange(n_contexts + 1))
    votes = np.argsort(context, kind="stable")
    return ContextLayout(
        context=context,
        left=np.searchsorted(key, context * n_items + left) - item_ptr[context],
        right=np.searchsorted(key, context * n_items + right) - item_ptr[context],
        item_ptr=item_ptr,
        items=key % n_items,
        vote_ptr=np.searchsorted(context[votes], np.arange(n_contexts + 1)),
        votes=votes,
        square_ptr=np.append(0, np.cumsum(np.diff(item_ptr) ** 2)),
        covariates=covariates,
    )


def _distinct_pairs(left: Codes, right: Codes, n_items: int) -> tuple[Codes, Codes]:
    """Return the pairs, low * n_items + high, in order, and the place of each comparison's pair."""
    place = np.minimum(left, right) * n_items + np.maximum(left, right)
    if n_items**2 > _MAX_TABLE * len(left):
        pairs, pair = np.unique(place, return_inverse=True)
        return pairs, pair.astype(np.int64)
    occurs = np.zeros(n_items**2, dtype=np.bool_)
    occurs[place] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[place]


def standardised_covariates(data: Comparisons) -> tuple[Floats, Floats]:
    """Return the covariates divided by their root mean squares, one column each, and these.

    They are not centred: a difference of 0 has no influence.
    """
    columns = [np.asarray(values, dtype=np.float64) for values in data.covariates.values()]
    if not columns:
        return np.empty((data.n_comparisons, 0)), np.empty(0)
    raw = np.stack(columns, axis=1)
    if data.annotator_weight is None:
        scale = np.sqrt((raw**2).mean(axis=0))
    else:
        weight = np.repeat(data.annotator_weight, data.comparisons_per_annotator)
        scale = np.sqrt(np.average(raw**2, axis=0, weights=weight))
    scale[scale == 0.0] = 1.0
    return raw / scale, scale


_MIN_TRIADS = 100  # by independent votes, some of so many are circular
_MIN_RANKINGS = 0.99  # of the complete ballots: two rankings may look like a ballot with a circle


def ranking_weights(data: Comparisons) -> tuple[Floats, bool]:
    """Return what each comparison counts, and whether comparisons follow from rankings.

    Where a column says which ranking a comparison follows from, that is known. Otherwise a ballot is
    what one annotator compared in one context. Comparisons follow from rankings if next to no ballot
    in which all pairs of three or more items were compared has a circle. Other ballots with as many
    votes, such as those of two rankings, then count as rankings of the median size.
    """
    weight = np.ones(data.n_comparisons)
    named = _named_rankings(data)
    if named is not None:
        return _ranking_weight(_items_per_ballot(data, named))[named], True
    if data.context is None:
        return weight, False
    n_contexts = int(data.context.max()) + 1
    key = data.annotator_of_comparison() * n_contexts + data.context
    ballot = np.unique(key, return_inverse=True)[1]
    n_items, n_votes = _items_per_ballot(data, ballot), np.bincount(ballot)
    complete = (n_items >= 3) & (n_votes == n_items * (n_items - 1) // 2)
    n_triads = int((n_items * (n_items - 1) * (n_items - 2) // 6)[complete].sum())
    if n_triads < _MIN_TRIADS:
        return weight, False
    circular = _has_circles(data, ballot, complete)
    if circular.sum() > (1.0 - _MIN_RANKINGS) * complete.sum():
        return weight, False
    is_ranking = complete & ~circular
    typical = int(np.median(n_items[is_ranking]))
    several = ~is_ranking & (n_votes >= typical * (typical - 1) // 2)
    size = np.where(is_ranking, n_items, np.where(several, typical, 2))
    return _ranking_weight(size)[ballot], True


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


def _ranking_weight(n_items: Codes) -> Floats:
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


def _has_circles(
    data: Comparisons, ballot: Codes, complete: NDArray[np.bool_]
) -> NDArray[np.bool_]:
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


_VOTES_PER_RANGE = 10_000
_MAX_RANGES = 16


class Passes:
    """Runs kernels over ranges of annotators, contexts or votes, which do not depend on the cores."""

    def __init__(self, votes: PairVotes, *, reference: bool = False) -> None:
        n = votes.data.n_comparisons
        n_ranges = int(np.clip(n // _VOTES_PER_RANGE, 1, _MAX_RANGES))
        if reference:
            n_ranges = 1
        self.reference = reference  # whether the NumPy twins are run
        vote_ptr = votes.layout.vote_ptr
        contexts = np.searchsorted(vote_ptr, np.linspace(0, vote_ptr[-1], n_ranges + 1))
        contexts[0], contexts[-1] = 0, len(vote_ptr) - 1
        self._bounds = {
            "annotators": votes.data.partition(n_ranges),
            "votes": np.linspace(0, n, n_ranges + 1).astype(np.int64),
            "contexts": contexts,
        }

    def run(
        self,
        name: str,
        over: str,
        block: Any,
        *arguments: Any,
        sums: Sequence[tuple[int, ...]] = (),
    ) -> list[Floats]:
        """Run a kernel over all "annotators", "votes" or "contexts"; return the sums of these shapes."""
        kernel = find_kernel(f"pairs.{name}", reference=self.reference)
        bounds = self._bounds[over].tolist()
        ranges = [(lo, hi) for lo, hi in pairwise(bounds) if lo < hi] or [(0, 0)]
        parts = [[np.zeros(shape) for shape in sums] for _ in ranges]

        def one(number: int) -> None:
            kernel(block, *ranges[number], *arguments, *parts[number])

        map_on_all_cores(one, range(len(ranges)))
        return [sum(each[1:], start=each[0]) for each in zip(*parts, strict=True)]


def runs_twins(engine: str | Engine) -> bool:
    """Return whether the engine runs NumPy twins; raise if it does not run this model."""
    found = get_engine(engine)
    if isinstance(found, MemoryEngine):
        return isinstance(found, ReferenceEngine)
    raise InputError(
        f"pair-gpm runs on this machine's processor only, not on the engine {found.name}: pass "
        "`--engine memory`, or `--model bradley-terry`"
    )
