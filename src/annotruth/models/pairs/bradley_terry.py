"""Bradley and Terry's model of pair comparisons, with ties and a side bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from annotruth.kernels.arrays import Floats, PairBlock, inner
from annotruth.models.pairs.graph import MAX_DENSE_ITEMS, PairCounts, net_sums_of_contexts
from annotruth.models.pairs.passes import Passes, runs_twins
from annotruth.models.pairs.score_model import (
    Evaluation,
    Likelihood,
    ScoreInformation,
    ScoreModel,
    ScoreParameters,
)
from annotruth.models.pairs.summary import MIN_CONTEXTS
from annotruth.observations.pairs.table import LEFT, RIGHT, Comparisons


@dataclass(kw_only=True)
class BradleyTerry(ScoreModel):
    r"""The model of Bradley and Terry (Biometrika, 1952), with the ties of Davidson (JASA, 1970).

    With :math:`d = \theta_l - \theta_r + \gamma`,

    .. math:: P(\text{left}), P(\text{right}), P(\text{tie}) \propto e^{d/2}, e^{-d/2}, \nu.

    Without ties, this is :math:`P(\text{left}) = 1 / (1 + e^{-d})`. The side bias gamma is estimated
    if the sides are known. All annotators are alike, and covariates are not used. Scores have a
    normal prior whose variance is estimated from the data, so those of unbeaten items are finite.
    Intervals come from the inverse of the information, that of the prior included; with ten contexts
    or more, and each item in five, they are clustered by context (`clustered_covariance`).

    Its options are those of `PairEstimator`. ``result_.side_bias`` and ``result_.parameters["tie"]``,
    the logarithm of nu, have their 95% intervals; ``result_.parameters["score_variance"]`` is the
    variance of the prior.

    Examples
    --------
    >>> from annotruth.observations import Comparisons
    >>> votes = Comparisons.from_codes(
    ...     [0, 0, 1, 0, 1], [1, 2, 2, 1, 2], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0],
    ...     items=["a", "b", "c"], annotators=["x", "y"], sides_known=False,
    ... )
    >>> model = BradleyTerry().fit(votes)
    >>> model.result_.scores.rank.tolist()
    [1, 2, 3]
    >>> model.predict_proba(np.array([0]), np.array([2]), np.array([-1])).round(2).tolist()
    [[0.86, 0.14, 0.0]]
    """

    name: ClassVar[str] = "bradley-terry"

    def likelihood(self, counts: PairCounts) -> Likelihood:
        """Return the log-likelihood of counts as a function."""
        partition = LogPartition(counts, reference=runs_twins(self.engine))
        net_wins = counts.net_wins
        n_left, n_right, n_ties = counts.votes.sum(axis=0).tolist()
        net_left = (n_left - n_right) / 2.0

        def evaluate(scores: Floats, side_bias: float | None, tie: float | None) -> Evaluation:
            expected = partition(scores, side_bias, tie)
            others = net_left * (side_bias or 0.0) + n_ties * (tie or 0.0)
            return expected._replace(
                log_likelihood=expected.log_likelihood + inner(net_wins, scores) + others,
                slope=expected.slope + net_wins,
                extra_slope=expected.extra_slope + np.array([net_left, n_ties]),
            )

        return evaluate

    def _covariance(
        self, data: Comparisons, parameters: ScoreParameters, information: ScoreInformation
    ) -> Floats:
        """Return the covariance of the scores; with enough contexts, these are taken as a sample."""
        independent = super()._covariance(data, parameters, information)
        if not may_cluster(data):
            return independent
        difference = parameters.scores[data.left] - parameters.scores[data.right]
        p = self.probabilities(difference + (parameters.side_bias or 0.0), parameters.tie)
        return clustered_covariance(data, p, independent)

    @staticmethod
    def probabilities(difference: Floats, tie: float | None) -> Floats:
        """Return the probabilities of left, right and tie, on a further axis."""
        half = difference / 2.0
        log_tie = np.full_like(half, -np.inf if tie is None else tie)
        logs = np.stack([half, -half, log_tie], axis=-1)
        odds = np.exp(logs - logs.max(axis=-1, keepdims=True))
        probabilities: Floats = odds / odds.sum(axis=-1, keepdims=True)
        return probabilities

    @staticmethod
    def tie_start(share: float) -> float:
        """Return the tie parameter with which equal items have this share of ties."""
        return math.log(2.0 * share / (1.0 - share))


class LogPartition:
    r"""The term of the log-likelihood that does not depend on the outcomes.

    Bradley and Terry's model with ties is an exponential family with the statistics
    :math:`s = \pm 1/2` (0 for ties) of d and :math:`t = 1` (for ties) of :math:`\log \nu`: its
    log-likelihood is

    .. math:: \sum (s d + t \log \nu) - \sum \log(e^{d/2} + e^{-d/2} + \nu).

    This is the second sum with its sign. Its slopes are the expected statistics with the sign
    changed, and its information is their covariance.
    """

    def __init__(self, counts: PairCounts, *, reference: bool) -> None:
        left, right = counts.left.astype(np.int32), counts.right.astype(np.int32)
        self._block = PairBlock(left, right, counts.n_votes)
        self._n_items = counts.n_items
        self._passes = Passes(reference=reference, pairs=np.arange(len(left) + 1))

    def __call__(self, scores: Floats, side_bias: float | None, tie: float | None) -> Evaluation:
        """Return the sum and its derivatives."""
        n, information = (self._n_items,), np.zeros(len(self._block.left))
        side = math.exp((side_bias or 0.0) / 2.0)
        nu = 0.0 if tie is None else math.exp(tie)
        arguments = self._block, information, np.exp(scores / 2.0), side, nu
        slope, side_cross, tie_cross, totals = self._passes.run(
            "bradley_terry.log_partition", "pairs", *arguments, sums=(n, n, n, (6,))
        )
        total, side_slope, tie_slope, of_side, mixed, of_tie = totals.tolist()
        return Evaluation(
            total,
            slope=slope,
            extra_slope=np.array([side_slope, tie_slope]),
            information=information,
            cross=np.stack([side_cross, tie_cross], axis=1),
            corner=np.array([[of_side, mixed], [mixed, of_tie]]),
        )


MIN_CLUSTERS = 10
"""Contexts from which on intervals are clustered by them."""


def may_cluster(data: Comparisons) -> bool:
    """Whether there are enough contexts, also of each item, and few enough items for a matrix.

    Items that belong to one context, such as pictures of a scene, are no sample of contexts.
    """
    if data.context is None or data.contexts is None or data.n_items > MAX_DENSE_ITEMS:
        return False
    if len(data.contexts) < MIN_CLUSTERS:
        return False
    items = np.concatenate([data.left, data.right]).astype(np.int64)
    seen = np.unique(items * len(data.contexts) + np.tile(data.context, 2)) // len(data.contexts)
    n_contexts = np.bincount(seen)
    return bool(n_contexts[n_contexts > 0].min() >= MIN_CONTEXTS)


def clustered_covariance(data: Comparisons, probability: Floats, covariance: Floats) -> Floats:
    r"""Return the covariance of scores with contexts as the sample.

    .. math:: \Sigma \Bigl( \frac{C}{C - 1} \sum_c s_c s_c^T \Bigr) \Sigma

    with the covariance :math:`\Sigma` of independent votes and the slopes :math:`s_c` of the
    log-likelihood of each of C contexts; ``probability`` is that of each vote's outcomes, votes x 3.
    """
    assert data.context is not None
    n_contexts = int(data.context.max()) + 1
    chosen = np.array([0.5, -0.5, 0.0])[data.outcome]
    slope = chosen - (probability[:, LEFT] - probability[:, RIGHT]) / 2.0
    shape = n_contexts, data.n_items
    slopes = net_sums_of_contexts(data.context, data.left, data.right, slope, shape)
    projected = slopes @ covariance
    clustered: Floats = projected.T @ projected * (n_contexts / (n_contexts - 1.0))
    return clustered
