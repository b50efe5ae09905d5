"""RobustGPM's results for annotators: posterior, intervals, evidence and names of behaviors.

All of them follow from each annotator's leave-one-out log-likelihood in every response strategy, in which
the state of an item is inferred without the annotator's own label.

- The *reliability* is the mean of the posterior over strategies (`AnnotatorPosterior`).
- Its *interval* has 95% of another posterior. The likelihood of this one is tempered
  (`AnnotatorPosterior.tempering`) and interpolated between the levels of reliability; its prior is the
  shares of the other annotators on each level (`level_shares`). The interval is central, or has 5% below
  it if it ends at 1 (`reliability_interval`).
- The *bias*, where opinions differ, is that of the posterior with the tempered likelihood.
- Accuracies, behaviors and flags are those of `annotruth.models.people`.

Where opinions differ, annotators whose labels depend on one another, as copies do, are left out together
in intervals (`annotruth.models.evidence.dependent_annotators`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats, map_slices
from annotruth.models.base_fit import (
    ACCURACY_COLUMNS,
    FLAGGED,
    NO_VERDICT,
    SPAMMER_BELOW,
    Column,
)
from annotruth.models.latent_classes import normalise_log_weights
from annotruth.models.robust_gpm.opinions import OpinionShapes
from annotruth.models.robust_gpm.states import ItemModel
from annotruth.models.robust_gpm.strategies import (
    ALWAYS_SERIOUS,
    NO_LABEL,
    ResponseStrategies,
)
from annotruth.observations import LabelSummary

if TYPE_CHECKING:
    from annotruth.models.people import People

_INFLATION, _INFLATION_BY_INVERSION = 1.17, 0.4  # of the variance of reliabilities
_TAIL = 0.025  # of an interval, at either end
_ALWAYS_FROM = 0.98  # lower end of the reliabilities that count as always serious
_CELLS_PER_LEVEL = 10  # of intervals
_SHARE_STEPS = 5  # of EM on the shares of the levels; more follow chance where labels are few
_ANNOTATORS_AT_ONCE = 2_000  # temporary arrays stay in the cache
_ANNOTATORS_ON_CARD = 1 << 18  # and use all threads of a card

_LEAST_WEIGHT = 1e-12
_SURE = 0.9  # the probability of a lean
_LEAN = 0.25  # shift beyond the crowd's from which a serious annotator is generous or harsh


@dataclass(frozen=True, eq=False)
class AnnotatorPosterior:
    """The posterior over response strategies, from leave-one-out log-likelihoods.

    With a session, the leave-one-out log-likelihood and what follows are where its engine computes.
    """

    labels: LabelSummary  # the summary of the labels
    strategies: ResponseStrategies  # the strategies
    log_prior: Floats  # the log-prior of the strategies of an unknown annotator
    loo_log_likelihood: Floats  # each annotator's leave-one-out log-likelihood in every strategy
    session: Session | None = None

    @cached_property
    def own_log_prior(self) -> Floats:
        """The log-prior of each annotator's strategies, or one row for all of them."""
        known = self.labels.annotator_prior
        prior = self.strategies.annotator_log_prior(self.log_prior, known)
        if self.session is not None and known is not None:
            prior = self.session.to_engine(prior)
        return np.asarray(prior, like=self.loo_log_likelihood)

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return an array of annotators in memory."""
        return np.asarray(values) if self.session is None else self.session.to_host(values)

    @cached_property
    def weights(self) -> Floats:
        """The posterior of each annotator's strategies, annotators x strategies."""
        return normalise_log_weights(self.loo_log_likelihood + self.own_log_prior)

    @cached_property
    def tempered_weights(self) -> Floats:
        """The posterior of each annotator's strategies with the likelihood tempered."""
        return normalise_log_weights(self.tempering * self.loo_log_likelihood + self.own_log_prior)

    @cached_property
    def reliability(self) -> Floats:
        """The posterior mean of each annotator's reliability."""
        return self.mean(self.strategies.reliability)

    @cached_property
    def inversion_variance(self) -> float:
        """The posterior variance of annotators' shares of inverted labels, averaged over labels."""
        inverted = self.strategies.inverted_share
        square, mean = self.mean(np.stack([inverted**2, inverted], axis=1)).T
        return self.label_mean(square - mean**2)

    @property
    def tempering(self) -> float:
        r"""The exponent of labels' likelihood in intervals and evidence of annotators.

        Posteriors of annotators and of items are computed as if they were independent, which makes
        them too narrow, most of all where it is uncertain who inverts the scale: the errors of all
        labels of an annotator are then correlated. And annotators are compared with items that they
        are one of S to describe. So variances are multiplied by

        .. math:: \frac{S}{S - 1} \left(1.17 + 0.4 \, \bar n \,
            \overline{\mathrm{var}_{q_s}(i)}\right),

        with :math:`\bar n` labels per annotator, and :math:`i_g` the share of inverted labels in
        strategy g. The figures were chosen on simulated crowds.
        """
        n_annotators = self.labels.n_annotators
        per_annotator = self.labels.n_labels / n_annotators
        factor = _INFLATION + _INFLATION_BY_INVERSION * per_annotator * self.inversion_variance
        return (1.0 - 1.0 / n_annotators) / factor

    def mean(self, values: Floats, *, tempered: bool = False) -> Floats:
        """Return the posterior mean of one value, or one row of them, per strategy.

        One row per annotator, in memory.
        """
        weights = self.tempered_weights if tempered else self.weights
        return self.to_host(weights @ np.asarray(values, like=weights))

    def label_mean(self, values: Floats) -> float:
        """Return the mean over labels of one value per annotator."""
        n_labels = self.labels.weighted(self.labels.labels_per_annotator)
        return float(n_labels @ values / n_labels.sum())


