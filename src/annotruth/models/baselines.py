"""What people did before models: vote, mean, median. All labels count the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from annotruth.arrays import Floats
from annotruth.labels import Labels
from annotruth.labels.validate import check_ordinal
from annotruth.models.base import Estimator
from annotruth.models.distribution import Distribution
from annotruth.models.em import ProgressCallback, Trace
from annotruth.models.result import Fit


@dataclass(kw_only=True)
class MajorityVote(Estimator):
    r"""The category that most annotators chose.

    An item's distribution is the observed shares of its labels,
    :math:`\theta_{e,n} = |l_{e,n}| / |l_e|`; its label is the category of the largest share, and
    an exact tie goes to the category that comes first on the scale. A known truth decides its
    item. On an ordinal scale the expectation of the shares is the mean of the labels.

    Nothing is said of annotators: how often they agree with the majority is no reliability, for
    they are part of it.
    """

    name: ClassVar[str] = "majority"

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        votes = np.diff(labels.cell_ptr)
        shares = votes / labels.labels_per_item[labels.item_of_cell()]
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            trace=_no_iterations(),
            distribution=Distribution.of_cells(labels, shares),
        )


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

    Only for ordinal scales.
    """

    name: ClassVar[str] = "mean"

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
        reach = np.full(labels.n_items, np.nan)
        reach[several] = stdtrit(n[several] - 1, 0.975) * std[several] / np.sqrt(n[several])
        reach[labels.known >= 0] = 0.0
        score = _or_known(mean, labels)
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            trace=_no_iterations(),
            score=score,
            item_columns={"std": std, "score_low": score - reach, "score_high": score + reach},
        )


@dataclass(kw_only=True)
class MedianScore(Estimator):
    """The median of an item's labels; of an even number, the midpoint of the middle two.

    A known truth is its item's score. Only for ordinal scales.
    """

    name: ClassVar[str] = "median"

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
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
            trace=_no_iterations(),
            score=_or_known((lower + upper) / 2, labels),
        )


def _values(labels: Labels, name: str) -> Floats:
    """Return the values of the categories, refusing categories without an order."""
    scale = labels.scale
    check_ordinal(scale, name)
    return scale.values


def _or_known(score: Floats, labels: Labels) -> Floats:
    """Put the value of the known truth where there is one."""
    return np.where(labels.known >= 0, labels.scale.values[labels.known], score)


def _no_iterations() -> Trace:
    return Trace(
        log_likelihood=np.empty(0),
        objective=np.empty(0),
        converged=True,
        stop_reason="computed directly",
    )
