"""The latent class, sharpness and habits of each annotator, evaluated by the votes of everybody else.

A serious annotator's votes follow the scores with a sharpness b of their own; those of an inverted one with
a negative b; those of a random one not at all. Side bias and tie rate are habits that an annotator has
whatever the class. Classes that always choose one outcome, or one item, have none. All have weak priors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs import (
    HabitPrior,
    Habits,
    Outcomes,
    VoteDifferences,
    VoterHabits,
)
from annotruth.models.pairs.graph import sums_at
from annotruth.models.pairs.pair_gpm.votes import PairVotes
from annotruth.models.pairs.passes import Passes
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT, TIE

SERIOUS, RANDOM, INVERTED, FAVOURS = "serious", "random", "inverted", "favours one item"
SIDES = ("always left", "always right")
ALWAYS_TIE = "always tie"

CLASSES = (SERIOUS, RANDOM, *SIDES, ALWAYS_TIE, INVERTED, FAVOURS)
"""The classes of annotators."""

CLASS_PRIOR = np.array([17.0, 0.8, 0.6, 0.6, 0.6, 0.4, 0.4])
"""Pseudo-counts of annotators in each class."""

SHARPNESS = np.exp(np.linspace(np.log(0.3), np.log(3.0), 9))
"""Levels of sharpness of serious annotators."""

INVERTED_SHARPNESS = np.array([-0.5, -1.0, -2.0])

LEVELS = np.concatenate([SHARPNESS, INVERTED_SHARPNESS, [0.0]])
"""All levels: serious, inverted, and random votes with habits."""

_SHARPNESS_SD, _SHARPNESS_ANNOTATORS = 0.35, 6.0  # of log sharpness, and what it counts as
_SHARPNESS_SD_RANGE = (0.15, 0.6)
INVERTED_SD = 0.5  # of the log of the sharpness of inverted annotators
_SIDE_SD, _TIE_SD = 0.3, 0.5  # of annotators' side biases and log tie rates
_HABIT_ANNOTATORS = 3.0  # what these count as
ALWAYS = 0.95  # how often those who always choose one outcome do so
FAVOURED = 0.97  # how often the favoured item is chosen

N_SERIOUS = len(SHARPNESS)
N_INVERTED = len(INVERTED_SHARPNESS)
_EM_ROUNDS = 20
_UNLIKELY = 14.0  # of the log-likelihood below the best: such levels are left out for a while
_LOG_SHARPNESS = np.log(SHARPNESS)


@dataclass
class Crowd:
    """What is estimated of the crowd: the prior of annotators."""

    habits: HabitPrior
    sharpness_sd: float  # of log sharpness
    share: Floats  # the probability of each class
    level: Floats  # that of each level of sharpness


def _level_shares(counts: Floats) -> Floats:
    """Return the probabilities of levels: two halves of normal densities of log sharpness.

    The spread above 1 says nothing about that below, where the blunt are separated from the random; there
    it is not below the prior's.
    """
    sd = np.empty(N_SERIOUS)
    low, high = _SHARPNESS_SD_RANGE
    for half, least in ((_LOG_SHARPNESS < 0.0, _SHARPNESS_SD), (_LOG_SHARPNESS >= 0.0, low)):
        square = 2.0 * float(counts[half] @ _LOG_SHARPNESS[half] ** 2)
        n = 2.0 * float(counts[half].sum())
        found = _shrunk_sd(_SHARPNESS_SD, _SHARPNESS_ANNOTATORS, square, n)
        sd[half] = np.clip(found, least, high)
    weight = np.exp(-0.5 * (_LOG_SHARPNESS / sd) ** 2)
    levels: Floats = weight / weight.sum()
    return levels


@dataclass
class AnnotatorStates:
    """The posterior of annotators' states."""

    crowd: Crowd
    fixed: Floats
    """The log-likelihood of classes without habits: random with shares of one's own, always left, right and
    tie, and favours one item; annotators x 5."""
    favoured: Codes  # the item that each annotator favours, if any
    habits: Habits  # of each annotator and level of sharpness
    active: NDArray[np.bool_]  # annotators x levels: those that are evaluated
    weight: Floats  # by how much each annotator counts
    p_class: Floats = field(default_factory=lambda: np.empty(0))  # annotators x classes
    p_level: Floats = field(default_factory=lambda: np.empty(0))
    """The probability of each level of sharpness, given that the annotator is serious."""
    log_likelihood: float = -math.inf  # of all votes, each given the votes of others
    scale: float = 1.0  # by what scores were multiplied since levels were evaluated

    @property
    def p_serious(self) -> Floats:
        """The probability that each annotator is serious."""
        serious: Floats = self.p_class[:, 0]
        return serious

    @property
    def serious_weight(self) -> Floats:
        """The weight of each serious annotator at each level: annotators x levels."""
        weight: Floats = self.p_level * (self.weight * self.p_serious)[:, np.newaxis]
        return weight

    def voters(self) -> VoterHabits:
        """Return what annotators are taken for while the scores are estimated."""
        habits = self.habits.side[:, :N_SERIOUS], self.habits.tie[:, :N_SERIOUS]
        side, tie = ((self.p_level * each).sum(axis=1) for each in habits)
        sharpness = self.p_level @ SHARPNESS / self.scale
        return VoterHabits(sharpness, side, tie, self.weight * self.p_serious)

    def evaluate(
        self, outcomes: Outcomes, passes: Passes, left_out: VoteDifferences, n_steps: int = 1
    ) -> None:
        """Take steps on the habits at each active level, given differences by others' votes."""
        self.scale = 1.0
        for _ in range(n_steps):
            arguments = outcomes, left_out, LEVELS, self.active, self.crowd.habits, self.habits
            passes.run("gpm_outcomes.fit_habits", "annotators", *arguments)

    def choose_levels(self) -> None:
        """Leave out levels that are very unlikely, but none next to a likely one."""
        best = self.habits.value
        limit = np.repeat(best.max(axis=1)[:, np.newaxis], len(LEVELS), axis=1)
        limit[:, :N_SERIOUS] = best[:, :N_SERIOUS].max(axis=1)[:, np.newaxis]
        likely = best > limit - _UNLIKELY
        near = likely.copy()
        near[:, 1:N_SERIOUS] |= likely[:, : N_SERIOUS - 1]
        near[:, : N_SERIOUS - 1] |= likely[:, 1:N_SERIOUS]
        near[:, -1] = True
        self.active = near
        self.habits.value[~near] = -np.inf

    def update(self, has: Outcomes, *, learn: bool = True) -> None:
        """Update the posterior, and with ``learn`` what is estimated of the crowd."""
        for _ in range(_EM_ROUNDS if learn else 1):
            self._update_posterior()
            if learn:
                self._learn_shares()
        if learn:
            self._learn_habits(has)

    def _update_posterior(self) -> None:
        crowd, value = self.crowd, self.habits.value
        with np.errstate(divide="ignore"):
            log_share = np.log(crowd.share)
        inverted = -0.5 * (np.log(-INVERTED_SHARPNESS) / INVERTED_SD) ** 2
        inverted -= logsumexp(inverted)
        serious = value[:, :N_SERIOUS] + np.log(crowd.level)
        against = value[:, N_SERIOUS : N_SERIOUS + N_INVERTED] + inverted
        of_serious = logsumexp(serious, axis=1)
        by_habit = np.logaddexp(value[:, -1], self.fixed[:, 0]) - math.log(2.0)
        columns = [of_serious, by_habit, *self.fixed[:, 1:4].T]
        columns += [logsumexp(against, axis=1), self.fixed[:, 4]]
        joint = np.stack(columns, axis=1) + log_share
        total = logsumexp(joint, axis=1)
        self.p_class = np.exp(joint - total[:, np.newaxis])
        self.p_level = np.exp(serious - of_serious[:, np.newaxis])
        self.log_likelihood = float(total @ self.weight)

    def _learn_shares(self) -> None:
        crowd, serious = self.crowd, self.serious_weight
        counts = np.where(crowd.share > 0.0, CLASS_PRIOR + self.weight @ self.p_class, 0.0)
        square = float((serious * _LOG_SHARPNESS**2).sum())
        sd = _shrunk_sd(_SHARPNESS_SD, _SHARPNESS_ANNOTATORS, square, float(serious.sum()))
        crowd.share = counts / counts.sum()
        crowd.sharpness_sd = float(np.clip(sd, *_SHARPNESS_SD_RANGE))
        crowd.level = _level_shares(serious.sum(axis=0))

    def _learn_habits(self, has: Outcomes) -> None:
        weight, old = self.serious_weight, self.crowd.habits
        n = max(float(weight.sum()), 1e-9)
        side, tie, _, variance = (each[:, :N_SERIOUS] for each in self.habits)
        mean_side = float((weight * side).sum()) / n if has.has_sides else 0.0
        square = float((weight * ((side - mean_side) ** 2 + variance)).sum())
        side_sd = _shrunk_sd(_SIDE_SD, _HABIT_ANNOTATORS, square, n)
        mean_tie = float((weight * tie).sum()) / n if has.has_ties else old.tie
        square = float((weight * (tie - mean_tie) ** 2).sum())
        tie_sd = _shrunk_sd(_TIE_SD, _HABIT_ANNOTATORS, square, n)
        self.crowd.habits = HabitPrior(mean_side, side_sd, mean_tie, tie_sd)

    def serious_evidence(self) -> float:
        """Return the log of the likelihood ratio of serious and random annotators, over all."""
        value = self.habits.value
        serious = logsumexp(value[:, :N_SERIOUS] + np.log(self.crowd.level), axis=1)
        return float(self.weight @ (serious - value[:, -1]))

    def share_serious(self) -> float:
        """Return the expected share of annotators who are serious."""
        return float(self.weight @ self.p_serious / max(float(self.weight.sum()), 1e-9))

    def mean_log_sharpness(self) -> float:
        """Return the mean of the log sharpness of serious annotators."""
        serious = self.serious_weight
        return float((serious * _LOG_SHARPNESS).sum() / max(float(serious.sum()), 1e-9))


