r"""Sensitivities or specificities of annotators per label, pooled over annotators and labels.

Annotator s is right about label l, where it is present (sensitivity) or absent (specificity), with
probability

.. math::
    a_{s,l} \sim \mathrm{Beta}(\kappa \bar a_{s,l}, \kappa (1 - \bar a_{s,l})), \qquad
    \operatorname{logit} \bar a_{s,l} = m_l + u_s, \qquad u_s \sim N(0, \sigma^2), \qquad
    m_l \sim N(\mu, \tau^2), \qquad \mu \sim N(\mu_0, 1).

:math:`m_l` is the label's level in the crowd, :math:`u_s` the annotator's own level, :math:`\mu_0` the
level at the start, and :math:`\kappa` how little an annotator's labels differ beyond that. All are
learned from expected counts: m and u by Newton's steps on a quasi-likelihood, in which the n answers of
a cell count :math:`n / (1 + (n - 1) / (\kappa + 1))`, as many as a beta-binomial's; :math:`\sigma^2`
and :math:`\tau^2` from the posteriors of u and m; :math:`\kappa` by the beta-binomial likelihood over a
grid. With few answers a rate is near the annotator's and the label's level; with many it is the
annotator's own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, expit

from annotruth.kernels.arrays import Floats

# Weak priors: kappa around 20 within a factor of e; sigma around 0.5 with the weight of 4 annotators.
_KAPPA = np.exp(np.linspace(np.log(2.0), np.log(300.0), 25))
_LOG_KAPPA_PRIOR = -0.5 * (np.log(_KAPPA / 20.0)) ** 2
_PRIOR_VARIANCE, _PRIOR_ANNOTATORS, _PRIOR_LABELS = 0.25, 4.0, 4.0
_N_NEWTON = 3
_MAX_STEP = 1.0
_LEAST = 1e-6  # rates stay away from 0 and 1


class PooledRates(NamedTuple):
    """The levels of labels and annotators, and how much rates vary around them."""

    level: Floats  # m, one per label
    offset: Floats  # u, one per annotator
    offset_variance: Floats  # the posterior variance of u
    kappa: float
    variance: float  # sigma squared
    level_variance: float  # tau squared
    usual: float  # mu_0

    def mean(self) -> Floats:
        """Return the prior means, annotators x labels."""
        means: Floats = expit(self.level + self.offset[:, np.newaxis])
        return means

    def crowd(self) -> Floats:
        """Return the rates of a typical annotator, one per label."""
        rates: Floats = expit(self.level)
        return rates

    def posterior_mean(self, successes: Floats, trials: Floats) -> Floats:
        """Return the rates given the counts, annotators x labels."""
        rates = (self.kappa * self.mean() + successes) / (self.kappa + trials)
        return np.clip(rates, _LEAST, 1.0 - _LEAST)

    def log_marginal(self, successes: Floats, trials: Floats) -> Floats:
        """Return the log-likelihood of each annotator's counts with their rates integrated out.

        The annotator's level is integrated out by Laplace's method.
        """
        counts = beta_binomial(self.mean(), self.kappa, successes, trials).sum(axis=1)
        information = self.offset_variance / self.variance
        marginal: Floats = counts - 0.5 * self.offset**2 / self.variance + 0.5 * np.log(information)
        return marginal


def start_rates(n_annotators: int, n_labels: int, rate: float) -> PooledRates:
    """Return rates that are the same for all annotators and labels."""
    level = float(np.log(rate / (1.0 - rate)))
    return PooledRates(
        level=np.full(n_labels, level),
        offset=np.zeros(n_annotators),
        offset_variance=np.full(n_annotators, 0.5),
        kappa=20.0,
        variance=0.5,
        level_variance=0.25,
        usual=level,
    )


def beta_binomial(mean: Floats, kappa: float, successes: Floats, trials: Floats) -> Floats:
    """Return the log-likelihood of counts whose rate has a Beta distribution."""
    a, b = kappa * mean, kappa * (1.0 - mean)
    likelihood: Floats = betaln(a + successes, b + trials - successes) - betaln(a, b)
    return likelihood


def update_rates(
    old: PooledRates, successes: Floats, trials: Floats, weight: Floats
) -> PooledRates:
    """Return the levels and variances that expected counts suggest.

    ``weight`` is how much each annotator counts for the crowd: the probability of being serious.
    """
    level, offset, variance = old.level, old.offset, old.variance
    counted = trials / (1.0 + np.maximum(trials - 1.0, 0.0) / (old.kappa + 1.0))
    observed = np.divide(successes, trials, out=np.zeros_like(trials), where=trials > 0)
    of_crowd = weight[:, np.newaxis]
    precision_of_level = 1.0 / old.level_variance
    for _ in range(_N_NEWTON):
        slope, curvature = _derivatives(level, offset, counted, observed)
        pull = precision_of_level * (level - _mean_level(level, old))
        information = (of_crowd * curvature).sum(axis=0) + precision_of_level
        step = ((of_crowd * slope).sum(axis=0) - pull) / information
        level = level + np.clip(step, -_MAX_STEP, _MAX_STEP)
        slope, curvature = _derivatives(level, offset, counted, observed)
        precision = curvature.sum(axis=1) + 1.0 / variance
        step = (slope.sum(axis=1) - offset / variance) / precision
        offset = offset + np.clip(step, -_MAX_STEP, _MAX_STEP)
    _, curvature = _derivatives(level, offset, counted, observed)
    offset_variance = 1.0 / (curvature.sum(axis=1) + 1.0 / variance)
    squares = (weight * (offset**2 + offset_variance)).sum()
    variance = (squares + _PRIOR_VARIANCE * _PRIOR_ANNOTATORS) / (weight.sum() + _PRIOR_ANNOTATORS)
    information = (of_crowd * curvature).sum(axis=0) + precision_of_level
    squares = ((level - _mean_level(level, old)) ** 2 + 1.0 / information).sum()
    level_variance = (squares + _PRIOR_VARIANCE * _PRIOR_LABELS) / (len(level) + _PRIOR_LABELS)
    new = PooledRates(
        *(level, offset, offset_variance, old.kappa, float(variance), float(level_variance)),
        old.usual,
    )
    scores = [
        (of_crowd * beta_binomial(new.mean(), kappa, successes, trials)).sum() for kappa in _KAPPA
    ]
    return new._replace(kappa=float(_KAPPA[np.argmax(scores + _LOG_KAPPA_PRIOR)]))


def _mean_level(level: Floats, rates: PooledRates) -> float:
    """Return the posterior mean of mu, given the labels' levels."""
    precision = len(level) / rates.level_variance
    return float((precision * level.mean() + rates.usual) / (precision + 1.0))


def _derivatives(
    level: Floats, offset: Floats, counted: Floats, observed: Floats
) -> tuple[Floats, Floats]:
    """Return slope and curvature of the quasi-likelihood of each cell, annotators x labels."""
    mean = expit(level + offset[:, np.newaxis])
    return counted * (observed - mean), counted * mean * (1.0 - mean)
