"""The posterior of scores, biases and inconsistencies in the model of subject bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats
from annotruth.observations import Labels

# Standard deviations, in units of the votes' noise at the start.
_INCONSISTENCIES = np.geomspace(1 / 8, 4, 17)
_AMBIGUITIES = np.append(0.0, np.geomspace(1 / 4, 3, 7))

# Priors of standard deviations, averaged by their likelihood: Gaussians of log-inconsistencies with
# these means and deviations, half-Gaussians of ambiguities with these scales.
_LOG_MEANS = np.linspace(-1.5, 0.75, 19)
_LOG_DEVIATIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
_AMBIGUITY_SCALES = (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 1.2)

# Biases of more annotators are taken as independent of one another.
_MAX_COUPLED = 400

_MAX_ROUNDS = 30
_TOLERANCE = 0.02  # of the logarithms of squared inconsistencies


@dataclass(frozen=True, eq=False)
class VotePosterior:
    """The posterior of scores, biases and inconsistencies."""

    score: Floats  # of each item: the posterior mean and half the width of the 95% interval
    half_width: Floats
    bias: Floats  # of each annotator: the posterior mean and variance
    bias_variance: Floats
    inconsistency: Floats  # the levels of inconsistency
    weights: Floats  # the posterior of each annotator's inconsistency, annotators x levels

    def bias_error(self, bias: Floats) -> Floats:
        """Return the root of the expected squared error of estimated biases."""
        error: Floats = np.sqrt(self.bias_variance + (self.bias - bias) ** 2)
        return error

    def inconsistency_error(self, inconsistency: Floats) -> Floats:
        """Return the root of the expected squared error of estimated inconsistencies."""
        difference = self.inconsistency - inconsistency[:, np.newaxis]
        error: Floats = np.sqrt((self.weights * difference**2).sum(axis=1))
        return error


class _Annotators(NamedTuple):
    """Biases and squared inconsistencies: estimates and their uncertainty."""

    b: Floats
    b_variance: Floats
    b_covariance: Floats  # empty for many annotators
    v2: Floats  # the exponential of the mean logarithm
    weights: Floats  # annotators x levels
    level_variance: float  # of the logarithm of all squared inconsistencies together


def vote_posterior(
    labels: Labels,
    session: Session,
    bias: Floats,
    offset: Floats,
    noise: float,
    *,
    floor: float,
    ambiguous: bool,
) -> VotePosterior:
    """Return the posterior, computed as in docs/model-details.md.

    It starts from ``bias``; ``offset`` is the part of each item's squared ambiguity that is taken as
    known, ``noise`` roughly the variance of votes, ``floor`` the least squared inconsistency, and
    ``ambiguous`` says whether each item has an unknown ambiguity.
    """
    session.put("offset", offset, per="items")
    levels = noise * (np.square(_AMBIGUITIES) if ambiguous else np.zeros(1))
    log_hyper = _log_ambiguity_priors() if ambiguous else np.zeros((1, 1))
    v2_levels = np.maximum(noise * np.square(_INCONSISTENCIES), floor)
    log_v2, log_v2_priors = np.log(v2_levels), _log_inconsistency_priors()
    n = labels.n_annotators
    n_coupled = n if n <= _MAX_COUPLED else 0
    has_gold = bool((labels.known >= 0).any())
    names = ("values", "b", "v2", "variance", "levels", "log_prior", "v2_levels", "log_hyper")
    step = Pass(
        "subject_bias_posterior.step",
        state=("offset",),
        inputs=tuple(map(Input, names)),
        sums=(
            Sum("log_likelihood", (n, len(v2_levels))),
            Sum("information", (n, len(v2_levels))),
            Sum("moments", (n, 2)),
            Sum("hyper", (len(log_hyper),)),
            Sum("coupling", (n_coupled, n_coupled)),
        ),
    )
    values = labels.scale.values
    # Biases are known to be smaller than the spread of all votes.
    b_precision = 1.0 / max(float(np.ptp(values)) ** 2, noise)
    log_prior = log_hyper[0]
    b, v2 = bias, np.full(n, noise)
    v2_mean = v2
    b_variance = noise / labels.labels_per_annotator
    for _ in range(_MAX_ROUNDS):
        sums = session.run_pass(
            step,
            values=values,
            b=b,
            v2=v2_mean,
            variance=v2**2 / (v2 + b_variance),
            levels=levels,
            log_prior=log_prior,
            v2_levels=v2_levels,
            log_hyper=log_hyper,
        )
        information = sums["information"] + b_precision
        log_likelihood = sums["log_likelihood"] - 0.5 * np.log(information)
        weights, level_variance = _posterior(log_likelihood, log_v2_priors, log_v2)
        # Half steps: ambiguities and inconsistencies explain the same noise, and would take turns.
        log_prior = np.logaddexp(log_prior, _average(log_hyper, sums["hyper"])) - np.log(2.0)
        before, v2 = v2, np.exp(0.5 * (weights @ log_v2 + np.log(v2)))
        v2_mean = weights @ v2_levels
        gradient, slope = sums["moments"].T
        if n_coupled:
            covariance = _covariance(sums["coupling"] + b_precision * np.eye(n), has_gold)
            b_variance = np.maximum(np.diag(covariance), 0.0)
        else:
            covariance = np.empty((0, 0))
            b_variance = 1.0 / (weights * information).sum(axis=1)
        b = b + gradient / slope
        b = b if has_gold else b - b.mean()
        if np.abs(np.log(v2 / before)).max() < _TOLERANCE:
            break
    annotators = _Annotators(b, b_variance, covariance, v2, weights, level_variance)
    score, half_width = _scores(
        labels, session, annotators, v2_levels, levels=levels, log_prior=log_prior
    )
    return VotePosterior(score, half_width, b, b_variance, np.sqrt(v2_levels), weights)


def _covariance(precision: Floats, has_gold: bool) -> Floats:
    """Return the covariance of biases: given their sum, unless known truths fix their level."""
    covariance = np.linalg.inv(precision).astype(np.float64)
    if has_gold:
        return covariance
    total = covariance.sum(axis=1)
    given: Floats = covariance - np.outer(total, total) / total.sum()
    return given


def _scores(
    labels: Labels,
    session: Session,
    annotators: _Annotators,
    v2_levels: Floats,
    *,
    levels: Floats,
    log_prior: Floats,
) -> tuple[Floats, Floats]:
    """Return the scores' posterior means and half the widths of their 95% intervals."""
    from scipy.special import stdtrit  # imported here because that takes longer than a small fit

    state = ("mean", "variance", "spread")
    for name in state:
        session.allocate(name, per="items")
    names = ("values", "b", "b_variance", "b_covariance", "v2", "v2_moments", "levels", "log_prior")
    one = Pass(
        "subject_bias_posterior.score_moments",
        state=("offset", *state),
        inputs=tuple(map(Input, names)),
    )
    weights = annotators.weights
    logs = np.log(v2_levels)
    mean, mean_log = weights @ v2_levels, weights @ logs
    of_v2, of_logs = (
        (weights * (values - its_mean[:, np.newaxis]) ** 2).sum(axis=1)
        for values, its_mean in ((v2_levels, mean), (logs, mean_log))
    )
    session.run_pass(
        one,
        values=labels.scale.values,
        b=annotators.b,
        b_variance=annotators.b_variance,
        b_covariance=annotators.b_covariance,
        v2=annotators.v2,
        v2_moments=np.stack([mean, of_v2, of_logs], axis=1),
        levels=levels,
        log_prior=log_prior,
    )
    score, of_noise, spread = (session.collect(name) for name in state)
    share = labels.labels_per_annotator / labels.n_labels
    of_votes = share @ (mean + annotators.b**2) - (share @ annotators.b) ** 2
    common = shared_rounding_variance(labels.scale.values, float(of_votes))
    variance = np.where(labels.known < 0, of_noise + common, 0.0)
    # Student's t of the same variance, whose variance varies as much.
    unknown = variance > 0.0
    squared_variation = np.full(len(score), max(annotators.level_variance, 1e-9))
    squared_variation[unknown] += spread[unknown] / variance[unknown] ** 2
    freedom = 4.0 + 2.0 / squared_variation
    scale = np.sqrt(variance * (freedom - 2.0) / freedom)
    half_width: Floats = scale * np.asarray(stdtrit(freedom, 0.975), dtype=np.float64)
    return score, half_width


