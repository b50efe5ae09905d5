"""The final state of `RightLabelModel`, and what is read out of it.

Passes add up labels by item. What needs the labels one by one is computed in NumPy: what each adds to
the odds of an item's label, and posteriors in which some annotators' labels count less than others'.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from annotruth.engines import Engine, Input, Pass, Session
from annotruth.kernels.arrays import Codes, Floats, product_over_annotators
from annotruth.models.base_fit import Verdict
from annotruth.models.evidence.classifier import Calibration, KnownItems, known_items
from annotruth.models.latent_classes import (
    LatentClasses,
    normalise_log_weights,
    variance_inflation,
)
from annotruth.models.people import ItemStates
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.choice import HeldOutChoice
from annotruth.models.robust_gpm.class_steps import (
    AnnotatorCounts,
    ClassParameters,
    ClassSteps,
)
from annotruth.models.robust_gpm.states import TrueClasses
from annotruth.models.robust_gpm.strategies import NO_LABEL
from annotruth.observations import Labels, LabelSummary

_LEAST_LIKELIHOOD = 1e-300  # of a strategy, relative to an annotator's others
_MAX_NUMBERS = 4_000_000  # held at once for a partition of the items
_MIN_SHARE = 1e-300  # so that shares of what cannot be have a sum

STATE_INPUTS = (
    *(Input("prior"), Input("known_truth")),
    *(Input("counts", annotator_axis=0), Input("pseudo_counts", annotator_axis=0)),
    Input("correlation"),
)
"""The inputs of passes that compute items' posteriors without the item in the counts."""


