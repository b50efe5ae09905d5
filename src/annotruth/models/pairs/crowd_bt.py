"""CrowdBT: Bradley and Terry's model with the reliability of each annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, ComparisonBlock, Floats, inner
from annotruth.models.base_fit import now
from annotruth.models.em import EMLoop, Monitor, ProgressCallback, run_em
from annotruth.models.options import check_positive
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.bradley_terry import BradleyTerry, LogPartition
from annotruth.models.pairs.graph import (
    center_in_parts,
    connected_parts,
    count_pairs,
    sums_at,
)
from annotruth.models.pairs.passes import Passes, runs_twins
from annotruth.models.pairs.posterior import ScorePosterior
from annotruth.models.pairs.score_model import (
    PRIOR_SD,
    Evaluation,
    ScoreInformation,
    halve_step,
    make_information,
)
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.models.squarem import Squarem

_LEAST_INFORMATION = 0.05  # of a pair, as a share of what it would be if all annotators agreed


@dataclass(kw_only=True)
class CrowdBT(PairEstimator):
    r"""The model of Chen, Bennett, Collins-Thompson and Horvitz (WSDM 2013).

    Annotator s agrees with Bradley and Terry's model with probability :math:`\eta_s`, and otherwise
    votes for the other item:

    .. math:: P_s(l \succ r) = \eta_s \frac{e^{\theta_l}}{e^{\theta_l} + e^{\theta_r}}
              + (1 - \eta_s) \frac{e^{\theta_r}}{e^{\theta_l} + e^{\theta_r}}.

    Scores are regularised by lambda wins and losses of every item against a virtual item of score 0,
    and :math:`\eta_s` has the prior Beta(a, b). Ties, which the paper does not have, are those of
    `BradleyTerry`, whether an annotator agrees or not. There is no side bias; covariates are not
    used. It is fitted by EM: the E-step computes the probability r that each vote agrees; the M-step
    sets :math:`\eta_s = (a - 1 + \sum r) / (a + b - 2 + n_s)`, over the annotator's :math:`n_s` votes,
    and takes Newton's step for the scores of the votes, with weight r as they are and with weight
    1 - r turned around.

    Reliability is :math:`\eta_s`. Intervals of scores are those of known :math:`\eta_s`, so they are
    too narrow where annotators have few votes.

    Parameters
    ----------
    regularization
        The number lambda.
    reliability_prior_a, reliability_prior_b
        The parameters a and b of the Beta prior.

    Examples
    --------
    >>> from annotruth.observations import Comparisons
    >>> votes = Comparisons.from_codes(
    ...     [0, 0, 1] * 30, [1, 2, 2] * 30, [0] * 30 + [1] * 30 + [2] * 30, [0] * 60 + [1] * 30,
    ...     items=["a", "b", "c"], annotators=["x", "y", "z"],
    ... )
    >>> fit = CrowdBT().fit(votes).result_
    >>> fit.scores.rank.tolist(), fit.reliability.round(1).tolist()
    ([1, 2, 3], [1.0, 1.0, 0.2])
    """

    name: ClassVar[str] = "crowd-bt"

    tol: float = 1e-4
    regularization: float = 1.0
    reliability_prior_a: float = 10.0
    reliability_prior_b: float = 1.0

    def _fit(self, data: Comparisons, progress: ProgressCallback | None) -> RankFit:
        self._check()
        steps = CrowdBTSteps(self, data)
        loop = EMLoop(self.tol, self.max_iter)
        parameters, history = run_em(steps, steps.start(), loop, progress=progress)
        return RankFit(
            model=self.name,
            settings=self.settings(),
            data=data,
            history=history,
            scores=steps.posterior(parameters),
            part=steps.part,
            reliability=steps.eta,
            parameters={} if parameters.tie is None else {"tie": np.array([parameters.tie])},
            fitted_at=now(),
        )

    def _check(self) -> None:
        check_positive(regularization=self.regularization)
        for name in ("reliability_prior_a", "reliability_prior_b"):
            if not 1 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} must be 1 or more, and finite, not {getattr(self, name)}")

    def predict_proba(
        self,
        left: Codes,
        right: Codes,
        annotator: Codes,
        covariates: dict[str, Any] | None = None,
        context: Codes | None = None,
    ) -> Floats:
        """Return the probabilities of left, right and tie; of an unknown annotator, the mean's."""
        fit = self.result_
        assert fit.reliability is not None
        tie = fit.parameters.get("tie")
        eta = np.where(annotator < 0, fit.reliability.mean(), fit.reliability[annotator])
        difference = fit.scores.mean[left] - fit.scores.mean[right]
        agrees = BradleyTerry.probabilities(difference, None if tie is None else float(tie[0]))
        return eta[:, np.newaxis] * agrees + (1.0 - eta[:, np.newaxis]) * agrees[:, [1, 0, 2]]


class CrowdBTParameters(NamedTuple):
    """The parameters that all annotators share; eta is in the steps."""

    scores: Floats
    tie: float | None


