"""RobustGPM's variational EM: latent classes of items, response strategies of annotators.

The equations are in the docstring of `annotruth.models.robust_gpm.model.RobustGPM`. What an item's latent
classes are is said by an `ItemModel`: `annotruth.models.robust_gpm.opinions` or
`annotruth.models.robust_gpm.classes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.labels import LabelSummary
from annotruth.models.em import Monitor
from annotruth.models.robust_gpm.strategies import (
    ResponseStrategies,
    find_repeated_labels,
    normalise_log_weights,
)
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.models.warm_start import with_new_rows

POSTERIOR_INPUTS = (Input("prior"), Input("known_truth"), Input("likelihood", annotator_axis=0))
"""The inputs of passes that compute items' posteriors."""

STRATEGY_INPUTS = (Input("other"), Input("repeated"), Input("repeated_label", annotator_axis=0))
"""Further inputs of passes that compute leave-one-out log-likelihoods."""

# Pseudo-counts of annotators who are always serious, and of others.
_ALWAYS_PSEUDO_COUNT, _NOT_ALWAYS_PSEUDO_COUNT = 2.0, 1.0


class RobustGPMParameters(NamedTuple):
    """The parameters of the first stage.

    Attributes
    ----------
    strategy_weights
        q[s, g]: the posterior of each annotator's response strategies.
    class_prior
        p[k]: the share of items in each latent class.
    always_share
        The share of annotators who are always serious.
    serious
        The distributions of serious labels, shifts x categories x classes.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.classes import ClassSteps, TrueClasses
    >>> labels = at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog"), ("b", "ann", "dog")])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     start = ClassSteps(TrueClasses(labels), session).start()
    >>> start.class_prior.round(2).tolist()
    [0.33, 0.67]
    """

    strategy_weights: Floats | Singles
    class_prior: Floats
    always_share: float
    serious: Floats


class ExpectedCounts(NamedTuple):
    """Sums of the items' posteriors.

    Attributes
    ----------
    labels
        Over each annotator's labels: annotators x categories x classes.
    classes
        Over all items.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.steps import ExpectedCounts
    >>> ExpectedCounts(labels=np.ones((3, 2, 2)), classes=np.array([4.0, 6.0])).classes
    array([4., 6.])
    """

    labels: Floats
    classes: Floats


class EStepResult(NamedTuple):
    """What an E-step returns: expected counts, and the terms of the evidence lower bound.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.steps import EStepResult, ExpectedCounts
    >>> counts = ExpectedCounts(np.ones((3, 2, 2)), np.array([4.0, 6.0]))
    >>> EStepResult(counts, log_likelihood=-12.5, divergence=1.5).log_likelihood
    -12.5
    """

    counts: ExpectedCounts
    log_likelihood: float
    divergence: float  # of the strategies' weights from their prior, over all annotators


class ItemModel(ABC):
    """The latent classes of items.

    Attributes
    ----------
    labels
        The summary of the labels.
    known_truth
        The likelihood of a known truth, categories x classes.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes
    >>> items = OpinionShapes(at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels)
    >>> items.one_truth, items.n_classes  # latent classes are shapes of opinion over the scale
    (False, 32)
    """

    one_truth: ClassVar[bool]
    """Whether every item has one right label."""

    class_pseudo_count: ClassVar[float]
    """Pseudo-count of items per class."""

    def __init__(self, labels: LabelSummary, known_truth: Floats) -> None:
        self.labels = labels
        self.known_truth = known_truth

    @property
    def n_classes(self) -> int:
        """How many latent classes there are."""
        return len(self.known_truth[0])

    @property
    @abstractmethod
    def serious_shape(self) -> tuple[int, int, int]:
        """Shifts x categories x classes: the shape of the distributions of serious labels."""

    @abstractmethod
    def strategies(self, serious: Floats) -> ResponseStrategies:
        """Return all response strategies, given the distributions of serious labels."""

    @abstractmethod
    def update_serious(
        self,
        old: Floats,
        strategies: ResponseStrategies,
        weights: Floats | Singles,
        counts: Floats,
        repeated_label: Codes,
    ) -> Floats:
        """Return the distributions of serious labels after an M-step.

        ``weights`` is annotators x strategies, ``counts`` annotators x categories x classes.
        """

    @abstractmethod
    def log_prior(self, serious: Floats) -> float:
        """Return the log-prior of the distributions of serious labels."""

    @abstractmethod
    def opinions(self, strategies: ResponseStrategies, weights: Floats) -> Floats:
        """Return the distribution of serious opinion in each class, classes x categories."""

    @abstractmethod
    def score_variance(self) -> float:
        """Return the variance of an item's score within a class."""

    @abstractmethod
    def variance_inflation(self, strategies: ResponseStrategies, weights: Floats) -> float:
        """Return the factor by which the variances of items' results are multiplied.

        An item's posterior takes the annotators' strategies as known and as independent of one
        another.
        """


