"""Whom to ask: what a label of each annotator tells, beside one of the best's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.advice.beliefs import MOST_NUMBERS, Beliefs, beliefs
from annotruth.advice.divided import admit_divided
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.base_fit import TOO_FEW
from annotruth.models.em import ProgressCallback
from annotruth.models.result import Fit
from annotruth.models.robust_gpm.model import RobustGPM
from annotruth.models.robust_gpm.results import Kinds

ASK_FROM = 0.5
"""Whose labels are worth less than this share of the best's are not asked."""

_BEST = 0.1  # the share of annotators by whose mean the best are measured


@dataclass(frozen=True, eq=False)
class Crowd:
    """The annotators as the fit has found them."""

    fit: Fit
    kinds: Kinds
    divided: float
    """The share of items on which people are divided, where one answer was thought right."""

    def beliefs(self) -> Iterator[tuple[int, int, Beliefs]]:
        """Judge the items part by part: from, to, and what is believed of these."""
        return beliefs(self.fit.data, self.kinds, self.divided)

    @cached_property
    def worth(self) -> Floats:
        """What a label of each annotator tells of a fresh item, as a share of what the best's do.

        It is the gain of one label under the annotator's own rates. So somebody who inverts the
        scale and is known to may tell much, and one who is always generous as much as others.
        """
        prior, rates = self.kinds.prior, self.kinds.rates
        fresh = Beliefs(prior[np.newaxis], self.kinds.opinions, None)
        part = max(1, MOST_NUMBERS // rates[0].size)
        left = [
            fresh.left(prior * rates[first : first + part]).sum(axis=1)
            for first in range(0, len(rates), part)
        ]
        gain = np.maximum(fresh.uncertainty() - np.concatenate(left), 0.0)
        best = np.sort(gain)[-max(1, round(_BEST * len(gain))) :].mean()
        # Where no label tells anything, say with one category, all are alike.
        worth: Floats = gain / best if best > 0.0 else np.ones_like(gain)
        return worth

    @property
    def may_ask(self) -> NDArray[np.bool_]:
        """Whom to ask."""
        return self.worth >= ASK_FROM

    @property
    def unclear(self) -> NDArray[np.bool_]:
        """Which annotators have too few labels to be judged."""
        return np.array([word == TOO_FEW for word in self.fit.behavior or []])

    def typical_rates(self) -> Floats:
        """Average the rates of those to ask: labels x kinds."""
        rates: Floats = self.kinds.rates[self.may_ask].mean(axis=0)
        return rates

    def table(self) -> pa.Table:
        """Make the annotators' table in Arrow."""
        fit, unclear = self.fit, self.unclear
        ask = np.where(unclear, "try", np.where(self.may_ask, "ask", "stop"))
        reasons = {
            "ask": "{}",
            "stop": "{}: tells little",
            "try": "{}: try known items",
        }
        words = zip(ask.tolist(), fit.behavior or [], strict=True)
        return pa.table(
            {
                "annotator": fit.data.annotators,
                "n_labels": fit.data.labels_per_annotator,
                "reliability": fit.reliability,
                "low": fit.low,
                "high": fit.high,
                "worth": self.worth,
                "ask": ask.tolist(),
                "why": [reasons[word].format(behavior) for word, behavior in words],
            }
        )


def judge(
    labels: Labels, model: RobustGPM | None = None, progress: ProgressCallback | None = None
) -> Crowd:
    """Fit the labels and keep what items and annotators are judged by."""
    fit, kinds = (model or RobustGPM()).fit_with_kinds(labels, progress)
    assert isinstance(fit, Fit)
    return Crowd(fit, *admit_divided(labels, kinds))
