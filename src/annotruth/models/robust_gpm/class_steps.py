"""EM of RobustGPM where every item has one right label, and the counts it ends with.

The equations are in the docstring of `annotruth.models.robust_gpm.class_model.RightLabelModel`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, product_over_annotators, sum_over_annotators
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import POSTERIOR_INPUTS, ExpectedCounts, one_coin_confusion
from annotruth.models.robust_gpm.states import StrategySteps, TrueClasses, weighted_confusion
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    NO_LABEL,
    LabelTable,
    ResponseStrategies,
)
from annotruth.models.squarem import Squarem
from annotruth.observations import LabelSummary

_PSEUDO_ITEMS = 1.0  # spread over the states
_PSEUDO_ANNOTATORS = 1.0  # spread over the strategies

START_CONCENTRATION = 16.0
"""The concentration of confusion matrices before held-out labels have said which is best."""

_FOLD_INPUTS = (Input("held"),)

CLASS_TOL = 10.0
"""EM stops when the log-likelihood per label changes by less than this many times ``tol``.

Further steps do not improve predictions of held-out labels.
"""


class ClassParameters(NamedTuple):
    """The parameters where every item has one right label."""

    prior: Floats  # the share of items in each state
    confusion: Floats  # P(label | state) of each annotator: annotators x categories x states
    serious: Floats  # the crowd's confusion matrix, categories x states
    strategy_prior: Floats  # the share of annotators in each response strategy
    log_prior: float = 0.0  # by how much steps have raised the log-prior so far (`ClassSteps`)


class AnnotatorCounts(NamedTuple):
    """Counts of annotators' labels in each state, and pseudo-counts.

    Both are annotators x (categories + 1) x states, with totals after the last category.
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


class UpdatedAnnotators(NamedTuple):
    """What `AnnotatorUpdate` returns."""

    confusion: Floats  # P(label | state) of each annotator
    annotators: Floats  # how many annotators and labels are in each strategy
    labels: LabelTable
    # by how much the new confusion raises its log-prior, given the new pseudo-counts
    log_prior_rise: float


class AnnotatorUpdate:
    """Computes annotators' strategies from their counts, and their confusion from the strategies.

    Annotators who would repeat the same label are computed together, as their tables are alike.
    """

    def __init__(
        self, session: Session, labels: LabelSummary, repeated_label: Codes, concentration: float
    ) -> None:
        self._session = session
        self._weight = labels.annotator_weight
        self._concentration = concentration
        every = range(NO_LABEL, labels.n_categories)
        self._groups = {n: np.flatnonzero(repeated_label == n) for n in every}

    def confusion(
        self, strategies: ResponseStrategies, log_prior: Floats, counts: Floats, old: Floats
    ) -> UpdatedAnnotators:
        """Return annotators' confusion, and how many annotators and labels are in each strategy.

        ``log_prior`` of the strategies has one row per annotator, or one for all of them. ``old`` is the
        confusion before, or empty.
        """
        confusion = np.empty_like(counts)
        posterior = _StrategyPosterior(strategies, log_prior, counts)

        def update(n: int, rows: Codes) -> tuple[int, Floats, Floats, float]:
            own = counts.take(rows, axis=0)
            weights = posterior.weights(n, rows, own)
            pseudo_counts = posterior.labels(n, self._concentration * weights)
            mass = pseudo_counts + own
            mass /= np.einsum("snz->sz", mass)[:, np.newaxis]  # faster than sum
            confusion[rows] = np.maximum(mass, MIN_PROBABILITY, out=mass)
            if self._weight is not None:
                weights *= self._weight[rows]
                pseudo_counts *= self._weight[rows][:, np.newaxis, np.newaxis]
            rise = 0.0
            if len(old):
                mass /= old.take(rows, axis=0)
                rise = float(np.einsum("snz,snz->", pseudo_counts, np.log(mass, out=mass)))
            flat = own.reshape(len(own), -1)
            in_group = sum_over_annotators(weights.T)
            return n, in_group, product_over_annotators(weights.T, flat), rise

        annotators = np.zeros(strategies.n_strategies)
        shape = strategies.probability.other.shape
        labels = LabelTable(np.zeros(shape), np.zeros(shape))
        log_prior_rise = 0.0
        for n, in_group, flat, rise in self._session.map_groups(update, self._groups):
            log_prior_rise += rise
            annotators += in_group
            of_group = flat.reshape(shape)
            if n != NO_LABEL:
                labels.repeated[:, n] += of_group[:, n]
                of_group[:, n] = 0.0
            labels.other[:] += of_group
        return UpdatedAnnotators(confusion, annotators, labels, log_prior_rise)

    def pseudo_counts(
        self, strategies: ResponseStrategies, log_prior: Floats, counts: Floats
    ) -> Floats:
        """Return the pseudo-counts of annotators' confusion, of the shape of their counts."""
        pseudo_counts = np.empty_like(counts)
        posterior = _StrategyPosterior(strategies, log_prior, counts)

        def update(n: int, rows: Codes) -> None:
            weights = posterior.weights(n, rows, counts.take(rows, axis=0))
            pseudo_counts[rows] = posterior.labels(n, self._concentration * weights)

        self._session.map_groups(update, self._groups)
        return pseudo_counts


