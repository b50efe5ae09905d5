"""What people did before models: vote, mean, median. All labels count the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.labels import Labels
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Capabilities, Estimator
from annotruth.models.distribution import Distribution
from annotruth.models.em import ProgressCallback, direct_history
from annotruth.models.result import Fit
from annotruth.models.rounding import rounded_gaussians, rounding_variance


@dataclass(kw_only=True)
class MajorityVote(Estimator):
    r"""The category that most annotators chose.

    An item's distribution is the observed shares of its labels,
    :math:`\theta_{e,n} = |l_{e,n}| / |l_e|`; its label is the category of the largest share, and
    an exact tie goes to the category that comes first on the scale. A known truth decides its
    item. On an ordinal scale the expectation of the shares is the mean of the labels.

    Nothing is said of annotators: how often they agree with the majority is no reliability, for
    they are part of it. What anybody would say of an item, `predict_proba`, is the shares of its labels
    and one label more that is split as all labels are, :math:`(|l_{e,n}| + q_n) / (|l_e| + 1)`.
    """

    name: ClassVar[str] = "majority"

    def _fit(self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None) -> Fit:
        votes = np.diff(labels.cell_ptr)
        shares = votes / labels.labels_per_item[labels.item_of_cell()]
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=direct_history(),
            distribution=Distribution.of_cells(labels, shares),
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        data = self.result_.data
        votes = np.diff(data.cell_ptr).astype(float)
        counts = Distribution(data.item_ptr, data.cell_category, votes)
        crowd = np.bincount(data.cell_category, votes, data.n_categories) / data.n_labels
        rows = counts.rows(item, data.n_categories) + crowd
        shares: Floats = rows / (data.labels_per_item[item] + 1.0)[:, np.newaxis]
        return shares


@dataclass(kw_only=True)
class MeanScore(Estimator):
    r"""The mean of an item's labels, known as the mean opinion score.

    With :math:`v` the values of the n labels of an item, the score is their mean
    :math:`\bar v`. Columns ``score_low`` and ``score_high`` hold its 95% interval and ``std``
    the standard deviation behind it,

    .. math:: \bar v \pm t_{0.975,\,n-1} \frac{d}{\sqrt n}, \qquad
              d^2 = \frac{1}{n - 1} \sum_i (v_i - \bar v)^2,

    as broadcasters report it (ITU-R BT.500). The interval takes labels as Gaussian and may
    reach beyond the scale; a single label has neither interval nor deviation (NaN). A known
    truth is its item's score, without doubt; ``std`` still tells how far the labels lay apart.

    What anybody would say of an item, `predict_proba`, is a Gaussian around the score, rounded to the
    scale. Its variance is :math:`s^2 (1 + 1/n)`: that of labels around scores, all items pooled
    with n - 1 degrees of freedom each, and that of the score itself. It is no smaller than what
    rounding leaves, :math:`h^2 / 12` for categories h apart.

    Only for ordinal scales.
    """

    name: ClassVar[str] = "mean"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)

    def _fit(self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None) -> Fit:
        from scipy.special import stdtrit

        values = _values(labels, self.name)[labels.cell_category]
        item, votes = labels.item_of_cell(), np.diff(labels.cell_ptr)
        n = labels.labels_per_item

        mean = np.bincount(item, votes * values) / n
        squares = np.bincount(item, votes * (values - mean[item]) ** 2)
        several = n > 1
        std = np.full(labels.n_items, np.nan)
        std[several] = np.sqrt(squares[several] / (n[several] - 1))
        reach = np.full(labels.n_items, np.nan)
        reach[several] = stdtrit(n[several] - 1, 0.975) * std[several] / np.sqrt(n[several])
        reach[labels.known >= 0] = 0.0
        score = _or_known(mean, labels)
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=direct_history(),
            score=score,
            item_columns={"std": std, "score_low": score - reach, "score_high": score + reach},
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        return _around_scores(self.result_, item)


@dataclass(kw_only=True)
class MedianScore(Estimator):
    """The median of an item's labels; of an even number, the midpoint of the middle two.

    A known truth is its item's score. What anybody would say of an item, `predict_proba`, is a Gaussian
    around the score as in `MeanScore`. Only for ordinal scales.
    """

    name: ClassVar[str] = "median"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)

    def _fit(self, labels: Labels, progress: ProgressCallback | None, previous: Fit | None) -> Fit:
        values = _values(labels, self.name)[labels.cell_category]
        # Labels stand in the order of their categories within an item, so the middle is a place.
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
            score=_or_known((lower + upper) / 2, labels),
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        return _around_scores(self.result_, item)


def _around_scores(fit: Fit, item: Codes) -> Floats:
    """Predict labels around the items' scores with the deviation that all items share."""
    data, score = fit.data, fit.score
    assert score is not None
    values, votes = data.scale.values, np.diff(data.cell_ptr)
    squares = inner(votes, (values[data.cell_category] - score[data.item_of_cell()]) ** 2)
    # A score that was fitted takes up one label; where each item has but one, nothing is left.
    fitted = data.known < 0
    freedom = data.n_labels - np.count_nonzero(fitted)
    least = rounding_variance(values)
    variance = max(squares / freedom, least) if freedom > 0 else float(np.ptp(values)) ** 2 + least
    of_score = np.where(fitted, variance / data.labels_per_item, 0.0)
    return rounded_gaussians(values, score[item], np.sqrt(variance + of_score[item]))


def _values(labels: Labels, name: str) -> Floats:
    """Return the values of the categories, refusing categories without an order."""
    scale = labels.scale
    check_ordinal(scale, name)
    return scale.values


def _or_known(score: Floats, labels: Labels) -> Floats:
    """Put the value of the known truth where there is one."""
    return np.where(labels.known >= 0, labels.scale.values[labels.known], score)
