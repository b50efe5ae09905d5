"""EM steps of Dawid and Skene's models with crowd-kit's start, smoothing and loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from annotruth.engines import Session
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models.confusion.equations import ClassEquations, EStepTables
from annotruth.models.confusion.one_coin import OneCoinParameters
from annotruth.models.confusion.steps import LatentClassSteps
from annotruth.models.dawid_skene.steps import DawidSkeneParameters, DawidSkeneSteps
from annotruth.models.em import Monitor

_MIN_COUNT = 1e-10  # crowd-kit's least count and least probability

LOSS_NAME = "crowd-kit's loss"


class InitialErrors(NamedTuple):
    """Confusion matrices, or counts, to start from.

    Attributes
    ----------
    errors
        Labels x annotators x classes.
    is_given
        Whether there is a row of the label and annotator.
    replace
        Whether they replace the counts of the labels; else they are added to them.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.crowdkit.confusion_steps import InitialErrors
    >>> counts = np.array([[[9.0, 1.0]], [[1.0, 9.0]]])
    >>> InitialErrors(counts, np.ones((2, 1), dtype=bool), replace=False).errors.shape
    (2, 1, 2)
    """

    errors: Floats
    is_given: NDArray[np.bool_]
    replace: bool


class _ExpectedSums(NamedTuple):
    """Sums of an E-step: counts per label, annotator and class; of classes; the log-likelihood."""

    counts: Floats
    classes: Floats
    log_likelihood: float


class DawidSkeneLossSteps(DawidSkeneSteps):
    """Dawid and Skene's EM; items keep the posteriors that the last M-step used.

    Parameters
    ----------
    labels, session
        The labels, and the session they are open in.
    initial
        Confusion matrices to start from.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.crowdkit.confusion_steps import DawidSkeneLossSteps
    >>> from annotruth.engines import get_engine
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 1)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = DawidSkeneLossSteps(labels, session)
    ...     parameters, _ = steps.step(steps.start())
    >>> len(steps.losses)
    1
    """

    objective_name = LOSS_NAME

    def __init__(
        self, labels: Labels, session: Session, initial: InitialErrors | None = None
    ) -> None:
        super().__init__(labels, session)
        self.losses: list[float] = []
        self._initial = initial
        self._last: DawidSkeneParameters | None = None

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
        expected = _ExpectedSums(sums["counts"], sums["classes"], log_likelihood)
        new = _smoothed(expected.counts, expected.classes, _is_used(expected.counts))
        loss = crowd_kit_loss(expected, EStepTables(*old), EStepTables(*new)) / self._n_labels
        self._last = old
        return new, Monitor(log_likelihood, _add_loss(self.losses, loss))

    def finalize(self, parameters: DawidSkeneParameters) -> float:
        """Compute the posteriors that the last M-step used; return their log-likelihood."""
        return super().finalize(parameters if self._last is None else self._last)


class OneCoinLossSteps(LatentClassSteps[OneCoinParameters]):
    """The one-coin model's EM; items keep the posteriors that the last M-step used.

    Parameters
    ----------
    equations, session
        As for `LatentClassSteps`.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.crowdkit.confusion_steps import OneCoinLossSteps
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.confusion.one_coin import OneCoinEquations
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 1)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = OneCoinLossSteps(OneCoinEquations(labels), session)
    ...     parameters, _ = steps.step(steps.start())
    >>> len(steps.losses)
    1
    """

    def __init__(self, equations: ClassEquations[OneCoinParameters], session: Session) -> None:
        super().__init__(equations, session)
        self.objective_name = LOSS_NAME
        self.losses: list[float] = []
        self._last: OneCoinParameters | None = None

    def step(self, old: OneCoinParameters) -> tuple[OneCoinParameters, Monitor]:
        """Pass over the labels once, then update the parameters."""
        counts, log_likelihood = self.e_step(old)
        new = self.equations.m_step(counts, old)
        tables = (self.equations.tables(parameters) for parameters in (old, new))
        expected = _ExpectedSums(counts.labels, counts.classes, log_likelihood)
        loss = crowd_kit_loss(expected, *tables) / self._n_labels
        self._last = old
        return new, Monitor(log_likelihood, _add_loss(self.losses, loss))

    def finalize(self, parameters: OneCoinParameters) -> float:
        """Compute the posteriors that the last M-step used; return their log-likelihood."""
        return super().finalize(parameters if self._last is None else self._last)


def crowd_kit_loss(expected: _ExpectedSums, old: EStepTables, new: EStepTables) -> float:
    r"""Return crowd-kit's loss of all labels after an M-step.

    With T the posteriors of the old parameters, it is

    .. math:: \sum_{e,s,k} T_{e,k} (\log \pi_{s,k,r_{e,s}} + \log p_k) - \sum_{e,k} T_{e,k} \log T_{e,k}.

    The entropy of the posteriors is their log-likelihood minus its expected complete-data part.
    """
    counts, classes, log_likelihood = expected
    complete = xlogy(counts, old.likelihood).sum() + xlogy(classes, old.prior).sum()
    entropy = log_likelihood - complete
    labels = xlogy(counts, new.likelihood).sum()
    priors = xlogy(counts.sum(axis=(0, 1)), new.prior).sum()
    return float(labels + priors + entropy)


def _add_loss(losses: list[float], loss: float) -> float:
    """Add a loss; return it as the objective, which does not decrease.

    crowd-kit stops when the loss increases by less than the tolerance, or decreases.
    """
    losses.append(loss)
    return max(losses[-2:])


def _is_used(counts: Floats) -> NDArray[np.bool_]:
    """Return which annotators gave which labels, labels x annotators."""
    total: Floats = counts.sum(axis=2)
    return total > 0.0


def _smoothed(counts: Floats, classes: Floats, is_used: NDArray[np.bool_]) -> DawidSkeneParameters:
    """Return counts as shares; rows that are used have no zeros."""
    counts = np.where(is_used[..., np.newaxis], np.maximum(counts, _MIN_COUNT), 0.0)
    prior = np.maximum(classes / classes.sum(), _MIN_COUNT)
    return DawidSkeneParameters(prior, counts / counts.sum(axis=0))