@dataclass(frozen=True, eq=False)
class ClassState:
    """Where EM ended: what results and predictions are computed from."""

    parameters: ClassParameters
    counts: AnnotatorCounts
    choice: HeldOutChoice  # what held-out labels said
    verdict: Verdict | None  # whether labels agree better than chance; None: too few to tell
    loo_log_likelihood: Floats  # leave-one-out, annotators x strategies
    repeated_label: Codes  # the label that each annotator would repeat, or NO_LABEL
    calibration: Calibration | None = None  # what a classifier's probabilities say
    # What intervals of reliabilities are from, if that is a mean over this and another state. All else is
    # from loo_log_likelihood, which agrees with the other parameters.
    averaged_log_likelihood: Floats | None = None

    def averaged(self, other: ClassState, weight: float) -> ClassState:
        """Return the state with means of both likelihoods of strategies, that of the other weighted.

        An annotator's likelihoods are divided by their sum before: which crowd the annotator's labels
        suit better says little, so held-out labels alone decide about it.
        """
        own, others = (normalise_log_weights(state.loo_log_likelihood) for state in (self, other))
        mean = (1.0 - weight) * own + weight * others
        return replace(self, averaged_log_likelihood=np.log(np.maximum(mean, _LEAST_LIKELIHOOD)))

    def to_host(self, session: Session) -> ClassState:
        """Return the state in memory, given one whose arrays are where an engine computes."""
        return replace(
            self,
            parameters=self.parameters._replace(
                confusion=session.to_host(self.parameters.confusion)
            ),
            counts=AnnotatorCounts(*map(session.to_host, self.counts)),
            loo_log_likelihood=session.to_host(self.loo_log_likelihood),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it as arrays, by the names that saved fits have."""
        parameters, calibration = self.parameters, self.calibration
        return {
            **({} if calibration is None else calibration.to_arrays()),
            "state_prior": parameters.prior,
            "serious": parameters.serious,
            "strategy_prior": parameters.strategy_prior,
            "counts": self.counts.counts,
            "pseudo_counts": self.counts.pseudo_counts,
            "choice": self.choice.to_array(),
            "loo_log_likelihood": self.loo_log_likelihood,
            "repeated_label": self.repeated_label,
        }

    def tables(self) -> dict[str, Any]:
        """Return what items' posteriors are computed from, as inputs of passes."""
        return {
            "prior": self.parameters.prior,
            **self.counts._asdict(),
            "correlation": self.choice.correlation,
        }

    def item_likelihood(self, labels: Labels, rows: slice = slice(None)) -> Floats | None:
        """Return the likelihood of the classifier's predictions, items x categories; None without."""
        if self.calibration is None or labels.classifier is None:
            return None
        return self.calibration.of_items(labels.classifier[rows])

    def known_items(self, labels: Labels) -> KnownItems:
        """Return what is known about items beside their labels."""
        known_truth = self.choice.candidate.items(labels).known_truth
        return known_items(labels, known_truth, self.calibration)

    @classmethod
    def from_fit(cls, fit: Fit) -> ClassState:
        """Return the state that a fit holds; raise if it has other shapes than expected."""
        n_annotators, n = fit.data.n_annotators, fit.data.n_categories
        choice = HeldOutChoice.from_array(fit.parameter("choice", 4))
        items = choice.candidate.items(fit.data)
        n_states = items.n_classes
        serious = fit.parameter("serious", n, n_states)
        n_strategies = items.strategies(serious).n_strategies
        counts = AnnotatorCounts(
            *(
                fit.parameter(name, n_annotators, n + 1, n_states)
                for name in AnnotatorCounts._fields
            )
        )
        parameters = ClassParameters(
            fit.parameter("state_prior", n_states),
            counts.confusion(),
            serious,
            fit.parameter("strategy_prior", n_strategies),
        )
        return cls(
            parameters,
            counts,
            choice,
            fit.verdict,
            fit.parameter("loo_log_likelihood", n_annotators, n_strategies),
            np.clip(fit.parameter("repeated_label", n_annotators), NO_LABEL, n - 1),
            None if fit.data.classifier is None else Calibration.from_fit(fit),
        )


def final_state(
    steps: ClassSteps, parameters: ClassParameters, choice: HeldOutChoice, verdict: Verdict | None
) -> ClassState:
    """Return the state that EM ended in, where the engine computes, after passes for the annotators."""
    counts = steps.annotator_counts(parameters)
    return with_annotators(
        steps, parameters._replace(confusion=counts.confusion()), counts, choice, verdict
    )


def with_annotators(
    steps: ClassSteps,
    parameters: ClassParameters,
    counts: AnnotatorCounts,
    choice: HeldOutChoice,
    verdict: Verdict | None,
) -> ClassState:
    """Return the state after a pass for the annotators."""
    loo_log_likelihood = steps.left_out(
        steps.items.strategies(parameters.serious),
        prior=parameters.prior,
        confusion=parameters.confusion,
    )
    return ClassState(parameters, counts, choice, verdict, loo_log_likelihood, steps.repeated_label)


def class_posterior(
    labels: LabelSummary, state: ClassState, session: Session | None = None
) -> AnnotatorPosterior:
    """Return the posterior of annotators' strategies, all of which are alike before the labels.

    The shares of strategies that EM learned would count the annotators' labels twice. If labels agree
    no better than chance, the prior falls linearly with the reliability. With a session, the state is
    where its engine computes.
    """
    strategies = state.choice.candidate.items(labels).strategies(state.parameters.serious)
    shares = np.full(strategies.n_strategies, 1.0 / strategies.n_strategies)
    if state.verdict == "chance":
        shares *= 1.0 - strategies.reliability
        shares /= shares.sum()
    return AnnotatorPosterior(
        labels, strategies, strategies.log_prior_of(shares), state.loo_log_likelihood, session
    )


def class_latent_classes(fit: Fit) -> LatentClasses:
    """Return the latent classes of a fit, subtypes merged; makes no pass over the labels."""
    state, labels = ClassState.from_fit(fit), fit.data
    posterior = class_posterior(labels, state)
    merged = TrueClasses(labels)
    prior = state.parameters.prior.reshape(labels.n_categories, -1)
    serious = state.parameters.serious.reshape(labels.n_categories, *prior.shape)
    strategies = merged.strategies((serious * prior / prior.sum(axis=1, keepdims=True)).sum(axis=2))
    label_weight = 1.0 / variance_inflation(labels)
    return LatentClasses(
        prior=prior.sum(axis=1),
        known_truth=merged.known_truth,
        confusion=strategies.probability.average(posterior.weights, state.repeated_label),
        opinions=np.eye(labels.n_categories),
        one_truth=True,
        label_weight=label_weight,
        # A label weight below 1 inflates variances as well.
        score_inflation=variance_inflation(labels) * label_weight,
        item_likelihood=state.item_likelihood(labels),
    )


def item_posterior(labels: Labels, engine: Engine, state: ClassState) -> Floats:
    """Return each item's posterior over the states, items x states."""
    if labels.annotator_weight is not None:
        return weighted_posterior(labels, state)
    known = state.known_items(labels)
    with closing(engine.open(known.labels)) as session:
        return state_posterior(session, state, known.table)


def state_posterior(session: Session, state: ClassState, known_truth: Floats) -> Floats:
    """Return each item's posterior over the states, the item taken out of the counts."""
    session.allocate("posterior", per="items", shape=state.parameters.prior.shape)
    session.run_pass(
        Pass("item_states.posterior", ("posterior",), STATE_INPUTS),
        **state.tables(),
        known_truth=known_truth,
    )
    return session.collect("posterior")


def class_states(items: TrueClasses, state: ClassState, session: Session) -> ItemStates:
    """Return what a final state, which is where the engine computes, says about items."""
    local = state.to_host(session)
    serious = local.parameters.serious
    return ItemStates(
        local.parameters.prior,
        items.known_truth,
        *local.counts,
        state.choice.correlation,
        serious,
        items.right_labels(serious),
        items.class_of,
    )


def state_opinions(state: ClassState, reliability: Floats) -> Floats:
    """Return the distribution of opinion in each state: labels weighted by reliability."""
    counts, serious = state.counts.counts, state.parameters.serious
    weighted = product_over_annotators(reliability, counts.reshape(len(counts), -1))
    weighted = weighted.reshape(counts.shape[1:])[:-1]
    weighted += serious  # one pseudo-count, for states without labels
    opinions: Floats = np.ascontiguousarray((weighted / weighted.sum(axis=0)).T)
    return opinions


def class_log_odds(fit: Fit, first: Codes, second: Codes) -> Floats:
    r"""Return what each label adds to the log-odds of one category of its item over another.

    As in `annotruth.kernels.item_states`, the item is taken out of the annotators' counts and its
    labels are tempered. With subtypes, a label's log-likelihood in a class is the mean over the
    subtypes z by their posterior :math:`q_z` within the class, since

    .. math:: \log \sum_z e^{x_z} = \sum_z q_z x_z - \sum_z q_z \log q_z .

    The sum over an item's labels is what the posterior of the class gained, except where the right
    label of a subtype is not its class (`TrueClasses.right_labels`).
    """
    state, labels = ClassState.from_fit(fit), fit.data
    n_states = len(state.parameters.prior)
    odds = np.empty(labels.n_labels)
    bounds = labels.partition(1 + labels.n_labels * n_states // _MAX_NUMBERS)
    for lo, hi in pairwise(np.unique(bounds).tolist()):
        some = slice(*labels.cell_ptr[labels.item_ptr[[lo, hi]]])
        logs, posterior = _label_likelihoods(labels, state, lo, hi)
        item = np.repeat(np.arange(hi - lo), labels.labels_per_item[lo:hi])
        class_of = np.arange(n_states) // (n_states // labels.n_categories)
        sides = []
        for category in (first, second):
            share = posterior * (class_of == category[lo:hi, np.newaxis]) + _MIN_SHARE
            share /= share.sum(axis=1, keepdims=True)
            sides.append((share[item] * logs).sum(axis=1))
        odds[some] = sides[0] - sides[1]
    return odds


def _label_likelihoods(
    labels: Labels, state: ClassState, lo: int, hi: int, known_truth: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the tempered log-likelihoods of items lo:hi's labels, labels x states, and posteriors.

    Known truths count if their likelihood in each state is given.
    """
    some = slice(*labels.cell_ptr[labels.item_ptr[[lo, hi]]])
    annotator, label = labels.annotator[some], labels.category_of_label()[some]
    n_labels = labels.labels_per_item[lo:hi]
    starts = np.cumsum(n_labels) - n_labels
    log_prior = np.log(state.parameters.prior)
    likelihood = state.item_likelihood(labels, slice(lo, hi))
    if likelihood is not None:
        n_subtypes = len(log_prior) // labels.n_categories
        log_prior = log_prior + np.repeat(np.log(likelihood), n_subtypes, axis=1)
    if known_truth is not None:
        known = labels.known[lo:hi, np.newaxis]
        with np.errstate(divide="ignore"):
            log_prior = log_prior + np.where(known < 0, 0.0, np.log(known_truth)[known[:, 0]])
    with_item = np.log(state.parameters.confusion[annotator, label])
    counted, weight = n_labels, None
    if labels.annotator_weight is not None:
        weight = labels.annotator_weight[annotator]
        with_item *= weight[:, np.newaxis]
        counted = np.maximum(np.add.reduceat(weight, starts), 1.0)
    own = softmax(log_prior + np.add.reduceat(with_item, starts), axis=1)
    own = np.repeat(own, n_labels, axis=0)
    counts, pseudo_counts = state.counts
    given, every = (
        np.maximum(counts[annotator, n] - own, 0.0) + pseudo_counts[annotator, n]
        for n in (label, -1)
    )
    tempering = np.repeat(1.0 / (1.0 + (counted - 1) * state.choice.correlation), n_labels)
    if weight is not None:
        tempering *= weight
    logs = tempering[:, np.newaxis] * np.log(given / every)
    posterior: Floats = softmax(log_prior + np.add.reduceat(logs, starts), axis=1)
    return logs, posterior


def weighted_posterior(labels: Labels, state: ClassState) -> Floats:
    """Return each item's posterior where some annotators' labels count less than others'.

    With :math:`u_s` the weights, the log-likelihood of `annotruth.kernels.item_states` is a sum of
    :math:`u_s` times each label's, and the number of labels m is the sum of their weights.
    """
    confusion = state.counts.confusion()
    state = replace(state, parameters=state.parameters._replace(confusion=confusion))
    known_truth = state.choice.candidate.items(labels).known_truth
    n_states = len(state.parameters.prior)
    bounds = np.unique(labels.partition(1 + labels.n_labels * n_states // _MAX_NUMBERS))
    return np.concatenate(
        [
            _label_likelihoods(labels, state, lo, hi, known_truth)[1]
            for lo, hi in pairwise(bounds.tolist())
        ]
    )


def summarize_weighted_items(
    labels: Labels,
    session: Session,
    items: TrueClasses,
    state: ClassState,
    posterior: AnnotatorPosterior,
) -> None:
    """Compute what `annotruth.kernels.item_states.summarize` does, with weights of annotators."""
    weights = weighted_posterior(labels, state)
    right = weights @ items.right_labels(state.parameters.serious)
    given = np.zeros(right.shape, dtype=np.bool_)
    given[labels.item_of_label(), labels.category_of_label()] = True
    top = np.where(given, right, 0.0).max(axis=1, keepdims=True)
    capped = np.where(given, right, np.minimum(right, top * (1.0 - 1e-9)))
    known = labels.known[:, np.newaxis]
    right = np.where(known < 0, capped, np.eye(right.shape[1])[labels.known])
    reliability = labels.weighted(posterior.reliability)
    p_serious = posterior.strategies.label_is_serious(posterior.weights, state.repeated_label)
    rows = p_serious[labels.annotator, labels.category_of_label()]
    session.put("right", right / right.sum(axis=1, keepdims=True), per="items")
    session.put("opinion", weights @ state_opinions(state, reliability), per="items")
    session.put("p_serious", (weights[labels.item_of_label()] * rows).sum(axis=1), per="labels")
