"""Latent states of RobustGPM's items: what both models share, and classes with subtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts, pool_to_class
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    LabelTable,
    ResponseStrategies,
    find_repeated_labels,
    tabulate_strategies,
)
from annotruth.observations import LabelSummary

if TYPE_CHECKING:
    from annotruth.models.robust_gpm.class_steps import ClassParameters

# Pseudo-counts of labels per class: on the class, and spread over all labels.
_ON_CLASS, _ON_ALL_LABELS = 1.0, 1.0

_OWN_SUBTYPE = 0.9  # what an item's first posterior has on the subtype of its level of agreement

_CERTAIN = 1e12  # pseudo-counts on the class, where serious labels are always right


STRATEGY_INPUTS = (Input("other"), Input("repeated"), Input("repeated_label", annotator_axis=0))
"""Further inputs of passes that compute leave-one-out log-likelihoods."""


class ItemModel:
    """The latent classes of items, and the likelihood of a known truth, categories x classes."""

    def __init__(self, labels: LabelSummary, known_truth: Floats) -> None:
        self.labels = labels
        self.known_truth = known_truth

    @property
    def n_classes(self) -> int:
        """How many latent classes there are."""
        return len(self.known_truth[0])


class StrategySteps:
    """What EM's steps share in both models: items with latent states, annotators with strategies.

    ``items`` are the latent states; ``session`` is where the labels are open.
    """

    def __init__(self, items: ItemModel, session: Session, *, break_ties: bool) -> None:
        labels = items.labels
        self.labels = labels
        self.session = session
        self._known_truth = items.known_truth
        # The label that each annotator repeats, if any: where the engine computes, and in memory.
        self._repeated_label = find_repeated_labels(
            session.to_engine(labels.labels_per_category),
            break_ties=break_ties,
            weight=labels.annotator_weight,
        )
        self.repeated_label: Codes = session.to_host(self._repeated_label)
        self._n_labels = labels.counted_labels()
        self.counts_shape = (labels.n_annotators, labels.n_categories, items.n_classes)
        self.count_sums = (
            Sum("counts", self.counts_shape, annotator_axis=0),
            Sum("classes", (items.n_classes,)),
            Sum("log_likelihood", (1,)),
        )

    def expected_counts(self, count: Pass, **inputs: Any) -> tuple[ExpectedCounts, float]:
        """Compute the items' posteriors; return their sums and the log-likelihood."""
        sums = self.session.run_pass(count, known_truth=self._known_truth, **inputs)
        counts = ExpectedCounts(sums["counts"], sums["classes"])
        return counts, float(sums["log_likelihood"][0])

    def left_out(
        self,
        strategies: ResponseStrategies,
        *,
        prior: Floats,
        confusion: Floats,
        known_truth: Floats | None = None,
    ) -> Floats:
        """Return each annotator's leave-one-out log-likelihood, annotators x strategies.

        The posterior of an item is computed from the labels of the other annotators. Annotators whose
        labels count less than others' depend on one another: they are left out together.
        """
        shape = (self.labels.n_annotators, strategies.n_strategies)
        one = Pass(
            "robust_gpm.leave_one_out",
            inputs=(*POSTERIOR_INPUTS, *STRATEGY_INPUTS),
            sums=(Sum("log_likelihood", shape, annotator_axis=0),),
        )
        other, repeated = (
            np.ascontiguousarray(table.transpose(1, 2, 0)) for table in strategies.probability
        )

        def run(confusion: Floats) -> Floats:
            return self.session.run_pass(
                one,
                prior=prior,
                known_truth=self._known_truth if known_truth is None else known_truth,
                confusion=confusion,
                other=other,
                repeated=repeated,
                repeated_label=self._repeated_label,
            )["log_likelihood"]

        weight = self.labels.annotator_weight
        log_likelihood = run(confusion)
        if weight is not None and (weight < 1.0).any():
            dependent = (weight < 1.0)[:, np.newaxis]
            without = np.where(dependent[:, :, np.newaxis], 1.0, confusion)
            log_likelihood = np.where(dependent, run(without), log_likelihood)
        return log_likelihood


def weighted_confusion(labels: LabelSummary, confusion: Floats) -> Floats:
    """Return probabilities of labels, annotators x categories x classes, to the power of their weight."""
    if labels.annotator_weight is None:
        return confusion
    powers: Floats = confusion ** labels.annotator_weight[:, np.newaxis, np.newaxis]
    return powers


