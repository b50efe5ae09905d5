"""How probable each label is if it is serious and if it is not, in a fit of RobustGPM."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from annotruth.engines import Engine, Input, Pass
from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.labels import Labels
from annotruth.models.label_evidence import LabelEvidence
from annotruth.models.latent_classes import POSTERIOR_INPUTS
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import AnnotatorPosterior
from annotruth.models.robust_gpm.class_results import ClassState, class_posterior
from annotruth.models.robust_gpm.opinion_results import OpinionState, final_model
from annotruth.models.robust_gpm.strategies import LabelTable, ResponseStrategies

# A label that an annotator does not repeat has no probability in that behavior.
_MIN_IRREGULAR = 1e-3


def opinion_evidence(fit: Fit, engine: Engine) -> LabelEvidence:
    """Return the evidence of labels where opinions differ."""
    final = final_model(fit.data, OpinionState.from_fit(fit))
    shares = _shift_shares(final.posterior, len(final.items.shifts))
    serious = np.tensordot(shares, final.items.serious, axes=1)
    return _evidence(
        fit.data,
        engine,
        prior=final.classes.prior,
        known_truth=final.classes.known_truth,
        confusion=final.classes.confusion,
        serious=serious,
        irregular=_irregular(final.posterior, final.state.repeated_label),
        posterior=final.posterior,
    )


def class_evidence(fit: Fit, engine: Engine) -> LabelEvidence:
    """Return the evidence of labels where every item has one right label."""
    state = ClassState.from_fit(fit)
    posterior = class_posterior(fit.data, state)
    known = state.known_items(fit.data)
    return _evidence(
        known.labels,
        engine,
        prior=state.parameters.state_prior,
        known_truth=known.table,
        confusion=state.parameters.confusion,
        serious=state.parameters.serious,  # of all annotators
        irregular=_irregular(posterior, state.repeated_label),
        posterior=posterior,
    )


def _evidence(
    labels: Labels,
    engine: Engine,
    *,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    serious: Floats,
    irregular: Floats,
    posterior: AnnotatorPosterior,
) -> LabelEvidence:
    """Pass over the labels twice: for the items' posteriors, and without each label."""
    with closing(engine.open(labels)) as session:
        session.allocate("posterior", per="items", shape=prior.shape)
        session.run_pass(
            Pass("robust_gpm.posterior", state=("posterior",), inputs=POSTERIOR_INPUTS),
            prior=prior,
            known_truth=known_truth,
            likelihood=confusion,
        )
        for name in ("if_serious", "if_irregular"):
            session.allocate(name, per="labels")
        session.run_pass(
            Pass(
                "over_time.evidence.label_evidence",
                state=("posterior", "if_serious", "if_irregular"),
                inputs=(Input("ratios", annotator_axis=0),),
            ),
            ratios=_ratios(confusion, serious, irregular),
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
    weights = posterior.weights * (1.0 - strategies.reliability)
    weights /= weights.sum(axis=1, keepdims=True)
    table = _irregular_table(strategies)
    return np.maximum(table.average(weights, repeated_label), _MIN_IRREGULAR)


def _irregular_table(strategies: ResponseStrategies) -> LabelTable:
    """Return P(label | class) of irregular labels in each strategy."""
    share = (1.0 - strategies.reliability)[:, np.newaxis, np.newaxis]
    tables = (
        probability * (1.0 - p_serious) / share
        for probability, p_serious in zip(strategies.probability, strategies.p_serious, strict=True)
    )
    return LabelTable(*tables)