def annotator_results(
    items: ItemModel,
    posterior: AnnotatorPosterior,
    prior: Floats,
    repeated_label: Codes,
    *,
    people: People | None,
    for_intervals: AnnotatorPosterior | None = None,
) -> dict[str, Any]:
    """Return the fields of `annotruth.models.base_fit.Fit` that describe annotators.

    ``people`` are what the labels say about the annotators; None where they agree no better than chance:
    then nobody is assessed, and intervals have the prior of the strategies instead of `level_shares`.
    ``for_intervals`` is the posterior that intervals are computed from, if it is another one.
    """
    reliability = posterior.reliability
    shown = for_intervals or posterior
    _, is_level = posterior.strategies.by_reliability()
    after = shown.tempered_weights @ np.asarray(is_level, like=shown.tempered_weights)
    before = normalise_log_weights(shown.log_prior[np.newaxis]) @ is_level
    level_prior = np.asarray(before, like=after)
    likelihood = after / level_prior
    shares = level_prior if people is None else level_shares(items.labels, likelihood)
    intervals = reliability_interval(likelihood, np.broadcast_to(shares, likelihood.shape))
    low, high = map(posterior.to_host, intervals)
    low, high = np.minimum(low, reliability), np.maximum(high, reliability)
    bias = annotator_bias(items, posterior, prior)
    if people is None:
        return {
            "reliability": reliability,
            "low": low,
            "high": high,
            "behavior": [NO_VERDICT] * len(reliability),
            "annotator_columns": {FLAGGED: np.zeros(len(reliability), dtype=np.bool_), **bias},
        }
    reliability, low, high = people.reliability(reliability, low, high)
    accuracy = dict(zip(ACCURACY_COLUMNS, people.accuracy, strict=False))
    return {
        "reliability": reliability,
        "low": low,
        "high": high,
        "behavior": people.behaviors(
            items.labels, _lean(items, posterior), _irregular(items, posterior, repeated_label)
        ),
        "annotator_columns": {
            **accuracy,
            FLAGGED: people.verdicts.flagged,
            "p_spammer": people.posterior.p_careless,
            "evidence": people.posterior.evidence,
            "agreement": people.verdicts.agreement,
            **bias,
        },
    }


def serious_weights(posterior: AnnotatorPosterior, people: People | None) -> Floats:
    """Return the posterior of strategies by which labels are serious, where the engine computes.

    Annotators whom their own tendencies explain, and whom strategies without any would call careless, are
    always serious; those of whom the opposite holds are careless.
    """
    weights = posterior.weights
    if people is None:
        return weights
    differ = people.differ(posterior.reliability)
    careless = people.posterior.p_careless > SPAMMER_BELOW
    allowed = np.where(
        careless[:, np.newaxis],
        posterior.strategies.reliability < SPAMMER_BELOW,
        posterior.strategies.always_serious,
    )
    allowed |= ~differ[:, np.newaxis]
    chosen = np.asarray(allowed, like=weights)
    kept: Floats = (weights + _LEAST_WEIGHT) * chosen
    kept /= kept.sum(axis=1, keepdims=True)
    return kept


