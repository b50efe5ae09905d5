"""`PairGPM`: scores of items from the votes of annotators who are not always serious."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.comparisons.votes import covariates_in_order_of_codes, in_order_of_codes
from annotruth.engines import Engine, Session, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels.encode import id_ranks
from annotruth.labels.validate import check_seed
from annotruth.models.base_fit import Verdict
from annotruth.models.em import History, ProgressCallback, run_em
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.chance import judge_comparisons
from annotruth.models.pairs.pair_gpm.covariance import (
    prior_covariance,
    score_covariance,
    update_prior,
)
from annotruth.models.pairs.pair_gpm.groups import split_into_groups
from annotruth.models.pairs.pair_gpm.parameters import (
    PairGPMParameters,
    states_for,
)
from annotruth.models.pairs.pair_gpm.predict import predict_outcomes
from annotruth.models.pairs.pair_gpm.results import make_fit, name_behaviors
from annotruth.models.pairs.pair_gpm.states import INVERTED, MAX_GROUPS
from annotruth.models.pairs.pair_gpm.steps import PairGPMSteps
from annotruth.models.pairs.result import RankFit

_MAX_ROUNDS = 8  # updates of the scores' prior
_PRIOR_CHANGE = 0.03  # of the log of its precision: below this it has converged
_LARGE = 400_000  # comparisons; with more, estimation starts from a sample
_SAMPLE = 20_000
_TESTED_PER_ITEM = 20  # comparisons by which chance is tested, if that is more than the sample
_MAX_SORTED = 1_000_000  # comparisons of one annotator: more take too long to sort
_EQUAL_SCORES = 1e9  # the precision of a prior that leaves scores equal
_LARGE_TOL = 1e-2  # per score, of many comparisons: an error of 0.14 standard errors
_ROUND_TOL = 1e-2  # per score, before the last round
_FINAL_TOL = 1e-4  # per score: less does not change a score noticeably


@dataclass(kw_only=True)
class PairGPM(PairEstimator):
    r"""Scores of items, and the reliability and behavior of those who compared them.

    Annotator s is in a latent state: a behavior b, a reliability :math:`\epsilon`, a sharpness
    :math:`\beta` and a tie rate :math:`\nu`. A vote is serious with probability epsilon and then
    follows Davidson's model; otherwise it follows the behavior:

    .. math::

        p(y) &= \epsilon \, D(y; d) + (1 - \epsilon) \, Q_b(y), \qquad
        d = \beta (\theta_l - \theta_r) + \gamma + x \cdot c, \\
        D(\text{left}, \text{right}, \text{tie}; d) &\propto (e^{d/2}, e^{-d/2}, \nu).

    Behaviors are random (with a third of ties, hardly any, or as many as there are in all), always left,
    always right, always tie, inverted (the serious vote with sides exchanged), and favours one item
    (votes for it whenever it is shown, else at random). All but random votes are what the behavior
    says with probability 0.97, and else one of the other outcomes (of inverted: any), alike. The
    favoured item is the one voted for most one-sidedly; a priori each is as likely.
    Gamma is the crowd's side bias, x are the covariates of a comparison, divided by their root mean
    squares; gamma and c have the prior :math:`N(0, 2^2)`. Where sides are not known, there is no
    gamma, and nobody is said to vote for a side.

    States are levels on grids (`annotruth.models.pairs.pair_gpm.states`). Their probabilities are
    estimated, with a weak prior that most annotators are serious, except that the log of the sharpness
    has the prior :math:`N(0, 0.6^2)`: scores are those of an annotator of average sharpness. Scores
    have a normal prior whose variance is estimated by the marginal likelihood. With taste groups, the
    group of an annotator is part of the state, and theta is that of the group. Votes of inverted annotators are not used for the scores. Intervals of
    scores come from the observed information (Louis, 1982). Predictions have each annotator's own side
    bias, estimated with the other parameters given, in place of gamma. Reliability and behaviors come
    from probabilities of states estimated once more given the scores, with the mean and the spread of
    the log sharpness.

    Parameters
    ----------
    n_groups
        The number of taste groups: each has scores of its own, and every annotator belongs to one.
    acceleration
        Whether to extrapolate EM steps (Anderson acceleration).
    seed
        Of the starts with several groups.
    tol, max_iter, engine
        As in `PairEstimator`; the objective is the log posterior. A change below 0.0001 per score
        ends the iterations in any case.

    Examples
    --------
    >>> from annotruth import simulate
    >>> crowd = simulate.comparers(n_items=10, n_annotators=30, behavior="always left")
    >>> fit = PairGPM().fit(crowd.comparisons).result_
    >>> int(fit.spammer.sum()), sorted(set(fit.behavior))
    (6, ['always left', 'serious'])
    """

    name: ClassVar[str] = "pair-gpm"

    n_groups: int = 1
    acceleration: bool = True
    seed: int = 0
    tol: float = 0.01

    def _fit(
        self, data: Comparisons, progress: ProgressCallback | None, previous: RankFit | None
    ) -> RankFit:
        if not 1 <= self.n_groups <= MAX_GROUPS:
            raise InputError(f"n_groups must be from 1 to {MAX_GROUPS}, not {self.n_groups}")
        check_seed(self.seed)
        verdict = self._judge(data)
        with closing(_open(get_engine(self.engine), data)) as session:
            steps = PairGPMSteps(data, session, states_for(data), self.n_groups)
            if verdict == "chance":
                return self._fit_chance(steps, progress)
            start = self._start(data, steps, previous)
            parameters, history, inverted = self._estimate(steps, start, progress)
            covariance = score_covariance(steps, parameters)
            if steps.few_passes:  # states may have been left out at other parameters
                steps.prune(parameters)
            else:
                steps.consider_all_states(inverted)
            return make_fit(self, steps, parameters, history, covariance, verdict)

    def _judge(self, data: Comparisons) -> Verdict | None:
        """Return whether a sample of the comparisons agrees better than chance."""
        n_tested = max(_SAMPLE, _TESTED_PER_ITEM * data.n_items)
        if data.n_comparisons > n_tested:
            data = _sample(data, n_tested, self.seed)
        return judge_comparisons(data, self.seed, n_groups=self.n_groups)

    def _fit_chance(self, steps: PairGPMSteps, progress: ProgressCallback | None) -> RankFit:
        """Fit comparisons that agree no better than chance: with equal scores."""
        precision = steps.precision
        steps.set_prior(_EQUAL_SCORES, 0.0)
        parameters, history = run_em(
            *(steps, steps.start()),
            tol=self.tol,
            max_iter=self.max_iter,
            accelerate=self.acceleration,
            progress=progress,
        )
        steps.set_prior(precision, 0.0)
        parameters = parameters._replace(theta=np.zeros_like(parameters.theta))
        covariance = prior_covariance(steps, parameters)
        steps.consider_all_states()
        history.log_likelihood[-1] = steps.finalize(parameters)
        return make_fit(self, steps, parameters, history, covariance, "chance")

    def _start(
        self, data: Comparisons, steps: PairGPMSteps, previous: RankFit | None
    ) -> PairGPMParameters:
        """Return the parameters of a previous fit, or the scores of Bradley and Terry's model.

        Of many comparisons: these scores, and the other parameters of a fit to a sample of the
        annotators.
        """
        if previous is not None and self._can_resume(previous):
            return steps.resume(previous)
        fit = BradleyTerry(engine=self.engine).fit(data).result_
        if data.n_comparisons <= _LARGE:
            return self._start_from(fit, steps)
        start = self._start_by_sample(steps, _sample(data, _SAMPLE, self.seed), fit)
        if self.n_groups == 1:  # scores of all votes, which the sample's prior does not shrink
            start = start._replace(theta=fit.scores.mean[np.newaxis])
        steps.few_passes = True
        steps.prune(start)
        return start

    def _start_from(self, fit: RankFit, steps: PairGPMSteps) -> PairGPMParameters:
        """Return the scores and the side bias of Bradley and Terry's model, divided into groups."""
        start = steps.start()
        if fit.side_bias is not None:
            start.offsets[0] = fit.side_bias[0]
        one = start._replace(theta=np.tile(fit.scores.mean, (self.n_groups, 1)))
        return one if self.n_groups == 1 else split_into_groups(steps, one, self.seed)

    def _can_resume(self, previous: RankFit) -> bool:
        """Whether a previous fit has scores of this model; those of chance are all equal."""
        is_same = previous.model == self.name and previous.n_groups == self.n_groups
        return is_same and previous.verdict != "chance"

    def _start_by_sample(
        self, steps: PairGPMSteps, sample: Comparisons, fit: RankFit
    ) -> PairGPMParameters:
        """Return the parameters that a sample of the annotators has, and set the prior to its own.

        ``fit`` is that of Bradley and Terry's model to all comparisons.
        """
        with closing(_open(get_engine(self.engine), sample)) as session:
            of_sample = PairGPMSteps(sample, session, states_for(sample), self.n_groups)
            start = self._start_from(fit, of_sample)
            parameters = _estimate_prior(of_sample, start, partial(self._run, of_sample))
        steps.set_prior(of_sample.precision, of_sample.n_determined)
        return steps.start_near(parameters)

    def _estimate(
        self,
        steps: PairGPMSteps,
        parameters: PairGPMParameters,
        progress: ProgressCallback | None,
    ) -> tuple[PairGPMParameters, History, NDArray[np.bool_]]:
        """Estimate the scores and their prior, then the scores again without inverted votes.

        Returns also whose votes are inverted.
        """
        is_large = steps.data.n_comparisons > _LARGE
        run = partial(self._run, steps, progress=progress)
        if is_large:  # the prior is that of the sample
            parameters, history = run(parameters, _LARGE_TOL)
            steps.sums(parameters)
        else:
            parameters = _estimate_prior(steps, parameters, run)
            steps.consider_likely_states(parameters)
        named = name_behaviors(
            steps.shares.behaviors(), steps.states, steps.data.comparisons_per_annotator
        )
        inverted = np.array(named) == INVERTED
        if inverted.any() and not inverted.all():
            steps.leave_out(inverted)
        if inverted.any() or not is_large:
            parameters, history = run(parameters, _FINAL_TOL)
        return parameters, history, inverted

    def _run(
        self,
        steps: PairGPMSteps,
        parameters: PairGPMParameters,
        tol: float,
        progress: ProgressCallback | None = None,
    ) -> tuple[PairGPMParameters, History]:
        """Return the best parameters at the present precision of the prior; ``tol`` is per score."""
        parameters, history = run_em(
            *(steps, parameters),
            tol=max(self.tol, tol * parameters.theta.size),
            max_iter=self.max_iter,
            accelerate=self.acceleration,
            long_steps=steps.few_passes,
            progress=progress,
        )
        parameters = steps.rescaled(parameters)
        history.log_likelihood[-1] = steps.finalize(parameters)
        return parameters, history

    def predict_proba(
        self,
        left: Codes,
        right: Codes,
        annotator: Codes,
        covariates: dict[str, Any] | None = None,
    ) -> Floats:
        """Return the probabilities of left, right and tie, given the annotator's own votes."""
        return predict_outcomes(self.result_, self.engine, left, right, annotator, covariates or {})


