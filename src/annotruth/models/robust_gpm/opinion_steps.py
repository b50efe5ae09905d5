"""RobustGPM's variational EM where opinions differ: shapes of opinion, and response strategies.

The equations are in the docstring of `annotruth.models.robust_gpm.opinion_model.OpinionModel`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts
from annotruth.models.robust_gpm.opinions import OpinionShapes, leave_one_out
from annotruth.models.robust_gpm.strategies import (
    find_repeated_labels,
    normalise_log_weights,
)
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.models.warm_start import with_new_rows

_ALWAYS_START = 0.65  # the share of annotators who are always serious, before the first step

# Pseudo-counts of annotators who are always serious, and of others.
_ALWAYS_PSEUDO_COUNT, _NOT_ALWAYS_PSEUDO_COUNT = 2.0, 1.0


class OpinionParameters(NamedTuple):
    """The parameters where opinions differ."""

    strategy_weights: Floats  # q[s, g]: the posterior of each annotator's response strategies
    class_prior: Floats  # p[z]: the share of items in each latent class
    always_share: float  # the share of annotators who are always serious


class EStepResult(NamedTuple):
    """What an E-step returns: expected counts, and the terms of the evidence lower bound."""

    expected: ExpectedCounts
    log_likelihood: float
    divergence: float  # of the strategies' weights from their prior, over all annotators


class OpinionSteps:
    """Variational EM over a session: shapes of opinion of items, response strategies of annotators."""

    objective_name = "the bound per label"

    def __init__(self, items: OpinionShapes, session: Session) -> None:
        labels = items.labels
        self.items = items
        self.labels = labels
        self.session = session
        self.repeated_label: Codes = find_repeated_labels(
            labels.labels_per_category, break_ties=True, weight=labels.annotator_weight
        )
        self._repeated_label = session.to_engine(self.repeated_label)
        self.counts_shape = (labels.n_annotators, labels.n_categories, items.n_classes)
        self._n_labels = labels.counted_labels()
        self._n_annotators = labels.weighted(np.ones(labels.n_annotators)).sum()
        self.count_sums = (
            Sum("counts", self.counts_shape, annotator_axis=0),
            Sum("classes", (items.n_classes,)),
            Sum("log_likelihood", (1,)),
        )
        self._count = Pass("robust_gpm.step", inputs=POSTERIOR_INPUTS, sums=self.count_sums)

    def start(self) -> OpinionParameters:
        """Return the prior of the strategies, and all classes alike."""
        n_annotators, _, n_classes = self.counts_shape
        prior = normalise_log_weights(self._log_prior(_ALWAYS_START))
        weights = np.broadcast_to(self._to_engine(prior), (n_annotators, prior.shape[1]))
        return OpinionParameters(weights, np.full(n_classes, 1.0 / n_classes), _ALWAYS_START)

    def start_beside(self, people: OpinionParameters) -> OpinionParameters:
        """Return the parameters of a fit of some annotators; the others have the weights of a start."""
        start = self.session.to_host(self.start().strategy_weights)
        weights = with_new_rows(people.strategy_weights, start)
        return people._replace(strategy_weights=self.session.to_engine(weights))

    def step(self, old: OpinionParameters) -> tuple[OpinionParameters, Monitor]:
        """Pass over the labels once and update all parameters."""
        result = self.e_step(old)
        bound = self.lower_bound(old, result.log_likelihood, result.divergence)
        monitor = Monitor(result.log_likelihood, bound / self._n_labels)
        return self.m_step(old, result.expected), monitor

    def e_step(self, parameters: OpinionParameters) -> EStepResult:
        """Compute the items' posteriors and return their sums."""
        sums = self.session.run_pass(
            self._count,
            prior=parameters.class_prior,
            known_truth=self.items.known_truth,
            confusion=self.confusion(parameters),
        )
        return EStepResult(
            ExpectedCounts(sums["counts"], sums["classes"]),
            float(sums["log_likelihood"][0]),
            self.divergence(parameters),
        )

    def divergence(self, parameters: OpinionParameters) -> float:
        """Return the divergence of the strategies' weights from their prior, over all annotators."""
        weights = parameters.strategy_weights
        log_prior = self._to_engine(self._log_prior(parameters.always_share))
        log_ratio = np.log(np.maximum(weights, 1e-300)) - log_prior
        return float(self.labels.weighted(weights * log_ratio).sum())

    def m_step(self, old: OpinionParameters, expected: ExpectedCounts) -> OpinionParameters:
        """Update the strategies' weights, the share of the always serious, and the classes."""
        weights = self._strategy_weights(expected.counts, self._log_prior(old.always_share))
        n_always = self._count_always_serious(weights)
        n_annotators = self._n_annotators + _ALWAYS_PSEUDO_COUNT + _NOT_ALWAYS_PSEUDO_COUNT
        always_share = (n_always + _ALWAYS_PSEUDO_COUNT) / n_annotators
        class_prior = self.items.shares.estimate(expected.classes, old.class_prior)
        return OpinionParameters(weights, class_prior, float(always_share))

    def _count_always_serious(self, weights: Floats) -> float:
        """Return the expected number of annotators who are always serious."""
        is_always = np.asarray(self.items.strategies.always_serious, like=weights)
        always = self.labels.weighted(weights[:, is_always])
        # Added up in memory: the order of the sum must not depend on the engine's hardware.
        return float(self.session.to_host(always).sum(dtype=np.float64))

    def confusion(self, parameters: OpinionParameters) -> Floats:
        """Return P(label | class) of each annotator: the geometric mean over strategies."""
        table = self.items.strategies.log_probability
        mean = table.average(parameters.strategy_weights, self._repeated_label)
        confusion: Floats = np.exp(self.labels.weighted(mean))
        return confusion

    def finalize(self, parameters: OpinionParameters) -> float:
        """Return the log-likelihood: latent classes summed out, strategies averaged."""
        return self.e_step(parameters).log_likelihood

    def acceleration(self) -> Squarem[OpinionParameters]:
        """Return how to extrapolate the steps."""
        return Squarem(OpinionParameters, shares(axis=1), shares(axis=0), extrapolate_probability)

    def leave_one_out(self, parameters: OpinionParameters) -> Floats:
        """Return each annotator's leave-one-out log-likelihood in every strategy."""
        return leave_one_out(
            self.session,
            self.items,
            self.items.strategies,
            self._repeated_label,
            prior=parameters.class_prior,
            confusion=self.confusion(parameters),
        )

    def _strategy_weights(self, counts: Floats, log_prior: Floats) -> Floats:
        """Return the posterior of each annotator's strategies, given the expected counts."""
        total = self.items.strategies.log_probability.total(counts, self._repeated_label)
        return normalise_log_weights(total + self._to_engine(log_prior))

    def _to_engine(self, prior: Floats) -> Floats:
        """Return one row for all annotators, or one each, where the engine computes."""
        rows: Floats = prior if len(prior) == 1 else self.session.to_engine(prior)
        return np.asarray(rows, like=self._repeated_label)

    def _log_prior(self, always_share: float) -> Floats:
        """Return the log-prior of strategies: one row per annotator, or one for all of them."""
        strategies = self.items.strategies
        return strategies.annotator_log_prior(
            strategies.log_prior(always_share), self.labels.annotator_prior
        )

    def lower_bound(
        self, parameters: OpinionParameters, log_likelihood: float, divergence: float
    ) -> float:
        """Return the lower bound of the log-posterior."""
        always = parameters.always_share
        of_classes = self.items.shares.log_prior(parameters.class_prior)
        of_always = _ALWAYS_PSEUDO_COUNT * np.log(always)
        of_always += _NOT_ALWAYS_PSEUDO_COUNT * np.log1p(-always)
        return float(log_likelihood - divergence + of_classes + of_always)


def extrapolate_probability(x0: float, x1: float, x2: float, limit: float) -> float:
    """Extrapolate a probability."""
    return float(probabilities(np.array(x0), np.array(x1), np.array(x2), limit))
