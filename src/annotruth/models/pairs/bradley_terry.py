"""Bradley and Terry's model of pair comparisons, with ties and a side bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from annotruth.comparisons.table import LEFT, RIGHT, TIE
from annotruth.kernels.arrays import Floats, inner
from annotruth.models.pairs.information import Evaluation
from annotruth.models.pairs.score_model import ScoreModel


@dataclass(kw_only=True)
class BradleyTerry(ScoreModel):
    r"""The model of Bradley and Terry (Biometrika, 1952), with the ties of Davidson (JASA, 1970).

    With :math:`d = \theta_l - \theta_r + \gamma`,

    .. math:: P(\text{left}), P(\text{right}), P(\text{tie}) \propto e^{d/2}, e^{-d/2}, \nu.

    Without ties, this is :math:`P(\text{left}) = 1 / (1 + e^{-d})`. The side bias gamma is estimated
    if the sides are known. All annotators are alike, and covariates are not used. Scores have a
    normal prior whose variance is estimated from the data, so those of unbeaten items are finite.
    Intervals come from the inverse of the information, that of the prior included.

    Its options are those of `PairEstimator`. ``result_.parameters`` has ``side_bias`` and ``tie``,
    the logarithm of nu, each with its 95% interval, and ``score_variance``.

    Examples
    --------
    >>> from annotruth.comparisons import Comparisons
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

    @staticmethod
    def evaluate(difference: Floats, tie: float | None, votes: Floats) -> Evaluation:
        """Return the log-likelihood of counts, pairs x outcomes, and its derivatives."""
        return davidson(difference, tie, votes)

    @staticmethod
    def probabilities(difference: Floats, tie: float | None) -> Floats:
        """Return the probabilities of left, right and tie, one row per difference."""
        half = difference / 2.0
        log_tie = np.full_like(half, -np.inf if tie is None else tie)
        logs = np.stack([half, -half, log_tie], axis=1)
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        probabilities: Floats = odds / odds.sum(axis=1, keepdims=True)
        return probabilities

    @staticmethod
    def tie_start(share: float) -> float:
        """Return the tie parameter with which equal items have this share of ties."""
        return math.log(2.0 * share / (1.0 - share))


def davidson(difference: Floats, tie: float | None, votes: Floats) -> Evaluation:
    r"""Return the log-likelihood of counts and its derivatives.

    It is an exponential family with the statistics :math:`s = \pm 1/2` (0 for ties) of d and
    :math:`t = 1` (for ties) of :math:`\log \nu`: its slopes are the statistics less their means, and
    its information is their covariance.
    """
    net_wins = (votes[:, LEFT] - votes[:, RIGHT]) / 2.0
    n_ties = float(votes[:, TIE].sum())
    expected = minus_log_partition(difference, tie, votes.sum(axis=1))
    return expected._replace(
        log_likelihood=expected.log_likelihood
        + inner(net_wins, difference)
        + n_ties * (tie or 0.0),
        slope=net_wins + expected.slope,
        tie_slope=0.0 if tie is None else n_ties + expected.tie_slope,
    )


def minus_log_partition(difference: Floats, tie: float | None, n: Floats) -> Evaluation:
    r"""Return :math:`-\sum n \log(e^{d/2} + e^{-d/2} + \nu)` and its derivatives."""
    # Divided by e^{|d|/2}, so that nothing overflows.
    distance = np.abs(difference)
    smaller = np.exp(-distance)
    nu = 0.0 if tie is None else np.exp(tie - distance / 2.0)
    total = 1.0 + smaller + nu
    log_total = inner(n, np.log(total)) + inner(n, distance) / 2.0
    n_each = n / total
    mean = np.copysign(n_each * (1.0 - smaller) / 2.0, difference)
    # n times the mean of s^2, less n times the square of the mean of s
    information = n_each * (1.0 + smaller) / 4.0 - mean * (1.0 - smaller) / (
        2.0 * np.copysign(total, difference)
    )
    if tie is None:
        return Evaluation(-log_total, -mean, information)
    p_tie = nu / total
    return Evaluation(
        -log_total,
        -mean,
        information,
        tie_slope=-inner(n, p_tie),
        cross_information=-mean * p_tie,
        tie_information=inner(n, p_tie * (1.0 - p_tie)),
    )
