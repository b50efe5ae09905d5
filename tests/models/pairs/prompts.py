"""Crowds that compare systems on many prompts, where which one is better depends on the prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.observations import Comparisons


class PromptCrowd(NamedTuple):
    """Votes, with the scores of items and who is a spammer."""

    comparisons: Comparisons
    scores: NDArray[np.float64]
    is_spammer: NDArray[np.bool_]


def prompt_crowd(
    *,
    n_items: int = 6,
    n_annotators: int = 20,
    n_votes: int = 60,
    n_contexts: int = 40,
    spread: float = 2.0,
    n_random: int = 0,
    tie_rate: float = 0.6,
    pair_tie_sd: float = 0.0,
    cell_tie_sd: float = 0.0,
    own_contexts: bool = False,
    seed: int = 0,
) -> PromptCrowd:
    """Draw votes: scores differ by prompt with a standard deviation of ``spread``.

    The first ``n_random`` annotators vote at random. Log tie rates differ by pair, and by pair and prompt. With ``own_contexts``, nobody shares a prompt.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.0, 0.7, n_items)
    by_context = theta + rng.normal(0.0, spread, (n_contexts, n_items))
    annotator = np.repeat(np.arange(n_annotators), n_votes)
    n = len(annotator)
    context = rng.integers(n_contexts, size=n)
    if own_contexts:
        context = context // n_annotators * n_annotators % n_contexts + annotator
        context %= n_contexts
    left = rng.integers(n_items, size=n)
    right = (left + rng.integers(1, n_items, size=n)) % n_items
    similar = np.exp(rng.normal(0.0, pair_tie_sd, (n_items, n_items)))
    similar = np.sqrt(similar * similar.T)
    sharpness = np.exp(rng.normal(0.0, 0.2, n_annotators))
    sharpness[:n_random] = 0.0
    d = sharpness[annotator] * (by_context[context, left] - by_context[context, right])
    ties = tie_rate * similar[left, right]
    if cell_tie_sd:
        of_cell = np.exp(rng.normal(0.0, cell_tie_sd, (n_contexts, n_items, n_items)))
        ties *= of_cell[context, np.minimum(left, right), np.maximum(left, right)]
    odds = np.stack([np.exp(d / 2), np.exp(-d / 2), ties], axis=1)
    chosen = rng.random(n)[:, np.newaxis] * odds.sum(axis=1, keepdims=True)
    outcome = (chosen > np.cumsum(odds, axis=1)).sum(axis=1)
    data = Comparisons.from_codes(
        left, right, annotator, outcome, items=range(n_items), annotators=range(n_annotators)
    )
    if n_contexts > 1:
        contexts, code = np.unique(context, return_inverse=True)
        data = replace(data, contexts=pa.array(contexts), context=code.astype(np.int32)[data.row])
    return PromptCrowd(data, theta - theta.mean(), np.arange(n_annotators) < n_random)
