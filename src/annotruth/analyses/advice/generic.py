r"""Expected gain of a label for models without latent classes, from what every fit has.

The rule is that of `annotruth.analyses.advice.latent_classes`: the expected squared Hellinger distance from
the truth, and by how much one more label lowers it. There are three cases.

- Classes (a distribution on a nominal scale): every item has one right label, and an annotator
  gives it as often as their labels match the recovered ones (with five labels at the crowd's rate
  added), else any other label alike. These are latent classes, as in the module named.
- Opinions (a distribution on an ordinal scale): an item's distribution has a Dirichlet posterior
  whose pseudo-counts are its serious labels, and one more shared by all categories. A label counts
  as many serious labels as its annotator's reliability.
- Scores (no distribution): an item's opinions are normal with a standard deviation of one step of
  the scale, around a mean that is known to within the standard error s of the score; then
  :math:`U = 1 - 1 / \sqrt{1 + s^2 / 4}`, s in steps. n labels are worth n: the next gains
  :math:`U / (n + 1)`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from annotruth.analyses.advice.annotators import far_below_median, match_rate
from annotruth.analyses.advice.items import ItemAssessment, Reasons, TopTwo
from annotruth.errors import InputError, counted
from annotruth.kernels.arrays import Floats
from annotruth.models.distribution import Z_95, Distribution
from annotruth.models.latent_classes import LatentClasses, one_coin_confusion, variance_inflation
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.frames import as_arrow

_SHRINKAGE = 5.0  # labels at the crowd's rate that are added to each annotator's
_PRIOR = 1.0  # pseudo-count of labels, shared by all categories
_MAX_NUMBERS = 2**28  # in confusion matrices: 2 GB
_MAY_LEAD = 0.05  # how likely a category must beat the top label to be named beside it


def one_coin_classes(fit: Fit) -> LatentClasses:
    """Return the categories as latent classes, by how often annotators match the fit."""
    labels, n = fit.data, fit.data.n_categories
    if (size := (labels.n_annotators + 2) * n * n) > _MAX_NUMBERS:
        raise InputError(
            f"the report and advice would need {size * 8 / 1e9:,.0f} GB for {n:,} categories by "
            f"{counted(labels.n_annotators, 'annotator')}: merge categories, or do without; tables "
            "need less"
        )
    assert fit.distribution is not None
    theta = fit.distribution
    shares = np.bincount(theta.category, theta.probability, n) + 1.0 / n
    count = labels.labels_per_annotator
    matches = match_rate(fit) * count
    crowd = (matches.sum() + 1.0) / (labels.n_labels + n)  # never 1
    accuracy = (matches + _SHRINKAGE * crowd) / (count + _SHRINKAGE)
    return LatentClasses(
        prior=shares / shares.sum(),
        known_truth=np.eye(n),
        confusion=one_coin_confusion(accuracy, n),
        opinions=np.eye(n),
        one_truth=True,
        label_weight=1.0 / variance_inflation(labels),
    )


def reliability_or_one(fit: Fit) -> Floats:
    """Return the reliability; without one 1, or the match rate relative to the median if far below."""
    if fit.reliability is not None:
        return fit.reliability
    rate = match_rate(fit)
    return np.where(far_below_median(fit), rate / max(float(np.median(rate)), 1e-9), 1.0)


class OpinionBasis:
    """Uncertainty and gain of items by Dirichlet posteriors of their distributions."""

    def __init__(self, fit: Fit) -> None:
        assert fit.distribution is not None
        self.fit = fit
        self.label_gain = reliability_or_one(fit)
        self._theta: Distribution = fit.distribution

    @cached_property
    def n_serious(self) -> Floats:
        """How many serious labels each item has."""
        fit, labels = self.fit, self.fit.data
        item = labels.item_of_label()
        weight = fit.p_serious
        if weight is None:
            weight = self.label_gain[labels.annotator]
        return np.bincount(item, weight, labels.n_items).astype(np.float64)

    @property
    def prior_count(self) -> float:
        """The pseudo-count that each category has before any label."""
        return _PRIOR / self.fit.data.n_categories

    def pseudo_counts(self) -> Floats:
        """Return the Dirichlet pseudo-counts of the entries of the fit's distribution."""
        serious = self._theta.probability * self.n_serious[self._theta.item()]
        counts: Floats = serious + self.prior_count
        return counts

    def assess(self, ask: NDArray[np.bool_]) -> ItemAssessment:
        """Return how uncertain each item is and what one label by those to ask would gain."""
        counts, theta = self.pseudo_counts(), self._theta
        # Categories without an entry have the prior alone.
        empty = self.fit.data.n_categories - np.diff(theta.ptr)
        terms, at_prior = (_terms(values) for values in (counts, np.array([self.prior_count])))
        sums, rises = (
            np.add.reduceat(entries, theta.ptr[:-1]) + empty * prior
            for entries, prior in zip(terms, at_prior, strict=True)
        )
        uncertainty, gain = self._gains(sums, rises, self.n_serious + _PRIOR, ask)
        return ItemAssessment(
            uncertainty,
            gain,
            TopTwo.of_sparse(theta),
            Reasons.of_sets(self._candidates(counts), self.fit.data.scale.names),
        )

    def gains_of_counts(self, counts: Floats, ask: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return uncertainty and gain of items with these pseudo-counts, items x categories."""
        sums, rises = (entries.sum(axis=1) for entries in _terms(counts))
        return self._gains(sums, rises, counts.sum(axis=1), ask)

    def _gains(
        self, sums: Floats, rises: Floats, total: Floats, ask: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """Return uncertainty and gain from the sums of `_terms`."""
        uncertainty = np.maximum(1.0 - _normaliser(total) * sums, 0.0)
        after = 1.0 - _normaliser(total + 1.0) * (sums + rises / total)
        gain = np.maximum(uncertainty - after, 1e-300)
        labels_so_far = np.maximum(uncertainty / gain - 1.0, 0.0)
        # A label by those to ask counts as this many serious ones.
        weight = float((self.label_gain[ask] if ask.any() else self.label_gain).mean())
        return uncertainty, uncertainty / (labels_so_far / max(weight, 1e-9) + 1.0)

    def _candidates(self, counts: Floats) -> pa.Array:
        """Return, joined by bars, the categories that may be each item's top label."""
        theta, names = self._theta, self.fit.data.scale.names
        item = theta.item()
        top = np.maximum.reduceat(counts, theta.ptr[:-1])[item]
        # The share of two categories, given their sum, is Beta: the chance that it is above half.
        kept = np.flatnonzero((betainc(top, counts, 0.5) >= _MAY_LEAD) | (counts == top))
        ends = np.searchsorted(item[kept], np.arange(len(theta) + 1)).astype(np.int32)
        lists = pa.ListArray.from_arrays(
            as_arrow(ends), as_arrow(names).take(as_arrow(theta.category[kept]))
        )
        return pa.compute.binary_join(lists, "|")


def _terms(counts: Floats) -> tuple[Floats, Floats]:
    r"""Return h of every pseudo-count, and by how much a label is expected to raise it, times t.

    With :math:`h(\alpha) = \sqrt\alpha \, \Gamma(\alpha + 1/2) / \Gamma(\alpha)` and
    :math:`q(t) = \Gamma(t) / (\sqrt t \, \Gamma(t + 1/2))`, the uncertainty of a Dirichlet
    distribution with pseudo-counts :math:`\alpha` of sum t is :math:`1 - q(t) \sum_n h(\alpha_n)`.
    """
    now = _h(counts)
    return now, counts * (_h(counts + 1.0) - now)


def _h(counts: Floats) -> Floats:
    values: Floats = np.sqrt(counts) * np.exp(gammaln(counts + 0.5) - gammaln(counts))
    return values


def _normaliser(total: Floats) -> Floats:
    """Return q of the sums of pseudo-counts."""
    values: Floats = np.exp(gammaln(total) - gammaln(total + 0.5)) / np.sqrt(total)
    return values


class ScoreBasis:
    """Uncertainty and gain of items by the standard errors of their scores."""

    def __init__(self, fit: Fit) -> None:
        assert fit.expectation is not None
        self.fit = fit
        self.label_gain = reliability_or_one(fit)
        self.standard_error = _standard_error(fit)

    def assess(self, ask: NDArray[np.bool_]) -> ItemAssessment:
        """Return how uncertain each item is and what one more label would gain."""
        fit, labels = self.fit, self.fit.data
        assert fit.expectation is not None
        uncertainty = self.uncertainty_of_errors(self.standard_error)
        shares = np.diff(labels.cell_ptr) / labels.labels_per_item[labels.item_of_cell()]
        given = Distribution(labels.item_ptr, labels.cell_category, shares)
        sides = ((-1.0, "score_low"), (1.0, "score_high"))
        ends = (
            np.asarray(
                fit.item_columns.get(name, fit.expectation + side * Z_95 * self.standard_error)
            )
            for side, name in sides
        )
        return ItemAssessment(
            uncertainty,
            uncertainty / (labels.labels_per_item + 1.0),
            TopTwo.of_sparse(given),
            Reasons.of_scores(*ends),
        )

    def uncertainty_of_errors(self, standard_error: Floats) -> Floats:
        """Return the expected squared Hellinger distance of scores with these standard errors."""
        steps = standard_error / _step(self.fit.data)
        uncertainty: Floats = 1.0 - 1.0 / np.sqrt(1.0 + steps**2 / 4.0)
        return uncertainty


def _standard_error(fit: Fit) -> Floats:
    """Return the standard error of each score: from the model's interval, else from the labels.

    An item's variance is that of its labels with one label of the pooled variance added, and no
    lower than that of rounding to the scale.
    """
    labels, columns, n = fit.data, fit.item_columns, fit.data.labels_per_item
    item, votes = labels.item_of_cell(), np.diff(labels.cell_ptr)
    value = labels.scale.values[labels.cell_category]
    mean = np.bincount(item, votes * value) / n
    squares = np.bincount(item, votes * (value - mean[item]) ** 2)
    pooled = squares.sum() / max(int((n - 1).sum()), 1)
    least = _step(labels) ** 2 / 12.0
    error: Floats = np.sqrt(np.maximum((squares + pooled) / n, least) / n)
    if "score_low" in columns and "score_high" in columns:
        half = (np.asarray(columns["score_high"]) - np.asarray(columns["score_low"])) / 2.0
        error = np.where(np.isfinite(half), np.maximum(half / Z_95, np.sqrt(least / n)), error)
    return error


def _step(labels: Labels) -> float:
    """Return the mean distance between neighbouring categories; 1 where there is one category."""
    values = labels.scale.values
    return float(np.ptp(values)) / (len(values) - 1) if len(values) > 1 else 1.0
