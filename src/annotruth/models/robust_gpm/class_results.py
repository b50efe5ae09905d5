"""From RobustGPM's final state to a fit, where every item has one right label."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, Input, Pass, Session
from annotruth.kernels.arrays import Codes, Floats, product_over_annotators, reduce_rows
from annotruth.labels import Labels, LabelSummary, Scale
from annotruth.models.base_fit import BaseFit, Column, Verdict
from annotruth.models.classifier import Calibration, KnownItems, known_items, not_used
from annotruth.models.distribution import Z_95, likely_sets, mixed_confusion
from annotruth.models.em import History
from annotruth.models.fits.item_results import ItemResults, summarize_items
from annotruth.models.fits.make_fit import make_fit
from annotruth.models.latent_classes import LatentClasses, variance_inflation
from annotruth.models.people import ItemStates, assess_people
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import (
    AnnotatorPosterior,
    annotator_posterior,
    annotator_results,
    serious_weights,
)
from annotruth.models.robust_gpm.choice import Candidate, HeldOutChoice
from annotruth.models.robust_gpm.class_steps import AnnotatorCounts, ClassParameters, ClassSteps
from annotruth.models.robust_gpm.classes import TrueClasses
from annotruth.models.robust_gpm.dependent_annotators import (
    DependentPairs,
    dependence_results,
    find_dependent_pairs,
    n_common_labels,
)
from annotruth.models.robust_gpm.resampling import label_shares
from annotruth.models.robust_gpm.strategies import NO_LABEL, normalise_log_weights

_ITEM_ARRAYS = ("right", "opinion", "p_serious")

_LEAST_LIKELIHOOD = 1e-300  # of a strategy, relative to an annotator's others

_MAX_OPERATIONS = 1e9  # of comparing annotators with each other, about half a second
_MIN_CORRELATION = 0.4  # of annotators who depend on one another

_STATE_INPUTS = (
    *(Input("prior"), Input("known_truth")),
    *(Input("counts", annotator_axis=0), Input("pseudo_counts", annotator_axis=0)),
    Input("correlation"),
)


@dataclass(frozen=True, eq=False)
class ClassState:
    """Where EM ended: what results, predictions and warm starts are computed from.

    Attributes
    ----------
    parameters
        The parameters.
    counts
        Counts of annotators' labels in each state, and pseudo-counts.
    choice
        What held-out labels said.
    verdict
        Whether labels agree better than chance; None if there are too few to tell.
    loo_log_likelihood
        Each annotator's leave-one-out log-likelihood in every strategy.
    repeated_label
        The label that each annotator would repeat, or `NO_LABEL`.
    calibration
        What a classifier's probabilities say; None without a classifier.
    averaged_log_likelihood
        The log-likelihoods of strategies that intervals of reliabilities are from, and whether there are
        too few labels to name a behavior, if they are means over this and another state; None if they are
        ``loo_log_likelihood``. Everything else is from the latter, which agrees with the other parameters.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.class_results import ClassState
    >>> labels = [(item, who, "ab"[item % 2]) for item in range(30) for who in range(4)]
    >>> ClassState.from_fit(at.fit(labels)).choice.candidate.n_subtypes
    1
    """

    parameters: ClassParameters
    counts: AnnotatorCounts
    choice: HeldOutChoice
    verdict: Verdict | None
    loo_log_likelihood: Floats
    repeated_label: Codes
    calibration: Calibration | None = None
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
            "state_prior": parameters.state_prior,
            "serious": parameters.serious,
            "strategy_prior": parameters.strategy_prior,
            "counts": self.counts.counts,
            "pseudo_counts": self.counts.pseudo_counts,
            "choice": self.choice.to_array(),
            "loo_log_likelihood": self.loo_log_likelihood,
            "repeated_label": self.repeated_label,
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
    def from_fit(cls, fit: BaseFit) -> ClassState:
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
    return _with_annotators(
        steps, parameters._replace(confusion=counts.confusion()), counts, choice, verdict
    )


def chance_state(labels: LabelSummary, session: Session) -> tuple[ClassSteps, ClassState]:
    """Return the steps and the state for labels that agree no better than chance.

    Nothing is learned from them. An item's labels count as one label of an annotator who is right
    half of the time and guesses otherwise, and annotators are compared with the others' labels.
    """
    candidate = Candidate(1, 1.0, learn_crowd=False)
    steps = candidate.steps(labels, session)
    parameters = steps.start_without_labels()
    counts = AnnotatorCounts.of(np.zeros_like(parameters.confusion), parameters.confusion)
    choice = HeldOutChoice(candidate, correlation=1.0)
    state = _with_annotators(steps, parameters, counts, choice, "chance")
    calibration = None if labels.classifier is None else not_used(labels.n_categories)
    return steps, replace(state, calibration=calibration)


def chance_history(labels: LabelSummary) -> History:
    """Return the history of a fit that learned nothing, with the log-likelihood of chance."""
    counts = labels.labels_per_category.astype(np.float64)
    log_likelihood = (counts * np.log(label_shares(counts))).sum()
    return History(
        np.array([log_likelihood]),
        np.empty(0),
        converged=True,
        stop_reason="labels agree no better than chance, so nothing is learned from them",
    )


def _with_annotators(
    steps: ClassSteps,
    parameters: ClassParameters,
    counts: AnnotatorCounts,
    choice: HeldOutChoice,
    verdict: Verdict | None,
) -> ClassState:
    """Return the state after a pass for the annotators."""
    loo_log_likelihood = steps.leave_one_out(
        parameters.state_prior, parameters.confusion, steps.items.strategies(parameters.serious)
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
    return annotator_posterior(
        labels, strategies, strategies.log_prior_of(shares), state.loo_log_likelihood, session
    )


def class_latent_classes(fit: Fit) -> LatentClasses:
    """Return the latent classes of a fit, subtypes merged; makes no pass over the labels."""
    state, labels = ClassState.from_fit(fit), fit.data
    posterior = class_posterior(labels, state)
    merged = TrueClasses(labels)
    prior = state.parameters.state_prior.reshape(labels.n_categories, -1)
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
        score_variance=merged.score_variance(),
        # A label weight below 1 inflates variances as well.
        score_inflation=variance_inflation(labels) * label_weight,
        item_likelihood=state.item_likelihood(labels),
    )


def predict_class_labels(fit: Fit, engine: Engine, item: Codes, annotator: Codes) -> Floats:
    """Return the probability of each category, one row per pair of item and annotator.

    These are annotators' confusion matrices, averaged over the posterior of the item's state. If
    labels agree no better than chance, they are the annotators' shares of labels, whatever the item.
    """
    state = ClassState.from_fit(fit)
    if state.verdict == "chance":
        return label_shares(fit.data.labels_per_category.astype(np.float64))[annotator]
    labels, place, annotators = fit.data.subset_items(item)
    counts = AnnotatorCounts(*(table[annotators] for table in state.counts))
    posterior = item_posterior(labels, engine, replace(state, counts=counts))
    confusion = state.parameters.confusion.transpose(2, 0, 1)
    return mixed_confusion(posterior[place], confusion, annotator)


def item_posterior(labels: Labels, engine: Engine, state: ClassState) -> Floats:
    """Return each item's posterior over the states, items x states."""
    if labels.annotator_weight is not None:
        from annotruth.models.robust_gpm.label_likelihoods import weighted_posterior

        return weighted_posterior(labels, state)
    known = state.known_items(labels)
    with closing(engine.open(known.labels)) as session:
        return state_posterior(session, state, known.table)