class CrowdBTSteps:
    """The EM steps of `CrowdBT`, with the reliability eta of each annotator, which they change."""

    objective_name = "the log posterior"

    def __init__(self, model: CrowdBT, data: Comparisons) -> None:
        reference = runs_twins(model.engine)
        self._data = data
        self._block = ComparisonBlock(data.annotator_ptr, data.left, data.right, data.outcome)
        self._passes = Passes(reference=reference, annotators=data.annotator_ptr)
        self._strength = model.regularization
        self._prior = np.array([model.reliability_prior_a, model.reliability_prior_b])
        self._counts = count_pairs(data)
        self._partition = LogPartition(self._counts, reference=reference)
        self._n_ties = float(self._counts.votes[:, TIE].sum())
        self._agrees: Floats = np.zeros(data.n_comparisons)  # the probability, in the end
        self.eta: Floats = np.zeros(data.n_annotators)
        self.part = connected_parts(data.n_items, self._counts.left, self._counts.right)

    def start(self) -> CrowdBTParameters:
        """Return equal scores, and give all annotators the mean of the prior."""
        self.eta[:] = self._prior[0] / self._prior.sum()
        share = (self._n_ties + 0.5) / (self._data.n_comparisons + 1.0)
        tie = BradleyTerry.tie_start(share) if self._n_ties else None
        return CrowdBTParameters(np.zeros(self._data.n_items), tie)

    def step(self, parameters: CrowdBTParameters) -> tuple[CrowdBTParameters, Monitor]:
        """Take one E-step, and M-steps for eta and the scores."""
        arguments = self._block, self.eta, *_strength_and_ties(parameters), self._prior
        sums = ((self._data.n_items,), (2,))
        name = "bradley_terry.crowd_step"
        net_wins, totals = self._passes.run(name, "annotators", *arguments, sums=sums)
        log_likelihood, log_prior = totals.tolist()
        objective = log_likelihood + log_prior + self._log_prior(parameters)
        new = self._maximized(parameters, net_wins)
        return new, Monitor(log_likelihood, objective)

    def finalize(self, parameters: CrowdBTParameters) -> float:
        """Compute the probability that each vote agrees; return the log-likelihood."""
        arguments = self._block, self.eta, self._agrees, *_strength_and_ties(parameters)
        name = "bradley_terry.crowd_posterior"
        (totals,) = self._passes.run(name, "annotators", *arguments, sums=((1,),))
        return float(totals[0])

    def acceleration(self) -> Squarem[CrowdBTParameters]:
        """Raise: steps are not extrapolated."""
        raise NotImplementedError

    def posterior(self, parameters: CrowdBTParameters) -> ScorePosterior:
        r"""Return the posterior of the scores, given eta.

        A vote's information is that of a vote that agrees for sure, less the variance of its slope
        over agreeing or not: r (1 - r).
        """
        counts, data = self._counts, self._data
        expected, agrees = self._expected(parameters), self._agrees
        lost = np.where(data.outcome == TIE, 0.0, agrees * (1.0 - agrees))
        key = counts.left * data.n_items + counts.right
        pair = np.searchsorted(key, data.left.astype(np.int64) * data.n_items + data.right)
        left_over = expected.information - sums_at(pair, lost, len(key))
        least = _LEAST_INFORMATION * expected.information
        inverse = self._information(expected._replace(information=np.maximum(left_over, least)))
        scores = center_in_parts(parameters.scores, self.part)
        return ScorePosterior(scores, inverse.score_covariance(scores, np.inf))

    def _information(self, expected: Evaluation) -> ScoreInformation:
        # The curvature of the regularisation is at most that of a normal prior.
        variance = 2.0 / self._strength
        return make_information(self._counts, self.part, expected, variance=variance)

    def _expected(self, parameters: CrowdBTParameters) -> Evaluation:
        return self._partition(parameters.scores, None, parameters.tie).of(None, parameters.tie)

    def _maximized(self, parameters: CrowdBTParameters, net_wins: Floats) -> CrowdBTParameters:
        """Take Newton's step on the expected log posterior, or the largest half that does not lower it."""
        expected = self._expected(parameters)
        before = self._bound(parameters, expected, net_wins)
        slopes = net_wins + expected.slope - self._strength * np.tanh(parameters.scores / 2.0)
        of_tie = expected.extra_slope + self._n_ties - (parameters.tie or 0.0) / PRIOR_SD**2
        scores, moves = self._information(expected).solve(slopes, of_tie)

        def moved(size: float) -> CrowdBTParameters:
            tie = None if parameters.tie is None else parameters.tie + size * float(moves[0])
            return CrowdBTParameters(parameters.scores + size * scores, tie)

        def bound(new: CrowdBTParameters) -> float:
            return self._bound(new, self._expected(new), net_wins)

        return halve_step(moved, bound, before, parameters)[0]

    def _bound(
        self, parameters: CrowdBTParameters, expected: Evaluation, net_wins: Floats
    ) -> float:
        """Return the expected log posterior of the shared parameters."""
        statistics = inner(net_wins, parameters.scores) + self._n_ties * (parameters.tie or 0.0)
        return statistics + expected.log_likelihood + self._log_prior(parameters)

    def _log_prior(self, parameters: CrowdBTParameters) -> float:
        scores = parameters.scores
        against_virtual = np.log(expit(scores)) + np.log(expit(-scores))
        tie = (parameters.tie or 0.0) ** 2 / (2.0 * PRIOR_SD**2)
        return self._strength * float(against_virtual.sum()) - tie


def _strength_and_ties(parameters: CrowdBTParameters) -> tuple[Floats, float]:
    nu = 0.0 if parameters.tie is None else float(np.exp(parameters.tie))
    return np.exp(parameters.scores / 2.0), nu
