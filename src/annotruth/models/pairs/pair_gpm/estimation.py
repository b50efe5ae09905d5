r"""The estimation of PairGPM: scores, annotators, ties of pairs and the spread over contexts in turns.

Each round solves for the scores and updates the sites of votes, judges annotators by the differences that
the votes of all others imply, and then updates the priors. Annotators' own votes would follow them: evaluated
by these, everybody looks serious.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs import Outcomes, Predictions, VoteDifferences
from annotruth.models.em import Progress, ProgressCallback
from annotruth.models.pairs.graph import sums_at
from annotruth.models.pairs.pair_gpm.annotators import AnnotatorStates, make_states
from annotruth.models.pairs.pair_gpm.scores import Prior, VoteScores
from annotruth.models.pairs.pair_gpm.votes import PairVotes
from annotruth.models.pairs.passes import Passes

MARGINAL = 2.0 * (16.0 * np.sqrt(3.0) / (15.0 * np.pi)) ** 2
r"""Log odds in a new context are those within a context divided by :math:`\sqrt{1 + 0.692 \tau^2}`."""

_PAIR_TIE_VARIANCE, _PAIR_TIE_PAIRS = 0.05, 5.0  # of pairs' log tie rates, and what it counts as
_CELL_TIE_VARIANCES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)  # of log tie rates of pairs in a context
_CELL_TIE_ROUNDS = (1, 3)  # in which one of these is chosen
_MAX_CELL_TIE = 2.0
_FIRST_SPREAD, _MAX_SPREAD = 1.0, 6.0  # of scores over contexts: beyond, these determine votes
_FIRST_SITES, _SITES, _SITES_OF_SPREAD, _LAST_SITES = 8, 3, 3, 4
_STEP = 0.8
_FIRST_HABITS = 2  # steps on habits in the first round
_SCALE_STEP = 0.7
_PRIOR_ITEMS = 1.0  # the prior of the variance of scores counts as one score of +-1
# The rounds in which the spread over contexts is chosen, and the factors between candidates.
_SPREAD_ROUNDS = {1: 0.0, 3: 1.5, 5: 1.2}
_SPREADS = (0.0, 0.5, 1.4, 3.5)
_SMALLEST_SPREAD = 0.25
_MIN_ROUNDS = 6
# How much of the levels of the round before is kept, from some rounds on: few annotators would take
# turns in being the sharpest.
_DAMPING = ((7, 0.5), (14, 0.75), (24, 0.9))
_CLASSES = 16  # of differences, where votes are many
_PRIOR_STEP = 1.3  # times the step of the fixed point of the scores' variance, which is short
_ALL_LEVELS = (0, 4)  # the rounds in which levels that were left out are considered again


_NO_DIFFERENCES = VoteDifferences(np.empty(0), np.empty(0))


@dataclass
class PairEstimate:
    """What is estimated, as it is after some rounds."""

    votes: PairVotes
    passes: Passes
    scores: VoteScores
    states: AnnotatorStates
    prior: Prior  # of scores
    outcomes: Outcomes  # the votes with the tie rates of pairs
    pair_tie: Floats  # the log tie rate of each pair, relative to the crowd's
    pair_tie_variance: float = _PAIR_TIE_VARIANCE  # of their prior
    cell_tie: Floats | float = 0.0  # what each vote's context adds, by the votes of others there
    cell_tie_variance: float = 0.0
    left_out: VoteDifferences = _NO_DIFFERENCES  # by the votes of others
    history: list[float] = field(default_factory=list)  # the log-likelihood after each round
    converged: bool = False
    plain: Floats | None = None  # the scores of all votes counted alike, where they are known
    is_large: bool = False  # annotators are evaluated by votes in classes of differences, for speed
    classes: EvaluatedVotes | None = None  # these votes, once they are needed

    def iterate(self, n_times: int, step: float = 1.0) -> None:
        """Update the scores and sites."""
        self.scores.iterate(self.outcomes, self.states.voters(), self.prior, n_times, step)

    def leave_out(self) -> None:
        """Compute the differences by the votes of others.

        Annotators who count less than others, as machines do that err together, are evaluated without
        all of those.
        """
        scores, self.classes = self.scores, None
        self.left_out = scores.leave_out(exact=not self.is_large)
        dependent = self.states.weight < 1.0
        if not dependent.any():
            return
        votes, sites = dependent[self.votes.annotator], scores.copy_sites()
        for values in scores.sites:
            values[votes] = 0.0
        scores.solve(self.prior)
        for values, without in zip(self.left_out, scores.leave_out(), strict=True):
            values[votes] = without[votes]
        scores.put_sites(sites)
        scores.solve(self.prior)

    def set_tie_odds(self) -> None:
        """Set the tie odds of votes: those of their pairs, times those of their contexts."""
        odds = np.exp(self.pair_tie[self.votes.pair] + self.cell_tie)
        self.outcomes = self.outcomes._replace(tie_odds=odds)

    def predict_votes(self) -> Predictions:
        """Return the predictions of all votes by the votes of others."""
        found = Predictions(*(np.empty(self.votes.data.n_comparisons) for _ in range(3)))
        arguments = self.outcomes, self.left_out, self.states.voters(), found
        self.passes.run("gpm_outcomes.predict_votes", "annotators", *arguments)
        return found

    def evaluated(self) -> EvaluatedVotes:
        """Return the votes by which annotators are evaluated."""
        if self.is_large:
            if self.classes is None:
                self.classes = _in_classes(self)
            return self.classes
        n = self.votes.data.n_comparisons
        return EvaluatedVotes(self.outcomes, self.left_out, self.votes.annotator, np.ones(n))


class EvaluatedVotes(NamedTuple):
    """Votes, or classes of an annotator's votes with nearly the same difference."""

    outcomes: Outcomes
    left_out: VoteDifferences
    annotator: Codes
    n_votes: Floats