def _log_inconsistency_priors() -> Floats:
    """Return the logarithms of the priors of inconsistencies, priors x levels."""
    logs = np.log(_INCONSISTENCIES)
    rows = [-0.5 * ((logs - m) / d) ** 2 for m in _LOG_MEANS for d in _LOG_DEVIATIONS]
    return _normalised(np.array(rows))


def _log_ambiguity_priors() -> Floats:
    """Return the logarithms of the priors of ambiguities, priors x levels."""
    from scipy.special import ndtr

    middles = (_AMBIGUITIES[1:] + _AMBIGUITIES[:-1]) / 2.0
    edges = np.concatenate([[0.0], middles, [np.inf]])
    mass = np.diff(ndtr(edges / np.array(_AMBIGUITY_SCALES)[:, np.newaxis]), axis=1)
    return _normalised(np.log(np.maximum(mass, 1e-12)))


def _normalised(log_weights: Floats) -> Floats:
    """Return log-weights whose exponentials sum to 1 in every row."""
    normalised: Floats = log_weights - np.logaddexp.reduce(log_weights, axis=-1)[..., np.newaxis]
    return normalised


def _average(log_priors: Floats, log_likelihood: Floats) -> Floats:
    """Return the logarithm of the mean of priors, by their likelihood."""
    weights = np.exp(_normalised(log_likelihood))
    average: Floats = np.log(weights @ np.exp(log_priors))
    return average