class _StrategyPosterior:
    """Posteriors of the strategies of annotators who would repeat the same label, ``n``.

    They are strategies x annotators, as NumPy is slow to reduce many short rows.
    """

    def __init__(self, strategies: ResponseStrategies, log_prior: Floats, counts: Floats) -> None:
        log_probability, probability = strategies.log_probability, strategies.probability
        n_strategies = strategies.n_strategies
        self._log_other, self._log_excess, self._other, self._repeated, self._log_prior = (
            np.asarray(table, like=counts)
            for table in (
                log_probability.other.reshape(n_strategies, -1),
                log_probability.repeated - log_probability.other,
                probability.other.reshape(n_strategies, -1),
                probability.repeated,
                log_prior,
            )
        )

    def weights(self, n: int, rows: Codes, counts: Floats) -> Floats:
        """Return the posterior of some annotators' strategies, given their counts."""
        weights: Floats = self._log_other @ counts.reshape(len(counts), -1).T
        if n != NO_LABEL:
            weights += self._log_excess[:, n] @ counts[:, n].T
        weights += (self._log_prior if len(self._log_prior) == 1 else self._log_prior[rows]).T
        weights -= weights.max(axis=0)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=0)
        return weights

    def labels(self, n: int, weights: Floats) -> Floats:
        """Return the labels that strategies expect: annotators x categories x states."""
        expected = (weights.T @ self._other).reshape(-1, *self._repeated.shape[1:])
        if n != NO_LABEL:
            expected[:, n] = weights.T @ self._repeated[:, n]
        return expected


