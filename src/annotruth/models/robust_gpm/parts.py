"""Fits of RobustGPM in which parts of annotators' labels have strategies of their own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import get_engine
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import FLAGGED
from annotruth.models.em import run_em
from annotruth.models.label_evidence import PartedFit, Parts
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.class_results import (
    ClassState,
    class_posterior,
    final_state,
    make_class_fit,
)
from annotruth.models.robust_gpm.class_steps import CLASS_TOL, AnnotatorCounts, ClassSteps
from annotruth.models.robust_gpm.opinion_results import (
    OpinionState,
    final_model,
    make_opinion_fit,
)
from annotruth.models.robust_gpm.opinion_steps import opinion_steps
from annotruth.models.robust_gpm.opinions import OpinionShapes

if TYPE_CHECKING:
    from annotruth.models.robust_gpm.model import RobustGPM

_MIN_WEIGHT = 1e-300  # so that weights have logarithms


def fit_opinion_parts(model: RobustGPM, fit: Fit, parts: Parts) -> PartedFit:
    """Fit parts of annotators' labels, where opinions differ."""
    before = OpinionState.from_fit(fit)
    labels = parts.labels(fit.data)
    weights = before.parameters.strategy_weights[parts.annotator]
    with closing(get_engine(model.engine).open(labels)) as session:
        steps = opinion_steps(OpinionShapes(labels), session, model.tol)
        start = steps.start_beside(before.parameters._replace(strategy_weights=weights))
        parameters, history = run_em(steps, start, tol=model.tol, max_iter=model.max_iter)
        state = OpinionState(parameters, steps.leave_one_out(parameters), steps.repeated_label)
        parted = make_opinion_fit(
            steps,
            state,
            model=fit.model,
            settings=dict(fit.settings),
            history=history,
            verdict=fit.verdict,
        )
        state = state.to_host(session)
    assert isinstance(parted, Fit)
    weights, log_likelihood = _mixed(final_model(labels, state).posterior, parts, fit)
    merged = OpinionState(
        parameters._replace(strategy_weights=weights), log_likelihood, before.repeated_label
    )
    return _merge(fit, parted, parts, merged.to_arrays())


def fit_class_parts(model: RobustGPM, fit: Fit, parts: Parts) -> PartedFit:
    """Fit parts of annotators' labels, where every item has one right label."""
    before = ClassState.from_fit(fit)
    labels = parts.labels(fit.data)
    known, candidate = before.known_items(labels), before.choice.candidate
    confusion = before.parameters.confusion[parts.annotator]
    with closing(get_engine(model.engine).open(known.labels)) as session:
        items = candidate.items(labels, known.table)
        steps = ClassSteps(items, session, candidate.concentration)
        parameters, history = run_em(
            steps,
            before.parameters._replace(confusion=confusion),
            tol=CLASS_TOL * model.tol,
            max_iter=model.max_iter,
        )
        state = final_state(steps, parameters, before.choice, before.verdict)
        state = replace(state, calibration=before.calibration)
        parted = make_class_fit(
            steps, state, model=fit.model, settings=dict(fit.settings), history=history
        )
        state = state.to_host(session)
    assert isinstance(parted, Fit)
    _, log_likelihood = _mixed(class_posterior(labels, state), parts, fit)
    counts = AnnotatorCounts(
        parts.total(state.counts.counts), parts.mean(state.counts.pseudo_counts)
    )
    merged = replace(
        state,
        parameters=state.parameters._replace(confusion=counts.confusion()),
        counts=counts,
        loo_log_likelihood=log_likelihood,
        repeated_label=before.repeated_label,
    )
    return _merge(fit, parted, parts, merged.to_arrays())


def _mixed(posterior: AnnotatorPosterior, parts: Parts, fit: Fit) -> tuple[Floats, Floats]:
    """Return the posterior of strategies at a random label of each annotator, and a log-likelihood.

    With this log-likelihood in the place of the labels', the fitted model has this posterior.
    """
    weights = parts.mean(posterior.weights)
    prior = posterior.strategies.annotator_log_prior(posterior.log_prior, fit.data.annotator_prior)
    return weights, np.log(np.maximum(weights, _MIN_WEIGHT)) - prior


def _merge(
    fit: Fit, parted: Fit, parts: Parts, parameters: Mapping[str, NDArray[Any]]
) -> PartedFit:
    """Return the fit of parts with one entry per annotator.

    Reliability, ``p_spammer`` and ``bias`` are means over an annotator's parts, weighted by labels;
    ``evidence`` is their sum, and the behavior is that of the last part. The interval takes parts as
    independent.
    """
    reliability, low, high = parted.reliability, parted.low, parted.high
    assert reliability is not None
    assert low is not None
    assert high is not None
    assert parted.behavior is not None
    mean = parts.mean(reliability)
    below, above = (
        np.sqrt(parts.total((parts.shares() * (reliability - end)) ** 2)) for end in (low, high)
    )
    columns = {name: np.asarray(column) for name, column in parted.annotator_columns.items()}
    last = np.zeros(len(mean), dtype=np.int64)
    last[parts.annotator] = np.arange(len(parts.annotator))
    merged = replace(
        parted,
        data=fit.data,
        chosen=fit.chosen,
        further=fit.further,
        parameters=parameters,
        reliability=mean,
        low=np.maximum(mean - below, 0.0),
        high=np.minimum(mean + above, 1.0),
        behavior=[parted.behavior[part] for part in last.tolist()],
        annotator_columns={
            name: column[last]
            if name == FLAGGED
            else parts.total(column)
            if name == "evidence"
            else parts.mean(column)
            for name, column in columns.items()
        },
    )
    return PartedFit(merged, reliability, low, high)