def _open(engine: Engine, data: Comparisons) -> Session:
    """Return a session; where some annotators' votes count less, one that weighs them."""
    if data.annotator_weight is None:
        return engine.open(data)
    from annotruth.models.pairs.pair_gpm.weighted import WeightedSession

    return WeightedSession(engine, data, data.annotator_weight)


def _estimate_prior(
    steps: PairGPMSteps,
    parameters: PairGPMParameters,
    run: Callable[[PairGPMParameters, float], tuple[PairGPMParameters, History]],
) -> PairGPMParameters:
    """Estimate the scores and the precision of their prior in turns, until that has converged."""
    precisions = [steps.precision]
    for _ in range(_MAX_ROUNDS):
        parameters, _ = run(parameters, _ROUND_TOL)
        change = update_prior(steps, parameters)
        precisions.append(steps.precision)
        if change < _PRIOR_CHANGE:
            break
        if len(precisions) == 2:  # states were left out at other scores
            steps.consider_all_states()
        else:
            steps.precision = _limit(*precisions)
            precisions = [steps.precision]
    return parameters


def _limit(x0: float, x1: float, x2: float) -> float:
    """Return the limit of a sequence whose logs change less and less by a factor, or else x2."""
    first, second = np.log([x1 / x0, x2 / x1])
    ratio = second / first if first != 0.0 else 0.0
    return float(x2 * np.exp(second * ratio / (1.0 - ratio))) if 0.0 < ratio < 0.7 else x2


def _sample(data: Comparisons, n_comparisons: int, seed: int) -> Comparisons:
    """Return the comparisons of annotators drawn at random, about as many as asked for.

    An annotator with more comparisons than that takes part with as many of them, drawn at random
    from the first million. Otherwise the order of rows does not matter.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.permutation(data.n_annotators)[id_ranks(data.annotators)])
    n_votes = np.minimum(data.comparisons_per_annotator, n_comparisons)[order].cumsum()
    drawn = order[: int(np.searchsorted(n_votes, n_comparisons)) + 1]
    keep = np.zeros(data.n_comparisons, dtype=np.bool_)
    for first, last in zip(data.annotator_ptr[drawn], data.annotator_ptr[drawn + 1], strict=True):
        if last - first <= n_comparisons:
            keep[first:last] = True
        else:
            votes = slice(first, min(last, first + _MAX_SORTED))
            keep[votes.start + _draw_votes(data, votes, n_comparisons, rng)] = True
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