Items = TypeVar("Items", bound=ItemModel)


class RobustGPMSteps(ABC, Generic[Items]):
    """Variational EM over a session: latent classes of items, response strategies of annotators.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.classes import ClassSteps, TrueClasses
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, n_categories=3, seed=0).labels
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = ClassSteps(TrueClasses(labels), session)
    ...     first, before = steps.step(steps.start())
    ...     second, after = steps.step(first)
    >>> after.objective > before.objective
    True
    """

    objective_name = "the bound per label"

    def __init__(self, items: Items, session: Session) -> None:
        labels = items.labels
        self.items = items
        self.labels = labels
        self.session = session
        self.repeated_label: Codes = find_repeated_labels(labels.labels_per_category)
        self.counts_shape = (labels.n_annotators, labels.n_categories, items.n_classes)
        self._count = Pass(
            "robust_gpm.step",
            inputs=POSTERIOR_INPUTS,
            sums=(
                Sum("labels", self.counts_shape, annotator_axis=0),
                Sum("classes", (items.n_classes,)),
                Sum("log_likelihood", (1,)),
            ),
        )

    @abstractmethod
    def start(self) -> RobustGPMParameters:
        """Return the parameters that a fit starts with."""

    def resume(self, previous: RobustGPMParameters) -> RobustGPMParameters:
        """Return parameters of a previous fit; new annotators have the weights of a start."""
        start = self.start().strategy_weights
        return previous._replace(strategy_weights=with_new_rows(previous.strategy_weights, start))

    def step(self, old: RobustGPMParameters) -> tuple[RobustGPMParameters, Monitor]:
        """Pass over the labels once and update all parameters."""
        strategies = self.items.strategies(old.serious)
        result = self.e_step(old, strategies)
        bound = self._lower_bound(old, result)
        monitor = Monitor(result.log_likelihood, bound / self.labels.n_labels)
        return self.m_step(old, strategies, result.counts), monitor

    def e_step(
        self, parameters: RobustGPMParameters, strategies: ResponseStrategies
    ) -> EStepResult:
        """Compute the items' posteriors and return their sums."""
        likelihood = self.likelihood(parameters, strategies)
        counts, log_likelihood = self.expected_counts(parameters.class_prior, likelihood)
        weights = parameters.strategy_weights
        log_prior = self._log_prior(parameters.always_share, strategies)
        log_ratio = np.log(np.maximum(weights, 1e-300)) - log_prior
        return EStepResult(counts, log_likelihood, float((weights * log_ratio).sum()))

    def m_step(
        self, old: RobustGPMParameters, strategies: ResponseStrategies, counts: ExpectedCounts
    ) -> RobustGPMParameters:
        """Update the strategies' weights, the share of the always serious, and the classes."""
        log_prior = self._log_prior(old.always_share, strategies)
        weights = self._strategy_weights(counts.labels, strategies, log_prior)
        n_always = weights[:, strategies.always_serious].sum(dtype=np.float64)
        n_annotators = len(weights) + _ALWAYS_PSEUDO_COUNT + _NOT_ALWAYS_PSEUDO_COUNT
        always_share = (n_always + _ALWAYS_PSEUDO_COUNT) / n_annotators
        serious = self.items.update_serious(
            old.serious, strategies, weights, counts.labels, self.repeated_label
        )
        prior = counts.classes + self.items.class_pseudo_count
        return RobustGPMParameters(weights, prior / prior.sum(), float(always_share), serious)

    def likelihood(self, parameters: RobustGPMParameters, strategies: ResponseStrategies) -> Floats:
        """Return the likelihood of labels given classes: the geometric mean over strategies."""
        mean = strategies.log_probability.average(parameters.strategy_weights, self.repeated_label)
        likelihood: Floats = np.exp(mean)
        return likelihood

    def expected_counts(
        self, class_prior: Floats, likelihood: Floats
    ) -> tuple[ExpectedCounts, float]:
        """Pass over the labels once; return the expected counts and the log-likelihood.

        ``likelihood`` of each label given the class is annotators x categories x classes.
        """
        sums = self.session.run_pass(
            self._count,
            prior=class_prior,
            known_truth=self.items.known_truth,
            likelihood=likelihood,
        )
        counts = ExpectedCounts(sums["labels"], sums["classes"])
        return counts, float(sums["log_likelihood"][0])

    def finalize(self, parameters: RobustGPMParameters) -> float:
        """Return the log-likelihood: latent classes summed out, strategies averaged."""
        return self.e_step(parameters, self.items.strategies(parameters.serious)).log_likelihood

    def acceleration(self) -> Squarem[RobustGPMParameters]:
        """Return how to extrapolate the steps."""
        return Squarem(
            RobustGPMParameters, shares(axis=1), shares(axis=0), _probability, shares(axis=1)
        )

    def leave_one_out(self, parameters: RobustGPMParameters) -> Floats:
        """Return the leave-one-out log-likelihood of the first stage's parameters."""
        strategies = self.items.strategies(parameters.serious)
        likelihood = self.likelihood(parameters, strategies)
        return self.leave_one_out_by(parameters.class_prior, likelihood, strategies)

    def leave_one_out_by(
        self, class_prior: Floats, likelihood: Floats, strategies: ResponseStrategies
    ) -> Floats:
        """Return each annotator's log-likelihood in every strategy, annotators x strategies.

        The posterior of an item is computed from the labels of the other annotators.
        """
        shape = (self.labels.n_annotators, strategies.n_strategies)
        leave_one_out = Pass(
            "robust_gpm.leave_one_out",
            inputs=(*POSTERIOR_INPUTS, *STRATEGY_INPUTS),
            sums=(Sum("log_likelihood", shape, annotator_axis=0),),
        )
        other, repeated = (
            np.ascontiguousarray(table.transpose(1, 2, 0)) for table in strategies.probability
        )
        sums = self.session.run_pass(
            leave_one_out,
            prior=class_prior,
            known_truth=self.items.known_truth,
            likelihood=likelihood,
            other=other,
            repeated=repeated,
            repeated_label=self.repeated_label,
        )
        return sums["log_likelihood"]

    def _strategy_weights(
        self, counts: Floats, strategies: ResponseStrategies, log_prior: Floats
    ) -> Floats | Singles:
        """Return the posterior of each annotator's strategies, given the expected counts."""
        log_likelihood = strategies.log_probability.total(counts, self.repeated_label)
        return normalise_log_weights(log_likelihood + log_prior)

    def _log_prior(self, always_share: float, strategies: ResponseStrategies) -> Floats:
        """Return the log-prior of strategies: one row per annotator, or one for all of them."""
        return strategies.annotator_log_prior(always_share, self.labels.annotator_prior)

    def _lower_bound(self, parameters: RobustGPMParameters, result: EStepResult) -> float:
        """Return the lower bound of the log-posterior."""
        always = parameters.always_share
        of_classes = self.items.class_pseudo_count * np.log(parameters.class_prior).sum()
        of_always = _ALWAYS_PSEUDO_COUNT * np.log(always)
        of_always += _NOT_ALWAYS_PSEUDO_COUNT * np.log1p(-always)
        return float(
            result.log_likelihood
            - result.divergence
            + of_classes
            + of_always
            + self.items.log_prior(parameters.serious)
        )


def _probability(x0: float, x1: float, x2: float, limit: float) -> float:
    """Extrapolate a probability."""
    return float(probabilities(np.array(x0), np.array(x1), np.array(x2), limit))