def _shrunk_sd(prior: float, n_prior: float, squares: float, n: float) -> float:
    """Return a standard deviation, given a sum of squares and a prior that counts as some numbers."""
    return math.sqrt((n_prior * prior**2 + squares) / (n_prior + n))


def make_states(votes: PairVotes, passes: Passes) -> AnnotatorStates:
    """Return the states before anything is known of the scores."""
    outcomes = votes.outcomes
    n = votes.n_annotators
    key = votes.annotator * len(OUTCOMES) + outcomes.outcome
    counts = sums_at(key, outcomes.weight, n * len(OUTCOMES)).reshape(-1, len(OUTCOMES))
    weight = votes.data.annotator_weight
    weight = np.ones(n) if weight is None else weight
    left, right, tie = np.maximum(weight @ counts, 0.5)
    prior = HabitPrior(
        float(np.log(left / right)) if outcomes.has_sides else 0.0,
        _SIDE_SD,
        float(np.log(tie / np.sqrt(left * right))) if outcomes.has_ties else 0.0,
        _TIE_SD,
    )
    known = np.ones(len(CLASS_PRIOR), dtype=np.bool_)
    known[2:4], known[4] = outcomes.has_sides, outcomes.has_ties
    share = np.where(known, CLASS_PRIOR, 0.0)
    crowd = Crowd(
        habits=prior,
        sharpness_sd=_SHARPNESS_SD,
        share=share / share.sum(),
        level=_level_shares(np.zeros(N_SERIOUS)),
    )
    favours, favoured = _favours(votes, passes, counts)
    shape = (n, len(LEVELS))
    states = AnnotatorStates(
        crowd=crowd,
        fixed=np.column_stack([_by_shares(counts, outcomes), _always(counts, outcomes), favours]),
        favoured=favoured,
        habits=Habits(
            *(np.full(shape, each) for each in (prior.side, prior.tie, -np.inf, _SIDE_SD**2))
        ),
        active=np.ones(shape, dtype=np.bool_),
        weight=weight,
    )
    states.p_class = np.zeros((n, len(CLASS_PRIOR)))
    states.p_class[:, 0] = 1.0
    states.p_level = np.zeros((n, N_SERIOUS))
    states.p_level[:, N_SERIOUS // 2] = 1.0
    return states


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
    arguments = outcomes, votes.left, votes.right, n_items, favoured, shown
    passes.run("gpm_outcomes.find_favoured", "annotators", *arguments)
    won, by_outcome = shown[:, 3], shown[:, :3]
    lost = by_outcome.sum(axis=1) - won
    n_outcomes = 3 if outcomes.has_ties else 2
    value = won * math.log(FAVOURED) + lost * math.log((1.0 - FAVOURED) / (n_outcomes - 1))
    value += _by_shares(np.maximum(counts - by_outcome, 0.0), outcomes) - math.log(n_items)
    return np.where(favoured >= 0, value, -np.inf), favoured
