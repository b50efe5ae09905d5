"""Verdicts on the annotators of pair comparisons, and who should compare which pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.advice.annotators import (
    FEW_LABELS,
    NOBODY,
    AnnotatorAdvice,
    advice_of_verdicts,
    even_workload,
    verdicts,
)
from annotruth.analyses.advice.pairs.order import Voters, voters_of
from annotruth.kernels.arrays import Codes
from annotruth.models.result import RankFit

_SAMPLE = 200  # pairs on which the information of annotators is compared


def typical_voter(fit: RankFit, chosen: NDArray[np.bool_]) -> Voters:
    """Return an annotator with the mean reliability and sharpness of the chosen ones, or of all."""
    voters = voters_of(fit)
    if not chosen.any():
        chosen = np.ones_like(chosen)
    return Voters(
        voters.reliability[chosen].mean(),
        voters.sharpness[chosen].mean(),
        voters.tie,
        voters.is_normal,
    )


def pair_annotator_advice(fit: RankFit) -> AnnotatorAdvice:
    """Return the verdict on every annotator, and whom to ask."""
    data, voters = fit.data, voters_of(fit)
    some = np.linspace(0, data.n_comparisons - 1, min(_SAMPLE, data.n_comparisons)).astype(np.int64)
    difference = fit.scores.mean[data.left[some]] - fit.scores.mean[data.right[some]]
    gain = np.zeros(data.n_annotators)
    for each in difference.tolist():
        gain += voters.information(np.array(each))
    if fit.reliability is not None:
        return advice_of_verdicts(*verdicts(fit), gain)
    reasons = [f"{fit.model} does not estimate reliability"] * data.n_annotators
    few = data.comparisons_per_annotator < FEW_LABELS
    return advice_of_verdicts(np.where(few, "too few votes", "unsure"), reasons, gain)


def assign_contexts(fit: RankFit, left: Codes, right: Codes) -> Codes | None:
    """Return the context in which to compare each pair; None where comparisons have none.

    It is the one with the fewest comparisons of the two items, and of those the one with the fewest in
    all: intervals take contexts as a sample, and a vote says most where nothing is known. Items that
    belong to one context, such as pictures of a scene, stay there; `NOBODY` if they have none in common.
    """
    data = fit.data
    if data.context is None or data.contexts is None:
        return None
    n_contexts, context = len(data.contexts), data.context.astype(np.int64)
    both = np.concatenate([data.left, data.right]).astype(np.int64)
    seen = np.bincount(both * n_contexts + np.tile(context, 2), minlength=data.n_items * n_contexts)
    by_item = seen.reshape(data.n_items, n_contexts)
    total = np.bincount(context, minlength=n_contexts)
    bound = np.count_nonzero(by_item, axis=1) == 1
    chosen = np.full(len(left), NOBODY, dtype=np.int64)
    for n, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        allowed = np.ones(n_contexts, dtype=np.bool_)
        for item in (a, b):
            if bound[item]:
                allowed &= by_item[item] > 0
        where = np.flatnonzero(allowed)
        if not len(where):
            continue
        c = int(where[np.lexsort((total[where], (by_item[a] + by_item[b])[where]))[0]])
        chosen[n] = c
        by_item[a, c] += 1
        by_item[b, c] += 1
        total[c] += 1
    return chosen


def assign_pairs(
    fit: RankFit, left: Codes, right: Codes, context: Codes | None, people: AnnotatorAdvice
) -> Codes:
    """Return who makes each comparison, among the annotators who have not compared the items.

    With contexts, as `assign_contexts` returns them, among those who have not compared them there.
    """
    data = fit.data

    def keys(
        left: NDArray[Any], right: NDArray[Any], context: NDArray[Any] | None
    ) -> list[tuple[int, int, int]]:
        pairs = np.minimum(left, right), np.maximum(left, right)
        where = np.full(len(left), NOBODY) if context is None else context
        return list(zip(*(each.tolist() for each in (*pairs, where)), strict=True))

    asked = keys(left, right, context)
    done: dict[tuple[int, int, int], set[int]] = {key: set() for key in asked}
    voted = keys(data.left, data.right, None if context is None else data.context)
    for key, s in zip(voted, data.annotator_of_comparison().tolist(), strict=True):
        if key in done:
            done[key].add(s)
    workload = even_workload(people, len(left))
    annotator = np.full(len(left), NOBODY, dtype=np.int64)
    for n, key in enumerate(asked):
        for s in workload.choose(1, excluded=done[key]):
            annotator[n] = s
            done[key].add(s)
    return annotator
