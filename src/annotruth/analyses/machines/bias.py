"""What sways a machine that compares pairs: the side of an item, and covariates such as length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.machines.estimates import Estimate
from annotruth.kernels.arrays import Floats
from annotruth.models.distribution import Z_95
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE, Comparisons
from annotruth.observations.pairs.votes import in_order_of_codes

_PRECISION = 0.25  # of the prior of the side bias and of standardised coefficients, as in PairGPM
_SHARPNESS_PRECISION = 0.01
_MAX_STEPS, _TOL = 50, 1e-9


class PairBias(NamedTuple):
    """What sways a machine."""

    # the side bias: the log-odds of left over right for items of equal score; None where sides are
    # not known
    side: Estimate | None
    # the coefficient of each covariate, in the covariate's own unit
    covariates: dict[str, Estimate]
    # the number of pairs that the machine compared in both orders, and the share of these on which
    # it gave the same answer
    n_both_orders: int
    consistency: float


def measure_bias(votes: Comparisons, scores: Floats) -> PairBias:
    r"""Return what sways the annotator of these comparisons, given the people's scores.

    Davidson's model with the annotator's own sharpness, side bias, coefficients and tie rate,

    .. math:: D(\text{left}, \text{right}, \text{tie}) \propto (e^{d/2}, e^{-d/2}, \nu), \qquad
              d = \beta (\theta_l - \theta_r) + \gamma + x \cdot c,

    is a multinomial logistic regression on :math:`(\theta_l - \theta_r, 1, x)`. Intervals come from its
    information and a weak normal prior.
    """
    columns = [scores[votes.left] - scores[votes.right], np.ones(votes.n_comparisons)]
    columns += [np.asarray(values, dtype=np.float64) for values in votes.covariates.values()]
    x = np.stack(columns, axis=1)
    scale = np.sqrt((x**2).mean(axis=0))
    scale[scale == 0.0] = 1.0
    precision = np.full(x.shape[1], _PRECISION)
    precision[0] = _SHARPNESS_PRECISION
    value, deviation = _regression(x / scale, votes.outcome, precision)
    value, deviation = value / scale, deviation / scale
    effects = [
        Estimate(float(v), float(v - Z_95 * sd), float(v + Z_95 * sd))
        for v, sd in zip(value, deviation, strict=True)
    ]
    n_both_orders, consistency = _consistency(votes)
    return PairBias(
        effects[1] if votes.sides_known else None,
        dict(zip(votes.covariates, effects[2:], strict=True)),
        n_both_orders,
        consistency,
    )


def _regression(x: Floats, outcome: NDArray[np.int8], precision: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and their standard deviations, by Newton's method; the log-posterior is concave."""
    n_features = x.shape[1]
    has_ties = bool((outcome == TIE).any())
    # The features of left, right and tie, in which the logarithms of the odds are linear.
    features = np.zeros((len(x), 3, n_features + 1))
    features[:, LEFT, :-1], features[:, RIGHT, :-1] = x / 2.0, -x / 2.0
    features[:, TIE, -1] = 1.0
    at = np.zeros(n_features + 1)
    ridge = np.append(precision, _SHARPNESS_PRECISION)
    given = features[np.arange(len(x)), outcome].sum(axis=0)
    for _ in range(_MAX_STEPS):
        logs = features @ at
        if not has_ties:
            logs[:, TIE] = -np.inf
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        mean = np.einsum("ny,nyk->nk", share, features)
        square = np.einsum("ny,nyk,nyl->kl", share, features, features, optimize=True)
        information = square - mean.T @ mean + np.diag(ridge)
        step = np.linalg.solve(information, given - mean.sum(axis=0) - ridge * at)
        at = at + step
        if np.abs(step).max() < _TOL:
            break
    deviation = np.sqrt(np.diag(np.linalg.inv(information)))
    return at[:-1], deviation[:-1]


def different_pairs(votes: Comparisons) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different pairs, 3 x pairs: context and two items; and that of each comparison."""
    low, high, _ = in_order_of_codes(votes.left, votes.right, votes.outcome)
    context = np.zeros(len(low), np.int64) if votes.context is None else votes.context
    return np.unique(np.stack([context, low, high]), axis=1, return_inverse=True)


def _consistency(votes: Comparisons) -> tuple[int, float]:
    """Return how many pairs were compared in both orders, and the share with the same answer."""
    flipped = votes.left > votes.right
    _, pair = different_pairs(votes)
    answer = in_order_of_codes(votes.left, votes.right, votes.outcome)[2]
    first = [
        dict(zip(pair[order].tolist()[::-1], answer[order].tolist()[::-1], strict=True))
        for order in (~flipped, flipped)
    ]
    both = first[0].keys() & first[1].keys()
    if not both:
        return 0, float("nan")
    return len(both), float(np.mean([first[0][each] == first[1][each] for each in both]))
