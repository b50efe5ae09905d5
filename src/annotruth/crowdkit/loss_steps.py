"""EM steps of Dawid and Skene's models with crowd-kit's start, smoothing and loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from annotruth.engines import Session
from annotruth.kernels.arrays import Floats
from annotruth.models.confusion.dawid_skene import (
    DawidSkeneParameters,
    DawidSkeneSteps,
    OneCoinParameters,
)
from annotruth.models.confusion.estimator import EStepTables, LatentClassSteps
from annotruth.models.em import Monitor
from annotruth.observations import Labels

_MIN_COUNT = 1e-10  # crowd-kit's least count and least probability


class InitialErrors(NamedTuple):
    """Confusion matrices, or counts, to start from: labels x annotators x classes.

    ``is_given`` is whether there is a row of the label and annotator; ``replace``, whether they replace
    the counts of the labels or are added to them.
    """

    errors: Floats
    is_given: NDArray[np.bool_]
    replace: bool


class _LossSteps:
    """Part of steps that report crowd-kit's loss; items keep the posteriors of the last M-step."""

    objective_name = "crowd-kit's loss"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.losses: list[float] = []
        self._last: Any = None

    def _monitor(self, old: Any, log_likelihood: float, loss: float) -> Monitor:
        """Add a loss; the objective does not decrease.

        crowd-kit stops when the loss increases by less than the tolerance, or decreases.
        """
        self._last = old
        self.losses.append(loss)
        return Monitor(log_likelihood, max(self.losses[-2:]))

    def finalize(self, parameters: Any) -> float:
        """Compute the posteriors that the last M-step used; return their log-likelihood."""
        last = parameters if self._last is None else self._last
        log_likelihood: float = super().finalize(last)  # type: ignore[misc]
        return log_likelihood


class DawidSkeneLossSteps(_LossSteps, DawidSkeneSteps):
    """Dawid and Skene's EM with crowd-kit's smoothing, and confusion matrices to start from."""

    def __init__(
        self, labels: Labels, session: Session, initial: InitialErrors | None = None
    ) -> None:
        super().__init__(labels, session)
        self._initial = initial

    def start(self) -> DawidSkeneParameters:
        """Return the parameters of the observed shares, and of the initial confusion matrices."""
        self._session.allocate("rows", per="labels")
        sums = self._session.run_pass(self._start)
        counts = sums["counts"]
        is_used = _is_used(counts)
        if self._initial is not None:
            errors, is_given, replace = self._initial
            counts = errors if replace else counts + errors
            is_used = is_given if replace else is_used | is_given
        return _smoothed(counts, sums["classes"], is_used)

    def step(self, old: DawidSkeneParameters) -> tuple[DawidSkeneParameters, Monitor]:
        """Pass over the labels once, then normalise the counts."""
        sums = self._session.run_pass(self._step, **self._inputs(old))
        log_likelihood = float(sums["log_likelihood"][0])
        counts, classes = sums["counts"], sums["classes"]
        new = _smoothed(counts, classes, _is_used(counts))
        tables = EStepTables(*old), EStepTables(*new)
        loss = crowd_kit_loss(counts, classes, log_likelihood, *tables) / self._n_labels
        return new, self._monitor(old, log_likelihood, loss)


class OneCoinLossSteps(_LossSteps, LatentClassSteps[OneCoinParameters]):
    """The one-coin model's EM with crowd-kit's loss."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.objective_name = _LossSteps.objective_name

    def step(self, old: OneCoinParameters) -> tuple[OneCoinParameters, Monitor]:
        """Pass over the labels once, then update the parameters."""
        counts, log_likelihood = self.e_step(old)
        new = self.equations.m_step(counts, old)
        tables = (self.equations.tables(parameters) for parameters in (old, new))
        loss = crowd_kit_loss(*counts, log_likelihood, *tables)
        return new, self._monitor(old, log_likelihood, loss / self._n_labels)


def crowd_kit_loss(
    counts: Floats, classes: Floats, log_likelihood: float, old: EStepTables, new: EStepTables
) -> float:
    r"""Return crowd-kit's loss of all labels after an M-step, from the sums of its E-step.

    With T the posteriors of the old parameters, it is

    .. math:: \sum_{e,s,k} T_{e,k} (\log \pi_{s,k,r_{e,s}} + \log p_k) - \sum_{e,k} T_{e,k} \log T_{e,k}.

    The entropy of the posteriors is their log-likelihood minus its expected complete-data part.
    """
    complete = xlogy(counts, old.confusion).sum() + xlogy(classes, old.prior).sum()
    labels = xlogy(counts, new.confusion).sum()
    priors = xlogy(counts.sum(axis=(0, 1)), new.prior).sum()
    return float(labels + priors + log_likelihood - complete)


def _is_used(counts: Floats) -> NDArray[np.bool_]:
    """Return which annotators gave which labels, labels x annotators."""
    total: Floats = counts.sum(axis=2)
    return total > 0.0


def _smoothed(counts: Floats, classes: Floats, is_used: NDArray[np.bool_]) -> DawidSkeneParameters:
    """Return counts as shares; rows that are used have no zeros."""
    counts = np.where(is_used[..., np.newaxis], np.maximum(counts, _MIN_COUNT), 0.0)
    prior = np.maximum(classes / classes.sum(), _MIN_COUNT)
    return DawidSkeneParameters(prior, counts / counts.sum(axis=0))
