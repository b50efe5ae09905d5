"""The latent class, sharpness and habits of each annotator, evaluated by the votes of everybody else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.gpm_outcomes import HabitPrior, Outcomes, VoterHabits
from annotruth.models.pairs.graph import sums_at
from annotruth.models.pairs.pair_gpm.scores import VoteDifferences
from annotruth.models.pairs.pair_gpm.states import (
    ALWAYS,
    CLASS_PRIOR,
    FAVOURED,
    HABIT_ANNOTATORS,
    INVERTED_SD,
    INVERTED_SHARPNESS,
    LEVELS,
    SHARPNESS,
    SHARPNESS_ANNOTATORS,
    SHARPNESS_SD,
    SHARPNESS_SD_RANGE,
    SIDE_SD,
    TIE_SD,
)
from annotruth.models.pairs.pair_gpm.votes import PairVotes, Passes
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT, TIE

N_SERIOUS = len(SHARPNESS)
N_INVERTED = len(INVERTED_SHARPNESS)
_EM_ROUNDS = 20
_UNLIKELY = 14.0  # of the log-likelihood below the best: such levels are left out for a while
_LOG_SHARPNESS = np.log(SHARPNESS)


@dataclass
class Crowd:
    """What is estimated of the crowd: the prior of annotators.

    Attributes
    ----------
    habits
        The priors of side biases and of log tie rates.
    sharpness_sd
        The standard deviation of log sharpness.
    share
        The probability of each class.
    group
        The probability of each taste group.
    level
        The probability of each level of sharpness.
    """

    habits: HabitPrior
    sharpness_sd: float
    share: Floats
    group: Floats
    level: Floats = field(default_factory=lambda: _level_shares(np.zeros(N_SERIOUS)))


def _level_shares(counts: Floats) -> Floats:
    """Return the probabilities of levels: two halves of normal densities of log sharpness.

    The spread above 1 says nothing about that below, where the blunt are separated from the random; there
    it is not below the prior's.
    """
    sd = np.empty(N_SERIOUS)
    low, high = SHARPNESS_SD_RANGE
    for half, least in ((_LOG_SHARPNESS < 0.0, SHARPNESS_SD), (_LOG_SHARPNESS >= 0.0, low)):
        square = SHARPNESS_ANNOTATORS * SHARPNESS_SD**2
        square += 2.0 * float(counts[half] @ _LOG_SHARPNESS[half] ** 2)
        n = SHARPNESS_ANNOTATORS + 2.0 * float(counts[half].sum())
        sd[half] = np.clip(math.sqrt(square / n), least, high)
    weight = np.exp(-0.5 * (_LOG_SHARPNESS / sd) ** 2)
    levels: Floats = weight / weight.sum()
    return levels


@dataclass
class AnnotatorStates:
    """The posterior of annotators' states.

    Attributes
    ----------
    crowd
        The prior.
    fixed
        The log-likelihood of classes without habits: random with shares of one's own, always left,
        right and tie, and favours one item; annotators x 5.
    favoured
        The item that each annotator favours, if any.
    side, tie, value, side_variance
        Of each taste group, annotator and level of sharpness: the habits, the log-likelihood, and the
        variance of the side bias.
    p_class
        The probability of each class: annotators x classes.
    p_level
        The joint probability of a serious annotator's group and level, given that they are serious.
    log_likelihood
        Of all votes, each given the votes of others.
    scale
        By what scores were multiplied since levels were evaluated.
    """

    crowd: Crowd
    fixed: Floats
    favoured: Codes
    side: Floats
    tie: Floats
    value: Floats
    side_variance: Floats
    active: NDArray[np.bool_]
    weight: Floats
    p_class: Floats = field(default_factory=lambda: np.empty(0))
    p_level: Floats = field(default_factory=lambda: np.empty(0))
    log_likelihood: float = -math.inf
    scale: float = 1.0

    @property
    def p_serious(self) -> Floats:
        """The probability that each annotator is serious."""
        serious: Floats = self.p_class[:, 0]
        return serious

    @property
    def p_group(self) -> Floats:
        """The probability of each group, given that the annotator is serious: annotators x groups."""
        group: Floats = self.p_level.sum(axis=2).T
        return group

    def voters(self, group: int) -> VoterHabits:
        """Return what annotators are taken for while the scores of a group are estimated."""
        level = self.p_level[group]
        p_group = level.sum(axis=1)
        share = level / np.maximum(p_group, 1e-300)[:, np.newaxis]
        habits = (each[group, :, :N_SERIOUS] for each in (self.side, self.tie))
        side, tie = ((share * each).sum(axis=1) for each in habits)
        return VoterHabits(
            share @ SHARPNESS / self.scale, side, tie, self.weight * self.p_serious * p_group
        )

    def evaluate(
        self, outcomes: Outcomes, passes: Passes, by_group: list[VoteDifferences], n_steps: int = 1
    ) -> None:
        """Take steps on the habits at each active level, given differences by others' votes."""
        self.scale = 1.0
        for _ in range(n_steps):
            for g, (mean, variance) in enumerate(by_group):
                passes.by_annotator(
                    "gpm_outcomes.fit_habits",
                    outcomes,
                    mean,
                    variance,
                    LEVELS,
                    self.active,
                    self.crowd.habits,
                    self.side[g],
                    self.tie[g],
                    self.value[g],
                    self.side_variance[g],
                )

    def choose_levels(self) -> None:
        """Leave out levels that are very unlikely, but none next to a likely one."""
        best = self.value.max(axis=0)
        limit = np.repeat(best.max(axis=1)[:, np.newaxis], len(LEVELS), axis=1)
        limit[:, :N_SERIOUS] = best[:, :N_SERIOUS].max(axis=1)[:, np.newaxis]
        likely = best > limit - _UNLIKELY
        near = likely.copy()
        near[:, 1:N_SERIOUS] |= likely[:, : N_SERIOUS - 1]
        near[:, : N_SERIOUS - 1] |= likely[:, 1:N_SERIOUS]
        near[:, -1] = True
        self.active = near
        self.value[:, ~near] = -np.inf

    def update(self, has: Outcomes, *, learn: bool = True) -> None:
        """Update the posterior, and with ``learn`` what is estimated of the crowd."""
        for _ in range(_EM_ROUNDS if learn else 1):
            self._update_posterior()
            if learn:
                self._learn_shares()
        if learn:
            self._learn_habits(has)

    def _update_posterior(self) -> None:
        crowd = self.crowd
        with np.errstate(divide="ignore"):
            log_share, log_group = np.log(crowd.share), np.log(crowd.group)
        level = np.log(crowd.level)
        inverted = -0.5 * (np.log(-INVERTED_SHARPNESS) / INVERTED_SD) ** 2
        inverted -= logsumexp(inverted)
        by_group = log_group[:, np.newaxis, np.newaxis]
        serious = self.value[:, :, :N_SERIOUS] + level + by_group
        against = self.value[:, :, N_SERIOUS : N_SERIOUS + N_INVERTED] + inverted + by_group
        of_serious = logsumexp(serious, axis=(0, 2))
        by_habit = np.logaddexp(self.value[0, :, -1], self.fixed[:, 0]) - math.log(2.0)
        columns = [of_serious, by_habit, *self.fixed[:, 1:4].T]
        columns += [logsumexp(against, axis=(0, 2)), self.fixed[:, 4]]
        joint = np.stack(columns, axis=1) + log_share
        total = logsumexp(joint, axis=1)
        self.p_class = np.exp(joint - total[:, np.newaxis])
        self.p_level = np.exp(serious - of_serious[:, np.newaxis])
        self.log_likelihood = float(total @ self.weight)

    def _learn_shares(self) -> None:
        crowd, weight = self.crowd, self.weight
        counts = np.where(crowd.share > 0.0, CLASS_PRIOR + weight @ self.p_class, 0.0)
        serious = self.p_level * (weight * self.p_serious)[:, np.newaxis]
        n_serious = float(serious.sum())
        square = float((serious * _LOG_SHARPNESS**2).sum())
        variance = SHARPNESS_ANNOTATORS * SHARPNESS_SD**2 + square
        sd = math.sqrt(variance / (SHARPNESS_ANNOTATORS + n_serious))
        by_group = serious.sum(axis=(1, 2)) + 1.0
        crowd.share = counts / counts.sum()
        crowd.sharpness_sd = float(np.clip(sd, *SHARPNESS_SD_RANGE))
        crowd.level = _level_shares(serious.sum(axis=(0, 1)))
        crowd.group = by_group / by_group.sum()

    def _learn_habits(self, has: Outcomes) -> None:
        weight = self.p_level * (self.weight * self.p_serious)[:, np.newaxis]
        n = max(float(weight.sum()), 1e-9)
        side, tie, variance = (
            each[:, :, :N_SERIOUS] for each in (self.side, self.tie, self.side_variance)
        )
        old = self.crowd.habits
        mean_side = float((weight * side).sum()) / n if has.has_sides else 0.0
        square = float((weight * ((side - mean_side) ** 2 + variance)).sum())
        side_sd = math.sqrt((HABIT_ANNOTATORS * SIDE_SD**2 + square) / (HABIT_ANNOTATORS + n))
        mean_tie = float((weight * tie).sum()) / n if has.has_ties else old.tie
        square = float((weight * (tie - mean_tie) ** 2).sum())
        tie_sd = math.sqrt((HABIT_ANNOTATORS * TIE_SD**2 + square) / (HABIT_ANNOTATORS + n))
        self.crowd.habits = HabitPrior(mean_side, side_sd, mean_tie, tie_sd)

    def serious_evidence(self) -> float:
        """Return the log of the likelihood ratio of serious and random annotators, over all."""
        levels = self.value[:, :, :N_SERIOUS] + np.log(self.crowd.level)
        serious = logsumexp(
            levels + np.log(self.crowd.group)[:, np.newaxis, np.newaxis], axis=(0, 2)
        )
        return float(self.weight @ (serious - self.value[0, :, -1]))

    def share_serious(self) -> float:
        """Return the expected share of annotators who are serious."""
        return float(self.weight @ self.p_serious / max(float(self.weight.sum()), 1e-9))

    def mean_log_sharpness(self) -> float:
        """Return the mean of the log sharpness of serious annotators."""
        serious = self.p_level * (self.weight * self.p_serious)[:, np.newaxis]
        return float((serious * _LOG_SHARPNESS).sum() / max(float(serious.sum()), 1e-9))


