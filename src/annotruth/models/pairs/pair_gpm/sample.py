"""Samples of comparisons by annotator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.comparisons.votes import covariates_in_order_of_codes, in_order_of_codes
from annotruth.kernels.arrays import Codes
from annotruth.labels.encode import id_ranks

_MAX_SORTED = 1_000_000  # comparisons of one annotator: more take too long to sort


def sample_votes(
    data: Comparisons, n_comparisons: int, seed: int, most: int | None = None
) -> Comparisons:
    """Return the comparisons of annotators drawn at random, about as many as asked for.

    An annotator with more comparisons than ``most`` (or else than that) takes part with as many of
    them, drawn at random from the first million. Otherwise the order of rows does not matter.
    """
    most = n_comparisons if most is None else most
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.permutation(data.n_annotators)[id_ranks(data.annotators)])
    n_votes = np.minimum(data.comparisons_per_annotator, most)[order].cumsum()
    drawn = order[: int(np.searchsorted(n_votes, n_comparisons)) + 1]
    keep = np.zeros(data.n_comparisons, dtype=np.bool_)
    for first, last in zip(data.annotator_ptr[drawn], data.annotator_ptr[drawn + 1], strict=True):
        if last - first <= most:
            keep[first:last] = True
        else:
            votes = slice(first, min(last, first + _MAX_SORTED))
            keep[votes.start + _draw_votes(data, votes, most, rng)] = True
    sample = data.subset(keep)
    return sample.of_annotators(sample.comparisons_per_annotator > 0)


def _draw_votes(data: Comparisons, votes: slice, n: int, rng: np.random.Generator) -> Codes:
    """Return the positions of n of an annotator's comparisons, which are drawn in sorted order."""
    rank = id_ranks(data.items)
    left, right, outcome = rank[data.left[votes]], rank[data.right[votes]], data.outcome[votes]
    covariates = {name: values[votes] for name, values in data.covariates.items()}
    if not data.sides_known:
        covariates = covariates_in_order_of_codes(left, right, covariates)
        left, right, outcome = in_order_of_codes(left, right, outcome)
    keys: list[NDArray[Any]] = [*covariates.values(), outcome, right, left]
    order = np.lexsort(keys)
    drawn: Codes = order[rng.choice(len(order), n, replace=False)]
    return drawn
