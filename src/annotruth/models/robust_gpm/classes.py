"""RobustGPM where every item has one right label: latent classes with subtypes, and their EM."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, Singles, sum_over_annotators
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER
from annotruth.labels import LabelSummary
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import (
    POSTERIOR_INPUTS,
    ExpectedCounts,
    one_coin_confusion,
    variance_inflation,
)
from annotruth.models.robust_gpm.opinions import (
    ItemModel,
    leave_one_out,
    weighted_likelihood,
)
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    LabelTable,
    ResponseStrategies,
    find_repeated_labels,
    normalise_log_weights,
    tabulate_strategies,
)
from annotruth.models.squarem import Squarem
from annotruth.models.warm_start import with_new_rows

if TYPE_CHECKING:
    from annotruth.models.robust_gpm.annotators import AnnotatorPosterior

# Pseudo-counts: of labels per class, on the class and spread over all labels; of items, spread over
# the states; of annotators, spread over the strategies.
_ON_CLASS, _ON_ALL_LABELS, _ITEMS, _ANNOTATORS = 1.0, 1.0, 1.0, 1.0

_CERTAIN = 1e12  # pseudo-counts on the class, where serious labels are always right

START_CONCENTRATION = 16.0
"""The concentration of confusion matrices before held-out labels have said which is best."""

_OWN_SUBTYPE = 0.9  # what an item's first posterior has on the subtype of its level of agreement

_FOLD_INPUTS = (Input("held"),)

CLASS_TOL = 10.0
"""Steps that change the log-likelihood per label by less than this many times tol are not taken.

