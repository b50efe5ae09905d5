"""The latent states of a fit of RobustGPM, with which labels of others can be compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.engines import Engine
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.em import one_blas_thread
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.class_results import ClassState, class_posterior, item_posterior
from annotruth.models.robust_gpm.model import is_class_fit
from annotruth.models.robust_gpm.opinion_results import (
    OpinionState,
    final_model,
    shape_posterior,
)
from annotruth.models.robust_gpm.strategies import ResponseStrategies

# By how much the likelihood of an item's labels counts less, times annotators per label. Chosen on
# simulated crowds, so that independent annotators are found to be independent.
_CLASS_FACTOR, _OPINION_FACTOR = 1.0, 7.5


class LatentStates(NamedTuple):
    """Posteriors of items over latent states, and how annotators respond to these.

    Attributes
    ----------
    posterior
        Of each item, items x states, with the likelihood of its labels tempered.
    right
        The distribution of the right or leading label in each state, states x categories.
    confusion
        P(label | state) of the fit's annotators, annotators x categories x states.
    strategies, log_prior
        The response strategies of annotators, and their log-prior.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> fit = at.fit(at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels)
    >>> latent_states(fit, get_engine("memory")).posterior.shape
    (20, 32)
    """

    posterior: Floats
    right: Floats
    confusion: Floats
    strategies: ResponseStrategies
    log_prior: Floats


def latent_states(fit: Fit, engine: Engine) -> LatentStates:
    """Return the latent states of a fit of RobustGPM."""
    with one_blas_thread():
        return _of_classes(fit, engine) if is_class_fit(fit) else _of_opinions(fit, engine)


def _of_classes(fit: Fit, engine: Engine) -> LatentStates:
    state = ClassState.from_fit(fit)
    annotators = class_posterior(fit.data, state)
    items = state.choice.candidate.items(fit.data)
    posterior = item_posterior(fit.data, engine, state)
    return LatentStates(
        _tempered(posterior, state.parameters.state_prior, fit.data, _CLASS_FACTOR),
        items.right_labels(state.parameters.serious),
        state.counts.confusion(),
        annotators.strategies,
        annotators.log_prior,
    )


def _of_opinions(fit: Fit, engine: Engine) -> LatentStates:
    final = final_model(fit.data, OpinionState.from_fit(fit))
    classes = final.classes
    posterior = shape_posterior(fit.data, engine, classes, classes.confusion)
    leading = np.eye(fit.data.n_categories)[classes.opinions.argmax(axis=1)]
    posterior = _tempered(posterior, classes.prior, fit.data, _OPINION_FACTOR)
    annotators = final.posterior
    return LatentStates(
        posterior, leading, classes.confusion, annotators.strategies, annotators.log_prior
    )


def _tempered(posterior: Floats, prior: Floats, labels: Labels, factor: float) -> Floats:
    """Return posteriors in which the labels' likelihood counts less.

    The confusion of annotators is estimated, which no item's posterior shows: the more annotators
    there are per label, the less is known about each.
    """
    weight = 1.0 / (1.0 + factor * labels.n_annotators / labels.n_labels)
    tempered = prior ** (1.0 - weight) * posterior**weight
    normalised: Floats = tempered / tempered.sum(axis=1, keepdims=True)
    return normalised
