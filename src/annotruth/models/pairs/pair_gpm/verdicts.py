"""Who is called a spammer: by evidence that votes do not depend on the items shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from annotruth.kernels.arrays import Floats
from annotruth.kernels.reference.pairs.gpm_outcomes import outcome_probabilities
from annotruth.models.distribution import Z_95
from annotruth.models.pairs.graph import sums_at
from annotruth.models.pairs.pair_gpm.annotators import (
    CLASSES,
    FAVOURS,
    INVERTED,
    N_SERIOUS,
    SERIOUS,
)
from annotruth.models.pairs.pair_gpm.estimation import PairEstimate
from annotruth.models.pairs.summary import NOT_SHARED, TOO_FEW_VOTES
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE

MIN_VOTES = 5
"""The number of comparisons below which nothing is said about an annotator's behavior."""

FALSE_DISCOVERIES = 0.05
"""The expected share of serious annotators among those who are called spammers."""

MAX_SERIOUS = 0.2  # nobody is called a spammer whose probability of being serious is higher
DECIDED = 0.8  # nor serious with a lower one
DECIDED_INVERTED = 0.9  # nor inverted: that is more than careless
_CLEARLY = 1.645  # standard deviations above the agreement of own votes permuted: 5%
_AGAINST = 1.0  # standard deviations below it, of those who are called inverted
_INFORMATIVE = np.log(3.0)  # of the likelihood ratio of serious and random votes


class VoteAgreement(NamedTuple):
    """Weighted counts of each annotator's votes, beside what is expected by the votes of others."""

    left: Floats
    ties: Floats
    agreed: Floats  # votes for the better item by others
    expected_left: Floats  # of a typical serious annotator, as the next two
    expected_ties: Floats
    expected: Floats  # to agree
    z: Floats  # by how many standard deviations votes agree more than when they are permuted
    accuracy: Floats  # of decided votes, for the better item by others; nan without such
    low: Floats
    high: Floats


def measure_agreement(now: PairEstimate) -> VoteAgreement:
    """Count each annotator's votes, and compare them with those of others."""
    habits, evaluated = now.states.crowd.habits, now.evaluated()
    n_annotators, outcomes = now.votes.n_annotators, evaluated.outcomes
    mean, variance = evaluated.left_out
    tie = np.exp(habits.tie) * outcomes.tie_odds * outcomes.has_ties
    p = outcome_probabilities(mean + habits.side, np.sqrt(variance), tie, outcomes.rules)
    outcome = outcomes.outcome

    def total(values: Floats) -> Floats:
        return sums_at(evaluated.annotator, evaluated.n_votes * values, n_annotators)

    chosen = np.array([1.0, -1.0, 0.0])[outcome]
    above = ndtr(mean / np.sqrt(np.maximum(variance, 1e-12)))
    decided = outcome != TIE
    right = np.where(outcome == LEFT, above, 1.0 - above) * decided
    n_decided = total(decided.astype(np.float64))
    typical = outcome_probabilities(mean, np.sqrt(variance), tie, outcomes.rules)
    better = np.where(mean > 0.0, typical[LEFT], typical[RIGHT])
    accuracy, low, high = _interval(total(right), n_decided)
    return VoteAgreement(
        left=total((outcome == LEFT).astype(np.float64)),
        ties=total((outcome == TIE).astype(np.float64)),
        agreed=total(((chosen * mean) > 0.0).astype(np.float64)),
        expected_left=total(p[LEFT]),
        expected_ties=total(p[TIE]),
        expected=total(better),
        z=_permuted(chosen, p[LEFT] - p[RIGHT], outcomes.weight / evaluated.n_votes, total),
        accuracy=accuracy,
        low=low,
        high=high,
    )


def _permuted(
    chosen: Floats, expected: Floats, weight: Floats, total: Callable[[Floats], Floats]
) -> Floats:
    """Return the standard score of the agreement among permutations of own votes."""
    n = np.maximum(total(np.ones_like(weight)), 1e-9)
    chosen_mean, expected_mean = total(chosen) / n, total(expected) / n
    product = total(chosen * expected) - n * chosen_mean * expected_mean
    squares = (total(chosen**2) - n * chosen_mean**2) * (total(expected**2) - n * expected_mean**2)
    variance = np.maximum(squares, 0.0) / np.maximum(n - 1.0, 1.0)
    # Votes of a ranking are not permuted one by one.
    dependence = n / np.maximum(total(weight), 1e-9)
    z: Floats = np.where(variance > 1e-12, product / np.sqrt(variance * dependence + 1e-300), 0.0)
    return z


def _interval(right: Floats, n: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the share of right votes with Wilson's 95% interval; nan without votes."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(n > 0, right / n, np.nan)
        center = (share + Z_95**2 / (2.0 * n)) / (1.0 + Z_95**2 / n)
        margin = np.sqrt(share * (1.0 - share) / n + Z_95**2 / (4.0 * n**2))
        margin *= Z_95 / (1.0 + Z_95**2 / n)
    return share, np.maximum(center - margin, 0.0), np.minimum(center + margin, 1.0)


def name_behaviors(now: PairEstimate, agreement: VoteAgreement) -> list[str]:
    """Return each annotator's behavior: serious, that of a spammer, or why it is unknown.

    Spammers are as many as keep the expected share of serious ones among them at 5%. Nobody is called
    random or said to choose always the same whose votes clearly go with those of others, and
    nobody inverted whose votes do not go against them.
    """
    states, votes = now.states, now.votes
    p_serious = states.p_serious
    p_class = states.p_class[:, 1:].copy()
    inverted = CLASSES.index(INVERTED) - 1
    p_class[p_class[:, inverted] < DECIDED_INVERTED, inverted] = 0.0
    likeliest = np.array(CLASSES[1:])[p_class.argmax(axis=1)]
    accused = p_serious <= MAX_SERIOUS
    accused &= votes.data.comparisons_per_annotator >= MIN_VOTES
    accused &= np.where(likeliest == INVERTED, agreement.z < -_AGAINST, True)
    accused &= np.isin(likeliest, [INVERTED, FAVOURS]) | (agreement.z < _CLEARLY)
    accused = control_discoveries(p_serious, accused)
    serious = (p_serious >= DECIDED) & ~accused
    behavior = np.where(accused, likeliest, np.where(serious, SERIOUS, TOO_FEW_VOTES)).astype(
        object
    )
    behavior[votes.data.comparisons_per_annotator < MIN_VOTES] = TOO_FEW_VOTES
    if votes.context is not None:
        value = states.habits.value
        ratio = value[:, :N_SERIOUS].max(axis=1) - value[:, -1]
        behavior[~votes.is_shared & ~accused & (ratio < _INFORMATIVE)] = NOT_SHARED
    return [str(each) for each in behavior]


def control_discoveries(p_serious: Floats, candidate: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the most candidates of whom at most 5% are expected to be serious."""
    order = np.flatnonzero(candidate)
    order = order[np.argsort(p_serious[order], kind="stable")]
    expected = np.cumsum(p_serious[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros_like(candidate)
    chosen[order[expected <= FALSE_DISCOVERIES]] = True
    return chosen