def level_shares(labels: LabelSummary, likelihood: Floats) -> Floats:
    """Return how many of the other annotators are on each level of reliability, as shares.

    They are estimated by a few steps of EM, which starts at levels that are alike and has one
    pseudo-count per level. Takes the likelihood of each annotator's levels, annotators x levels, and
    returns the same shape: everyone has a row, which their own labels are left out of.
    """
    shares: Floats = np.ones_like(likelihood)
    for _ in range(_SHARE_STEPS):
        posterior = likelihood * shares
        posterior /= posterior.sum(axis=1, keepdims=True)
        posterior = labels.weighted(posterior)
        shares = posterior.sum(axis=0) - posterior + 1.0
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def reliability_interval(likelihood: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return 95% intervals of reliabilities, given likelihood and prior shares of the levels.

    Both have one row per annotator, in memory or where an engine computes. The log-likelihood is
    interpolated between the levels, and the prior is uniform within a level. Intervals are central,
    except that nothing is above those that end at 1, and 5% below.
    """
    finer = _FinerLevels(likelihood)

    def compute(annotators: slice) -> tuple[Floats, Floats]:
        cumulative = finer.cumulative(likelihood[annotators], shares[annotators])
        low, high = _central_interval(cumulative)
        return np.where(high < 1.0, low, _level_quantile(cumulative, 2.0 * _TAIL)), high

    in_memory = isinstance(likelihood, np.ndarray)
    at_once = _ANNOTATORS_AT_ONCE if in_memory else _ANNOTATORS_ON_CARD
    ends = map_slices(compute, len(likelihood), at_once)
    low, high = (np.concatenate(one) for one in zip(*ends, strict=True))
    return low, high


class _FinerLevels:
    """Cells of a level of reliability, and after them the always serious.

    Between two neighbouring levels the log-likelihood is a parabola through both, with the smaller
    curvature of those through three neighbours, so that it does not overshoot.

    Takes an array of likelihoods that is where they are computed.
    """

    def __init__(self, like: Floats) -> None:
        n_levels = like.shape[1] - 1
        n_cells = _CELLS_PER_LEVEL * n_levels
        x = np.append((np.arange(n_levels) + 0.5) / n_levels, ALWAYS_SERIOUS)
        places = (np.arange(n_cells) + 0.5) / n_cells
        i = np.clip(np.searchsorted(x, places) - 1, 0, n_levels - 1)
        cells = np.arange(n_cells)
        share = (places - x[i]) / (x[i + 1] - x[i])
        # The log-posterior of the cells is linear in log-likelihoods, curvatures and log-priors.
        of_values, of_curvatures, of_priors = (
            np.zeros((rows, n_cells + 1)) for rows in (n_levels + 1, n_levels, n_levels + 1)
        )
        of_values[i, cells] = 1.0 - share
        of_values[i + 1, cells] = share
        of_curvatures[i, cells] = (places - x[i]) * (places - x[i + 1])
        of_priors[cells // _CELLS_PER_LEVEL, cells] = 1.0
        of_values[-1, -1] = of_priors[-1, -1] = 1.0
        self._of_values, self._of_curvatures, self._of_priors, self._distance, self._distance_2 = (
            np.asarray(each, like=like)
            for each in (of_values, of_curvatures, of_priors, np.diff(x), x[2:] - x[:-2])
        )

    def cumulative(self, likelihood: Floats, shares: Floats) -> Floats:
        """Return the cumulative posterior of the cells in each row."""
        values = np.log(likelihood / likelihood.max(axis=1, keepdims=True) + 1e-300)
        priors = np.log(shares + 1e-300)
        priors[:, :-1] -= np.log(_CELLS_PER_LEVEL)
        logs = values @ self._of_values
        logs += self._curvatures(values) @ self._of_curvatures
        logs += priors @ self._of_priors
        logs -= logs.max(axis=1, keepdims=True)
        cumulative: Floats = np.cumsum(np.exp(logs, out=logs), axis=1, out=logs)
        cumulative /= cumulative[:, -1:].copy()
        return cumulative

    def _curvatures(self, values: Floats) -> Floats:
        """Return the curvature between neighbouring levels, given log-likelihoods in each row."""
        slope = np.diff(values, axis=1) / self._distance
        curvature = np.minimum(np.diff(slope, axis=1) / self._distance_2, 0.0)
        with_next = np.column_stack([curvature, curvature[:, -1]])
        smaller: Floats = np.maximum(with_next, np.column_stack([curvature[:, 0], curvature]))
        return smaller


def level_interval(by_level: Floats) -> tuple[Floats, Floats]:
    """Return the central 95% of reliabilities, given the posterior of the levels in each row.

    The reliability is taken as uniform within a level.
    """
    return _central_interval(np.cumsum(by_level, axis=1))


def _central_interval(cumulative: Floats) -> tuple[Floats, Floats]:
    """Return the central 95% of reliabilities, given the cumulative posterior of the levels."""
    low, high = (_level_quantile(cumulative, quantile) for quantile in (_TAIL, 1.0 - _TAIL))
    return low, np.where(high > _ALWAYS_FROM, 1.0, high)


def _level_quantile(cumulative: Floats, quantile: float) -> Floats:
    """Return a quantile of the reliability in each row; the last level is the always serious."""
    n_levels = cumulative.shape[1]
    tenths = np.arange(n_levels) / (n_levels - 1)
    starts = np.append(tenths[:-1], _ALWAYS_FROM)
    widths = np.asarray(np.append(tenths[1:], 1.0) - starts, like=cumulative)
    starts = np.asarray(starts, like=cumulative)
    rows = np.arange(len(cumulative), like=cumulative)
    level = np.minimum((cumulative < quantile).sum(axis=1), n_levels - 1)
    end = cumulative[rows, level]
    begin = np.where(level > 0, cumulative[rows, level - 1], 0.0)
    within = 1.0 - (end - quantile) / np.maximum(end - begin, 1e-300)
    place: Floats = starts[level] + np.clip(within, 0.0, 1.0) * widths[level]
    return place


def annotator_bias(
    items: ItemModel, posterior: AnnotatorPosterior, prior: Floats
) -> dict[str, Column]:
    """Return the column ``bias``, where opinions differ: how far serious labels are above the crowd's."""
    if not isinstance(items, OpinionShapes):
        return {}
    moves = items.score_shifts(prior)
    crowd = items.crowd_shifts(posterior, tempered=True) @ moves
    shift = posterior.strategies.shift
    return {"bias": posterior.mean(moves[shift], tempered=True) - crowd}


def _irregular(
    items: ItemModel, posterior: AnnotatorPosterior, repeated_label: Codes
) -> NDArray[np.object_]:
    """Return the name of each annotator's irregular behavior; empty if none is likelier than not."""
    strategies = posterior.strategies
    by_behavior = posterior.mean(np.eye(len(strategies.behaviors))[strategies.behavior])
    is_clear, likeliest = by_behavior.max(axis=1) > 0.5, by_behavior.argmax(axis=1)
    irregular = np.full(len(by_behavior), "", dtype=object)
    labels = np.array(items.labels.scale.names, dtype=object)
    for code, behavior in enumerate(strategies.behaviors):
        name = behavior.name
        names = (f"{name} " + labels)[repeated_label] if behavior.shows_label else name
        names = np.where(repeated_label == NO_LABEL, name, names)
        irregular = np.where(is_clear & (likeliest == code), names, irregular)
    return irregular


def _lean(items: ItemModel, posterior: AnnotatorPosterior) -> NDArray[Any]:
    """Return "generous" or "harsh" for serious annotators who rate above or below the crowd."""
    if not isinstance(items, OpinionShapes):
        return np.full(len(posterior.weights), "serious", dtype=object)
    crowd = items.crowd_shifts(posterior) @ items.shifts
    beyond = items.shifts[posterior.strategies.shift] - crowd
    generous, harsh = (
        posterior.mean(is_beyond.astype(float)) > _SURE
        for is_beyond in (beyond > _LEAN, beyond < -_LEAN)
    )
    return np.where(generous, "generous", np.where(harsh, "harsh", "serious"))