def state_posterior(session: Session, state: ClassState, known_truth: Floats) -> Floats:
    """Return each item's posterior over the states, the item taken out of the counts."""
    session.allocate("posterior", per="items", shape=state.parameters.state_prior.shape)
    session.run_pass(
        Pass("item_states.posterior", ("posterior",), _STATE_INPUTS),
        prior=state.parameters.state_prior,
        known_truth=known_truth,
        **state.counts._asdict(),
        correlation=state.choice.correlation,
    )
    return session.collect("posterior")


def make_class_fit(
    steps: ClassSteps, state: ClassState, *, model: str, settings: dict[str, Any], history: History
) -> BaseFit:
    """Return the fit of a final state, which is where the steps' engine computes."""
    labels, session = steps.labels, steps.session
    posterior = class_posterior(labels, state, session)
    people = None
    if state.verdict != "chance":
        states = class_states(steps.items, state, session)
        people = assess_people(session, labels, states, posterior.reliability)
    _summarize_items(steps, state, posterior, serious_weights(posterior, people))
    averaged = state.averaged_log_likelihood
    inflation = variance_inflation(labels)
    return make_fit(
        labels,
        session,
        _ITEM_ARRAYS,
        partial(item_results, inflation),
        model=model,
        settings=settings,
        history=history,
        parameters=state.to_host(session).to_arrays(),
        verdict="camps" if people is not None and people.verdicts.undecided else state.verdict,
        further=dependence_results(_find_dependent_pairs(steps, state)),
        **annotator_results(
            steps.items,
            posterior,
            state.parameters.state_prior,
            state.repeated_label,
            people=people,
            for_intervals=(
                None if averaged is None else replace(posterior, loo_log_likelihood=averaged)
            ),
        ),
    )


