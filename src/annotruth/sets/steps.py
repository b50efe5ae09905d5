r"""The equations of the model of sets over a session, and the pooled rates of annotators.

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

from typing import NamedTuple, NoReturn

import numpy as np
from scipy.special import betaln, expit

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import AnnotruthError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import Monitor
from annotruth.observations import Labels
from annotruth.observations.sets import members

_START_SENSITIVITY, _START_SPECIFICITY = 0.73, 0.88
_START_IRREGULAR = 0.1
_IRREGULAR_PRIOR = (1.0, 10.0)  # one irregular annotator among ten, before anybody answers
_OWN_RATE = 0.5  # Jeffreys' prior of how often an irregular annotator gives a label
# Items that have each label as often as labels have on average, before any answers, and items with the
# crowd's shares of labels, before those of a type. Without the first, prevalence and sensitivity of a rare
# or doubtful label drift apart. Chosen on simulated sets (docs/development/sets.md).
_LABEL_ITEMS, _TYPE_ITEMS = 8.0, 2.0
_LEAST_SHARE = 1e-4  # of a label in a type
_MAX_LOG_ODDS = 50.0
_N_CENTERS = 10  # steps of k-means


class SetParameters(NamedTuple):
    """What the steps update."""

    # the pooled rates, and each annotator's rates per label
    sensitivity: PooledRates
    specificity: PooledRates
    present: Floats
    absent: Floats
    # the probability that each annotator answers whatever the item is, and its share in the crowd
    irregular: Floats
    irregular_share: float
    theta: Floats  # the share of each label in each type of items
    types: Floats  # the shares of the types

    def tempered(self, power: float) -> SetParameters:
        r"""Return parameters with which, given evidence times the power, posteriors are tempered.

        The posterior odds of labels within a type, :math:`\theta e^r / (1 - \theta)`, and the weights of
        types are raised to the power: below 1, everything is less certain, and the same is most likely.
        """
        one, none = self.theta**power, (1.0 - self.theta) ** power
        log_types = power * np.log(self.types) + np.log(one + none).sum(axis=1)
        types = np.exp(log_types - log_types.max())
        return self._replace(theta=one / (one + none), types=types / types.sum())


class AnswerCounts(NamedTuple):
    """Expected counts of each annotator's answers by label, annotators x labels."""

    # over answers to items that have the label: how many, and in how many it was given
    positives: Floats
    hits: Floats
    # over answers to items without the label: how many, and in how many it was not given
    negatives: Floats
    rejections: Floats


