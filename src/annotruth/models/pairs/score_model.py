r"""`ScoreModel`: the base of models in which items have scores and annotators are alike.

A comparison of items l and r depends on :math:`d = \theta_l - \theta_r + \gamma`, where gamma is the
side bias, and on a tie parameter a. The log-likelihood of the counts of all pairs is concave in
:math:`(\theta, \gamma, a)`. Scores have the prior :math:`N(0, \sigma^2)`; gamma and a have the prior
:math:`N(0, 3^2)`. Each step is one of Newton's, with the information matrix

.. math:: \begin{pmatrix} L(w) + \sigma^{-2} I & C \\ C^T & D \end{pmatrix},

L the Laplacian of the pairs, weighted by their information about d. Then sigma is updated by the
fixed point of the marginal likelihood (MacKay, Neural Computation 4, 1992):

.. math:: \sigma^2 = \frac{\nu_0 + \sum_i \theta_i^2}{\nu_0 + n - \mathrm{tr}(\Sigma) / \sigma^2},

with the covariance :math:`\Sigma` of the n scores. So an item that won or lost all its comparisons
has a finite score.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logit

from annotruth.engines import Session, get_engine
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import now
from annotruth.models.em import (
    ROUNDING,
    History,
    Monitor,
    ProgressCallback,
    one_blas_thread,
    run_em,
)
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.graph import (
    PairCounts,
    center_in_parts,
    connected_parts,
    count_pairs,
    sums_at,
)
from annotruth.models.pairs.information import (
    PRIOR_SD,
    Evaluation,
    Likelihood,
    ScoreInformation,
    make_information,
)
from annotruth.models.pairs.posterior import DeferredScorePosterior, with_interval
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import LEFT, TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.models.squarem import Squarem

PRIOR_ITEMS = 1.0
"""nu_0: the prior of the variance of scores counts as much as this many scores of +-1."""

_MAX_HALVINGS = 40
_NEAR_THE_END = 1.0  # a change of the log posterior
_SAME_VARIANCE = 1e-6  # a relative change
_SMALL_MOVE = 0.01  # of scores and of log variance: the information changes by about as much
# For the scores of the start:
_OPPONENTS, _GRID_POINTS, _START_UPDATES = 100, 100, 5
_MOST_TIES = 0.99


class ScoreParameters(NamedTuple):
    """The parameters of a step, and the log-likelihood there."""

    scores: Floats
    side_bias: float | None
    tie: float | None
    """The tie parameter a; None if there are no ties."""
    variance: float
    n_determined: float
    """How many differences of scores the data determine, rather than the prior."""
    variance_converged: bool = False
    evaluation: Evaluation | None = None
    information: ScoreInformation | None = None
    """The information of the last step."""
    move: float = math.inf
    """The largest move of a parameter since the information was computed."""


@dataclass(kw_only=True)
class ScoreModel(PairEstimator):
    """Base of models with one score per item, fitted to the counts of pairs by Newton's method.

    Its options are those of `PairEstimator`.
    """

    tol: float = 1e-4

    @abstractmethod
    def likelihood(self, counts: PairCounts, session: Session) -> Likelihood:
        """Return the log-likelihood of counts, opened as a session, as a function."""

    @staticmethod
    @abstractmethod
    def probabilities(difference: Floats, tie: float | None) -> Floats:
        """Return the probabilities of left, right and tie, one row per difference."""

    @staticmethod
    @abstractmethod
    def tie_start(share: float) -> float:
        """Return the tie parameter with which equal items have this share of ties."""

    def _fit(
        self, data: Comparisons, progress: ProgressCallback | None, previous: RankFit | None
    ) -> RankFit:
        engine = get_engine(self.engine)
        counts = count_pairs(data.votes, engine)
        with closing(engine.open(counts)) as session:
            steps = ScoreSteps(self, counts, session, has_sides=data.sides_known)
            start = steps.start() if previous is None else steps.resume(previous)
            parameters, history = run_em(
                steps, start, tol=self.tol, max_iter=self.max_iter, progress=progress
            )
        return self._make_fit(data, steps, parameters, history)

    def _make_fit(
        self, data: Comparisons, steps: ScoreSteps, parameters: ScoreParameters, history: History
    ) -> RankFit:
        information = steps.information(parameters)
        sd = np.sqrt(np.diag(information.extra_covariance))
        tie = parameters.tie
        return RankFit(
            model=self.name,
            settings=self.settings(),
            data=data,
            history=history,
            scores=DeferredScorePosterior(
                parameters.scores, partial(_covariance, information, parameters.scores)
            ),
            part=steps.part,
            side_bias=None
            if parameters.side_bias is None
            else with_interval(parameters.side_bias, sd[0]),
            parameters={
                "score_variance": np.array([parameters.variance]),
                **({} if tie is None else {"tie": with_interval(tie, sd[-1])}),
            },
            fitted_at=now(),
        )

    def predict_proba(
        self,
        left: Codes,
        right: Codes,
        annotator: Codes,
        covariates: dict[str, Any] | None = None,
        context: Codes | None = None,
    ) -> Floats:
        """Return the probabilities of left, right and tie: the same for all annotators."""
        fit = self.result_
        tie = fit.parameters.get("tie")
        difference = fit.scores.mean[left] - fit.scores.mean[right]
        if fit.side_bias is not None:
            difference = difference + fit.side_bias[0]
        return self.probabilities(difference, None if tie is None else float(tie[0]))


class ScoreSteps:
    """Newton's steps of a `ScoreModel`."""

    objective_name = "the log posterior"

    def __init__(
        self, model: ScoreModel, counts: PairCounts, session: Session, *, has_sides: bool
    ) -> None:
        self._model = model
        self._likelihood = model.likelihood(counts, session)
        self._n = counts.n_items
        self._counts = counts
        self._has_sides = has_sides
        self._totals = counts.votes.sum(axis=0)
        self.part = connected_parts(counts.n_items, counts.left, counts.right)
        self._n_differences = self._n - len(np.unique(self.part))

    def start(self) -> ScoreParameters:
        """Return scores that explain each item's wins against any other item, without a side bias."""
        scores, tie = self._explain_wins()
        return self._evaluated(
            ScoreParameters(
                scores=center_in_parts(scores, self.part),
                side_bias=0.0 if self._has_sides else None,
                tie=tie,
                variance=1.0,
                n_determined=float(self._n_differences),
            )
        )

    def resume(self, previous: RankFit) -> ScoreParameters:
        """Return the start with the scores of a previous fit, whose items come first."""
        start = self.start()
        scores = np.zeros(self._n)
        known = previous.scores.mean[: self._n]
        scores[: len(known)] = known
        (variance,) = previous.parameters.get("score_variance", [start.variance])
        return self._evaluated(
            start._replace(scores=center_in_parts(scores, self.part), variance=float(variance))
        )

    def step(self, parameters: ScoreParameters) -> tuple[ScoreParameters, Monitor]:
        """Take Newton's step, or the largest half of it that does not lower the posterior."""
        before = self.log_posterior(parameters)
        information = self._information_of_step(parameters)
        scores, extra = information.solve(*self._gradient(parameters))
        size = 1.0
        for _ in range(_MAX_HALVINGS):
            new = self._moved(parameters, size * scores, size * extra)
            # Written so that NaN counts as a fall.
            if self.log_posterior(new) >= before - ROUNDING * abs(before):
                break
            size /= 2.0
        else:
            new = parameters
        monitor = Monitor(self._evaluation(parameters).log_likelihood, self.log_posterior(new))
        # The inverse of a matrix is worth its time near the end, and from then on while the variance
        # changes: with the number of another variance, the variance can rise and fall for ever.
        is_near = monitor.objective - before < _NEAR_THE_END
        was_near = parameters.n_determined < self._n_differences
        if (is_near or was_near) and not parameters.variance_converged:
            new = new._replace(n_determined=information.n_determined())
        variance = _updated_variance(new)
        change = abs(variance / parameters.variance - 1.0)
        is_old = information is parameters.information
        move = change + float(np.abs(size * np.append(scores, extra)).max())
        return new._replace(
            variance=variance,
            variance_converged=change < _SAME_VARIANCE,
            information=information,
            move=parameters.move + move if is_old else move,
        ), monitor

    def finalize(self, parameters: ScoreParameters) -> float:
        """Return the log-likelihood of the final parameters."""
        return self._evaluation(parameters).log_likelihood

    def acceleration(self) -> Squarem[ScoreParameters]:
        """Raise: Newton's steps need no extrapolation."""
        raise NotImplementedError

    def information(self, parameters: ScoreParameters) -> ScoreInformation:
        """Return the information about the parameters, that of the priors included."""
        return make_information(
            self._counts,
            self.part,
            self._evaluation(parameters),
            variance=parameters.variance,
        )

    def _information_of_step(self, parameters: ScoreParameters) -> ScoreInformation:
        """Return the information, or that of the step before if it is nearly the same.

        A step with the latter is nearly Newton's. Where the variance is still to be estimated, the
        error of its denominator, `ScoreParameters.n_determined`, must be negligible as well.
        """
        most = _SMALL_MOVE
        if not parameters.variance_converged:
            undetermined = 1.0 - parameters.n_determined / max(self._n_differences, 1)
            most = min(most, _SAME_VARIANCE / max(undetermined, _SAME_VARIANCE))
        if parameters.information is not None and parameters.move < most:
            return parameters.information
        return self.information(parameters)

    def _gradient(self, parameters: ScoreParameters) -> tuple[Floats, Floats]:
        """Return the gradient of the log posterior: that of the scores, and of the others."""
        evaluation = self._evaluation(parameters)
        extra = [value for value in (parameters.side_bias, parameters.tie) if value is not None]
        return (
            evaluation.slope - parameters.scores / parameters.variance,
            evaluation.extra_slope - np.array(extra) / PRIOR_SD**2,
        )

    def _moved(self, parameters: ScoreParameters, scores: Floats, extra: Floats) -> ScoreParameters:
        moves = iter(extra.tolist())
        return self._evaluated(
            parameters._replace(
                scores=center_in_parts(parameters.scores + scores, self.part),
                side_bias=None
                if parameters.side_bias is None
                else parameters.side_bias + next(moves),
                tie=None if parameters.tie is None else parameters.tie + next(moves),
            )
        )

    def _explain_wins(self) -> tuple[Floats, float | None]:
        """Return scores and a tie parameter with which wins and ties are as expected.

        Expected against opponents with any of the scores, whoever they were. Ties are half wins.
        """
        log_odds = self._log_odds_of_wins()
        n_ties, n_votes = self._totals[TIE], self._totals.sum()
        tie_share = (n_ties + 0.5) / (n_votes + 1.0)
        tie = self._model.tie_start(tie_share) if n_ties else None
        scores, share_of_equal = log_odds, tie_share
        grid = np.linspace(log_odds.min() - 1.0, log_odds.max() + 1.0, _GRID_POINTS)
        for _ in range(_START_UPDATES):
            opponents = np.quantile(scores, (np.arange(_OPPONENTS) + 0.5) / _OPPONENTS)
            differences = (grid[:, np.newaxis] - opponents).ravel()
            expected = self._model.probabilities(differences, tie)
            shares = expected.reshape(len(grid), -1, 3).mean(axis=1)
            wins = shares[:, LEFT] + shares[:, TIE] / 2.0
            scores = np.interp(log_odds, logit(wins), grid)
            if tie is not None:
                share_of_equal *= tie_share / np.interp(scores, grid, shares[:, TIE]).mean()
                share_of_equal = min(share_of_equal, _MOST_TIES)
                tie = self._model.tie_start(share_of_equal)
        return scores, tie

    def _log_odds_of_wins(self) -> Floats:
        """Return the log odds that an item wins, with one win and one loss more than it had."""
        counts = self._counts
        half_votes = counts.n_votes / 2.0
        expected = sums_at(counts.left, half_votes, self._n)
        expected += sums_at(counts.right, half_votes, self._n)
        return np.log((expected + counts.net_wins + 1.0) / (expected - counts.net_wins + 1.0))

    def _evaluated(self, parameters: ScoreParameters) -> ScoreParameters:
        evaluation = self._likelihood(parameters.scores, parameters.side_bias, parameters.tie)
        return parameters._replace(evaluation=evaluation)

    def _evaluation(self, parameters: ScoreParameters) -> Evaluation:
        assert parameters.evaluation is not None
        return parameters.evaluation

    def log_posterior(self, parameters: ScoreParameters) -> float:
        """Return the log-likelihood and the logarithm of the priors, up to a constant."""
        scores, side_bias, tie, variance, *_ = parameters
        others = (side_bias or 0.0) ** 2 + (tie or 0.0) ** 2
        return (
            self._evaluation(parameters).log_likelihood
            - float((scores**2).sum()) / (2.0 * variance)
            - 0.5 * self._n_differences * math.log(variance)
            - others / (2.0 * PRIOR_SD**2)
        )


def _covariance(information: ScoreInformation, scores: Floats) -> Floats:
    with one_blas_thread():
        return information.score_covariance(scores, PRIOR_ITEMS)


def _updated_variance(parameters: ScoreParameters) -> float:
    """Return the fixed point's next variance of the scores."""
    squares = float((parameters.scores**2).sum())
    return (PRIOR_ITEMS + squares) / (PRIOR_ITEMS + parameters.n_determined)
