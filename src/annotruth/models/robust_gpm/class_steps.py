"""EM of RobustGPM where every item has one right label, and the counts it ends with.

The equations are in the docstring of `annotruth.models.robust_gpm.class_model.RightLabelModel`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats, map_slices, sum_over_annotators
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER
from annotruth.models.em import EMLoop, History, Monitor, ProgressCallback, run_em
from annotruth.models.latent_classes import (
    POSTERIOR_INPUTS,
    ExpectedCounts,
    normalise_log_weights,
    one_coin_confusion,
)
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.states import StrategySteps, TrueClasses, weighted_confusion
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    LabelTable,
    ResponseStrategies,
)
from annotruth.models.squarem import Squarem

_PSEUDO_ITEMS = 1.0  # spread over the states
_PSEUDO_ANNOTATORS = 1.0  # spread over the strategies
_ANNOTATORS_AT_ONCE = 2048  # whose arrays are in the cache while their confusion is updated

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


class ClassSteps(StrategySteps):
    r"""EM over a session where every item has one right label.

    A step computes the items' posteriors over the states, each annotator's posterior over the strategies
    and from it their confusion matrix, the crowd's confusion matrix
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
        self._weight = labels.annotator_weight
        self._concentration = concentration
        self._final: ExpectedCounts | None = None
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
        """Return the parameters that follow from the observed counts, which several starts may share."""
        expected = observed or self.observed_counts()
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

    def run_em(
        self,
        start: ClassParameters,
        loop: EMLoop,
        progress: ProgressCallback | None = None,
        *,
        warn: bool = True,
    ) -> tuple[ClassParameters, History]:
        """Run EM without acceleration, until the objective changes by less than the tolerance of classes."""
        return run_em(self, start, loop.scaled(CLASS_TOL, plain=True), progress=progress, warn=warn)

    def e_step(self, parameters: ClassParameters) -> tuple[ExpectedCounts, float]:
        """Compute the items' posteriors; return their sums and the log-likelihood."""
        held = {} if self._held == NEVER else {"held": self._held}
        confusion = weighted_confusion(self.labels, parameters.confusion)
        return self.expected_counts(self._step, **held, prior=parameters.prior, confusion=confusion)

    def m_step(self, old: ClassParameters, expected: ExpectedCounts) -> ClassParameters:
        """Update all parameters."""
        strategies, n = self.items.strategies(old.serious), len(expected.counts)
        confusion = np.empty_like(expected.counts)
        prior = expected.classes + _PSEUDO_ITEMS / len(expected.classes)
        prior /= prior.sum()

        def update(rows: slice) -> tuple[LabelTable, Floats, float]:
            """Update the confusion of some annotators; return what they add to the crowd's sums."""
            counts = expected.counts[rows]
            weights, pseudo_counts = self._in_strategies(old, strategies, counts, rows)
            new = pseudo_counts + counts
            new /= new.sum(axis=1, keepdims=True)
            np.maximum(new, MIN_PROBABILITY, out=new)
            confusion[rows] = new
            times = 1.0 if self._weight is None else self._weight[rows, np.newaxis]
            rise = 0.0
            if len(old.prior):
                by_annotator = (pseudo_counts * np.log(new / old.confusion[rows])).sum(axis=(1, 2))
                rise = float(sum_over_annotators(by_annotator[:, np.newaxis] * times)[0])
            weights = weights * times
            labels = LabelTable.of_counts(weights, counts, self._repeated_label[rows])
            return labels, sum_over_annotators(weights), rise

        # On a card, all at once.
        size = n if hasattr(confusion, "get") else _ANNOTATORS_AT_ONCE
        labels, weights, rises = zip(*map_slices(update, n, size), strict=True)
        rise = sum(rises)
        if len(old.prior):
            rise += _PSEUDO_ITEMS * float(np.log(prior / old.prior).mean())
        in_strategies = LabelTable(
            *(sum(tables[1:], tables[0]) for tables in zip(*labels, strict=True))
        )
        strategy_prior = sum(weights[1:], weights[0]) + _PSEUDO_ANNOTATORS / len(weights[0])
        return ClassParameters(
            prior,
            confusion,
            self.items.update_serious(old.serious, strategies, in_strategies),
            strategy_prior / strategy_prior.sum(),
            old.log_prior + rise,
        )

    def _in_strategies(
        self,
        parameters: ClassParameters,
        strategies: ResponseStrategies,
        counts: Floats,
        rows: slice,
    ) -> tuple[Floats, Floats]:
        """Return the posterior of some annotators' strategies, given their counts, and pseudo-counts.

        The pseudo-counts of their confusion are what their strategies expect.
        """
        prior, repeated = self._annotator_prior, self._repeated_label[rows]
        log_prior = strategies.annotator_log_prior(
            strategies.log_prior_of(parameters.strategy_prior),
            None if prior is None else prior[rows],
        )
        joint = strategies.log_probability.total(counts, repeated)
        weights = normalise_log_weights(joint + np.asarray(log_prior, like=joint))
        return weights, self._concentration * strategies.probability.average(weights, repeated)

    def annotator_counts(self, parameters: ClassParameters) -> AnnotatorCounts:
        """Return the counts of annotators' labels that EM ended with, and their pseudo-counts."""
        assert self._final is not None
        counts = self._final.counts
        strategies = self.items.strategies(parameters.serious)
        _, pseudo_counts = self._in_strategies(parameters, strategies, counts, slice(None))
        return AnnotatorCounts.of(counts, pseudo_counts)

    def finalize(self, parameters: ClassParameters) -> float:
        """Keep the counts of annotators' labels; return the log-likelihood, states summed out."""
        self._final, log_likelihood = self.e_step(parameters)
        return log_likelihood

    def acceleration(self) -> Squarem[ClassParameters]:
        """Raise: few steps are needed, and none is extrapolated."""
        raise NotImplementedError


def is_class_fit(fit: Fit) -> bool:
    """Whether every item has one right label in a fit of RobustGPM."""
    return "state_prior" in fit.parameters
