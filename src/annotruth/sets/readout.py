r"""What follows from fitted parameters: the most likely set of each item, and annotators' reliability.

Given its type k, the labels of an item are independent, so that a set A has the posterior probability

.. math:: \sum_k w_{e,k} \prod_{l \in A} T_{e,k,l} \prod_{l \notin A} (1 - T_{e,k,l}).

Through the types, labels that go together support each other. The search begins at the best set of
each type and at the labels above one half, and adds or removes single labels while that helps.

An annotator's reliability is the informedness of their answers relative to that of a typical serious
annotator. With sensitivity a, specificity b, and weights :math:`v_{s,l} = n^1_{s,l} n^0_{s,l} / n_s`
of answers to items with and without the label,

.. math::
    R_s = (1 - q_s) \min\left(1, \max\left(0,
        \frac{\sum_l v_{s,l} (a_{s,l} + b_{s,l} - 1)}{\sum_l v_{s,l} (A_l + B_l - 1)}
    \right)\right)

where A and B are the rates of the typical annotator and :math:`q_s` is the probability that the annotator
answers whatever the item is. If a share of the answers is serious and the rest is given without
looking, R is that share. Intervals are those of draws from the posterior of rates and of q.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from annotruth.analyses.advice.annotators import FEW_LABELS
from annotruth.kernels.arrays import Codes, Floats, slices
from annotruth.kernels.reference.sets.presence import type_posterior
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.sets.steps import AnswerCounts, PooledRates, SetParameters

_LEAST = 1e-12
_VALUES_AT_ONCE = 1 << 22


class JointSets(NamedTuple):
    """The most likely set of each item, items x labels, and its probability."""

    sets: NDArray[np.bool_]
    probability: Floats


def joint_sets(
    evidence: Floats, known: Codes, members: Floats, theta: Floats, types: Floats
) -> JointSets:
    """Return the most likely set of each item with this evidence, known truths as they are."""
    n_items, n_labels = evidence.shape
    sets = np.zeros((n_items, n_labels), dtype=np.bool_)
    probability = np.zeros(n_items)
    for rows in slices(n_items, max(1, _VALUES_AT_ONCE // theta.size)):
        weight, within, _ = type_posterior(evidence[rows], members, known[rows], theta, types)
        sets[rows], probability[rows] = _search(weight, within)
    return JointSets(sets, probability)


def _search(weight: Floats, within: Floats) -> tuple[NDArray[np.bool_], Floats]:
    log_weight = np.log(np.maximum(weight, _LEAST))
    log_in = np.log(np.maximum(within, _LEAST))
    log_out = np.log(np.maximum(1.0 - within, _LEAST))
    marginal = np.einsum("ek,ekl->el", weight, within) > 0.5
    starts = [marginal, *(within[:, k] > 0.5 for k in range(weight.shape[1]))]
    best, score = _improve(starts[0], log_weight, log_in, log_out)
    for start in starts[1:]:
        found, its_score = _improve(start, log_weight, log_in, log_out)
        better = its_score > score + _LEAST
        best = np.where(better[:, np.newaxis], found, best)
        score = np.maximum(score, its_score)
    return best, np.minimum(np.exp(score), 1.0)


def _improve(
    sets: NDArray[np.bool_], log_weight: Floats, log_in: Floats, log_out: Floats
) -> tuple[NDArray[np.bool_], Floats]:
    """Return the sets after single changes that raise their log-probability, and that."""
    sets = sets.copy()
    of_label = np.where(sets[:, np.newaxis], log_in, log_out)
    of_type = log_weight + of_label.sum(axis=2)
    score = np.logaddexp.reduce(of_type, axis=1)
    changed = True
    while changed:
        changed = False
        for label in range(sets.shape[1]):
            is_in = sets[:, label, np.newaxis]
            gain = np.where(is_in, -1.0, 1.0) * (log_in[:, :, label] - log_out[:, :, label])
            flipped = np.logaddexp.reduce(of_type + gain, axis=1)
            better = flipped > score + 1e-9
            if better.any():
                changed = True
                sets[better, label] ^= True
                of_type[better] += gain[better]
                score[better] = flipped[better]
    return sets, score


TOO_FEW_ANSWERS = "too few answers to tell"
"""The behavior of annotators of whom little is known."""

_N_DRAWS = 400
_WIDE = 0.7  # an interval as wide as this says nothing
# A label that is given less often than this counts as never given, one given more often than
# 1 minus this as always given.
_RARELY = 0.15
_ENDS = (2.5, 97.5)


class AnnotatorEstimates(NamedTuple):
    """Each annotator's reliability with its interval, behavior, and rates over all labels."""

    reliability: Floats
    low: Floats
    high: Floats
    behavior: list[str]
    columns: dict[str, Floats]  # the rates with their intervals, as in the table of annotators