class SetSteps:
    """EM of the model of sets over a session; posteriors stay there until they are collected."""

    objective_name = "the log-likelihood per answer"

    def __init__(self, labels: Labels, session: Session) -> None:
        self._session = session
        self._members = members(labels.scale).astype(np.float64)
        self._n_items, self._n_answers = labels.n_items, labels.n_labels
        shape = labels.n_annotators, self._members.shape[1]
        self._per_annotator = labels.labels_per_annotator[:, np.newaxis].astype(np.float64)
        self._given = np.zeros(shape)
        np.add.at(self._given, labels.annotator, self._members[labels.category_of_label()])
        self._counts = (
            Sum("hits", shape, annotator_axis=0),
            Sum("positives", shape, annotator_axis=0),
        )

    def start(self) -> SetParameters:
        """Return the parameters for which the posteriors are the shares of answers."""
        self._session.allocate("posterior", per="items", shape=(self._members.shape[1],))
        self._session.allocate("evidence", per="items", shape=(self._members.shape[1],))
        one = Pass("sets.presence.start", ("posterior",), (Input("members"),), self._counts)
        sums = self._session.run_pass(one, members=self._members)
        n_annotators, n_labels = self._given.shape
        shares = self._session.collect("posterior").mean(axis=0)[np.newaxis]
        theta = np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        first = SetParameters(
            start_rates(n_annotators, n_labels, _START_SENSITIVITY),
            start_rates(n_annotators, n_labels, _START_SPECIFICITY),
            present=np.zeros((n_annotators, n_labels)),
            absent=np.zeros((n_annotators, n_labels)),
            irregular=np.full(n_annotators, _START_IRREGULAR),
            irregular_share=_START_IRREGULAR,
            theta=theta,
            types=np.ones(1),
        )
        return self._with_rates(first, self._answer_counts(sums))

    def acceleration(self) -> NoReturn:
        """Refuse extrapolation: the pooled rates are not the maximum of one objective."""
        raise AnnotruthError("steps of the model of sets are not extrapolated")

    def step(self, old: SetParameters) -> tuple[SetParameters, Monitor]:
        """Pass over the answers once, then update the rates and the types."""
        sums = self._pass(old)
        log_likelihood = self._log_likelihood(old, sums)
        new = self._with_rates(old, self._answer_counts(sums))
        types = (sums["type_items"] + 1.0) / (self._n_items + len(old.types))
        theta = self._shares(sums["type_labels"], sums["type_items"])
        new = new._replace(theta=theta, types=types)
        return new, Monitor(log_likelihood, log_likelihood / self._n_answers)

    def finalize(self, parameters: SetParameters) -> float:
        """Compute the posteriors of every item; return the log-likelihood."""
        return self._log_likelihood(parameters, self._pass(parameters))

    def counts(self, parameters: SetParameters) -> AnswerCounts:
        """Return the expected counts of each annotator's answers."""
        return self._answer_counts(self._pass(parameters))

    def with_types(self, parameters: SetParameters, n_types: int) -> SetParameters:
        """Return parameters with that many types of items, from the posteriors of the last pass."""
        posterior = self._session.collect("posterior")
        center = _centers(posterior, n_types)
        types = (np.bincount(center, minlength=n_types) + 1.0) / (len(posterior) + n_types)
        sums = np.zeros((n_types, posterior.shape[1]))
        np.add.at(sums, center, posterior)
        size = np.bincount(center, minlength=n_types).astype(np.float64)
        return parameters._replace(theta=self._shares(sums, size), types=types)

    def _shares(self, labels: Floats, items: Floats) -> Floats:
        """Return the shares of labels in types, given the sums of labels and of items in each."""
        total = labels.sum(axis=0)
        prior = _LABEL_ITEMS * total.mean() / self._n_items
        crowd = (total + prior) / (self._n_items + _LABEL_ITEMS)
        shares = crowd[np.newaxis]
        if len(items) > 1:
            shares = (labels + _TYPE_ITEMS * crowd) / (items[:, np.newaxis] + _TYPE_ITEMS)
        clipped: Floats = np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        return clipped

    def tempered(self, parameters: SetParameters, power: float) -> tuple[Floats, Floats]:
        """Return the items' evidence times a power, and the posteriors that are tempered by it."""
        present, absent = self._ratios(parameters)
        self._pass(parameters.tempered(power), power * present, power * absent)
        evidence, posterior = (self._session.collect(name) for name in ("evidence", "posterior"))
        return evidence, posterior

    def own_rates(self) -> Floats:
        """Return how often each annotator gives each label, whatever the item."""
        return own_rates(self._given, self._per_annotator)

    def _pass(
        self,
        parameters: SetParameters,
        present: Floats | None = None,
        absent: Floats | None = None,
    ) -> dict[str, Floats]:
        if present is None or absent is None:
            present, absent = self._ratios(parameters)
        shape = parameters.theta.shape
        one = Pass(
            "sets.presence.step",
            ("posterior", "evidence"),
            (
                Input("members"),
                Input("present", annotator_axis=0),
                Input("absent", annotator_axis=0),
                Input("theta"),
                Input("types"),
            ),
            (
                *self._counts,
                Sum("type_items", shape[:1]),
                Sum("type_labels", shape),
                Sum("log_likelihood", (1,)),
            ),
        )
        return self._session.run_pass(
            one,
            members=self._members,
            present=present,
            absent=absent,
            theta=parameters.theta,
            types=parameters.types,
        )

    def _ratios(self, parameters: SetParameters) -> tuple[Floats, Floats]:
        """Return the log-likelihood ratios of given and of not given labels.

        An annotator who may be irregular counts less.
        """
        serious = (1.0 - parameters.irregular)[:, np.newaxis]
        a, b = parameters.present, parameters.absent
        return serious * np.log(a / (1.0 - b)), serious * np.log((1.0 - a) / b)

    def _answer_counts(self, sums: dict[str, Floats]) -> AnswerCounts:
        negatives = np.maximum(self._per_annotator - sums["positives"], 0.0)
        false = np.clip(self._given - sums["hits"], 0.0, negatives)
        hits = np.minimum(sums["hits"], sums["positives"])
        return AnswerCounts(sums["positives"], hits, negatives, negatives - false)

    def _with_rates(self, old: SetParameters, counts: AnswerCounts) -> SetParameters:
        """Return parameters with the rates of the counts, and who is irregular by them."""
        serious = 1.0 - old.irregular
        sensitivity = update_rates(old.sensitivity, counts.hits, counts.positives, serious)
        specificity = update_rates(old.specificity, counts.rejections, counts.negatives, serious)
        as_serious = sensitivity.log_marginal(counts.hits, counts.positives)
        as_serious += specificity.log_marginal(counts.rejections, counts.negatives)
        a, b = self._given + _OWN_RATE, self._per_annotator - self._given + _OWN_RATE
        as_irregular = (betaln(a, b) - betaln(_OWN_RATE, _OWN_RATE)).sum(axis=1)
        ratio = np.clip(as_irregular - as_serious, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        share = old.irregular_share
        irregular = expit(np.log(share / (1.0 - share)) + ratio)
        n_irregular, n_annotators = _IRREGULAR_PRIOR
        return old._replace(
            sensitivity=sensitivity,
            specificity=specificity,
            present=sensitivity.posterior_mean(counts.hits, counts.positives),
            absent=specificity.posterior_mean(counts.rejections, counts.negatives),
            irregular=irregular,
            irregular_share=float(
                (irregular.sum() + n_irregular) / (len(irregular) + n_annotators)
            ),
        )

    def _log_likelihood(self, parameters: SetParameters, sums: dict[str, Floats]) -> float:
        not_given = self._per_annotator - self._given
        b, own = parameters.absent, self.own_rates()
        serious = (self._given * np.log(1.0 - b) + not_given * np.log(b)).sum(axis=1)
        irregular = (self._given * np.log(own) + not_given * np.log(1.0 - own)).sum(axis=1)
        of_annotators = (1.0 - parameters.irregular) * serious + parameters.irregular * irregular
        return float(sums["log_likelihood"][0] + of_annotators.sum())


def own_rates(given: Floats, n_answers: Floats) -> Floats:
    """Return how often annotators give labels, given the counts; never 0 or 1."""
    rates: Floats = (given + _OWN_RATE) / (n_answers + 2.0 * _OWN_RATE)
    return rates


def _centers(posterior: Floats, n_types: int) -> Codes:
    """Return the nearest of k-means' centers to each item.

    The first center is the item nearest to the mean, each other the item farthest from those before.
    """
    distance = ((posterior - posterior.mean(axis=0)) ** 2).sum(axis=1)
    chosen = posterior[[int(distance.argmin())]]
    for _ in range(1, n_types):
        nearest = _distances(posterior, chosen).min(axis=1)
        chosen = np.vstack([chosen, posterior[int(nearest.argmax())]])
    for _ in range(_N_CENTERS):
        center = _distances(posterior, chosen).argmin(axis=1)
        sums = np.zeros_like(chosen)
        np.add.at(sums, center, posterior)
        size = np.bincount(center, minlength=n_types)[:, np.newaxis]
        chosen = np.where(size > 0, sums / np.maximum(size, 1), chosen)
    nearest_center: Codes = _distances(posterior, chosen).argmin(axis=1)
    return nearest_center


def _distances(posterior: Floats, chosen: Floats) -> Floats:
    return np.stack([((posterior - one) ** 2).sum(axis=1) for one in chosen], axis=1)


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