def class_states(items: TrueClasses, state: ClassState, session: Session) -> ItemStates:
    """Return what a final state, which is where the engine computes, says about items."""
    local = state.to_host(session)
    serious = local.parameters.serious
    return ItemStates(
        local.parameters.state_prior,
        items.known_truth,
        *local.counts,
        state.choice.correlation,
        serious,
        items.right_labels(serious),
        items.class_of,
    )


def _find_dependent_pairs(steps: ClassSteps, state: ClassState) -> DependentPairs | None:
    """Return the pairs of annotators who depend on one another; None if they are not compared.

    What is expected is by each annotator's own labels in the states, with one pseudo-count: by what
    strategies expect, the best annotators would agree with each other too often. Independent annotators
    also share wrong labels of items that are mistaken for others, so that weaker dependence than
    `_MIN_CORRELATION` is none.
    """
    labels, (counts, pseudo_counts) = steps.labels, state.counts
    n_operations = n_common_labels(labels) * counts.shape[1] * counts.shape[2]
    if state.verdict == "chance" or n_operations > _MAX_OPERATIONS:
        return None
    own = AnnotatorCounts(counts, pseudo_counts / pseudo_counts[:, -1:])
    return find_dependent_pairs(
        steps.session,
        labels,
        prior=state.parameters.state_prior,
        known_truth=steps.items.known_truth,
        confusion=own.confusion(),
        min_correlation=_MIN_CORRELATION,
    )


def _summarize_items(
    steps: ClassSteps, state: ClassState, posterior: AnnotatorPosterior, weights: Floats
) -> None:
    """Compute the items' results in the session: the arrays of `_ITEM_ARRAYS`.

    ``weights`` of annotators' strategies say which labels are serious.
    """
    session, items, parameters = steps.session, steps.items, state.parameters
    n_categories = steps.labels.n_categories
    for name in ("right", "opinion"):
        session.allocate(name, per="items", shape=(n_categories,))
    session.allocate("p_serious", per="labels")
    if isinstance(steps.labels, Labels) and steps.labels.annotator_weight is not None:
        from annotruth.models.robust_gpm.label_likelihoods import summarize_weighted_items

        summarize_weighted_items(steps.labels, session, items, state, posterior)
        return
    summarize = Pass(
        "item_states.summarize",
        _ITEM_ARRAYS,
        (
            *_STATE_INPUTS,
            *(Input("right_labels"), Input("opinions")),
            Input("serious", annotator_axis=0),
        ),
    )
    reliability, repeated_label = map(
        session.to_engine, (posterior.reliability, state.repeated_label)
    )
    session.run_pass(
        summarize,
        prior=parameters.state_prior,
        known_truth=items.known_truth,
        **state.counts._asdict(),
        correlation=state.choice.correlation,
        right_labels=items.right_labels(parameters.serious),
        opinions=state_opinions(state, reliability),
        serious=posterior.strategies.label_is_serious(weights, repeated_label),
    )


def state_opinions(state: ClassState, reliability: Floats) -> Floats:
    """Return the distribution of opinion in each state: labels weighted by reliability."""
    counts, serious = state.counts.counts, state.parameters.serious
    weighted = product_over_annotators(reliability, counts.reshape(len(counts), -1))
    weighted = weighted.reshape(counts.shape[1:])[:-1]
    weighted += serious  # one pseudo-count, for states without labels
    opinions: Floats = np.ascontiguousarray((weighted / weighted.sum(axis=0)).T)
    return opinions


def item_results(
    inflation: float, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> ItemResults:
    """Return the distributions and columns of items, from the arrays of `_ITEM_ARRAYS`."""
    right, opinion, p_serious = arrays.values()

    def columns(items: slice, shares: Floats, _: Floats) -> dict[str, Column]:
        return _item_columns(labels.scale, inflation, shares, labels.known[items])

    return summarize_items(right, opinion, p_serious, columns)


def _item_columns(
    scale: Scale, inflation: float, right: Floats, known: NDArray[np.int32]
) -> dict[str, Column]:
    """Return the model's own columns of the items' table."""
    columns: dict[str, Column] = {}
    if scale.is_ordinal:
        values = scale.values
        score = right @ values
        variance = np.maximum(right @ values**2 - score**2, 0.0)
        margin = np.where(known < 0, Z_95 * np.sqrt(inflation * variance), 0.0)
        columns["score_low"] = np.clip(score - margin, values[0], values[-1])
        columns["score_high"] = np.clip(score + margin, values[0], values[-1])
    columns["p_leads"] = reduce_rows(np.maximum, right)
    # Without an order of their own, categories are in that of the alphabet, as labels are fitted in
    # any order of categories.
    listed = sorted(range(len(scale)), key=None if scale.is_ordinal else scale.names.__getitem__)
    columns["may_lead"] = likely_sets(right[:, listed], [scale.names[n] for n in listed])
    return columns
