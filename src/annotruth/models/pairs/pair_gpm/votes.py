"""The votes of a fit, laid out for the kernels of PairGPM."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, get_engine
from annotruth.engines.memory import MemoryEngine, ReferenceEngine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats, map_on_all_cores
from annotruth.kernels.pairs.gpm_contexts import ContextLayout
from annotruth.kernels.pairs.gpm_outcomes import Outcomes
from annotruth.kernels.pairs.gpm_quadrature import make_quadrature
from annotruth.models.pairs.graph import MAX_DENSE_ITEMS, connected_parts
from annotruth.models.pairs.pair_gpm.rankings import ranking_weights
from annotruth.models.pairs.pair_gpm.states import SLIP
from annotruth.observations.layout import kernels_for
from annotruth.observations.pairs.table import Comparisons

MIN_SHARED_CONTEXTS = 5
"""Contexts with two annotators or more, from which on scores may differ between contexts."""

_MAX_TABLE = 4  # entries per comparison in a table of all pairs; with more, pairs are sorted


@dataclass(frozen=True, eq=False)
class PairVotes:
    """Votes sorted by annotator, then by context.

    Attributes
    ----------
    data
        The comparisons.
    order
        The place of each vote in these.
    outcomes, layout
        What kernels read.
    left, right, pair
        The codes of the items and of their pair.
    pairs
        The left and the right item of each pair.
    part
        The connected part of each item.
    context
        The context of each vote, also where scores do not depend on it; None without contexts.
    varies
        Whether each item of each context (`ContextLayout.items`) may score differently there.
    covariates, covariate_scale
        The covariates divided by their root mean squares, and these.
    is_shared
        Whether each annotator evaluated a context that somebody else evaluated, too; all, without contexts.
    n_shared
        How many contexts have two annotators or more.
    is_ranked
        Whether votes follow from rankings.
    """

    data: Comparisons
    order: Codes
    outcomes: Outcomes
    layout: ContextLayout
    left: Codes
    right: Codes
    pair: Codes
    pairs: tuple[Codes, Codes]
    part: Codes
    context: Codes | None
    varies: NDArray[np.bool_]
    covariates: Floats
    covariate_scale: Floats
    is_shared: NDArray[np.bool_]
    n_shared: int
    is_ranked: bool

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
    order = np.arange(data.n_comparisons)
    if context is not None:
        n_annotators_of = _annotators_per_context(context, annotator, data.n_annotators)
        n_shared = int(np.count_nonzero(n_annotators_of > 1))
        is_shared = np.zeros(data.n_annotators, dtype=np.bool_)
        is_shared[annotator[(n_annotators_of > 1)[context]]] = True
        order = np.lexsort((data.right, data.left, context, annotator))
        context = context[order]
    left, right = (codes[order].astype(np.int64) for codes in (data.left, data.right))
    pair_codes, pair = distinct_pairs(left, right, data.n_items)
    pairs = np.divmod(pair_codes, data.n_items)
    layout, varies = _plain_layout(left, right), np.empty(0, dtype=np.bool_)
    if context is not None and n_shared >= MIN_SHARED_CONTEXTS and data.n_items <= MAX_DENSE_ITEMS:
        in_contexts, varies = _context_layout(left, right, context, data.n_items)
        if varies.any():
            layout = in_contexts
        else:
            varies = np.empty(0, dtype=np.bool_)
    weight, is_ranked = ranking_weights(data)
    covariates, covariate_scale = standardised_covariates(data)
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
        order=order,
        outcomes=outcomes,
        layout=layout,
        left=left,
        right=right,
        pair=pair,
        pairs=pairs,
        part=connected_parts(data.n_items, *pairs),
        context=context,
        varies=varies,
        covariates=np.ascontiguousarray(covariates[order]),
        covariate_scale=covariate_scale,
        is_shared=is_shared,
        n_shared=n_shared,
        is_ranked=is_ranked,
    )


def _contexts(data: Comparisons) -> Codes | None:
    """Return the context of each comparison; one that is missing is a context of its own."""
    if data.context is None or data.contexts is None:
        return None
    context = data.context.astype(np.int64)
    missing = np.isin(
        context, np.flatnonzero(data.contexts.is_null().to_numpy(zero_copy_only=False))
    )
    missing |= context < 0
    context[missing] = len(data.contexts) + np.arange(np.count_nonzero(missing))
    return np.unique(context, return_inverse=True)[1].astype(np.int64)


def _annotators_per_context(context: Codes, annotator: Codes, n_annotators: int) -> Codes:
    seen = np.unique(context * n_annotators + annotator) // n_annotators
    return np.bincount(seen, minlength=int(context.max()) + 1)


def _plain_layout(left: Codes, right: Codes) -> ContextLayout:
    none, zero = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return ContextLayout(none, left, right, zero, none, zero, none, zero)


def _context_layout(
    left: Codes, right: Codes, context: Codes, n_items: int
) -> tuple[ContextLayout, NDArray[np.bool_]]:
    """Return votes by context, and which items of which contexts occur in several contexts."""
    n_contexts = int(context.max()) + 1
    key = np.unique(np.concatenate([context * n_items + left, context * n_items + right]))
    items = key % n_items
    item_ptr = np.searchsorted(key // n_items, np.arange(n_contexts + 1))
    votes = np.argsort(context, kind="stable")
    sizes = np.diff(item_ptr)
    layout = ContextLayout(
        context=context,
        left=np.searchsorted(key, context * n_items + left) - item_ptr[context],
        right=np.searchsorted(key, context * n_items + right) - item_ptr[context],
        item_ptr=item_ptr,
        items=items,
        vote_ptr=np.searchsorted(context[votes], np.arange(n_contexts + 1)),
        votes=votes,
        square_ptr=np.append(0, np.cumsum(sizes**2)),
    )
    return layout, np.bincount(items, minlength=n_items)[items] > 1


def distinct_pairs(left: Codes, right: Codes, n_items: int) -> tuple[Codes, Codes]:
    """Return the pairs, low * n_items + high, in order, and the place of each comparison's pair."""
    if n_items**2 > _MAX_TABLE * len(left):
        low, high = np.minimum(left, right), np.maximum(left, right)
        pairs, place = np.unique(low * n_items + high, return_inverse=True)
        return pairs, place.astype(np.int64)
    kernels = kernels_for(len(left), "pairs.layout")
    occurs = np.zeros(n_items**2, dtype=np.bool_)
    kernels.mark_pairs(left, right, n_items, occurs)
    code = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    pair = np.empty(len(left), dtype=np.int32)
    kernels.set_pairs(left, right, n_items, code, pair)
    return np.flatnonzero(occurs), pair.astype(np.int64)


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


