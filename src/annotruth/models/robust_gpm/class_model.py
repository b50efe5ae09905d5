"""The default model where every item has one right label: `RightLabelModel`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Input, Pass, Session, get_engine
from annotruth.kernels.arrays import Codes, Floats, reduce_rows
from annotruth.models.base import EMEstimator
from annotruth.models.base_fit import Column, Verdict
from annotruth.models.distribution import likely_sets, mixed_confusion, score_interval
from annotruth.models.em import History, ProgressCallback
from annotruth.models.evidence.chance import Folds, label_shares
from annotruth.models.evidence.classifier import Calibration, choose_calibration, not_used
from annotruth.models.evidence.dependent_annotators import (
    DependentPairs,
    dependence_results,
    find_dependent_pairs,
    n_common_labels,
)
from annotruth.models.fits.make_fit import ItemResults, make_fit, summarize_items
from annotruth.models.latent_classes import variance_inflation
from annotruth.models.people import assess_people
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import (
    AnnotatorPosterior,
    annotator_results,
    serious_weights,
)
from annotruth.models.robust_gpm.choice import Candidate, HeldOutChoice, choose
from annotruth.models.robust_gpm.class_results import (
    STATE_INPUTS,
    ClassState,
    class_posterior,
    class_states,
    final_state,
    item_posterior,
    state_opinions,
    state_posterior,
    summarize_weighted_items,
    with_annotators,
)
from annotruth.models.robust_gpm.class_steps import (
    AnnotatorCounts,
    ClassParameters,
    ClassSteps,
)
from annotruth.models.robust_gpm.pooling import max_states
from annotruth.observations import Labels, LabelSummary, Scale

_LEAST_WEIGHT = 0.01  # of the alternative to the model that held-out labels choose

_N_ROUNDS = 2  # with the classifier annotators are known better, and then the classifier is

# How much of annotators' confusion matrices is uniform at the start of a round. With one label per item
# annotators seem never to be wrong without the classifier, which EM would leave slowly.
_UNIFORM = 0.3

_MAX_OPERATIONS = 1e9  # of comparing annotators with each other, about half a second
_MIN_CORRELATION = 0.4  # of annotators who depend on one another

_ITEM_ARRAYS = ("right", "opinion", "p_serious")


@dataclass(frozen=True)
class RightLabelModel:
    r"""Items with one right label: classes with subtypes, annotators with confusion matrices.

    An item is in one of S states z, in z with probability :math:`p_z`. A state is a class k, one of the N
    categories, and one of M subtypes, so that items of a class may be easy or hard. In it, serious
    labels have the distribution :math:`\theta_z`, the crowd's confusion matrix, in which no label is
    likelier than the class, and labels of response strategy g have
    :math:`a_g(n \mid z) = \epsilon_g \theta_{z,n} + (1 - \epsilon_g) b_g(n \mid z)`
    (`annotruth.models.robust_gpm.strategies`). An annotator has a posterior q over the strategies, and a
    confusion matrix around what these expect:

    .. math::
        v_{s,z} \sim \mathrm{Dirichlet}\Bigl(c \sum_g q_{s,g} a_g(\cdot \mid z)\Bigr), \quad
        L = \prod_e \sum_z p_z \prod_{s \in l_e} v_{s,z}(r_{e,s}).

    EM (`ClassSteps`) stops when the log-likelihood per label changes by less than ten times ``tol``.
    *Held-out labels* choose whether :math:`\theta` is learned or serious labels are right, M, c, and the
    correlation :math:`\rho` of an item's labels within its state (`annotruth.models.robust_gpm.choice`).
    At the end an item's labels are taken out of the counts that they are read by, and m labels count as
    :math:`m / (1 + (m - 1) \rho)`. ``distributions("right")`` are the probabilities of the right label
    (`TrueClasses.right_labels`), ``distributions("opinion")`` the labels in the item's states, weighted
    by reliability.

    If labels agree no better than chance, nothing is learned. With too few labels to tell, EM starts at
    annotators who are right half of the time and guess otherwise. Intervals of reliabilities are those of
    a mean over a learned :math:`\theta` and serious labels that are right, weighted by how probably each
    predicts labels better.
    """

    estimator: EMEstimator  # whose options and name these fits have

    def fit(
        self,
        labels: LabelSummary,
        session: Session,
        folds: Folds,
        verdict: Verdict | None,
        progress: ProgressCallback | None,
    ) -> Fit:
        """Fit labels that are assigned to folds, given whether they agree better than chance."""
        # A classifier that predicts the labels shows that they are not drawn by chance.
        if verdict == "chance" and labels.classifier is None:
            return self._fit_chance(labels, session)
        choice, alternative = choose(labels, session, folds, max_states=max_states(labels))
        steps = choice.candidate.steps(labels, session)
        parameters, history = self.run_em(steps, _start(steps, verdict), progress)
        state = final_state(steps, parameters, choice, verdict)
        if alternative is not None and alternative.weight >= _LEAST_WEIGHT:
            others = alternative.candidate.steps(labels, session)
            parameters, _ = self.run_em(others, _start(others, verdict), warn=False)
            other = final_state(others, parameters, choice, verdict)
            state = state.averaged(other, alternative.weight)
        if labels.classifier is None:
            return self.make_fit(steps, state, history)
        return self._with_classifier(cast("Labels", labels), steps, state, history, progress)

    def fit_beside(
        self, people: Fit, labels: Labels, session: Session, progress: ProgressCallback | None
    ) -> Fit:
        """Fit labels of which some count less, given a fit of those that count fully."""
        if people.verdict == "chance":
            return self._fit_chance(labels, session)
        before = ClassState.from_fit(people)
        steps = before.choice.candidate.steps(labels, session)
        start = steps.start_beside(before.parameters)
        parameters, history = self.run_em(steps, start, progress)
        return self.make_fit(
            steps, final_state(steps, parameters, before.choice, before.verdict), history
        )

    def predict_proba(self, fit: Fit, item: Codes, annotator: Codes) -> Floats:
        """Return the probability of each category, one row per pair of item and annotator.

        These are annotators' confusion matrices, averaged over the posterior of the item's state. If
        labels agree no better than chance, they are the annotators' shares of labels, whatever the item.
        """
        state = ClassState.from_fit(fit)
        if state.verdict == "chance":
            return label_shares(fit.data.labels_per_category.astype(np.float64))[annotator]
        labels, place, annotators = fit.data.subset_items(item)
        counts = AnnotatorCounts(*(table[annotators] for table in state.counts))
        engine = get_engine(self.estimator.engine)
        posterior = item_posterior(labels, engine, replace(state, counts=counts))
        confusion = state.parameters.confusion.transpose(2, 0, 1)
        return mixed_confusion(posterior[place], confusion, annotator)

    def run_em(
        self,
        steps: ClassSteps,
        start: ClassParameters,
        progress: ProgressCallback | None = None,
        *,
        warn: bool = True,
    ) -> tuple[ClassParameters, History]:
        """Run EM; with a warning at the cap if the parameters are those of the result."""
        return steps.run_em(start, self.estimator.loop(), progress, warn=warn)

    def _fit_chance(self, labels: LabelSummary, session: Session) -> Fit:
        """Fit labels that agree no better than chance: nothing is learned from them.

        An item's labels count as one label of an annotator who is right half of the time and guesses
        otherwise, and annotators are compared with the others' labels.
        """
        candidate = Candidate(1, 1.0, learn_crowd=False)
        steps = candidate.steps(labels, session)
        parameters = steps.start_without_labels()
        tables = AnnotatorCounts.of(np.zeros_like(parameters.confusion), parameters.confusion)
        choice = HeldOutChoice(candidate, correlation=1.0)
        state = with_annotators(steps, parameters, tables, choice, "chance")
        if labels.classifier is not None:
            state = replace(state, calibration=not_used(labels.n_categories))
        counts = labels.labels_per_category.astype(np.float64)
        history = History(
            np.array([(counts * np.log(label_shares(counts))).sum()]),
            np.empty(0),
            converged=True,
            stop_reason="labels agree no better than chance, so nothing is learned from them",
        )
        return self.make_fit(steps, state, history)

    def _with_classifier(
        self,
        labels: Labels,
        steps: ClassSteps,
        state: ClassState,
        history: History,
        progress: ProgressCallback | None,
        n_rounds: int = _N_ROUNDS,
    ) -> Fit:
        """Return the fit with a classifier, given where EM ended without it, or in the last round.

        In each round the classifier is calibrated on the last state, and EM continues with it.
        """
        if n_rounds == 0:
            return self.make_fit(steps, state, history)
        calibration = _calibrate(labels, steps, state)
        if state.calibration is None and not calibration.is_used:
            if state.verdict == "chance":
                return self._fit_chance(labels, steps.session)
            return self.make_fit(steps, replace(state, calibration=calibration), history)
        candidate = state.choice.candidate
        known = replace(state, calibration=calibration).known_items(labels)
        with closing(get_engine(self.estimator.engine).open(known.labels)) as session:
            items = candidate.items(labels, known.table)
            again = ClassSteps(items, session, candidate.concentration)
            confusion = state.parameters.confusion
            softened = (1.0 - _UNIFORM) * confusion + _UNIFORM / labels.n_categories
            start = state.parameters._replace(confusion=softened)
            parameters, history = self.run_em(again, start, progress)
            verdict: Verdict | None = "informative" if state.verdict == "chance" else state.verdict
            after = final_state(again, parameters, state.choice, verdict)
            after = replace(after, calibration=calibration)
            return self._with_classifier(labels, again, after, history, progress, n_rounds - 1)

    def make_fit(self, steps: ClassSteps, state: ClassState, history: History) -> Fit:
        """Return the fit of a final state, which is where the steps' engine computes."""
        labels, session = steps.labels, steps.session
        posterior = class_posterior(labels, state, session)
        people = None
        if state.verdict != "chance":
            states = class_states(steps.items, state, session)
            people = assess_people(session, labels, states, posterior.reliability)
        _summarize_items(steps, state, posterior, serious_weights(posterior, people))
        averaged = state.averaged_log_likelihood
        return make_fit(
            labels,
            session,
            _ITEM_ARRAYS,
            partial(item_results, variance_inflation(labels)),
            model=self.estimator.name,
            settings=self.estimator.settings(),
            history=history,
            parameters=state.to_host(session).to_arrays(),
            verdict="camps" if people is not None and people.verdicts.undecided else state.verdict,
            further=dependence_results(_find_dependent_pairs(steps, state)),
            **annotator_results(
                steps.items,
                posterior,
                state.parameters.prior,
                state.repeated_label,
                people=people,
                for_intervals=(
                    None if averaged is None else replace(posterior, loo_log_likelihood=averaged)
                ),
            ),
        )


