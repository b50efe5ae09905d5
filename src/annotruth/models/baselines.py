"""Baselines without a model of annotators: majority vote, mean, median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.models.base import Estimator
from annotruth.models.distribution import Distribution
from annotruth.models.em import ProgressCallback, direct_history
from annotruth.models.registry import Capabilities
from annotruth.models.result import Fit
from annotruth.models.scales.subject_bias_posterior import rounded_gaussians, rounding_variance
from annotruth.observations import Labels
from annotruth.observations.validate import check_ordinal


@dataclass(kw_only=True)
class MajorityVote(Estimator):
    r"""The majority vote: every item's most frequent label.

    An item's distribution is the observed shares of its labels,
    :math:`\theta_{e,n} = |l_{e,n}| / |l_e|`. On an ordinal scale the expectation is the mean of the labels.

    There is no reliability: annotators are part of the majority that they would be compared with.
    `predict_proba` is the same for all annotators. It adds one label with the distribution q of all
    labels to those of the item, :math:`(|l_{e,n}| + q_n) / (|l_e| + 1)`.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [("a", "ann", "cat"), ("a", "bob", "cat"), ("a", "eve", "dog"), ("b", "ann", "dog")]
    >>> fit = at.MajorityVote().fit(labels).result_
    >>> fit.item_table().select(["item", "label", "confidence"]).to_pylist()[1]
    {'item': 'b', 'label': 'dog', 'confidence': 1.0}
    """

    name: ClassVar[str] = "majority"

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        votes = np.diff(labels.cell_ptr)
        shares = votes / labels.labels_per_item[labels.item_of_cell()]
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=direct_history(),
            distribution=Distribution.of_cells(labels, shares),
            readout="opinion",
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        data = self.result_.data
        votes = np.diff(data.cell_ptr).astype(float)
        counts = Distribution(data.item_ptr, data.cell_category, votes)
        overall = np.bincount(data.cell_category, votes, data.n_categories) / data.n_labels
        rows = counts.rows(item, data.n_categories) + overall
        shares: Floats = rows / (data.labels_per_item[item] + 1.0)[:, np.newaxis]
        return shares


@dataclass(kw_only=True)
class MeanScore(Estimator):
    r"""The mean of every item's labels, known as the mean opinion score (MOS).

    With :math:`v` the values of the n labels of an item, the score is their mean
    :math:`\bar v`. Columns ``score_low`` and ``score_high`` are its 95% interval, and ``std`` is the
    standard deviation of the labels,

    .. math:: \bar v \pm t_{0.975,\,n-1} \frac{d}{\sqrt n}, \qquad
              d^2 = \frac{1}{n - 1} \sum_i (v_i - \bar v)^2,

    as in ITU-R BT.500. The interval assumes Gaussian labels and may extend beyond the scale; with a
    single label, interval and standard deviation are NaN. The interval of a known truth has width 0;
    ``std`` remains that of the labels.

    `predict_proba` is the same for all annotators: a Gaussian around the score, rounded to the
    scale. Its variance is :math:`s^2 (1 + 1/n)`: the variance of labels around scores, pooled over
    all items with n - 1 degrees of freedom each, plus that of the score. It is at least that of
    rounding, :math:`h^2 / 12` for categories at distance h.

    Only for ordinal scales.

    Examples
    --------
    >>> import annotruth as at
    >>> fit = at.MeanScore().fit([("a", "ann", 3), ("a", "bob", 5), ("b", "ann", 2)]).result_
    >>> fit.score.tolist()
    [4.0, 2.0]
    """

    name: ClassVar[str] = "mean"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True, gives_labels=False)

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        from scipy.special import stdtrit

        values = _values(labels, self.name)[labels.cell_category]
        item, votes = labels.item_of_cell(), np.diff(labels.cell_ptr)
        n = labels.labels_per_item

        mean = np.bincount(item, votes * values) / n
        squares = np.bincount(item, votes * (values - mean[item]) ** 2)
        several = n > 1
        std = np.full(labels.n_items, np.nan)
        std[several] = np.sqrt(squares[several] / (n[several] - 1))
        half_width = np.full(labels.n_items, np.nan)
        half_width[several] = stdtrit(n[several] - 1, 0.975) * std[several] / np.sqrt(n[several])
        half_width[labels.known >= 0] = 0.0
        score = _with_known_truth(mean, labels)
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=direct_history(),
            score=score,
            item_columns={
                "std": std,
                "score_low": score - half_width,
                "score_high": score + half_width,
            },
            readout="opinion",
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        return _around_scores(self.result_, item)


@dataclass(kw_only=True)
class MedianScore(Estimator):
    """The median of every item's labels; of an even number, the midpoint of the middle two.

    `predict_proba` is as for `MeanScore`. Only for ordinal scales.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [("a", "ann", 1), ("a", "bob", 5), ("a", "eve", 4), ("b", "ann", 2), ("b", "bob", 3)]
    >>> at.MedianScore().fit(labels).result_.score.tolist()
    [4.0, 2.5]
    """

    name: ClassVar[str] = "median"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True, gives_labels=False)

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        values = _values(labels, self.name)[labels.cell_category]
        # The labels of an item are sorted by category, so the median is found by position.
        first = labels.cell_ptr[labels.item_ptr[:-1]]
        n = labels.labels_per_item
        lower, upper = (
            values[np.searchsorted(labels.cell_ptr, first + offset, side="right") - 1]
            for offset in ((n - 1) // 2, n // 2)
        )
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=direct_history(),
            score=_with_known_truth((lower + upper) / 2, labels),
            readout="opinion",
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        return _around_scores(self.result_, item)


def _around_scores(fit: Fit, item: Codes) -> Floats:
    """Return the probability of each label: Gaussians around the scores, with pooled variance."""
    data, score = fit.data, fit.score
    assert score is not None
    values, votes = data.scale.values, np.diff(data.cell_ptr)
    squares = inner(votes, (values[data.cell_category] - score[data.item_of_cell()]) ** 2)
    # Every estimated score takes one degree of freedom; with one label per item, none is left.
    estimated = data.known < 0
    freedom = data.n_labels - np.count_nonzero(estimated)
    least = rounding_variance(values)
    variance = max(squares / freedom, least) if freedom > 0 else float(np.ptp(values)) ** 2 + least
    score_variance = np.where(estimated, variance / data.labels_per_item, 0.0)
    return rounded_gaussians(values, score[item], np.sqrt(variance + score_variance[item]))


def _values(labels: Labels, name: str) -> Floats:
    """Return the values of the categories; raise if they have no order."""
    scale = labels.scale
    check_ordinal(scale, name)
    return scale.values


def _with_known_truth(score: Floats, labels: Labels) -> Floats:
    """Return the scores, replaced by the value of the known truth where there is one."""
    return np.where(labels.known >= 0, labels.scale.values[labels.known], score)
