"""RobustGPM where every item has one right label: the latent classes are the categories.

EM has two stages: response strategies of annotators and the crowd's confusion matrix first, then a
confusion matrix per annotator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Pass
from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.labels import LabelSummary
from annotruth.models.base_fit import variance_inflation
from annotruth.models.em import Monitor
from annotruth.models.robust_gpm.steps import (
    ExpectedCounts,
    ItemModel,
    RobustGPMParameters,
    RobustGPMSteps,
)
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    LabelTable,
    ResponseStrategies,
    tabulate_strategies,
)
from annotruth.models.squarem import Squarem, shares

_PSEUDO_COUNT = 0.5  # items per class, and serious labels per label and class
_CONFUSION_PSEUDO_COUNT = 3.0  # labels per class, distributed as the annotator's strategies have it
_ADJACENT_PSEUDO_COUNT = 50.0  # labels next to the class, and labels on it
_ALWAYS_START = 0.3  # the share of annotators who are always serious, before the first step


class TrueClasses(ItemModel):
    """Latent classes where every item has one right label: the categories.

    The crowd's confusion matrix, P(serious label | class), is learned.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.classes import TrueClasses
    >>> items = TrueClasses(at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog")]))
    >>> items.one_truth, items.n_classes
    (True, 2)
    """

    one_truth = True
    class_pseudo_count = _PSEUDO_COUNT

    def __init__(self, labels: LabelSummary) -> None:
        super().__init__(labels, known_truth=np.eye(labels.n_categories))
        self._ordinal = labels.scale.is_ordinal

    @property
    def serious_shape(self) -> tuple[int, int, int]:
        """1 x categories x classes: the crowd's confusion matrix, without shifts."""
        return 1, self.labels.n_categories, self.labels.n_categories

    def strategies(self, serious: Floats) -> ResponseStrategies:
        """Return all response strategies with this confusion matrix."""
        return tabulate_strategies(serious, np.ones(1), ordinal=self._ordinal)

    def serious_from_counts(self, counts: Floats) -> Floats:
        """Return the crowd's confusion matrix, given counts of serious labels, labels x classes."""
        mass = counts + _PSEUDO_COUNT
        confusion: Floats = (mass / mass.sum(axis=0, keepdims=True))[np.newaxis]
        return confusion

    def update_serious(
        self,
        old: Floats,
        strategies: ResponseStrategies,
        weights: Floats | Singles,
        counts: Floats,
        repeated_label: Codes,
    ) -> Floats:
        """Return the crowd's confusion matrix after one EM step on serious labels."""
        p_serious = strategies.p_serious.average(weights, repeated_label)
        serious = (p_serious * counts).sum(axis=0)
        if self._ordinal:
            # Inverted labels are serious ones counted from the other end of the scale.
            inverted = strategies.inverted_share[:, np.newaxis, np.newaxis] * old[0, ::-1]
            table = LabelTable(*(inverted / p for p in strategies.probability))
            p_inverted = table.average(weights, repeated_label)
            serious += (p_inverted * counts).sum(axis=0)[::-1]
        return self.serious_from_counts(serious)

    def log_prior(self, serious: Floats) -> float:
        """Return the log-prior of the crowd's confusion matrix."""
        return float(_PSEUDO_COUNT * np.log(serious).sum())

    def opinions(self, strategies: ResponseStrategies, weights: Floats) -> Floats:
        """Return the identity: all serious opinion is on the class."""
        return np.eye(self.labels.n_categories)

    def score_variance(self) -> float:
        """Return 0: the score of a class is the value of its category."""
        return 0.0

    def variance_inflation(self, strategies: ResponseStrategies, weights: Floats) -> float:
        """Return the factor by which the variances of scores are multiplied."""
        return variance_inflation(self.labels)

    def adjacent_ratio(self, serious: Floats, class_prior: Floats) -> float:
        """Return how many serious labels are next to the class per one on it; 0 if nominal."""
        if not self._ordinal:
            return 0.0
        joint = self.labels.n_labels * serious[0] * class_prior
        adjacent = np.trace(joint, 1) + np.trace(joint, -1)
        return float(
            (adjacent + _ADJACENT_PSEUDO_COUNT) / (np.trace(joint) + _ADJACENT_PSEUDO_COUNT)
        )


class ConfusionParameters(NamedTuple):
    """The parameters of the second stage.

    Attributes
    ----------
    class_prior
        p[k]: the share of items in each class.
    confusion
        P(label | class) of each annotator: annotators x categories x classes.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.classes import ConfusionParameters
    >>> parameters = ConfusionParameters(np.array([0.5, 0.5]), np.full((4, 2, 2), 0.5))
    >>> parameters.confusion.shape  # annotators x categories x classes
    (4, 2, 2)
    """

    class_prior: Floats
    confusion: Floats


class ClassSteps(RobustGPMSteps[TrueClasses]):
    """The steps where every item has one right label.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.classes import ClassSteps, TrueClasses
    >>> labels = at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog"), ("b", "ann", "dog")])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     start = ClassSteps(TrueClasses(labels), session).start()
    >>> start.serious.shape  # shifts x categories x classes
    (1, 2, 2)
    """

    def start(self) -> RobustGPMParameters:
        """Return the parameters for which the posteriors are the observed shares."""
        sums = self.session.run_pass(Pass("robust_gpm.start", sums=self._count.sums[:2]))
        counts = ExpectedCounts(**sums)
        serious = self.items.serious_from_counts(counts.labels.sum(axis=0))
        blank = RobustGPMParameters(np.empty((0, 0)), np.empty(0), _ALWAYS_START, serious)
        return self.m_step(blank, self.items.strategies(serious), counts)


class ConfusionSteps:
    """The second stage where every item has one right label: annotators' confusion matrices.

    Dawid and Skene's EM, each matrix with pseudo-counts from the annotator's response strategies.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.classes import ClassSteps, ConfusionSteps, TrueClasses
    >>> labels = at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog"), ("b", "ann", "dog")])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     first = ClassSteps(TrueClasses(labels), session)
    ...     parameters, _ = first.step(first.start())
    ...     start = ConfusionSteps(first, parameters).start()
    >>> start.confusion.shape  # annotators x categories x classes
    (2, 2, 2)
    """

    objective_name = "the log-posterior per label"

    def __init__(self, first: ClassSteps, parameters: RobustGPMParameters) -> None:
        strategies = first.items.strategies(parameters.serious)
        expected = strategies.probability.average(parameters.strategy_weights, first.repeated_label)
        self._first = first
        self._parameters = parameters
        self._pseudo_counts = ExpectedCounts(
            _CONFUSION_PSEUDO_COUNT * expected, np.full(expected.shape[2], _PSEUDO_COUNT)
        )

    def start(self) -> ConfusionParameters:
        """Return the parameters that follow from the posteriors of the first stage."""
        first, parameters = self._first, self._parameters
        likelihood = first.likelihood(parameters, first.items.strategies(parameters.serious))
        return self._m_step(first.expected_counts(parameters.class_prior, likelihood)[0])

    def resume(self, previous: ConfusionParameters) -> ConfusionParameters:
        """Return the start: the first stage was resumed."""
        return self.start()

    def step(self, old: ConfusionParameters) -> tuple[ConfusionParameters, Monitor]:
        """Pass over the labels once, then normalise the counts."""
        counts, log_likelihood = self._first.expected_counts(*old)
        of_confusion = (self._pseudo_counts.labels * np.log(old.confusion)).sum()
        of_classes = (self._pseudo_counts.classes * np.log(old.class_prior)).sum()
        objective = float(log_likelihood + of_confusion + of_classes)
        monitor = Monitor(log_likelihood, objective / self._first.labels.n_labels)
        return self._m_step(counts), monitor

    def finalize(self, parameters: ConfusionParameters) -> float:
        """Return the log-likelihood, classes summed out."""
        return self._first.expected_counts(*parameters)[1]

    def acceleration(self) -> Squarem[ConfusionParameters]:
        """Return how to extrapolate the steps."""
        return Squarem(ConfusionParameters, shares(axis=0), _confusion)

    def _m_step(self, counts: ExpectedCounts) -> ConfusionParameters:
        confusion = counts.labels + self._pseudo_counts.labels
        confusion /= confusion.sum(axis=1, keepdims=True)
        prior = counts.classes + self._pseudo_counts.classes
        return ConfusionParameters(prior / prior.sum(), np.maximum(confusion, MIN_PROBABILITY))


def _confusion(x0: Floats, x1: Floats, x2: Floats, limit: float) -> Floats:
    """Extrapolate confusion matrices."""
    extrapolated: Floats = np.maximum(shares(axis=1)(x0, x1, x2, limit), MIN_PROBABILITY)
    return extrapolated
