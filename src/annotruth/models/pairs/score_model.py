r"""`ScoreModel`: the base of models in which items have scores and annotators are alike.

A comparison of items l and r depends on :math:`d = \theta_l - \theta_r + \gamma`, where gamma is the
side bias, and on a tie parameter a. The log-likelihood of the counts of all pairs is concave in
:math:`(\theta, \gamma, a)`. Scores have the prior :math:`N(0, \sigma^2)`; gamma and a have weak
priors. Each step is one of Newton's, with the information matrix

.. math:: \begin{pmatrix} L(w) + \sigma^{-2} I & C \\ C^T & D \end{pmatrix},

L the Laplacian of the pairs, weighted by their information about d. Then sigma is updated by the
fixed point of the marginal likelihood (MacKay, Neural Computation 4, 1992):

.. math:: \sigma^2 = \frac{\nu_0 + \sum_i \theta_i^2}{\nu_0 + m - \mathrm{tr}(\Sigma) / \sigma^2},

with the covariance :math:`\Sigma` of the centred scores and m the number of items less that of
connected parts. So an item that won or lost all its comparisons has a finite score.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from annotruth.comparisons.table import TIE, Comparisons
from annotruth.engines import get_engine
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import now
from annotruth.models.em import History, Monitor, ProgressCallback, run_em
from annotruth.models.pairs.base import PairEstimator
from annotruth.models.pairs.graph import (
    LaplacianSystem,
    PairCounts,
    center_in_parts,
    connected_parts,
    count_pairs,
    sums_at,
)
from annotruth.models.pairs.information import ScoreInformation
from annotruth.models.pairs.posterior import Z95, ScorePosterior
from annotruth.models.pairs.result import RankFit

if TYPE_CHECKING:
    from annotruth.models.squarem import Squarem

PRIOR_ITEMS = 1.0
"""nu_0: the prior of the variance of scores counts as much as this many scores of +-1."""

PRIOR_SD = 3.0
"""The standard deviation of the priors of the side bias and of the tie parameter."""

_MAX_HALVINGS = 40


class Evaluation(NamedTuple):
    """The log-likelihood of each pair's counts at some d and a, and its derivatives.

    Examples
    --------
    >>> import annotruth.models.pairs.bradley_terry as bt
    >>> one_win = np.array([[1.0, 0.0, 0.0]])
    >>> at_zero = bt.davidson(np.zeros(1), None, one_win)
    >>> round(float(at_zero.log_likelihood), 4), at_zero.slope.tolist(), at_zero.information.tolist()
    (-0.6931, [0.5], [0.25])
    """

    log_likelihood: float
    slope: Floats
    """First derivative with respect to d."""
    information: Floats
    """Second derivative with respect to d, with the sign changed."""
    tie_slope: float = 0.0
    """First derivative with respect to a, added up."""
    cross_information: Floats | None = None
    """Mixed second derivative, with the sign changed; None without ties."""
    tie_information: float = 0.0
    """Second derivative with respect to a, with the sign changed, added up."""


class ScoreParameters(NamedTuple):
    """The parameters of a step, and the log-likelihood there.

    Examples
    --------
    >>> ScoreParameters(np.zeros(3), None, None, variance=1.0).variance
    1.0
    """

    scores: Floats
    side_bias: float | None
    tie: float | None
    """The tie parameter a; None if there are no ties."""
    variance: float
    evaluation: Evaluation | None = None


@dataclass(kw_only=True)
class ScoreModel(PairEstimator):
    """Base of models with one score per item, fitted to the counts of pairs by Newton's method.

    Its options are those of `PairEstimator`.

    Examples
    --------
    >>> from annotruth.models.pairs.bradley_terry import BradleyTerry
    >>> issubclass(BradleyTerry, ScoreModel)
    True
    """

    @staticmethod
    @abstractmethod
    def evaluate(difference: Floats, tie: float | None, votes: Floats) -> Evaluation:
        """Return the log-likelihood of counts, pairs x outcomes, and its derivatives."""

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
        with closing(get_engine(self.engine).open(data)) as session:
            counts = count_pairs(data, session)
        steps = ScoreSteps(self, data.n_items, counts, has_sides=data.sides_known)
        start = steps.start() if previous is None else steps.resume(previous)
        parameters, history = run_em(
            steps, start, tol=self.tol, max_iter=self.max_iter, progress=progress
        )
        return self._make_fit(data, steps, parameters, history)

    def _make_fit(
        self, data: Comparisons, steps: ScoreSteps, parameters: ScoreParameters, history: History
    ) -> RankFit:
        information = steps.information(parameters)
        estimates = {"score_variance": np.array([parameters.variance])}
        names = ["side_bias"] if parameters.side_bias is not None else []
        names += ["tie"] if parameters.tie is not None else []
        extra_sd = np.sqrt(np.diag(information.extra_covariance))
        for name, sd in zip(names, extra_sd, strict=True):
            value = getattr(parameters, name)
            estimates[name] = np.array([value, value - Z95 * sd, value + Z95 * sd])
        return RankFit(
            model=self.name,
            settings=self.settings(),
            data=data,
            history=history,
            scores=ScorePosterior(parameters.scores, information.score_covariance()),
            part=steps.part,
            parameters=estimates,
            fitted_at=now(),
        )

    def predict_proba(
        self,
        left: Codes,
        right: Codes,
        annotator: Codes,
        covariates: dict[str, Any] | None = None,
    ) -> Floats:
        """Return the probabilities of left, right and tie: the same for all annotators."""
        fit = self.result_
        side_bias, tie = (fit.parameters.get(name) for name in ("side_bias", "tie"))
        difference = fit.scores.mean[left] - fit.scores.mean[right]
        if side_bias is not None:
            difference = difference + side_bias[0]
        return self.probabilities(difference, None if tie is None else float(tie[0]))


class ScoreSteps:
    """Newton's steps of a `ScoreModel`.

    Examples
    --------
    >>> from annotruth.models.pairs.bradley_terry import BradleyTerry
    >>> counts = PairCounts(np.array([0]), np.array([1]), np.array([[3.0, 1.0, 0.0]]))
    >>> steps = ScoreSteps(BradleyTerry(), 2, counts, has_sides=False)
    >>> after, monitor = steps.step(steps.start())
    >>> after.scores.round(3).tolist(), round(monitor.log_likelihood, 3)  # that of 4 log(1/2)
    ([0.333, -0.333], -2.773)
    """

    objective_name = "the log posterior"

    def __init__(
        self, model: ScoreModel, n_items: int, counts: PairCounts, *, has_sides: bool
    ) -> None:
        self._model = model
        self._n = n_items
        self._counts = counts
        self._has_sides = has_sides
        self._totals = counts.votes.sum(axis=0)
        self.part = connected_parts(n_items, counts.left, counts.right)

    def start(self) -> ScoreParameters:
        """Return equal scores, without a side bias."""
        n_ties, n_votes = self._totals[TIE], self._totals.sum()
        return self._evaluated(
            ScoreParameters(
                scores=np.zeros(self._n),
                side_bias=0.0 if self._has_sides else None,
                tie=self._model.tie_start((n_ties + 0.5) / (n_votes + 1.0)) if n_ties else None,
                variance=1.0,
            )
        )

    def resume(self, previous: RankFit) -> ScoreParameters:
        """Return the start with the scores of a previous fit, whose items come first."""
        start = self.start()
        scores = np.zeros(self._n)
        known = previous.scores.mean[: self._n]
        scores[: len(known)] = known
        return self._evaluated(start._replace(scores=center_in_parts(scores, self.part)))

    def step(self, parameters: ScoreParameters) -> tuple[ScoreParameters, Monitor]:
        """Take Newton's step, or the largest half of it that does not lower the posterior."""
        before = self.log_posterior(parameters)
        information = self.information(parameters)
        scores, extra = information.solve(*self._gradient(parameters))
        size = 1.0
        for _ in range(_MAX_HALVINGS):
            new = self._moved(parameters, size * scores, size * extra)
            # Written so that NaN counts as a fall.
            if self.log_posterior(new) >= before:
                break
            size /= 2.0
        else:
            new = parameters
        monitor = Monitor(self._evaluation(parameters).log_likelihood, self.log_posterior(new))
        return new._replace(variance=self._updated_variance(new, information)), monitor

    def finalize(self, parameters: ScoreParameters) -> float:
        """Return the log-likelihood of the final parameters."""
        return self._evaluation(parameters).log_likelihood

    def acceleration(self) -> Squarem[ScoreParameters]:
        """Raise: Newton's steps need no extrapolation."""
        raise NotImplementedError

    def information(self, parameters: ScoreParameters) -> ScoreInformation:
        """Return the information about the parameters, that of the priors included."""
        evaluation = self._evaluation(parameters)
        of_pair = [evaluation.information] if parameters.side_bias is not None else []
        if evaluation.cross_information is not None:
            of_pair.append(evaluation.cross_information)
        totals = [float(values.sum()) for values in of_pair]
        corner = np.diag(np.full(len(of_pair), PRIOR_SD**-2))
        if parameters.side_bias is not None:
            corner[0] += totals
            corner[1:, 0] += totals[1:]
        if parameters.tie is not None:
            corner[-1, -1] += evaluation.tie_information
        counts = self._counts
        return ScoreInformation(
            LaplacianSystem(
                self._n,
                counts.left,
                counts.right,
                evaluation.information,
                ridge=1.0 / parameters.variance,
            ),
            cross=np.stack([self._per_item(values) for values in of_pair], axis=1)
            if of_pair
            else np.empty((self._n, 0)),
            corner=corner,
            part=self.part,
            variance=parameters.variance,
        )

    def _gradient(self, parameters: ScoreParameters) -> tuple[Floats, Floats]:
        """Return the gradient of the log posterior: that of the scores, and of the others."""
        evaluation = self._evaluation(parameters)
        scores = self._per_item(evaluation.slope) - parameters.scores / parameters.variance
        extra = []
        if parameters.side_bias is not None:
            extra.append(evaluation.slope.sum() - parameters.side_bias / PRIOR_SD**2)
        if parameters.tie is not None:
            extra.append(evaluation.tie_slope - parameters.tie / PRIOR_SD**2)
        return scores, np.array(extra)

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

    def _evaluated(self, parameters: ScoreParameters) -> ScoreParameters:
        counts = self._counts
        difference = parameters.scores[counts.left] - parameters.scores[counts.right]
        if parameters.side_bias is not None:
            difference += parameters.side_bias
        evaluation = self._model.evaluate(difference, parameters.tie, counts.votes)
        return parameters._replace(evaluation=evaluation)

    def _evaluation(self, parameters: ScoreParameters) -> Evaluation:
        assert parameters.evaluation is not None
        return parameters.evaluation

    def log_posterior(self, parameters: ScoreParameters) -> float:
        """Return the log-likelihood and the logarithm of the priors, up to a constant."""
        scores, side_bias, tie, variance, _ = parameters
        others = (side_bias or 0.0) ** 2 + (tie or 0.0) ** 2
        return (
            self._evaluation(parameters).log_likelihood
            - float((scores**2).sum()) / (2.0 * variance)
            - others / (2.0 * PRIOR_SD**2)
        )

    def _per_item(self, of_pair: Floats) -> Floats:
        """Add up values of pairs: to their left items, and with the sign changed to their right."""
        counts, n = self._counts, self._n
        return sums_at(counts.left, of_pair, n) - sums_at(counts.right, of_pair, n)

    def _updated_variance(
        self, parameters: ScoreParameters, information: ScoreInformation
    ) -> float:
        """Return the fixed point's next variance of the scores."""
        n_free = self._n - len(np.unique(self.part))
        n_determined = n_free - information.centered_trace() / parameters.variance
        squares = float((parameters.scores**2).sum())
        return (PRIOR_ITEMS + squares) / (PRIOR_ITEMS + max(n_determined, 0.0))
