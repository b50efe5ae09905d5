"""The default model where opinions differ: `OpinionModel`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Engine, Input, Pass, Session, Sum, get_engine
from annotruth.errors import InputError, option, setting
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import EMEstimator
from annotruth.models.base_fit import Column, Verdict
from annotruth.models.distribution import Z_95, likely_sets, mixed_confusion, score_interval
from annotruth.models.em import History, ProgressCallback, run_em
from annotruth.models.evidence.dependent_annotators import (
    DependentPairs,
    dependence_results,
    find_dependent_pairs,
)
from annotruth.models.fits.make_fit import ItemResults, make_fit, summarize_items
from annotruth.models.latent_classes import POSTERIOR_INPUTS, LatentClasses, variance_inflation
from annotruth.models.people import ItemStates, assess_people
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.annotators import (
    AnnotatorPosterior,
    annotator_results,
    serious_weights,
)
from annotruth.models.robust_gpm.opinions import OpinionParameters, OpinionShapes, OpinionSteps
from annotruth.models.robust_gpm.states import weighted_confusion
from annotruth.observations import Labels, LabelSummary, Scale

_ITEM_ARRAYS = ("theta", "leading", "spread", "p_serious")


@dataclass(frozen=True)
class OpinionModel:
    r"""Items on which opinions differ: shapes of opinion, annotators with response strategies.

    An item has one of S shapes of opinion z, z with probability :math:`p_z`: a Beta distribution over the
    scale, in N equal bins, with one of 16 means and 2 concentrations; on scales of more than 8 categories
    there are also narrower ones. Generous and harsh annotators are serious: they shift the logit of the
    mean. With :math:`\theta^{(d)}_z` the shape after a shift d, labels of response strategy g have

    .. math::
        a_g(n \mid z) = \epsilon_g \theta^{(d_g)}_{z,n} + (1 - \epsilon_g) b_g(n \mid z),

    with the reliability :math:`\epsilon_g` and the irregular behavior :math:`b_g`. Shapes, shifts and
    strategies have fixed tables and priors (`annotruth.models.robust_gpm.opinions`,
    `annotruth.models.robust_gpm.strategies`). Variational EM

    .. math::
        w_{e,z} &\propto p_z \prod_{s \in l_e} \exp \sum_g q_{s,g} \log a_g(r_{e,s} \mid z), \\
        q_{s,g} &\propto \pi_g \exp \sum_{e,z} w_{e,z} \log a_g(r_{e,s} \mid z)

    learns p, each annotator's posterior q over the strategies, and the share of annotators who are always
    serious. It raises the lower bound of the log-posterior in every step, and stops when the bound per
    label changes by less than ``tol``. A known truth counts as one more serious label.

    ``distributions("opinion")`` are the means over shapes, shifted as the crowd is on average;
    ``distributions("right")`` are the probabilities that a label leads. ``score_low`` and ``score_high``
    contain the mean serious label, ``may_lead`` the categories that may be the top label, with 95%.
    Annotators are compared with one another and may copy, so errors of items are correlated: variances
    are multiplied by factors (`OpinionShapes.variance_inflation`, `DependentPairs.design_effect`).
    """

    estimator: EMEstimator  # whose options and name these fits have

    def fit(
        self,
        labels: LabelSummary,
        session: Session,
        verdict: Verdict | None,
        progress: ProgressCallback | None,
        people: Fit | None = None,
    ) -> Fit:
        """Fit labels, given whether they agree better than chance; start from a fit of some annotators."""
        if labels.classifier is not None:
            raise InputError(
                "a classifier is for items with one right label, and on this scale opinions differ: pass "
                f"{setting('truth', 'class')} or {option('scale', 'nominal')}, or leave out the classifier"
            )
        steps = OpinionSteps(OpinionShapes(labels), session)
        start = steps.start()
        if people is not None:
            start = steps.start_beside(OpinionState.from_fit(people).parameters)
        state, history = self.run_em(steps, start, progress)
        return self.make_fit(steps, state, history, verdict)

    def predict_proba(self, fit: Fit, item: Codes, annotator: Codes) -> Floats:
        """Return the probability of each category, one row per pair of item and annotator.

        These are annotators' confusion matrices, averaged over the posterior of the item's shape.
        """
        classes = final_model(fit.data, OpinionState.from_fit(fit)).classes
        labels, place, annotators = fit.data.subset_items(item)
        engine = get_engine(self.estimator.engine)
        posterior = shape_posterior(labels, engine, classes, classes.confusion[annotators])
        return mixed_confusion(posterior[place], classes.confusion.transpose(2, 0, 1), annotator)

    def run_em(
        self,
        steps: OpinionSteps,
        start: OpinionParameters,
        progress: ProgressCallback | None = None,
    ) -> tuple[OpinionState, History]:
        """Run EM and return the final state, where the steps' engine computes."""
        parameters, history = run_em(steps, start, self.estimator.loop(), progress=progress)
        loo_log_likelihood = steps.leave_one_out(parameters)
        return OpinionState(parameters, loo_log_likelihood, steps.repeated_label), history

    def make_fit(
        self, steps: OpinionSteps, state: OpinionState, history: History, verdict: Verdict | None
    ) -> Fit:
        """Return the fit of a final state, which is where the steps' engine computes."""
        final = final_model(steps.labels, state, steps.session)
        people = None
        if verdict != "chance":
            states = opinion_states(final, steps.session)
            people = assess_people(steps.session, steps.labels, states, final.posterior.reliability)
        _summarize_items(steps, final, serious_weights(final.posterior, people))
        classes = final.classes
        pairs = find_dependent_pairs(
            steps.session,
            steps.labels,
            prior=classes.prior,
            known_truth=classes.known_truth,
            confusion=classes.confusion,
        )
        uncertainty, for_intervals = final.uncertainty, final.posterior
        if pairs is not None and len(pairs.annotator):
            uncertainty = uncertainty.inflated(pairs.design_effect)
            together = _leave_out_together(steps, state.parameters, state.loo_log_likelihood, pairs)
            for_intervals = _annotator_posterior(
                final.items, replace(state, loo_log_likelihood=together), steps.session
            )
        return make_fit(
            steps.labels,
            steps.session,
            _ITEM_ARRAYS,
            partial(item_results, uncertainty),
            model=self.estimator.name,
            settings=self.estimator.settings(),
            history=history,
            parameters=state.to_host(steps.session).to_arrays(),
            readout="opinion",
            verdict="camps" if people is not None and people.verdicts.undecided else verdict,
            further=dependence_results(pairs),
            **annotator_results(
                final.items,
                final.posterior,
                classes.prior,
                state.repeated_label,
                people=people,
                for_intervals=for_intervals,
            ),
        )