def make_states(votes: PairVotes, passes: Passes, n_groups: int) -> AnnotatorStates:
    """Return the states before anything is known of the scores."""
    outcomes = votes.outcomes
    n = votes.n_annotators
    counts = _outcome_counts(votes)
    weight = votes.data.annotator_weight
    weight = np.ones(n) if weight is None else weight
    left, right, tie = np.maximum(weight @ counts, 0.5)
    habits = HabitPrior(
        float(np.log(left / right)) if outcomes.has_sides else 0.0,
        SIDE_SD,
        float(np.log(tie / np.sqrt(left * right))) if outcomes.has_ties else 0.0,
        TIE_SD,
    )
    known = np.ones(len(CLASS_PRIOR), dtype=np.bool_)
    known[2:4], known[4] = outcomes.has_sides, outcomes.has_ties
    share = np.where(known, CLASS_PRIOR, 0.0)
    crowd = Crowd(habits, SHARPNESS_SD, share / share.sum(), np.full(n_groups, 1.0 / n_groups))
    favours, favoured = _favours(votes, passes, counts)
    shape = (n_groups, n, len(LEVELS))
    states = AnnotatorStates(
        crowd=crowd,
        fixed=np.column_stack([_by_shares(counts, outcomes), _always(counts, outcomes), favours]),
        favoured=favoured,
        side=np.full(shape, habits.side),
        tie=np.full(shape, habits.tie),
        value=np.full(shape, -np.inf),
        side_variance=np.full(shape, SIDE_SD**2),
        active=np.ones(shape[1:], dtype=np.bool_),
        weight=weight,
    )
    states.p_class = np.zeros((n, len(CLASS_PRIOR)))
    states.p_class[:, 0] = 1.0
    states.p_level = np.zeros((n_groups, n, N_SERIOUS))
    states.p_level[:, :, N_SERIOUS // 2] = 1.0 / n_groups
    return states


def _outcome_counts(votes: PairVotes) -> Floats:
    """Return how often each annotator chose left, right and tie, with votes' weights."""
    key = votes.annotator * len(OUTCOMES) + votes.outcomes.outcome
    counts = sums_at(key, votes.outcomes.weight, votes.n_annotators * len(OUTCOMES))
    return counts.reshape(-1, len(OUTCOMES))


def _by_shares(counts: Floats, outcomes: Outcomes) -> Floats:
    """Return the log marginal likelihood of outcomes with shares that are evenly distributed.

    Where sides are not known, left and right are alike.
    """
    decided = counts[..., LEFT] + counts[..., RIGHT]
    if outcomes.has_sides:
        used = counts if outcomes.has_ties else counts[..., :TIE]
        return _log_dirichlet(used, np.ones(used.shape[-1]))
    halves: Floats = decided * math.log(0.5)
    if outcomes.has_ties:
        halves += _log_dirichlet(np.stack([decided, counts[..., TIE]], -1), np.array([2.0, 1.0]))
    return halves


def _log_dirichlet(counts: Floats, prior: Floats) -> Floats:
    """Return the log-likelihood of counts averaged over shares with a Dirichlet prior."""
    total: Floats = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum(axis=-1))
    total += (gammaln(prior + counts) - gammaln(prior)).sum(axis=-1)
    return total