def _start(steps: ClassSteps, verdict: Verdict | None) -> ClassParameters:
    """Return the start of EM.

    Shares of labels as a start would make annotators certain, and with too few labels to tell whether
    they agree, EM would not correct it.
    """
    return steps.start_without_labels() if verdict is None else steps.start()


def _calibrate(labels: Labels, steps: ClassSteps, state: ClassState) -> Calibration:
    """Return the calibration of the classifier on what labels alone say about items."""
    n = labels.n_categories
    assert labels.classifier is not None
    posterior = state_posterior(steps.session, state, steps.items.known_truth)
    evidence = posterior.reshape(labels.n_items, n, -1).sum(axis=2)
    prior = state.parameters.prior.reshape(n, -1).sum(axis=1)
    before = state.calibration or not_used(n)
    evidence /= prior * before.of_items(labels.classifier)
    return choose_calibration(labels.classifier, evidence, prior)


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
        prior=state.parameters.prior,
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
    if steps.labels.annotator_weight is not None:
        summarize_weighted_items(cast("Labels", steps.labels), session, items, state, posterior)
        return
    summarize = Pass(
        "item_states.summarize",
        _ITEM_ARRAYS,
        (
            *STATE_INPUTS,
            *(Input("right_labels"), Input("opinions")),
            Input("serious", annotator_axis=0),
        ),
    )
    reliability, repeated_label = map(
        session.to_engine, (posterior.reliability, state.repeated_label)
    )
    session.run_pass(
        summarize,
        **state.tables(),
        known_truth=items.known_truth,
        right_labels=items.right_labels(parameters.serious),
        opinions=state_opinions(state, reliability),
        serious=posterior.strategies.label_is_serious(weights, repeated_label),
    )


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
        variance = inflation * np.maximum(right @ values**2 - score**2, 0.0)
        columns |= score_interval(scale, score, variance, known)
    columns["p_leads"] = reduce_rows(np.maximum, right)
    # Without an order of their own, categories are in that of the alphabet, as labels are fitted in
    # any order of categories.
    listed = sorted(range(len(scale)), key=None if scale.is_ordinal else scale.names.__getitem__)
    columns["may_lead"] = likely_sets(right[:, listed], [scale.names[n] for n in listed])
    return columns