def _posterior(log_likelihood: Floats, log_priors: Floats, log_v2: Floats) -> tuple[Floats, float]:
    """Return the posterior over levels, annotators x levels, with the average of the priors.

    Also returns the variance, between the priors, of the mean logarithm over annotators.
    """
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    priors = np.exp(log_priors)
    marginal = np.maximum(likelihood @ priors.T, 1e-300)  # annotators x priors
    of_priors = np.log(marginal).sum(axis=0)
    weights = likelihood * np.exp(_average(log_priors, of_priors))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    mean = (likelihood @ (priors * log_v2).T / marginal).mean(axis=0)
    of_priors = np.exp(_normalised(of_priors))
    return shares, float(of_priors @ (mean - of_priors @ mean) ** 2)


def bounds_of(values: Floats) -> Floats:
    """Return the midpoints between the categories' values, with the ends of the scale open."""
    return np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2.0, [np.inf]])


def mass_between(z: Floats, axis: int) -> Floats:
    """Return the standard Gaussian's mass between consecutive bounds along an axis."""
    from scipy.special import ndtr  # imported here because that takes longer than a small fit

    bounds = np.moveaxis(z, axis, 0)
    lower, upper = bounds[:-1], bounds[1:]
    # In the upper half, differences of upper tails are exact to more digits.
    mass = np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
    return np.moveaxis(mass, 0, axis)


def rounded_gaussians(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    r"""Return the probability of each category for rounded Gaussians, one row per Gaussian.

    .. math:: p(n) = \Phi((b_n - m) / d) - \Phi((b_{n-1} - m) / d),

    with :math:`b_1, \ldots, b_{N-1}` the midpoints between the categories' values and the ends
    open.
    """
    z = (bounds_of(values) - mean[:, np.newaxis]) / deviation[:, np.newaxis]
    return mass_between(z, axis=1)


def rounding_variance(values: Floats) -> float:
    """Return the variance of rounding to the scale where its categories are closest."""
    step = np.diff(values).min() if len(values) > 1 else 1.0
    return float(step**2 / 12.0)


def shared_rounding_variance(values: Floats, variance: float) -> float:
    r"""Return the variance of the rounding error that all votes on an item have in common.

    Where votes hardly vary before they are rounded to steps of h, they are rounded alike. With their
    variance :math:`\sigma^2` before rounding and the score anywhere between two categories, the mean
    vote differs from the score by

    .. math:: \sum_k \frac{h^2}{2 \pi^2 k^2} e^{-4 \pi^2 k^2 \sigma^2 / h^2}

    on average, squared: the Fourier series of a sawtooth, smoothed by a Gaussian. Without noise that
    is :math:`h^2 / 12`. ``variance`` is that of rounded votes, :math:`\sigma^2 + h^2 / 12`.
    """
    of_rounding = rounding_variance(values)
    noise = max(variance / of_rounding - 1.0, 0.0) / 12.0  # in squared steps
    k = np.arange(1, 51)
    terms = 6.0 / (np.pi * k) ** 2 * np.exp(-4.0 * np.pi**2 * k**2 * noise)
    return of_rounding * float(terms.sum())