def _always(counts: Floats, outcomes: Outcomes) -> Floats:
    """Return the log-likelihood of those who always choose left, right or tie."""
    n_outcomes = 3 if outcomes.has_ties else 2
    other = math.log((1.0 - ALWAYS) / (n_outcomes - 1))
    found: Floats = counts * math.log(ALWAYS) + (counts.sum(axis=1)[:, np.newaxis] - counts) * other
    if not outcomes.has_sides:
        found[:, :TIE] = -np.inf
    if not outcomes.has_ties:
        found[:, TIE] = -np.inf
    return found


def _favours(votes: PairVotes, passes: Passes, counts: Floats) -> tuple[Floats, Codes]:
    """Return the log-likelihood of those who favour the item they chose most one-sidedly, and it.

    A priori each item is as likely; votes on other items are random.
    """
    outcomes, n_items = votes.outcomes, votes.data.n_items
    favoured = np.full(votes.n_annotators, -1, dtype=np.int64)
    shown = np.zeros((votes.n_annotators, 4))
    passes.by_annotator(
        "gpm_outcomes.find_favoured",
        *(outcomes, votes.left, votes.right, n_items, favoured, shown),
    )
    won, by_outcome = shown[:, 3], shown[:, :3]
    lost = by_outcome.sum(axis=1) - won
    n_outcomes = 3 if outcomes.has_ties else 2
    value = won * math.log(FAVOURED) + lost * math.log((1.0 - FAVOURED) / (n_outcomes - 1))
    value += _by_shares(np.maximum(counts - by_outcome, 0.0), outcomes) - math.log(n_items)
    return np.where(favoured >= 0, value, -np.inf), favoured