They do not improve predictions of held-out labels.
"""


class TrueClasses(ItemModel):
    """Latent states where every item has one right label: a category, and a subtype of it.

    State z is of class z // M, with M subtypes per class. The crowd's confusion matrix,
    P(serious label | state), is learned.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.classes import TrueClasses
    >>> items = TrueClasses(at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog")]), n_subtypes=3)
    >>> items.one_truth, items.n_classes, items.class_of.tolist()
    (True, 6, [0, 0, 0, 1, 1, 1])
    """

    one_truth = True

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
        confusion: Floats = mass / mass.sum(axis=0)
        above = confusion > confusion[self.class_of, states]
        for z in np.flatnonzero(above.any(axis=0)):
            confusion[:, z] = _pooled(confusion[:, z], self.class_of[z])
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
        serious = sum_over_annotators(self.labels.weighted(p_serious * counts))
        if self._ordinal:
            # Inverted labels are serious ones counted from the other end of the scale.
            inverted = strategies.inverted_share[:, np.newaxis, np.newaxis] * old[::-1]
            table = LabelTable(*(inverted / p for p in strategies.probability))
            p_inverted = table.average(weights, repeated_label)
            serious += sum_over_annotators(self.labels.weighted(p_inverted * counts))[::-1]
        return self.serious_from_counts(serious)

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

    def score_variance(self) -> float:
        """Return 0: the score of a class is the value of its category."""
        return 0.0

    def variance_inflation(self, posterior: AnnotatorPosterior) -> float:
        """Return the factor by which the variances of scores are multiplied."""
        return variance_inflation(self.labels)

    def max_adjacent_ratio(self, parameters: ClassParameters) -> float:
        """Return how many serious labels are at most next to the class per one on it; 0 if nominal.

        At most: two standard errors of the log-ratio above the estimate. The labels of an item are not
        independent, so an item counts as one label. Half a label is added to both counts, as usual for
        log-ratios.
        """
        if not self._ordinal:
            return 0.0
        joint = self.labels.n_items * parameters.serious * parameters.state_prior
        on, adjacent = np.trace(joint) + 0.5, np.trace(joint, 1) + np.trace(joint, -1) + 0.5
        return float(adjacent / on * np.exp(2.0 * np.sqrt(1.0 / adjacent + 1.0 / on)))


def _pooled(distribution: Floats, place: int) -> Floats:
    """Return the distribution with the mean of all entries that would exceed it at ``place``."""
    others = np.sort(np.delete(distribution, place))[::-1]
    total, n = distribution[place], 1
    for other in others:
        if other <= total / n:
            break
        total, n = total + other, n + 1
    pooled = distribution > total / n
    pooled[place] = True
    return np.where(pooled, total / n, distribution)


class ClassParameters(NamedTuple):
    """The parameters where every item has one right label.

    Attributes
    ----------
    state_prior
        The share of items in each state.
    confusion
        P(label | state) of each annotator: annotators x categories x states.
    serious
        The crowd's confusion matrix, categories x states.
    strategy_prior
        The share of annotators in each response strategy.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.classes import ClassSteps, TrueClasses
    >>> labels = at.Labels.of([("a", "ann", "cat"), ("a", "bob", "dog"), ("b", "ann", "dog")])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     session.allocate("fold", per="labels")
    ...     start = ClassSteps(TrueClasses(labels), session).start()
    >>> start.confusion.shape  # annotators x categories x states
    (2, 2, 2)
    """

    state_prior: Floats
    confusion: Floats
    serious: Floats
    strategy_prior: Floats


class AnnotatorCounts(NamedTuple):
    """Counts of annotators' labels in each state, and pseudo-counts.

    Both are annotators x (categories + 1) x states, with totals after the last category.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.classes import AnnotatorCounts
    >>> counts = AnnotatorCounts.of(np.ones((4, 2, 2)), np.full((4, 2, 2), 0.5))
    >>> counts.confusion().shape, float(counts.pseudo_counts[0, 2, 0])
    ((4, 2, 2), 1.0)
    """

    counts: Floats
    pseudo_counts: Floats

    @classmethod
    def of(cls, counts: Floats, pseudo_counts: Floats) -> AnnotatorCounts:
        """Return the tables with totals appended."""
        return cls(
            *(
                np.concatenate([table, table.sum(axis=1, keepdims=True)], axis=1)
                for table in (counts, pseudo_counts)
            )
        )

    def confusion(self) -> Floats:
        """Return P(label | state) of each annotator."""
        mass = self.counts + self.pseudo_counts
        return np.maximum(mass[:, :-1] / mass[:, -1:], MIN_PROBABILITY)


class ClassSteps:
    """EM over a session where every item has one right label.

    Parameters
    ----------
    items, session
        The latent states of items, and the session that the labels are open in. It has the array
        "fold" (`annotruth.models.robust_gpm.resampling.assign_folds`).
    concentration
        How many labels per state count as much as what an annotator's strategies expect.
    held
        The fold of labels that are left out, if any.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.classes import ClassSteps, TrueClasses
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, n_categories=3, seed=0).labels
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     session.allocate("fold", per="labels")
    ...     steps = ClassSteps(TrueClasses(labels, n_subtypes=3), session)
    ...     parameters, monitor = steps.step(steps.start())
    >>> parameters.serious.shape  # categories x states
    (3, 9)
    """

    objective_name = "the log-likelihood per label"

    def __init__(
        self,
        items: TrueClasses,
        session: Session,
        concentration: float = START_CONCENTRATION,
        held: int = NEVER,
    ) -> None:
        labels = items.labels
        self.items = items
        self.labels = labels
        self.session = session
        self._repeated_label = find_repeated_labels(
            session.to_engine(labels.labels_per_category),
            break_ties=False,
            weight=labels.annotator_weight,
        )
        self.repeated_label: Codes = session.to_host(self._repeated_label)
        prior = labels.annotator_prior
        self._annotator_prior = None if prior is None else session.to_engine(prior)
        self._concentration = concentration
        self._n_labels = labels.counted_labels()
        self._held = held
        shape = (labels.n_annotators, labels.n_categories, items.n_classes)
        counts = (
            Sum("labels", shape, annotator_axis=0),
            Sum("classes", (items.n_classes,)),
        )
        self.count_sums = (*counts, Sum("log_likelihood", (1,)))
        self._agreement = Pass(
            "held_out.agreement", ("fold",), _FOLD_INPUTS, (Sum("items", (AGREEMENT_BINS,)),)
        )
        self._start = Pass("held_out.start", ("fold",), (*_FOLD_INPUTS, Input("subtypes")), counts)
        if held == NEVER:
            self._step = Pass("robust_gpm.step", (), POSTERIOR_INPUTS, self.count_sums)
        else:
            self._step = Pass(
                "held_out.step",
                ("fold",),
                (*_FOLD_INPUTS, *POSTERIOR_INPUTS),
                self.count_sums,
            )

    def observed_counts(self) -> ExpectedCounts:
        """Return the counts for which the posteriors of classes are the observed shares.

        Subtypes are equal shares of the items, from those whose labels agree most to those whose
        labels agree least. The counts depend on the number of subtypes and on the labels held out.
        """
        items = self.session.run_pass(self._agreement, held=self._held)["items"]
        subtypes = _subtype_weights(items, self.items.n_subtypes)
        sums = self.session.run_pass(self._start, held=self._held, subtypes=subtypes)
        return ExpectedCounts(**sums)

    def start(self, observed: ExpectedCounts | None = None) -> ClassParameters:
        """Return the parameters that follow from the observed counts, which are computed if not given."""
        counts = self.observed_counts() if observed is None else observed
        serious = self.items.serious_from_counts(sum_over_annotators(counts.labels))
        n_strategies = self.items.strategies(serious).n_strategies
        blank = ClassParameters(
            np.empty(0),
            np.empty((0, 0, 0)),
            serious,
            np.full(n_strategies, 1.0 / n_strategies),
        )
        return self.m_step(blank, counts)[0]

    def start_without_labels(self) -> ClassParameters:
        """Return parameters that the labels say nothing about, except for how often each is given.

        Annotators are right half of the time and guess otherwise, and serious labels are right.
        """
        n = self.labels.n_categories
        accuracy = np.full(self.labels.n_annotators, (1.0 + 1.0 / n) / 2.0)
        confusion = np.repeat(one_coin_confusion(accuracy, n), self.items.n_subtypes, axis=2)
        serious = self.items.serious_from_counts(np.zeros((n, self.items.n_classes)))
        n_strategies = self.items.strategies(serious).n_strategies
        shares = (self.labels.labels_per_category.sum(axis=0) + 1.0)[self.items.class_of]
        return ClassParameters(
            shares / shares.sum(),
            self.session.to_engine(confusion),
            serious,
            np.full(n_strategies, 1.0 / n_strategies),
        )

    def resume(self, previous: ClassParameters) -> ClassParameters:
        """Return the parameters of a previous fit; new annotators are as in a start."""
        start = self.session.to_host(self.start().confusion)
        confusion = self.session.to_engine(with_new_rows(previous.confusion, start))
        return previous._replace(confusion=confusion)

    def start_beside(self, people: ClassParameters) -> ClassParameters:
        """Return the parameters of a fit of some annotators, and others compared with its items.

        The labels of the others say nothing about items in the first step.
        """
        shape = (self.labels.n_annotators, self.labels.n_categories, self.items.n_classes)
        confusion = self.session.to_engine(with_new_rows(people.confusion, np.ones(shape)))
        return self.step(people._replace(confusion=confusion))[0]

    def step(self, old: ClassParameters) -> tuple[ClassParameters, Monitor]:
        """Pass over the labels once and update all parameters."""
        counts, log_likelihood = self.e_step(old)
        return self.m_step(old, counts)[0], Monitor(log_likelihood, log_likelihood / self._n_labels)

    def e_step(self, parameters: ClassParameters) -> tuple[ExpectedCounts, float]:
        """Compute the items' posteriors; return their sums and the log-likelihood."""
        held = {} if self._held == NEVER else {"held": self._held}
        sums = self.session.run_pass(
            self._step,
            **held,
            prior=parameters.state_prior,
            known_truth=self.items.known_truth,
            likelihood=weighted_likelihood(self.labels, parameters.confusion),
        )
        counts = ExpectedCounts(sums["labels"], sums["classes"])
        return counts, float(sums["log_likelihood"][0])

    def m_step(
        self, old: ClassParameters, counts: ExpectedCounts
    ) -> tuple[ClassParameters, Floats]:
        """Update all parameters; return them and the pseudo-counts of annotators' confusion."""
        strategies = self.items.strategies(old.serious)
        weights = self.strategy_weights(old, strategies, counts.labels)
        expected = strategies.probability.average(weights, self._repeated_label)
        serious = self.items.update_serious(
            old.serious, strategies, weights, counts.labels, self._repeated_label
        )
        pseudo_counts = expected
        pseudo_counts *= self._concentration
        confusion = counts.labels + pseudo_counts
        confusion /= confusion.sum(axis=1, keepdims=True)
        np.maximum(confusion, MIN_PROBABILITY, out=confusion)
        state_prior = counts.classes + _ITEMS / len(counts.classes)
        strategy_prior = sum_over_annotators(self.labels.weighted(weights))
        strategy_prior = strategy_prior + _ANNOTATORS / weights.shape[1]
        new = ClassParameters(
            state_prior / state_prior.sum(),
            confusion,
            serious,
            strategy_prior / strategy_prior.sum(),
        )
        return new, pseudo_counts

    def strategy_weights(
        self, parameters: ClassParameters, strategies: ResponseStrategies, counts: Floats
    ) -> Floats:
        """Return the posterior of each annotator's strategies, given the expected counts."""
        log_prior = strategies.annotator_log_prior(
            strategies.log_prior_of(parameters.strategy_prior), self._annotator_prior
        )
        log_likelihood = strategies.log_probability.total(counts, self._repeated_label)
        return normalise_log_weights(log_likelihood + np.asarray(log_prior, like=log_likelihood))

    def annotator_counts(self, parameters: ClassParameters) -> AnnotatorCounts:
        """Return the counts of annotators' labels and their pseudo-counts, after one more pass."""
        counts, _ = self.e_step(parameters)
        return AnnotatorCounts.of(counts.labels, self.m_step(parameters, counts)[1])

    def finalize(self, parameters: ClassParameters) -> float:
        """Return the log-likelihood, states summed out."""
        return self.e_step(parameters)[1]

    def acceleration(self) -> Squarem[ClassParameters]:
        """Raise: few steps are needed, and none is extrapolated."""
        raise NotImplementedError

    def leave_one_out(
        self, state_prior: Floats, confusion: Floats, strategies: ResponseStrategies
    ) -> Floats:
        """Return each annotator's leave-one-out log-likelihood in every strategy."""
        return leave_one_out(
            self.session,
            self.items,
            strategies,
            self._repeated_label,
            prior=state_prior,
            likelihood=confusion,
        )


def _subtype_weights(items: Floats, n_subtypes: int) -> Floats:
    """Return how items start on the subtypes, agreement bins x subtypes.

    ``items`` are counts by how much labels agree, most first. Subtypes are equal shares of the items
    in that order; items that agree alike are divided alike, whatever their order.
    """
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
