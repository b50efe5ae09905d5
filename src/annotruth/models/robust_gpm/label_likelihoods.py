"""Likelihoods of single labels where items have one right label, in NumPy.

Passes add up labels by item. What needs the labels one by one is computed here: what each adds to the
odds of an item's label, and posteriors in which some annotators' labels count less than others'.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import softmax

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.class_results import ClassState, state_opinions
from annotruth.models.robust_gpm.classes import TrueClasses

_MAX_NUMBERS = 4_000_000  # held at once for a partition of the items
_MIN_SHARE = 1e-300  # so that shares of what cannot be have a sum


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
    n_states = len(state.parameters.state_prior)
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
    log_prior = np.log(state.parameters.state_prior)
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
    n_states = len(state.parameters.state_prior)
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
