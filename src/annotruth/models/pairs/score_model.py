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
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import now
from annotruth.models.em import (
    ROUNDING,
    EMLoop,
    Monitor,
    ProgressCallback,
    run_em,
)
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.graph import (
    LaplacianSystem,
    PairCounts,
    center_in_parts,
    connected_parts,
    count_pairs,
    sums_at,
)
from annotruth.models.pairs.posterior import ScorePosterior, with_interval
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import LEFT, TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.models.squarem import Squarem

P = TypeVar("P")

PRIOR_SD = 3.0
"""The standard deviation of the priors of the side bias and of the tie parameter."""

PRIOR_ITEMS = 1.0
"""nu_0: the prior of the variance of scores counts as much as this many scores of +-1."""

_MAX_HALVINGS = 40
_NEAR_THE_END = 1.0  # a change of the log posterior
_SAME_VARIANCE = 1e-6  # a relative change
_SMALL_MOVE = 0.01  # of scores and of log variance: the information changes by about as much
# For the scores of the start:
_OPPONENTS, _GRID_POINTS, _START_UPDATES = 100, 100, 5
_MOST_TIES = 0.99


class Evaluation(NamedTuple):
    """A log-likelihood of the counts of pairs at some parameters, and its derivatives.

    Parameters other than scores are, in this order, the side bias and the tie parameter. Information is
    the second derivative with the sign changed.
    """

    log_likelihood: float
    slope: Floats  # of each score
    extra_slope: Floats  # of each other parameter
    information: Floats  # of each pair about the difference of its scores
    cross: Floats  # the mixed information: items x other parameters
    corner: Floats  # the information about the other parameters

    def of(self, side_bias: float | None, tie: float | None) -> Evaluation:
        """Return the evaluation with those parameters only that are not None."""
        has = np.array([side_bias is not None, tie is not None])
        extra, cross, corner = self.extra_slope[has], self.cross[:, has], self.corner
        return self._replace(extra_slope=extra, cross=cross, corner=corner[np.ix_(has, has)])


Likelihood: TypeAlias = Callable[[Floats, float | None, float | None], Evaluation]
"""Evaluates scores, the side bias and the tie parameter; None where there is none."""


@dataclass(frozen=True, eq=False)
class ScoreInformation:
    """The information matrix of scores and other parameters, in blocks."""

    system: LaplacianSystem  # of the scores
    cross: Floats  # scores x other parameters
    corner: Floats  # other parameters
    part: NDArray[np.int64]  # the connected part that each item is in
    variance: float  # of the scores' prior

    def solve(self, scores: Floats, extra: Floats) -> tuple[Floats, Floats]:
        """Return the solution of the equations with this matrix."""
        of_scores = self.system.solve(scores)
        moves: Floats = self.extra_covariance @ (extra - self.cross.T @ of_scores)
        return of_scores - self._solved_cross @ moves, moves

    @cached_property
    def extra_covariance(self) -> Floats:
        """The covariance of the other parameters."""
        covariance: NDArray[np.floating] = np.linalg.inv(
            self.corner - self.cross.T @ self._solved_cross
        )
        return covariance.astype(np.float64)

    def score_covariance(self, scores: Floats, prior_items: float) -> Floats:
        r"""Return the covariance of the centred scores; only variances if there are many items.

        It includes the uncertainty of the prior's variance: :math:`\log \sigma^2`, whose variance is
        2 / (prior_items + n_determined), moves the scores by :math:`A^{-1} \theta / \sigma^2`. Items
        that were never compared have the variance of the prior.
        """
        size = np.bincount(self.part)[self.part]
        by_extra = self._solved_cross @ self.extra_covariance
        by_scale = self.solve(scores, np.zeros(len(self.corner)))[0] / self.variance
        by_scale *= np.sqrt(2.0 / (prior_items + self.n_determined()))
        if self.system.is_dense:
            left = np.column_stack([by_extra, by_scale])
            right = np.column_stack([self._solved_cross, by_scale])
            covariance: Floats = left @ right.T
            covariance += self.system.centered_inverse
            covariance[size == 1, size == 1] = self.variance
            return covariance
        by_extra = (by_extra * self._solved_cross).sum(axis=1)
        variances = self.system.centered_inverse + by_extra + by_scale**2
        return np.where(size == 1, self.variance, variances)

    def n_determined(self) -> float:
        """Return how many differences of scores the data determine, rather than the prior."""
        by_extra = self._solved_cross @ self.extra_covariance
        trace = self.system.centered_trace() + float((by_extra * self._solved_cross).sum())
        n_differences = len(self.part) - len(np.unique(self.part))
        return max(n_differences - trace / self.variance, 0.0)

    @cached_property
    def _solved_cross(self) -> Floats:
        return self.system.solve(self.cross) if self.cross.size else self.cross


