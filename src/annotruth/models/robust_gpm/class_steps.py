"""EM of RobustGPM where every item has one right label, and the counts it ends with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, sum_over_annotators
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts, one_coin_confusion
from annotruth.models.robust_gpm.classes import TrueClasses
from annotruth.models.robust_gpm.opinions import leave_one_out, weighted_likelihood
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    ResponseStrategies,
    find_repeated_labels,
    normalise_log_weights,
)
from annotruth.models.squarem import Squarem
from annotruth.models.warm_start import with_new_rows

# Pseudo-counts: of items, spread over the states; of annotators, spread over the strategies.
_ITEMS, _ANNOTATORS = 1.0, 1.0

START_CONCENTRATION = 16.0
"""The concentration of confusion matrices before held-out labels have said which is best."""

_OWN_SUBTYPE = 0.9  # what an item's first posterior has on the subtype of its level of agreement

_FOLD_INPUTS = (Input("held"),)

CLASS_TOL = 10.0
"""Steps that change the log-likelihood per label by less than this many times tol are not taken.

They do not improve predictions of held-out labels.
"""


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
    >>> from annotruth.models.robust_gpm.class_steps import ClassSteps
    >>> from annotruth.models.robust_gpm.classes import TrueClasses
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
    >>> from annotruth.models.robust_gpm.class_steps import AnnotatorCounts
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
    >>> from annotruth.models.robust_gpm.class_steps import ClassSteps
    >>> from annotruth.models.robust_gpm.classes import TrueClasses
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

        Annotators are right half of the time and guess otherwise, and the crowd's confusion matrix
        is that of its pseudo-counts.
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
        confusion /= np.einsum("snz->sz", confusion)[:, np.newaxis]  # faster than sum
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
        log_weights = log_likelihood + np.asarray(log_prior, like=log_likelihood)
        # Strategy by strategy in memory, as NumPy is slow to reduce many short rows.
        return normalise_log_weights(log_weights.T.copy().T)

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