class ClassSteps(StrategySteps):
    r"""EM over a session where every item has one right label.

    A step computes the items' posteriors over the states, each annotator's posterior over the strategies
    and from it their confusion matrix (`AnnotatorUpdate`), the crowd's confusion matrix
    (`TrueClasses.update_serious`), and the shares of states and of strategies. Given their pseudo-counts
    P, EM raises the log-posterior J of annotators' confusion v and the shares of states p; given the
    counts, that of the crowd's confusion and of the shares of strategies. The two have
    no common objective. What every step raises, and what the history has as the objective, is
    :math:`O_t = O_{t-1} + J(p_t, v_t \mid P_t) - J(p_{t-1}, v_{t-1} \mid P_t)`; docs/robust-reference.md
    has the equations.

    The session has the array "fold" (`annotruth.models.evidence.chance.assign_folds`), of which ``held``
    is left out; ``concentration`` is c.
    """

    objective_name = "the log-likelihood per label"

    def __init__(
        self,
        items: TrueClasses,
        session: Session,
        concentration: float = START_CONCENTRATION,
        held: int = NEVER,
    ) -> None:
        super().__init__(items, session, break_ties=False)
        self.items = items
        labels = items.labels
        prior = labels.annotator_prior
        self._annotator_prior = None if prior is None else session.to_engine(prior)
        self._update = AnnotatorUpdate(session, labels, self._repeated_label, concentration)
        self._final: tuple[ClassParameters, ExpectedCounts] | None = None
        self._held = held
        self._agreement = Pass(
            "held_out.agreement", ("fold",), _FOLD_INPUTS, (Sum("items", (AGREEMENT_BINS,)),)
        )
        self._start = Pass(
            "held_out.start", ("fold",), (*_FOLD_INPUTS, Input("subtypes")), self.count_sums[:2]
        )
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
        subtypes = self.items.subtype_weights(items)
        sums = self.session.run_pass(self._start, held=self._held, subtypes=subtypes)
        return ExpectedCounts(**sums)

    def start(self, observed: ExpectedCounts | None = None) -> ClassParameters:
        """Return the parameters that follow from the observed counts, which are computed if not given."""
        expected = self.observed_counts() if observed is None else observed
        serious = self.items.serious_from_counts(sum_over_annotators(expected.counts))
        n_strategies = self.items.strategies(serious).n_strategies
        blank = ClassParameters(
            np.empty(0),
            np.empty((0, 0, 0)),
            serious,
            np.full(n_strategies, 1.0 / n_strategies),
        )
        return self.m_step(blank, expected)

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

    def start_beside(self, people: ClassParameters) -> ClassParameters:
        """Return the parameters of a fit of some annotators, and others compared with its items.

        The labels of the others say nothing about items in the first step.
        """
        confusion = np.ones(self.counts_shape)
        confusion[: len(people.confusion)] = people.confusion
        confusion = self.session.to_engine(confusion)
        return self.step(people._replace(confusion=confusion))[0]

    def step(self, old: ClassParameters) -> tuple[ClassParameters, Monitor]:
        """Pass over the labels once and update all parameters."""
        counts, log_likelihood = self.e_step(old)
        log_posterior = log_likelihood + old.log_prior
        monitor = Monitor(
            log_likelihood,
            objective=log_posterior / self._n_labels,
            compared=log_likelihood / self._n_labels,
        )
        return self.m_step(old, counts), monitor

    def e_step(self, parameters: ClassParameters) -> tuple[ExpectedCounts, float]:
        """Compute the items' posteriors; return their sums and the log-likelihood."""
        held = {} if self._held == NEVER else {"held": self._held}
        confusion = weighted_confusion(self.labels, parameters.confusion)
        return self.expected_counts(self._step, **held, prior=parameters.prior, confusion=confusion)

    def m_step(self, old: ClassParameters, expected: ExpectedCounts) -> ClassParameters:
        """Update all parameters."""
        strategies = self.items.strategies(old.serious)
        log_prior = self._log_prior(old, strategies)
        updated = self._update.confusion(strategies, log_prior, expected.counts, old.confusion)
        prior = expected.classes + _PSEUDO_ITEMS / len(expected.classes)
        prior /= prior.sum()
        strategy_prior = updated.annotators + _PSEUDO_ANNOTATORS / strategies.n_strategies
        rise = updated.log_prior_rise
        if len(old.prior):
            rise += _PSEUDO_ITEMS * float(np.log(prior / old.prior).mean())
        return ClassParameters(
            prior,
            updated.confusion,
            self.items.update_serious(old.serious, strategies, updated.labels),
            strategy_prior / strategy_prior.sum(),
            old.log_prior + rise,
        )

    def _log_prior(self, parameters: ClassParameters, strategies: ResponseStrategies) -> Floats:
        """Return the log-prior of strategies: one row per annotator, or one for all of them."""
        return strategies.annotator_log_prior(
            strategies.log_prior_of(parameters.strategy_prior), self._annotator_prior
        )

    def annotator_counts(self, parameters: ClassParameters) -> AnnotatorCounts:
        """Return the counts of annotators' labels and their pseudo-counts.

        This makes one more pass over the labels, unless the parameters are those that EM ended with.
        """
        final, self._final = self._final, None
        if final is None or final[0] is not parameters:
            final = parameters, self.e_step(parameters)[0]
        counts = final[1].counts
        strategies = self.items.strategies(parameters.serious)
        log_prior = self._log_prior(parameters, strategies)
        return AnnotatorCounts.of(counts, self._update.pseudo_counts(strategies, log_prior, counts))

    def finalize(self, parameters: ClassParameters) -> float:
        """Return the log-likelihood, states summed out."""
        counts, log_likelihood = self.e_step(parameters)
        self._final = parameters, counts
        return log_likelihood

    def acceleration(self) -> Squarem[ClassParameters]:
        """Raise: few steps are needed, and none is extrapolated."""
        raise NotImplementedError
