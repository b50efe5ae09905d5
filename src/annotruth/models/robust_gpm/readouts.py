"""What analyses read out of a fit of RobustGPM: latent states, evidence of labels, fits of parts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, Input, Pass, get_engine
from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.models.base import EMEstimator
from annotruth.models.base_fit import FLAGGED
from annotruth.models.em import one_blas_thread, run_em
from annotruth.models.latent_classes import POSTERIOR_INPUTS, LabelEvidence, PartedFit, Parts
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.class_model import RightLabelModel
from annotruth.models.robust_gpm.class_results import (
    ClassState,
    class_posterior,
    final_state,
    item_posterior,
)
from annotruth.models.robust_gpm.class_steps import AnnotatorCounts, ClassSteps, is_class_fit
from annotruth.models.robust_gpm.opinion_model import (
    OpinionModel,
    OpinionState,
    final_model,
    shape_posterior,
)
from annotruth.models.robust_gpm.opinions import OpinionShapes, OpinionSteps
from annotruth.models.robust_gpm.strategies import LabelTable, ResponseStrategies
from annotruth.observations import Labels

# By how much the likelihood of an item's labels counts less, times annotators per label. Chosen on
# simulated crowds, so that independent annotators are found to be independent.
_CLASS_FACTOR, _OPINION_FACTOR = 1.0, 7.5

# A label that an annotator does not repeat has no probability in that behavior.
_MIN_IRREGULAR = 1e-3

_MIN_WEIGHT = 1e-300  # so that weights have logarithms


class LatentStates(NamedTuple):
    """Posteriors of items over latent states, and how annotators respond to these."""

    posterior: Floats  # items x states, with the likelihood of the items' labels tempered
    right: Floats  # the distribution of the right or leading label, states x categories
    confusion: Floats  # P(label | state) of the fit's annotators, annotators x categories x states
    strategies: ResponseStrategies
    log_prior: Floats  # of the strategies


def latent_states(fit: Fit, engine: Engine) -> LatentStates:
    """Return the latent states of a fit of RobustGPM."""
    labels = fit.data
    with one_blas_thread():
        if is_class_fit(fit):
            state = ClassState.from_fit(fit)
            annotators = class_posterior(labels, state)
            right = state.choice.candidate.items(labels).right_labels(state.parameters.serious)
            prior, confusion = state.parameters.prior, state.counts.confusion()
            posterior, factor = item_posterior(labels, engine, state), _CLASS_FACTOR
        else:
            final = final_model(labels, OpinionState.from_fit(fit))
            annotators, classes = final.posterior, final.classes
            right = np.eye(labels.n_categories)[classes.opinions.argmax(axis=1)]
            prior, confusion = classes.prior, classes.confusion
            posterior, factor = shape_posterior(labels, engine, classes, confusion), _OPINION_FACTOR
        tempered = _tempered(posterior, prior, labels, factor)
    return LatentStates(tempered, right, confusion, annotators.strategies, annotators.log_prior)


def _tempered(posterior: Floats, prior: Floats, labels: Labels, factor: float) -> Floats:
    """Return posteriors in which the labels' likelihood counts less.

    The confusion of annotators is estimated, which no item's posterior shows: the more annotators
    there are per label, the less is known about each.
    """
    weight = 1.0 / (1.0 + factor * labels.n_annotators / labels.n_labels)
    tempered = prior ** (1.0 - weight) * posterior**weight
    normalised: Floats = tempered / tempered.sum(axis=1, keepdims=True)
    return normalised


def label_evidence(fit: Fit, engine: Engine) -> LabelEvidence:
    """Return how probable each label is if it is serious and if it is not."""
    with one_blas_thread():
        if is_class_fit(fit):
            state = ClassState.from_fit(fit)
            known = state.known_items(fit.data)
            return _evidence(
                known.labels,
                engine,
                class_posterior(fit.data, state),
                state.repeated_label,
                serious=state.parameters.serious,  # of all annotators
                prior=state.parameters.prior,
                known_truth=known.table,
                confusion=state.parameters.confusion,
            )
        final = final_model(fit.data, OpinionState.from_fit(fit))
        shares = _shift_shares(final.posterior, len(final.items.shifts))
        return _evidence(
            fit.data,
            engine,
            final.posterior,
            final.state.repeated_label,
            serious=np.tensordot(shares, final.items.serious, axes=1),
            **final.classes.tables(),
        )


def _evidence(
    labels: Labels,
    engine: Engine,
    posterior: AnnotatorPosterior,
    repeated_label: Codes,
    *,
    serious: Floats,
    **tables: Floats,
) -> LabelEvidence:
    """Pass over the labels twice: for the items' posteriors, and without each label.

    ``serious`` is P(label | state) of serious labels, of all annotators or of each; ``tables`` are the
    inputs of the items' posteriors.
    """
    irregular = _irregular(posterior, repeated_label)
    with closing(engine.open(labels)) as session:
        session.allocate("posterior", per="items", shape=tables["prior"].shape)
        session.run_pass(
            Pass("robust_gpm.posterior", state=("posterior",), inputs=POSTERIOR_INPUTS), **tables
        )
        for name in ("if_serious", "if_irregular"):
            session.allocate(name, per="labels")
        session.run_pass(
            Pass(
                "over_time.label_evidence",
                state=("posterior", "if_serious", "if_irregular"),
                inputs=(Input("ratios", annotator_axis=0),),
            ),
            ratios=_ratios(tables["confusion"], serious, irregular),
        )
        levels, is_level = posterior.strategies.by_reliability()
        return LabelEvidence(
            session.collect("if_serious"),
            session.collect("if_irregular"),
            levels,
            posterior.weights @ is_level,
        )


def _ratios(confusion: Floats, serious: Floats, irregular: Floats) -> Singles:
    """Return 1 and both probabilities of labels over their confusion, side by side."""
    n_annotators, n_categories, n_classes = confusion.shape
    ratios = np.empty((n_annotators, n_categories, 3, n_classes), dtype=np.float32)
    for place, table in enumerate((np.ones(1), serious, irregular)):
        ratios[:, :, place] = table / confusion
    return ratios


def _shift_shares(posterior: AnnotatorPosterior, n_shifts: int) -> Floats:
    """Return the share of each shift in the serious labels of each annotator."""
    strategies = posterior.strategies
    is_shift = np.eye(n_shifts)[strategies.shift] * strategies.reliability[:, np.newaxis]
    weights = posterior.weights @ is_shift
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def _irregular(posterior: AnnotatorPosterior, repeated_label: Codes) -> Floats:
    """Return P(label | class) of annotators' irregular labels, annotators x categories x classes.

    Behaviors are mixed as in the irregular labels that the annotator's strategies expect.
    """
    strategies = posterior.strategies
    share = 1.0 - strategies.reliability
    weights = posterior.weights * share
    weights /= weights.sum(axis=1, keepdims=True)
    table = LabelTable(
        *(
            probability * (1.0 - p_serious) / share[:, np.newaxis, np.newaxis]
            for probability, p_serious in zip(
                strategies.probability, strategies.p_serious, strict=True
            )
        )
    )
    return np.maximum(table.average(weights, repeated_label), _MIN_IRREGULAR)


def fit_parts(estimator: EMEstimator, fit: Fit, parts: Parts) -> PartedFit:
    """Fit parts of annotators' labels as annotators, starting from the fitted parameters.

    What held-out labels chose stays as it is.
    """
    with one_blas_thread():
        return (_fit_class_parts if is_class_fit(fit) else _fit_opinion_parts)(
            estimator, fit, parts
        )


def _fit_opinion_parts(estimator: EMEstimator, fit: Fit, parts: Parts) -> PartedFit:
    before = OpinionState.from_fit(fit)
    labels = parts.labels(fit.data)
    weights = before.parameters.strategy_weights[parts.annotator]
    with closing(get_engine(estimator.engine).open(labels)) as session:
        steps = OpinionSteps(OpinionShapes(labels), session)
        start = steps.start_beside(before.parameters._replace(strategy_weights=weights))
        parameters, history = run_em(steps, start, estimator.loop().scaled(plain=True))
        state = OpinionState(parameters, steps.leave_one_out(parameters), steps.repeated_label)
        parted = OpinionModel(estimator).make_fit(steps, state, history, fit.verdict)
        state = state.to_host(session)
    weights, log_likelihood = _mixed(final_model(labels, state).posterior, parts, fit)
    merged = OpinionState(
        parameters._replace(strategy_weights=weights), log_likelihood, before.repeated_label
    )
    return _merge(fit, parted, parts, merged.to_arrays())


def _fit_class_parts(estimator: EMEstimator, fit: Fit, parts: Parts) -> PartedFit:
    before, model = ClassState.from_fit(fit), RightLabelModel(estimator)
    labels = parts.labels(fit.data)
    known, candidate = before.known_items(labels), before.choice.candidate
    confusion = before.parameters.confusion[parts.annotator]
    with closing(get_engine(estimator.engine).open(known.labels)) as session:
        items = candidate.items(labels, known.table)
        steps = ClassSteps(items, session, candidate.concentration)
        start = before.parameters._replace(confusion=confusion)
        parameters, history = model.run_em(steps, start)
        state = final_state(steps, parameters, before.choice, before.verdict)
        state = replace(state, calibration=before.calibration)
        parted = model.make_fit(steps, state, history)
        state = state.to_host(session)
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
        model=fit.model,
        settings=dict(fit.settings),
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
