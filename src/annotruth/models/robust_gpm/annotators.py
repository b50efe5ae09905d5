"""RobustGPM's results for annotators: posterior, intervals, evidence and names of behaviors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, rel_entr

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import SPAMMER_BELOW, TOO_FEW, Column
from annotruth.models.robust_gpm.opinions import ItemModel, OpinionShapes
from annotruth.models.robust_gpm.strategies import (
    NO_LABEL,
    ResponseStrategies,
    normalise_log_weights,
)

_INTERVAL = (0.025, 0.975)  # quantiles
_ALWAYS_FROM = 0.98  # lower end of the reliabilities that count as always serious

# A behavior is named if the labels say enough about it.
_SURE = 0.9  # the probability of being a spammer, or not, or of a lean
_BROAD_INTERVAL = 0.5  # in a narrower interval the probability need not be as high
_MIN_EVIDENCE = 1.0  # log10 of the odds: ten to one
_MIN_INFORMATION = 0.5  # nats that labels give about the reliability
_LEAN = 0.25  # shift beyond the crowd's from which a serious annotator is generous or harsh


@dataclass(frozen=True, eq=False)
class AnnotatorPosterior:
    """The posterior over response strategies, from leave-one-out log-likelihoods.

    Attributes
    ----------
    strategies
        The strategies.
    weights
        The posterior of each annotator's strategies, annotators x strategies.
    tempered_log_weights
        The logarithm of the same with the likelihood tempered, not normalised.
    log_prior
        The log-prior of the strategies of an unknown annotator.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.opinion_results import OpinionState, final_model
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels
    >>> fit = at.fit(labels)
    >>> posterior = final_model(labels, OpinionState.from_fit(fit)).posterior
    >>> bool((abs(posterior.reliability - fit.reliability) < 1e-9).all())
    True
    """

    strategies: ResponseStrategies
    weights: Floats
    tempered_log_weights: Floats
    log_prior: Floats

    @cached_property
    def reliability(self) -> Floats:
        """The posterior mean of each annotator's reliability."""
        mean: Floats = self.weights @ self.strategies.reliability
        return mean

    @cached_property
    def tempered_weights(self) -> Floats:
        """The posterior of each annotator's strategies with the likelihood tempered."""
        return normalise_log_weights(self.tempered_log_weights)


def annotator_posterior(
    strategies: ResponseStrategies,
    log_prior: Floats,
    annotator_prior: Floats | None,
    loo_log_likelihood: Floats,
    tempering: float = 1.0,
) -> AnnotatorPosterior:
    """Return the posterior, given its log-prior and the leave-one-out log-likelihood.

    ``tempering`` is the exponent of the labels' likelihood in intervals and evidence.
    """
    own_prior = strategies.annotator_log_prior(log_prior, annotator_prior)
    return AnnotatorPosterior(
        strategies,
        normalise_log_weights(loo_log_likelihood + own_prior),
        tempering * loo_log_likelihood + own_prior,
        log_prior,
    )


def annotator_results(
    items: ItemModel,
    posterior: AnnotatorPosterior,
    class_prior: Floats,
    repeated_label: Codes,
) -> dict[str, Any]:
    """Return the fields of `annotruth.models.base_fit.BaseFit` that describe annotators."""
    reliability = posterior.reliability
    low, high = reliability_interval(posterior.tempered_weights, posterior.strategies)
    columns = annotator_columns(items, posterior, class_prior)
    too_few = has_too_few_labels(posterior, high - low, columns)
    return {
        "reliability": reliability,
        "low": np.minimum(low, reliability),
        "high": np.maximum(high, reliability),
        "behavior": name_behaviors(items, posterior, repeated_label, too_few),
        "annotator_columns": columns,
    }


def reliability_interval(weights: Floats, strategies: ResponseStrategies) -> tuple[Floats, Floats]:
    """Return the central 95% of each annotator's reliability, taken as uniform within a level."""
    return level_interval(weights @ strategies.by_reliability()[1])


def level_interval(by_level: Floats) -> tuple[Floats, Floats]:
    """Return the central 95% of reliabilities, given the posterior of the levels in each row."""
    n_levels = by_level.shape[1]
    cumulative = np.cumsum(by_level, axis=1)
    tenths = np.arange(n_levels) / (n_levels - 1)
    starts = np.append(tenths[:-1], _ALWAYS_FROM)
    stops = np.append(tenths[1:], 1.0)
    rows = np.arange(len(by_level))
    ends = []
    for quantile in _INTERVAL:
        level = np.minimum((cumulative < quantile).sum(axis=1), n_levels - 1)
        above = cumulative[rows, level] - quantile
        within = 1.0 - above / np.maximum(by_level[rows, level], 1e-300)
        ends.append(starts[level] + np.clip(within, 0.0, 1.0) * (stops - starts)[level])
    low, high = ends
    return low, np.where(high > _ALWAYS_FROM, 1.0, high)