def estimate_annotators(
    parameters: SetParameters, counts: AnswerCounts, own: Floats
) -> AnnotatorEstimates:
    """Return what is known about each annotator; ``own`` is how often they give each label."""
    rng = np.random.default_rng(0)
    of_reliability, *of_rates = zip(
        *(_draw(rng, parameters, counts) for _ in range(_N_DRAWS)), strict=True
    )
    reliability = (1.0 - parameters.irregular) * _relative(
        parameters.present, parameters.absent, parameters, counts
    )
    columns: dict[str, Floats] = {}
    rates = (parameters.present, counts.positives), (parameters.absent, counts.negatives)
    for name, given, draws in zip(("sensitivity", "specificity"), rates, of_rates, strict=True):
        ends = _with_interval(_overall(*given), draws)
        columns |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    reliability, low, high = _with_interval(reliability, of_reliability)
    n_answers = (counts.positives + counts.negatives).max(axis=1)
    behavior = _behaviors(reliability, high - low, own, n_answers)
    return AnnotatorEstimates(reliability, low, high, behavior, columns)


def _with_interval(values: Floats, draws: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return values, and the ends of the 95% intervals of draws around them."""
    low, high = np.percentile(draws, _ENDS, axis=0)
    return values, np.minimum(low, values), np.maximum(high, values)


def _draw(
    rng: np.random.Generator, parameters: SetParameters, counts: AnswerCounts
) -> tuple[Floats, Floats, Floats]:
    a = _draw_rates(rng, parameters.sensitivity, counts.hits, counts.positives)
    b = _draw_rates(rng, parameters.specificity, counts.rejections, counts.negatives)
    serious = rng.random(len(a)) >= parameters.irregular
    reliability = serious * _relative(a, b, parameters, counts)
    return reliability, _overall(a, counts.positives), _overall(b, counts.negatives)


def _draw_rates(
    rng: np.random.Generator, rates: PooledRates, successes: Floats, trials: Floats
) -> Floats:
    offset = rates.offset + np.sqrt(rates.offset_variance) * rng.standard_normal(len(rates.offset))
    mean = expit(rates.level + offset[:, np.newaxis])
    failures = np.maximum(trials - successes, 0.0)
    drawn: Floats = rng.beta(rates.kappa * mean + successes, rates.kappa * (1.0 - mean) + failures)
    return drawn


def _relative(a: Floats, b: Floats, parameters: SetParameters, counts: AnswerCounts) -> Floats:
    """Return the informedness relative to that of a typical serious annotator, from 0 to 1."""
    n = counts.positives + counts.negatives
    weight = counts.positives * counts.negatives / np.maximum(n, 1e-12)
    typical = parameters.sensitivity.crowd() + parameters.specificity.crowd() - 1.0
    of_typical = (weight * np.maximum(typical, 1e-3)).sum(axis=1)
    of_annotator = (weight * (a + b - 1.0)).sum(axis=1)
    relative: Floats = np.clip(of_annotator / np.maximum(of_typical, 1e-12), 0.0, 1.0)
    return relative


def _overall(rates: Floats, trials: Floats) -> Floats:
    weight = trials + 1e-6
    mean: Floats = (weight * rates).sum(axis=1) / weight.sum(axis=1)
    return mean


def _behaviors(reliability: Floats, width: Floats, own: Floats, n_answers: Floats) -> list[str]:
    """Return serious, what annotators of low reliability do, or that too little is known."""
    never, always = own < _RARELY, own > 1.0 - _RARELY
    what = np.select(
        [never.all(axis=1), always.all(axis=1), (never | always).all(axis=1)],
        ["always empty", "always everything", "always the same set"],
        default="random",
    )
    unclear: NDArray[np.bool_] = width > _WIDE
    unclear |= n_answers < FEW_LABELS - 0.5  # sums of probabilities are rounded
    serious = reliability >= SPAMMER_BELOW
    names: list[str] = np.select(
        [unclear, serious], [TOO_FEW_ANSWERS, "serious"], default=what
    ).tolist()
    return names
