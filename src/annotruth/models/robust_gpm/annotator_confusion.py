"""RobustGPM's second round where items have one truth: every annotator has rows of their own."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.models.em import Monitor
from annotruth.models.robust_gpm.steps import (
    EACH_CLASS,
    LEAST_RATE,
    Classes,
    Counts,
    Parameters,
    Rows,
)
from annotruth.models.squarem import Squarem, shares

_OWN_ROWS = 3.0  # labels a class for which an annotator's usual way stands


def presumed(usual: Floats) -> Counts:
    """Return what own rows are drawn toward: labels as the usual way has them, and classes."""
    return Counts(_OWN_ROWS * usual, np.full(usual.shape[2], EACH_CLASS))


class OwnRows:
    """Dawid and Skene's EM, every row drawn toward what the annotator's usual way makes likely."""

    objective_name = "the log-posterior per label"

    def __init__(self, first: Classes, at: Parameters) -> None:
        self._first = first
        self._begin = at
        self._before = presumed(first.usual(at.weights, first.ways(at.serious)))

    def start(self) -> Rows:
        """Begin at the posteriors of the first round."""
        first, at = self._first, self._begin
        counts, _ = first.counted(Rows(at.prior, first.rates(at, first.ways(at.serious))))
        return self._updated(counts)

    def _updated(self, here: Counts) -> Rows:
        rates = here.counts + self._before.counts
        rates /= rates.sum(axis=1, keepdims=True)
        prior = here.kinds + self._before.kinds
        return Rows(prior / prior.sum(), np.maximum(rates, LEAST_RATE))

    def step(self, old: Rows) -> tuple[Rows, Monitor]:
        """Pass the labels once, then normalise the counts."""
        here, total = self._first.counted(old)
        of_rates = (self._before.counts * np.log(old.rates)).sum()
        objective = total + of_rates + (self._before.kinds * np.log(old.prior)).sum()
        n_labels = self._first.labels.n_labels
        return self._updated(here), Monitor(total, float(objective) / n_labels)

    def resume(self, previous: Rows) -> Rows:
        """Return the start: the first round has been resumed."""
        return self.start()

    def finalize(self, at: Rows) -> float:
        """Return the log-likelihood, classes summed out."""
        return self._first.counted(at)[1]

    def acceleration(self) -> Squarem[Rows]:
        """Leap with the prior and every row."""
        return Squarem(Rows, shares(axis=0), _rates)


def _rates(x0: Floats, x1: Floats, x2: Floats, longest: float) -> Floats:
    ahead: Floats = np.maximum(shares(axis=1)(x0, x1, x2, longest), LEAST_RATE)
    return ahead