def annotator_columns(
    items: ItemModel, posterior: AnnotatorPosterior, class_prior: Floats
) -> dict[str, Column]:
    """Return the model's own columns of the annotators' table.

    ``p_spammer``: the probability of being serious less than half of the time. ``evidence``: the
    log10 of the factor by which labels and annotator prior raised the odds of that (2: a hundred
    times; negative: lowered). Where opinions differ, ``bias``: by how much the annotator's serious
    labels are above the crowd's.
    """
    strategies, log_weights = posterior.strategies, posterior.tempered_log_weights
    spammer = strategies.reliability < SPAMMER_BELOW
    before, after = (
        logsumexp(logs[:, spammer], axis=1) - logsumexp(logs[:, ~spammer], axis=1)
        for logs in (posterior.log_prior[np.newaxis], log_weights)
    )
    columns: dict[str, Column] = {
        "p_spammer": expit(after),
        "evidence": (after - before) / np.log(10.0),
    }
    if isinstance(items, OpinionShapes):
        weights = posterior.tempered_weights
        moves = items.score_shifts(class_prior)
        crowd = items.crowd_shifts(strategies, weights) @ moves
        columns["bias"] = weights @ moves[strategies.shift] - crowd
    return columns


def has_too_few_labels(
    posterior: AnnotatorPosterior, width: Floats, columns: Mapping[str, Column]
) -> NDArray[np.bool_]:
    """Return, per annotator, whether the labels say too little to name a behavior.

    Either it is uncertain who is a spammer and the interval is broad; or the evidence is weak and
    the labels have hardly changed the distribution of the reliability.

    Parameters
    ----------
    posterior
        The posterior of the strategies.
    width
        The widths of the reliabilities' intervals.
    columns
        The columns ``p_spammer`` and ``evidence``.
    """
    p_spammer, evidence = (np.asarray(columns[name]) for name in ("p_spammer", "evidence"))
    uncertain = (np.maximum(p_spammer, 1.0 - p_spammer) < _SURE) & (width > _BROAD_INTERVAL)
    _, is_level = posterior.strategies.by_reliability()
    before = normalise_log_weights(posterior.log_prior[np.newaxis]) @ is_level
    after = posterior.tempered_weights @ is_level
    information = rel_entr(after, before).sum(axis=1)
    weak = (np.abs(evidence) < _MIN_EVIDENCE) & (information < _MIN_INFORMATION)
    too_few: NDArray[np.bool_] = uncertain | weak
    return too_few


def name_behaviors(
    items: ItemModel,
    posterior: AnnotatorPosterior,
    repeated_label: Codes,
    too_few: NDArray[np.bool_],
) -> list[str]:
    """Return the name of each annotator's behavior; "irregular" if none is likelier than not."""
    strategies, weights = posterior.strategies, posterior.weights
    by_behavior = weights @ np.eye(len(strategies.behaviors))[strategies.behavior]
    irregular = np.full(len(weights), "irregular", dtype=object)
    labels = np.array(items.labels.scale.names, dtype=object)
    for code, behavior in enumerate(strategies.behaviors):
        name = behavior.name
        names = f"{name} " + labels[repeated_label] if behavior.shows_label else name
        names = np.where(repeated_label == NO_LABEL, name, names)
        likely = (by_behavior.max(axis=1) > 0.5) & (by_behavior.argmax(axis=1) == code)
        irregular = np.where(likely, names, irregular)
    serious = posterior.reliability >= SPAMMER_BELOW
    names = np.where(serious, _lean(items, posterior), irregular)
    listed: list[str] = np.where(too_few, TOO_FEW, names).tolist()
    return listed


def _lean(items: ItemModel, posterior: AnnotatorPosterior) -> NDArray[Any]:
    """Return "generous" or "harsh" for serious annotators who rate above or below the crowd."""
    strategies, weights = posterior.strategies, posterior.weights
    if not isinstance(items, OpinionShapes):
        return np.full(len(weights), "serious", dtype=object)
    beyond = items.shifts[strategies.shift] - items.crowd_shifts(strategies, weights) @ items.shifts
    generous = weights[:, beyond > _LEAN].sum(axis=1) > _SURE
    harsh = weights[:, beyond < -_LEAN].sum(axis=1) > _SURE
    return np.where(generous, "generous", np.where(harsh, "harsh", "serious"))