def _leave_out_together(
    steps: OpinionSteps,
    parameters: OpinionParameters,
    loo_log_likelihood: Floats,
    pairs: DependentPairs,
) -> Floats:
    """Return leave-one-out log-likelihoods in which annotators who depend on one another are left out.

    For each group of independent annotators, all those that any of them depends on are left out.
    """
    session, confusion = steps.session, steps.confusion(parameters)
    depends = pairs.depends()
    for group in pairs.independent_groups():
        others = session.to_engine(np.any(depends[group], axis=0))[:, np.newaxis, np.newaxis]
        without = steps.left_out(
            steps.items.strategies,
            prior=parameters.prior,
            confusion=np.where(others, 1.0, confusion),
        )
        in_group = session.to_engine(group)[:, np.newaxis]
        loo_log_likelihood = np.where(in_group, without, loo_log_likelihood)
    return loo_log_likelihood


@dataclass(frozen=True, eq=False)
class OpinionState:
    """Where EM ended: what results and predictions are computed from."""

    parameters: OpinionParameters
    loo_log_likelihood: Floats  # leave-one-out, annotators x strategies
    repeated_label: Codes  # the label that each annotator repeats, if any

    def to_host(self, session: Session) -> OpinionState:
        """Return the state in memory, given one whose arrays are where an engine computes."""
        weights = session.to_host(self.parameters.strategy_weights)
        return OpinionState(
            self.parameters._replace(strategy_weights=weights),
            session.to_host(self.loo_log_likelihood),
            self.repeated_label,
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it as arrays, by the names that saved fits have."""
        return {
            "weights": self.parameters.strategy_weights,
            "prior": self.parameters.prior,
            "always": np.array([self.parameters.always_share]),
            "support": self.loo_log_likelihood,
            "repeated": self.repeated_label,
        }

    @classmethod
    def from_fit(cls, fit: Fit) -> OpinionState:
        """Return the state that a fit holds; raise if it has other shapes than expected."""
        n_annotators, n = fit.data.n_annotators, fit.data.n_categories
        items = OpinionShapes(fit.data)
        n_strategies = items.strategies.n_strategies
        return cls(
            OpinionParameters(
                fit.parameter("weights", n_annotators, n_strategies),
                fit.parameter("prior", items.n_classes),
                float(fit.parameter("always", 1)[0]),
            ),
            fit.parameter("support", n_annotators, n_strategies),
            np.clip(fit.parameter("repeated", n_annotators), 0, n - 1),
        )


class ItemUncertainty(NamedTuple):
    """What intervals of items need beyond their posteriors."""

    variance_inflation: float  # the factor by which variances of scores are multiplied
    share_inflation: float  # the same for variances of labels' shares
    score_variance: float  # within a class

    def inflated(self, factor: float) -> ItemUncertainty:
        """Return the same with variances multiplied by a factor."""
        return self._replace(
            variance_inflation=factor * self.variance_inflation,
            share_inflation=factor * self.share_inflation,
        )


@dataclass(frozen=True, eq=False)
class FinalModel:
    """What follows from a final state without a pass over the labels."""

    items: OpinionShapes
    state: OpinionState
    posterior: AnnotatorPosterior
    classes: LatentClasses  # with annotators' confusion by their strategies
    uncertainty: ItemUncertainty


def final_model(
    labels: LabelSummary, state: OpinionState, session: Session | None = None
) -> FinalModel:
    """Return what follows from a final state; with a session, it is where the engine computes."""
    items = OpinionShapes(labels)
    posterior = _annotator_posterior(items, state, session)
    repeated_label = state.repeated_label
    if session is not None:
        repeated_label = session.to_engine(repeated_label)
    inflation = items.variance_inflation(posterior)
    label_weight = 1.0 / variance_inflation(labels)
    classes = LatentClasses(
        prior=state.parameters.prior,
        known_truth=items.known_truth,
        confusion=items.strategies.probability.average(posterior.weights, repeated_label),
        opinions=items.opinions(posterior),
        one_truth=False,
        label_weight=label_weight,
        score_variance=items.score_variance(),
        # A label weight below 1 inflates variances as well.
        score_inflation=inflation * label_weight,
    )
    uncertainty = ItemUncertainty(
        inflation, items.share_inflation(posterior), classes.score_variance
    )
    return FinalModel(items, state, posterior, classes, uncertainty)


def _annotator_posterior(
    items: OpinionShapes, state: OpinionState, session: Session | None
) -> AnnotatorPosterior:
    """Return the posterior of annotators' strategies, given a final state."""
    strategies = items.strategies
    log_prior = strategies.log_prior(state.parameters.always_share)
    return AnnotatorPosterior(
        items.labels, strategies, log_prior, state.loo_log_likelihood, session
    )


def shape_posterior(
    labels: Labels, engine: Engine, classes: LatentClasses, confusion: Floats
) -> Floats:
    """Return each item's posterior over the shapes, given the confusion of the labels' annotators."""
    with closing(engine.open(labels)) as session:
        session.allocate("posterior", per="items", shape=classes.prior.shape)
        session.run_pass(
            Pass("robust_gpm.posterior", state=("posterior",), inputs=POSTERIOR_INPUTS),
            **{**classes.tables(), "confusion": weighted_confusion(labels, confusion)},
        )
        return session.collect("posterior")


def opinion_states(final: FinalModel, session: Session | None) -> ItemStates:
    """Return what a final model, which is where the engine computes, says about items."""
    classes = final.classes
    confusion = classes.confusion if session is None else session.to_host(classes.confusion)
    total = np.ones((len(confusion), 1, confusion.shape[2]))
    pseudo_counts = np.concatenate([confusion, total], axis=1)
    return ItemStates(
        classes.prior,
        classes.known_truth,
        np.zeros_like(pseudo_counts),
        pseudo_counts,
        0.0,
        classes.opinions.T,
        classes.opinions,
        None,
    )


def _summarize_items(steps: OpinionSteps, final: FinalModel, weights: Floats) -> None:
    """Compute the items' results in the session: the arrays of `_ITEM_ARRAYS`.

    ``weights`` of annotators' strategies say which labels are serious.
    """
    session, scale = steps.session, steps.labels.scale
    n_categories = len(scale)
    for name, width in (("theta", n_categories), ("leading", n_categories), ("spread", 3)):
        session.allocate(name, per="items", shape=(width,))
    session.allocate("p_serious", per="labels")
    classes, posterior = final.classes, final.posterior
    repeated_label = session.to_engine(final.state.repeated_label)
    serious = posterior.strategies.p_serious.average(weights, repeated_label)
    values = scale.values if scale.is_ordinal else np.zeros(n_categories)
    summarize = Pass(
        "robust_gpm.summarize",
        state=_ITEM_ARRAYS,
        inputs=(
            *POSTERIOR_INPUTS,
            *(Input("opinions"), Input("modes"), Input("scores")),
            Input("serious", annotator_axis=0),
        ),
        sums=(Sum("log_likelihood", (1,)),),
    )
    session.run_pass(
        summarize,
        **{**classes.tables(), "confusion": weighted_confusion(steps.labels, classes.confusion)},
        opinions=classes.opinions,
        modes=classes.opinions.argmax(axis=1),
        scores=classes.opinions @ values,
        serious=serious,
    )


def item_results(
    uncertainty: ItemUncertainty, labels: Labels, arrays: Mapping[str, NDArray[Any]]
) -> ItemResults:
    """Return the distributions and columns of items, from the arrays of `_ITEM_ARRAYS`."""
    theta, leading, spread, p_serious = arrays.values()

    def columns(items: slice, shares: Floats, leads: Floats) -> dict[str, Column]:
        return _item_columns(
            labels.scale, uncertainty, shares, leads, spread[items], labels.known[items]
        )

    return summarize_items(theta, leading, p_serious, columns)


def _item_columns(
    scale: Scale,
    uncertainty: ItemUncertainty,
    theta: Floats,
    leading: Floats,
    spread: Floats,
    known: NDArray[np.int32],
) -> dict[str, Column]:
    """Return the model's own columns of the items' table, for some items.

    ``spread`` has three columns: mean and variance of the score, and the variance of the
    probability of the top label.
    """
    mode = theta.argmax(axis=1)
    columns: dict[str, Column] = {}
    if scale.is_ordinal:
        variance = uncertainty.variance_inflation * (spread[:, 1] + uncertainty.score_variance)
        score = np.where(known < 0, spread[:, 0], scale.values[known])
        columns |= score_interval(scale, score, variance, known)
    columns["p_leads"] = np.minimum(leading[np.arange(len(mode)), mode], 1.0)
    columns["may_lead"] = likely_sets(leading, scale.names)
    confidence = theta[np.arange(len(mode)), mode]
    margin = Z_95 * np.sqrt(uncertainty.share_inflation * spread[:, 2])
    margin = np.where(known < 0, margin, 0.0)
    columns["confidence_low"] = np.maximum(confidence - margin, 0.0)
    columns["confidence_high"] = np.minimum(confidence + margin, 1.0)
    return columns