def make_information(
    counts: PairCounts, part: NDArray[np.int64], evaluation: Evaluation, *, variance: float
) -> ScoreInformation:
    """Return the information about the parameters, that of their priors included."""
    system = LaplacianSystem(
        counts.left, counts.right, evaluation.information, 1.0 / variance, part
    )
    corner = evaluation.corner + np.diag(np.full(len(evaluation.corner), PRIOR_SD**-2))
    return ScoreInformation(system, evaluation.cross, corner, part, variance)


class ScoreParameters(NamedTuple):
    """The parameters of a step, and the log-likelihood there."""

    scores: Floats
    side_bias: float | None
    tie: float | None  # the parameter a; None if there are no ties
    evaluation: Evaluation
    variance: float
    n_determined: float  # how many differences of scores the data determine, rather than the prior
    variance_converged: bool = False
    information: ScoreInformation | None = None  # of the last step
    move: float = math.inf  # the largest of a parameter since the information was computed


@dataclass(kw_only=True)
class ScoreModel(PairEstimator):
    """Base of models with one score per item, fitted to the counts of pairs by Newton's method.

    Its options are those of `PairEstimator`.
    """

    tol: float = 1e-4

    @abstractmethod
    def likelihood(self, counts: PairCounts) -> Likelihood:
        """Return the log-likelihood of counts as a function."""

    @staticmethod
    @abstractmethod
    def probabilities(difference: Floats, tie: float | None) -> Floats:
        """Return the probabilities of left, right and tie, one row per difference."""

    @staticmethod
    @abstractmethod
    def tie_start(share: float) -> float:
        """Return the tie parameter with which equal items have this share of ties."""

    def _fit(self, data: Comparisons, progress: ProgressCallback | None) -> RankFit:
        steps = ScoreSteps(self, count_pairs(data), has_sides=data.sides_known)
        loop = EMLoop(self.tol, self.max_iter)
        parameters, history = run_em(steps, steps.start(), loop, progress=progress)
        information = steps.information(parameters)
        sd = np.sqrt(np.diag(information.extra_covariance))
        side_bias, tie = parameters.side_bias, parameters.tie
        more = {} if tie is None else {"tie": with_interval(tie, sd[-1])}
        return RankFit(
            model=self.name,
            settings=self.settings(),
            data=data,
            history=history,
            scores=ScorePosterior(
                parameters.scores, self._covariance(data, parameters, information)
            ),
            part=steps.part,
            side_bias=None if side_bias is None else with_interval(side_bias, sd[0]),
            parameters={"score_variance": np.array([parameters.variance]), **more},
            fitted_at=now(),
        )

    def _covariance(
        self, data: Comparisons, parameters: ScoreParameters, information: ScoreInformation
    ) -> Floats:
        """Return the covariance of the scores."""
        return information.score_covariance(parameters.scores, PRIOR_ITEMS)

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

    def __init__(self, model: ScoreModel, counts: PairCounts, *, has_sides: bool) -> None:
        self._model = model
        self._counts = counts
        self._likelihood = model.likelihood(counts)
        self._side_bias = 0.0 if has_sides else None
        self._totals = counts.votes.sum(axis=0)
        self.part = connected_parts(counts.n_items, counts.left, counts.right)
        self._n_differences = counts.n_items - len(np.unique(self.part))

    def start(self) -> ScoreParameters:
        """Return scores that explain each item's wins against any other item, without a side bias."""
        scores, tie = self._explain_wins()
        return self._at(scores, self._side_bias, tie)

    def _at(self, scores: Floats, side_bias: float | None, tie: float | None) -> ScoreParameters:
        """Return these parameters with the variance and the number of a start."""
        scores = center_in_parts(scores, self.part)
        evaluation = self._likelihood(scores, side_bias, tie).of(side_bias, tie)
        n_determined = float(self._n_differences)
        return ScoreParameters(scores, side_bias, tie, evaluation, 1.0, n_determined)

    def step(self, parameters: ScoreParameters) -> tuple[ScoreParameters, Monitor]:
        """Take Newton's step, or the largest half of it that does not lower the posterior."""
        before = self.log_posterior(parameters)
        information = self._information_of_step(parameters)
        scores, extra = information.solve(*self._gradient(parameters))

        def moved(size: float) -> ScoreParameters:
            return self._moved(parameters, size * scores, size * extra)

        least = before - ROUNDING * abs(before)
        new, size = halve_step(moved, self.log_posterior, least, parameters)
        monitor = Monitor(parameters.evaluation.log_likelihood, self.log_posterior(new))
        # The inverse of a matrix is worth its time near the end, and from then on while the variance
        # changes: with the number of another variance, the variance can rise and fall for ever.
        is_near = monitor.objective - before < _NEAR_THE_END
        was_near = parameters.n_determined < self._n_differences
        if (is_near or was_near) and not parameters.variance_converged:
            new = new._replace(n_determined=information.n_determined())
        squares = float((new.scores**2).sum())
        variance = (PRIOR_ITEMS + squares) / (PRIOR_ITEMS + new.n_determined)
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
        return parameters.evaluation.log_likelihood

    def acceleration(self) -> Squarem[ScoreParameters]:
        """Raise: Newton's steps need no extrapolation."""
        raise NotImplementedError

    def information(self, parameters: ScoreParameters) -> ScoreInformation:
        """Return the information about the parameters, that of the priors included."""
        variance = parameters.variance
        return make_information(self._counts, self.part, parameters.evaluation, variance=variance)

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
        evaluation = parameters.evaluation
        extra = [value for value in (parameters.side_bias, parameters.tie) if value is not None]
        return (
            evaluation.slope - parameters.scores / parameters.variance,
            evaluation.extra_slope - np.array(extra) / PRIOR_SD**2,
        )

    def _moved(self, old: ScoreParameters, scores: Floats, extra: Floats) -> ScoreParameters:
        moves = iter(extra.tolist())
        side_bias = None if old.side_bias is None else old.side_bias + next(moves)
        tie = None if old.tie is None else old.tie + next(moves)
        new = self._at(old.scores + scores, side_bias, tie)
        return new._replace(variance=old.variance, n_determined=old.n_determined)

    def _explain_wins(self) -> tuple[Floats, float | None]:
        """Return scores and a tie parameter with which wins and ties are as expected.

        Expected against opponents with any of the scores, whoever they were. Ties are half wins. Each item
        has one win and one loss more than it had.
        """
        counts, n = self._counts, self._counts.n_items
        half_votes = counts.n_votes / 2.0
        half = sums_at(counts.left, half_votes, n) + sums_at(counts.right, half_votes, n)
        log_odds = np.log((half + counts.net_wins + 1.0) / (half - counts.net_wins + 1.0))
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

    def log_posterior(self, parameters: ScoreParameters) -> float:
        """Return the log-likelihood and the logarithm of the priors, up to a constant."""
        scores, side_bias, tie, _, variance, *_ = parameters
        others = (side_bias or 0.0) ** 2 + (tie or 0.0) ** 2
        return (
            parameters.evaluation.log_likelihood
            - float((scores**2).sum()) / (2.0 * variance)
            - 0.5 * self._n_differences * math.log(variance)
            - others / (2.0 * PRIOR_SD**2)
        )


def halve_step(
    moved: Callable[[float], P], objective: Callable[[P], float], least: float, old: P
) -> tuple[P, float]:
    """Return the parameters after a step, or the largest half of it with which the objective is enough."""
    size = 1.0
    for _ in range(_MAX_HALVINGS):
        new = moved(size)
        if objective(new) >= least:  # NaN is not
            return new, size
        size /= 2.0
    return old, size