def _in_classes(now: PairEstimate) -> EvaluatedVotes:
    """Return votes of equal outcome and nearly equal difference as one, at their mean difference."""
    mean, variance = now.left_out
    outcome, weight = now.outcomes.outcome, now.outcomes.weight
    annotator = now.votes.annotator
    edge = float(np.quantile(np.abs(mean[:: max(len(mean) // 100_000, 1)]), 0.98))
    place = np.clip((mean + edge) * (_CLASSES / (2.0 * edge + 1e-12)), 0.0, _CLASSES - 1.0)
    key = (annotator * _CLASSES + place.astype(np.int64)) * 3 + outcome
    n_annotators = now.votes.n_annotators
    sums = [
        sums_at(key, values, n_annotators * _CLASSES * 3)
        for values in (weight, weight * mean, weight * variance)
    ]
    used = np.flatnonzero(sums[0] > 0.0)
    count, total, spread = (each[used] for each in sums)
    who = used // (3 * _CLASSES)
    outcomes = now.outcomes._replace(
        ptr=np.searchsorted(who, np.arange(n_annotators + 1)),
        outcome=(used % 3).astype(np.int8),
        weight=count,
        tie_odds=np.ones(len(used)),
    )
    return EvaluatedVotes(outcomes, VoteDifferences(total / count, spread / count), who, count)


def start_estimate(votes: PairVotes, passes: Passes) -> PairEstimate:
    """Return where estimation starts: everybody is serious, and scores are equal."""
    spread = _FIRST_SPREAD if votes.has_contexts else 0.0
    return PairEstimate(
        votes=votes,
        passes=passes,
        scores=VoteScores(votes, passes),
        states=make_states(votes, passes),
        prior=Prior(1.0, spread),
        outcomes=votes.outcomes,
        pair_tie=np.zeros(len(votes.pairs[0])),
    )


def estimate(
    now: PairEstimate, *, tol: float, max_rounds: int, progress: ProgressCallback | None = None
) -> None:
    """Run rounds until scores and probabilities of classes change by less than ``tol``."""
    now.iterate(_FIRST_SITES)
    before = _monitored(now)
    for number in range(max_rounds):
        one_round(now, number)
        after = _monitored(now)
        change = max(float(np.abs(a - b).max()) for a, b in zip(after, before, strict=True))
        before = after
        if progress is not None:
            progress(Progress(number + 1, max_rounds, now.history[-1], change))
        last = max(_SPREAD_ROUNDS) if now.votes.has_contexts else _MIN_ROUNDS
        if number >= last and change < tol:
            now.converged = True
            break
    finish(now)


def finish(now: PairEstimate, n_sites: int = _LAST_SITES) -> None:
    """Solve once more for the scores, and judge annotators by them."""
    now.iterate(n_sites)
    now.leave_out()
    evaluated = now.evaluated()
    now.states.evaluate(evaluated.outcomes, now.passes, evaluated.left_out)
    now.states.update(now.outcomes, learn=False)


def _monitored(now: PairEstimate) -> tuple[Floats, ...]:
    """Return what must not change any more: scores in a new context, and probabilities of classes.

    Changes of scores are relative to these, if they are large.
    """
    scores = attenuation(now.prior.spread) * now.scores.theta
    return scores / (1.0 + np.sqrt(np.mean(scores**2))), now.states.p_class


def attenuation(spread: float) -> float:
    """Return the factor from scores within a context to log odds in a new one."""
    return float(1.0 / np.sqrt(1.0 + MARGINAL * spread**2))


def one_round(now: PairEstimate, number: int) -> None:
    """Update everything once."""
    now.iterate(_SITES, _STEP)
    if now.votes.has_contexts and number in _SPREAD_ROUNDS:
        choose_spread(now, _SPREAD_ROUNDS[number])
    now.leave_out()
    if number in _ALL_LEVELS:
        now.states.active[:] = True
    now.states.evaluate(now.outcomes, now.passes, now.left_out, _FIRST_HABITS if number == 0 else 1)
    before = now.states.p_level
    now.states.update(now.outcomes)
    kept = max((keep for start, keep in _DAMPING if number >= start), default=0.0)
    now.states.p_level = kept * before + (1.0 - kept) * now.states.p_level
    now.states.choose_levels()
    _update_pair_ties(now)
    if now.votes.cell is not None:
        _update_cell_ties(now, choose=number in _CELL_TIE_ROUNDS)
    # Within contexts that decide nearly everything, scale and spread can hardly be separated.
    may_scale = not now.votes.has_contexts or number <= max(_SPREAD_ROUNDS)
    update_scale(now, _SCALE_STEP if may_scale else 0.0)
    now.history.append(now.states.log_likelihood)


def update_scale(now: PairEstimate, step: float = 1.0) -> None:
    """Move the scale of scores to that of a typical annotator, and update the prior of scores."""
    factor = math.exp(step * now.states.mean_log_sharpness())
    if now.prior.spread > 0.0:
        factor = min(factor, _MAX_SPREAD / now.prior.spread)
    n_determined = now.scores.n_determined(now.prior.precision)
    squares = float((now.scores.theta**2).sum()) * factor**2
    now.scores.rescale(factor)
    now.states.scale = factor
    old = now.prior.precision / factor**2
    precision = (_PRIOR_ITEMS + n_determined) / (_PRIOR_ITEMS + squares)
    now.prior = Prior(old * (precision / old) ** _PRIOR_STEP, now.prior.spread * factor)


def _update_pair_ties(now: PairEstimate) -> None:
    """Take two Newton steps on the log tie rates of pairs, which have mean 0 over votes."""
    if not now.outcomes.has_ties:
        return
    votes, n_pairs = now.votes, len(now.pair_tie)
    known = np.zeros(n_pairs)
    for _ in range(2):
        found = now.predict_votes()
        slope = sums_at(votes.pair, found.tie_slope, n_pairs)
        known = sums_at(votes.pair, found.tie_information, n_pairs) + 1.0 / now.pair_tie_variance
        move = (slope - now.pair_tie / now.pair_tie_variance) / known
        moved = now.pair_tie + np.clip(move, -1.0, 1.0)
        n_votes = sums_at(votes.pair, votes.outcomes.weight, n_pairs)
        now.pair_tie = moved - float(moved @ n_votes) / max(float(n_votes.sum()), 1e-300)
        now.set_tie_odds()
    square = float((now.pair_tie**2 + 1.0 / known).sum())
    total = _PAIR_TIE_PAIRS * _PAIR_TIE_VARIANCE + square
    now.pair_tie_variance = total / (_PAIR_TIE_PAIRS + n_pairs)


def _update_cell_ties(now: PairEstimate, *, choose: bool) -> None:
    r"""Update what a context adds to the log tie rate of a pair; choose its variance :math:`\omega^2`.

    It is one Newton step from 0 on the votes of the same pair and context by all but the annotator,
    :math:`\sum z / (\sum I + \omega^{-2})`, with their slopes z and information I. The variance is the
    one by which serious votes are predicted best.
    """
    slope, known = cell_tie_sums(now)
    cell, own = now.votes.cell, now.votes.own_cell
    assert cell is not None
    slope, known = (
        sums_at(cell, each, len(cell))[cell] - sums_at(own, each, len(cell))[own]
        for each in (slope, known)
    )
    variances = _CELL_TIE_VARIANCES if choose else (now.cell_tie_variance,)
    best, chosen = -math.inf, (now.cell_tie, now.cell_tie_variance)
    for variance in variances:
        now.cell_tie = shrunk_cell_tie(slope, known, variance)
        now.set_tie_odds()
        value = _prediction(now) if len(variances) > 1 else 0.0
        if value > best:
            best, chosen = value, (now.cell_tie, variance)
    now.cell_tie, now.cell_tie_variance = chosen
    now.set_tie_odds()


def cell_tie_sums(now: PairEstimate) -> tuple[Floats, Floats]:
    """Return the slope and information of each vote by the log tie rate, without what contexts add."""
    before, now.cell_tie = now.cell_tie, 0.0
    now.set_tie_odds()
    found = now.predict_votes()
    now.cell_tie = before
    now.set_tie_odds()
    return found.tie_slope, found.tie_information


def shrunk_cell_tie(slope: Floats, known: Floats, variance: float) -> Floats:
    """Return what contexts add to log tie rates, given sums of slopes and information."""
    if variance == 0.0:
        return np.zeros_like(slope)
    return np.clip(slope / (known + 1.0 / variance), -_MAX_CELL_TIE, _MAX_CELL_TIE)


def choose_spread(now: PairEstimate, factor: float) -> None:
    """Choose the spread over contexts by which votes of others predict best.

    With a factor of 0 the candidates are a coarse grid; otherwise the neighbours of the present
    spread, between which a parabola is fitted.
    """
    candidates = _candidates(now.prior.spread, factor)
    sites = now.scores.copy_sites()
    values, found = [], []
    for spread in candidates:
        now.scores.put_sites(sites)
        now.prior = Prior(now.prior.precision, spread)
        now.iterate(_SITES_OF_SPREAD)
        now.leave_out()
        values.append(_prediction(now))
        found.append(now.scores.copy_sites())
        if factor == 0.0 and values[-1] < max(values):
            break  # predictions only get worse from there on
    best = int(np.argmax(values))
    now.scores.put_sites(found[best])
    spread = candidates[best]
    if 0 < best < len(values) - 1 and candidates[best - 1] > 0.0:
        spread = _top_of_parabola(candidates[best - 1 : best + 2], values[best - 1 : best + 2])
    now.prior = Prior(now.prior.precision, spread)
    now.iterate(2)


def _candidates(spread: float, factor: float) -> list[float]:
    if factor == 0.0:
        return list(_SPREADS)
    if spread == 0.0:
        return [0.0, _SMALLEST_SPREAD / 2.0]
    near = [spread / factor, spread, min(spread * factor, _MAX_SPREAD)]
    return [0.0, *near] if near[0] < _SMALLEST_SPREAD else near


def _top_of_parabola(x: Sequence[float], y: Sequence[float]) -> float:
    """Return where a parabola through three points, in logs of x, is highest; within them."""
    logs = np.log(x)
    if logs[1] >= logs[2]:
        return x[1]
    curvature, slope, _ = np.polyfit(logs - logs[1], np.array(y) - y[1], 2)
    if curvature >= 0.0:
        return x[1]
    top = float(np.clip(-slope / (2.0 * curvature), logs[0] - logs[1], logs[2] - logs[1]))
    return float(np.exp(logs[1] + top))


def _prediction(now: PairEstimate) -> float:
    """Return the log-probability of serious annotators' votes by the votes of others."""
    weight = now.outcomes.weight * now.states.voters().weight[now.votes.annotator]
    return float((weight * now.predict_votes().log_p).sum())
