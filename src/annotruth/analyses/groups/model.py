"""Fits RobustGPM with groups of annotators."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from annotruth.analyses.groups.coupling import (
    GroupItems,
    Messages,
    group_opinions,
    label_seriousness,
    summarize_crowd,
)
from annotruth.analyses.groups.steps import ClassGroupSteps, GroupParameters, OpinionGroupSteps
from annotruth.engines import get_engine
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.em import ProgressCallback, one_blas_thread, run_em
from annotruth.models.latent_classes import variance_inflation
from annotruth.models.people import ItemStates, assess_people
from annotruth.models.result import Fit
from annotruth.models.robust_gpm import class_model, class_results, opinion_model
from annotruth.models.robust_gpm.annotators import (
    annotator_results,
    serious_weights,
)
from annotruth.models.robust_gpm.class_results import ClassState
from annotruth.models.robust_gpm.class_steps import (
    CLASS_TOL,
    AnnotatorCounts,
    ClassParameters,
    ClassSteps,
    is_class_fit,
)
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.opinion_model import OpinionState, final_model
from annotruth.models.robust_gpm.opinions import OpinionShapes, OpinionSteps
from annotruth.observations import Labels
from annotruth.observations.encode import id_ranks
from annotruth.observations.layout import CanonicalOrder

# The coupling of groups converges more slowly than the rest: the stopping rule is this times tol.
_TOL = 0.1

# How much of annotators' confusion matrices is uniform at the start, where items have one right label.
_UNIFORM = 0.3

# EM steps on the coupling alone, given labels that are correlated within items: what they have in
# common would otherwise be taken for the opinion of a group.
_N_COUPLING_STEPS = 30

_MIN_PRIOR = 1e-6  # of a state by the other groups, where it is divided by


@dataclass(frozen=True, eq=False)
class GroupModel:
    """A fitted model with groups.

    Items and annotators are in the order of the text of their ids, so that the order of rows does not
    change the arithmetic.
    """

    labels: Labels  # the labels in this order
    group: Codes  # the group of each annotator
    crowd: Fit  # the fit without groups
    fit: Fit  # the fit with groups
    parameters: GroupParameters[Any]  # the parameters
    messages: Messages  # the final inference about states
    posterior: Floats  # the posterior of each pair's state
    confusion: Floats  # P(label | state) of each annotator, annotators x categories x states
    # the distribution of each group's opinion in each state, groups x states x categories
    opinions: Floats
    # what intervals of items need beyond their posteriors
    variance_inflation: float
    score_variance: float


def fit_group_model(
    estimator: RobustGPM,
    labels: Labels,
    group: Codes,
    n_groups: int,
    progress: ProgressCallback | None = None,
) -> GroupModel:
    """Return the fitted model, given the group of each annotator; labels are in the order of ids."""
    order = id_order(labels)
    ordered = labels.reordered(order).labels
    group = group[order.annotator]
    crowd: Fit = estimator.without_pooling().fit(ordered).result_
    pairs = GroupItems.of(ordered, group, n_groups)
    fit = _fit_classes if is_class_fit(crowd) else _fit_opinions
    with one_blas_thread():
        return fit(estimator, crowd, pairs, group, progress)


def id_order(labels: Labels) -> CanonicalOrder:
    """Return the items and annotators in the order of the text of their ids."""
    item, annotator = (np.argsort(id_ranks(ids)) for ids in (labels.items, labels.annotators))
    return CanonicalOrder(item, annotator, np.arange(labels.n_categories))


def _fit_opinions(
    estimator: RobustGPM,
    crowd: Fit,
    pairs: GroupItems,
    group: Codes,
    progress: ProgressCallback | None,
) -> GroupModel:
    """Fit groups where opinions differ."""
    labels, shapes = crowd.data, OpinionShapes(pairs.labels)
    with closing(get_engine(estimator.engine).open(pairs.labels)) as session:
        steps = OpinionGroupSteps(OpinionSteps(shapes, session), pairs, labels, shapes.known_truth)
        parameters, history = run_em(
            steps, steps.start(), estimator.loop().scaled(_TOL), progress=progress
        )
        confusion = steps.confusion(parameters.crowd)
        loo = steps.leave_one_out(parameters, confusion, shapes.strategies)
        state = OpinionState(parameters.crowd, loo, steps.steps.repeated_label)
        final = final_model(labels, state)
        confusion = final.classes.confusion
        messages = steps.messages(parameters, steps.pair_likelihood(confusion))
        states = _with_priors_of_pairs(opinion_model.opinion_states(final, None), messages)
        people = assess_people(session, pairs.labels, states, final.posterior.reliability)
    opinions = group_opinions(shapes, final.posterior, group, pairs.n_groups)
    posterior = messages.posterior()
    summary = summarize_crowd(messages, opinions, labels)
    p_serious = final.posterior.strategies.p_serious.average(
        serious_weights(final.posterior, people), state.repeated_label
    )
    results = opinion_model.item_results(
        final.uncertainty,
        labels,
        {**summary._asdict(), "p_serious": label_seriousness(pairs, posterior, p_serious)},
    )
    fit = replace(
        crowd,
        history=history,
        parameters=state.to_arrays(),
        **results,
        **annotator_results(
            final.items, final.posterior, final.classes.prior, state.repeated_label, people=people
        ),
    )
    return GroupModel(
        *(labels, group, crowd, fit, parameters, messages, posterior, confusion, opinions),
        final.uncertainty.variance_inflation,
        final.uncertainty.score_variance,
    )


def _with_priors_of_pairs(states: ItemStates, messages: Messages) -> ItemStates:
    """Return the states with what the other groups say about an item as the prior of each pair."""
    return states._replace(prior=np.ones_like(states.prior), known_truth=messages.from_others())


def _fit_classes(
    estimator: RobustGPM,
    crowd: Fit,
    pairs: GroupItems,
    group: Codes,
    progress: ProgressCallback | None,
) -> GroupModel:
    """Fit groups where items have one right label, which groups may differ about."""
    labels, before = crowd.data, ClassState.from_fit(crowd)
    items = before.choice.candidate.items(pairs.labels)
    with closing(get_engine(estimator.engine).open(pairs.labels)) as session:
        inner = ClassSteps(items, session, before.choice.candidate.concentration)
        steps = ClassGroupSteps(inner, pairs, labels, items.known_truth)
        parameters, history = run_em(
            steps,
            steps.with_coupling(_start_alike(before, labels)),
            estimator.loop().scaled(CLASS_TOL, plain=True),
            progress=progress,
        )
        parameters, state, messages = _final_classes(steps, parameters, before)
        annotators = class_results.class_posterior(labels, state)
        states = _with_priors_of_pairs(class_results.class_states(items, state, session), messages)
        people = assess_people(session, pairs.labels, states, annotators.reliability)
    of_states = class_results.state_opinions(state, annotators.reliability)
    opinions = np.broadcast_to(of_states, (pairs.n_groups, *of_states.shape))
    posterior = messages.posterior()
    right = messages.item_posterior() @ items.right_labels(parameters.crowd.serious)
    opinion = summarize_crowd(messages, opinions, labels).theta
    strategies = items.strategies(parameters.crowd.serious)
    p_serious = strategies.p_serious.average(
        serious_weights(annotators, people), state.repeated_label
    )
    inflation = variance_inflation(labels)
    results = class_model.item_results(
        inflation,
        labels,
        {
            "right": _right_labels(labels, right),
            "opinion": opinion,
            "p_serious": label_seriousness(pairs, posterior, p_serious),
        },
    )
    fit = replace(
        crowd,
        history=history,
        parameters=state.to_arrays(),
        **results,
        **annotator_results(
            items, annotators, parameters.crowd.prior, state.repeated_label, people=people
        ),
    )
    confusion = parameters.crowd.confusion
    return GroupModel(
        *(labels, group, crowd, fit, parameters, messages, posterior, confusion, opinions),
        inflation,
        0.0,
    )


def _start_alike(before: ClassState, labels: Labels) -> ClassParameters:
    """Return parameters of the crowd in which all annotators have the same confusion.

    With their own, from a fit without groups, a minority would seem to be wrong.
    """
    confusion = (1.0 - _UNIFORM) * before.parameters.serious + _UNIFORM / labels.n_categories
    return before.parameters._replace(confusion=np.tile(confusion, (labels.n_annotators, 1, 1)))


def _final_classes(
    steps: ClassGroupSteps, parameters: GroupParameters[Any], before: ClassState
) -> tuple[GroupParameters[Any], ClassState, Messages]:
    """Return the final parameters, the state of the crowd, and the inference about states.

    The coupling of groups is estimated once more with correlated labels.
    """
    _, sums, _ = steps.e_step(parameters)
    counts = AnnotatorCounts.of(sums.counts, steps.steps.m_step(parameters.crowd, sums)[1])
    crowd = parameters.crowd._replace(confusion=counts.confusion())
    parameters = parameters._replace(crowd=crowd)
    strategies = steps.steps.items.strategies(crowd.serious)
    state = replace(
        before,
        parameters=crowd,
        counts=counts,
        loo_log_likelihood=steps.leave_one_out(parameters, crowd.confusion, strategies),
    )
    tempered = _tempered_likelihood(steps, parameters, state)
    for _ in range(_N_COUPLING_STEPS):
        messages = steps.messages(parameters, tempered)
        parameters = parameters._replace(coupling=steps.new_coupling(parameters, messages))
    return parameters, state, steps.messages(parameters, tempered)


def _tempered_likelihood(
    steps: ClassGroupSteps, parameters: GroupParameters[Any], state: ClassState
) -> Floats:
    r"""Return the likelihood of pairs' labels, each pair out of the counts, labels correlated.

    The m labels of an item, whichever the group, count as :math:`m / (1 + (m - 1) \rho)`.
    """
    confusion, prior = parameters.crowd.confusion, parameters.crowd.prior
    others = steps.messages(parameters, steps.pair_likelihood(confusion)).from_others()
    others = np.maximum(others, _MIN_PRIOR)
    independent = replace(state, choice=state.choice._replace(correlation=0.0))
    posterior = class_results.state_posterior(steps.session, independent, others / prior)
    likelihood = posterior / others
    likelihood /= likelihood.max(axis=1, keepdims=True)
    pairs = steps.pairs
    n_labels = np.bincount(pairs.item, pairs.labels.labels_per_item)
    tempering = 1.0 / (1.0 + (n_labels - 1.0) * state.choice.correlation)
    tempered: Floats = likelihood ** tempering[pairs.item][:, np.newaxis]
    return tempered


def _right_labels(labels: Labels, right: Floats) -> Floats:
    """Return the probabilities of the right label: certain where known, else one that was given.

    A label that nobody gave the item is not more probable than the best one that somebody gave.
    """
    given = np.zeros(right.shape, dtype=np.bool_)
    given[labels.item_of_label(), labels.category_of_label()] = True
    top = np.where(given, right, 0.0).max(axis=1, keepdims=True)
    capped = np.where(given, right, np.minimum(right, top * (1.0 - 1e-9)))
    is_known = labels.known >= 0
    capped[is_known] = np.eye(labels.n_categories)[labels.known[is_known]]
    return capped