_VOTES_PER_RANGE = 10_000
_MAX_RANGES = 16


class Passes:
    """Runs kernels over ranges of annotators, contexts or votes, which do not depend on the cores."""

    def __init__(self, votes: PairVotes, package: str) -> None:
        n = votes.data.n_comparisons
        n_ranges = int(np.clip(n // _VOTES_PER_RANGE, 1, _MAX_RANGES))
        if package.endswith("reference.pairs"):
            n_ranges = 1
        self._package = package
        self._annotators = votes.data.partition(n_ranges)
        self._votes = np.linspace(0, n, n_ranges + 1).astype(np.int64)
        vote_ptr = votes.layout.vote_ptr
        self._contexts = np.searchsorted(vote_ptr, np.linspace(0, vote_ptr[-1], n_ranges + 1))
        self._contexts[0], self._contexts[-1] = 0, len(vote_ptr) - 1

    def _kernel(self, name: str) -> Callable[..., None]:
        module, function = name.split(".")
        kernel: Callable[..., None] = getattr(
            importlib.import_module(f"{self._package}.{module}"), function
        )
        return kernel

    def by_annotator(self, name: str, block: Any, *arguments: Any) -> None:
        """Run a kernel over all annotators."""
        kernel = self._kernel(name)
        _over(self._annotators, lambda lo, hi: kernel(block, lo, hi, *arguments))

    def by_vote(self, name: str, *arguments: Any, first: bool = False) -> None:
        """Run a kernel over all votes; with ``first``, its range comes before all arguments."""
        kernel = self._kernel(name)
        if first:
            _over(self._votes, lambda lo, hi: kernel(lo, hi, *arguments))
        else:
            block, *others = arguments
            _over(self._votes, lambda lo, hi: kernel(block, lo, hi, *others))

    def by_context(
        self, name: str, block: Any, *arguments: Any, sums: Sequence[tuple[int, ...]]
    ) -> list[Floats]:
        """Run a kernel over all contexts, and return the sums it adds up."""
        kernel = self._kernel(name)
        parts: list[list[Floats]] = []

        def one(lo: int, hi: int, own: list[Floats]) -> None:
            kernel(block, lo, hi, *arguments, *own)

        ranges = _ranges(self._contexts)
        parts = [[np.zeros(shape) for shape in sums] for _ in ranges]
        map_on_all_cores(lambda each: one(*each[0], each[1]), list(zip(ranges, parts, strict=True)))
        return [sum(each[1:], start=each[0]) for each in zip(*parts, strict=True)]


def _ranges(bounds: Any) -> list[tuple[int, int]]:
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [(lo, hi) for lo, hi in pairs if lo < hi] or [(0, 0)]


def _over(bounds: Any, run: Callable[[int, int], None]) -> None:
    map_on_all_cores(lambda each: run(*each), _ranges(bounds))


def kernel_package(engine: str | Engine) -> str:
    """Return the package of the engine's kernels; raise if it does not run this model."""
    found = get_engine(engine)
    if isinstance(found, ReferenceEngine):
        return "annotruth.kernels.reference.pairs"
    if isinstance(found, MemoryEngine):
        return "annotruth.kernels.pairs"
    raise InputError(
        f"pair-gpm runs on this machine's processor only, not on the engine {found.name}: pass "
        "`--engine memory`, or `--model bradley-terry`"
    )