class TrueClasses(ItemModel):
    """Latent states where every item has one right label: a category, and a subtype of it.

    State z is of class z // M, with M subtypes per class. The crowd's confusion matrix,
    P(serious label | state), is learned.
    """

    def __init__(
        self, labels: LabelSummary, n_subtypes: int = 1, *, learn_crowd: bool = True
    ) -> None:
        n = labels.n_categories
        super().__init__(labels, known_truth=np.repeat(np.eye(n), n_subtypes, axis=1))
        self.n_subtypes = n_subtypes
        self._learn_crowd = learn_crowd
        self.class_of: Codes = np.repeat(np.arange(n), n_subtypes)
        self._ordinal = labels.scale.is_ordinal

    def strategies(self, serious: Floats) -> ResponseStrategies:
        """Return all response strategies with this confusion matrix."""
        return tabulate_strategies(serious[np.newaxis], np.ones(1), ordinal=self._ordinal)

    def serious_from_counts(self, counts: Floats) -> Floats:
        """Return the crowd's confusion matrix, given counts of serious labels, labels x states.

        There is one pseudo-count on the class and one spread over all labels. No label is likelier
        than the class: those that would be share the mean with it.
        """
        states = np.arange(self.n_classes)
        mass = counts + _ON_ALL_LABELS / len(counts)
        mass[self.class_of, states] += _ON_CLASS if self._learn_crowd else _CERTAIN
        return pool_to_class(mass / mass.sum(axis=0), self.class_of)

    def update_serious(
        self, old: Floats, strategies: ResponseStrategies, labels: LabelTable
    ) -> Floats:
        """Return the crowd's confusion matrix, given the labels expected in each strategy."""
        serious = strategies.p_serious.total_of(labels)
        if self._ordinal:
            # Inverted labels are serious ones counted from the other end of the scale.
            inverted = strategies.inverted_share[:, np.newaxis, np.newaxis] * old[::-1]
            table = LabelTable(*(inverted / p for p in strategies.probability))
            serious += table.total_of(labels)[::-1]
        return self.serious_from_counts(serious)

    def subtype_weights(self, items: Floats) -> Floats:
        """Return how items start on the subtypes, agreement bins x subtypes.

        ``items`` are counts by how much labels agree, most first. Subtypes are equal shares of the items
        in that order; items that agree alike are divided alike, whatever their order.
        """
        n_subtypes = self.n_subtypes
        if n_subtypes == 1:
            return np.ones((len(items), 1))
        last = np.cumsum(items) / max(items.sum(), 1.0)
        first = last - items / max(items.sum(), 1.0)
        bounds = np.arange(n_subtypes + 1) / n_subtypes
        within = np.minimum(last[:, np.newaxis], bounds[1:])
        within = np.maximum(within - np.maximum(first[:, np.newaxis], bounds[:-1]), 0.0)
        shares = within / np.maximum(within.sum(axis=1, keepdims=True), MIN_PROBABILITY)
        spread: Floats = _OWN_SUBTYPE * shares + (1.0 - _OWN_SUBTYPE) * (1.0 - shares) / (
            n_subtypes - 1
        )
        return spread

    def easiest_states(self, serious: Floats) -> Codes:
        """Return the state of each class on which the crowd agrees most."""
        on_class = serious[self.class_of, np.arange(self.n_classes)].reshape(-1, self.n_subtypes)
        states: Codes = np.arange(len(on_class)) * self.n_subtypes + on_class.argmax(axis=1)
        return states

    def right_labels(self, serious: Floats) -> Floats:
        r"""Return the distribution of the right label in each state, states x categories.

        On the items of a class that the crowd agrees on most, it is the class. In a subtype z on
        which the crowd agrees less, the difference is taken as a difference of opinion rather than
        as errors: with :math:`\theta_k` of the first and :math:`c = \theta_{z,k} / \theta_{k,k}`, the
        right label is the class with probability c, and otherwise distributed as what
        :math:`\theta_z` has beyond :math:`c \, \theta_k`.
        """
        states = np.arange(self.n_classes)
        easiest = self.easiest_states(serious)[self.class_of]
        share = serious[self.class_of, states] / serious[self.class_of, easiest]
        beyond = np.maximum(serious - share * serious[:, easiest], 0.0)
        beyond[self.class_of, states] = 0.0
        total = beyond.sum(axis=0)
        right = np.divide((1.0 - share) * beyond, total, out=np.zeros_like(beyond), where=total > 0)
        right[self.class_of, states] = 1.0 - right.sum(axis=0)
        labels: Floats = np.ascontiguousarray(right.T)
        return labels

    def max_adjacent_ratio(self, parameters: ClassParameters) -> float:
        """Return how many serious labels are at most next to the class per one on it; 0 if nominal.

        At most: two standard errors of the log-ratio above the estimate. The labels of an item are not
        independent, so an item counts as one label. Half a label is added to both counts, as usual for
        log-ratios.
        """
        if not self._ordinal:
            return 0.0
        joint = self.labels.n_items * parameters.serious * parameters.prior
        on, adjacent = np.trace(joint) + 0.5, np.trace(joint, 1) + np.trace(joint, -1) + 0.5
        return float(adjacent / on * np.exp(2.0 * np.sqrt(1.0 / adjacent + 1.0 / on)))
