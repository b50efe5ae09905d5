"""Dawid and Skene's models with crowd-kit's start, smoothing and loss, in crowd-kit's interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlogy

from annotruth.crowdkit.models import AllowsNoIterations, ModelAggregator, TaskLabels
from annotruth.crowdkit.votes import select
from annotruth.engines import Session
from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Floats
from annotruth.models.base import Estimator
from annotruth.models.confusion import dawid_skene
from annotruth.models.confusion.dawid_skene import (
    DawidSkeneParameters,
    DawidSkeneSteps,
    OneCoinParameters,
)
from annotruth.models.confusion.estimator import EStepTables, LatentClassSteps
from annotruth.models.em import Monitor
from annotruth.observations import Labels

Strategy = Literal["assign", "addition"]

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
        self.session.allocate("rows", per="labels")
        sums = self.session.run_pass(self._start)
        counts = sums["counts"]
        is_used = _is_used(counts)
        if self._initial is not None:
            errors, is_given, replace = self._initial
            counts = errors if replace else counts + errors
            is_used = is_given if replace else is_used | is_given
        return _smoothed(counts, sums["classes"], is_used)

    def step(self, old: DawidSkeneParameters) -> tuple[DawidSkeneParameters, Monitor]:
        """Pass over the labels once, then normalise the counts."""
        sums = self.session.run_pass(self._step, **self._inputs(old))
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


@dataclass(kw_only=True)
class _DawidSkeneModel(AllowsNoIterations, dawid_skene.DawidSkene):
    """Dawid and Skene's model with crowd-kit's steps, in the order of the frame."""

    parameter_axes = None
    acceleration: bool = False

    def __post_init__(self) -> None:
        self.initial: InitialErrors | None = None

    def _steps(self, labels: Labels, session: Session) -> DawidSkeneLossSteps:
        self.steps = DawidSkeneLossSteps(labels, session, self.initial)
        return self.steps


@dataclass(kw_only=True)
class _OneCoinModel(AllowsNoIterations, dawid_skene.OneCoin):
    """The one-coin model with crowd-kit's steps, in the order of the frame."""

    parameter_axes = None
    acceleration: bool = False

    def _steps(self, labels: Labels, session: Session) -> OneCoinLossSteps:
        self.steps = OneCoinLossSteps(self._equations(labels), session)
        return self.steps


@dataclass(eq=False)
class OneCoinDawidSkene(ModelAggregator):
    """The one-coin model: one accuracy per worker, errors uniform over the other labels.

    The equations are those of `annotruth.OneCoin`; start, loss and stopping rule are crowd-kit's.
    ``skills_`` is the accuracy of each worker; ``priors_``, ``errors_`` and ``loss_history_`` are
    those of `DawidSkene`. ``initial_error_strategy`` has no effect.
    """

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Strategy | None = None

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Fit to a frame of task, worker, label; ``true_labels`` is a Series by task."""
        if len(select(data)):
            return super().fit(data, true_labels)
        self.probas_, self.errors_ = pd.DataFrame(), pd.DataFrame()
        self.priors_ = pd.Series(dtype=float, name="prior")
        self.labels_ = pd.Series(dtype=float, name="agg_label")
        return self

    estimator = _OneCoinModel

    def _set_results(self, data: TaskLabels) -> None:
        super()._set_results(data)
        model = self.model_
        assert isinstance(model, _DawidSkeneModel | _OneCoinModel)
        self.loss_history_ = model.steps.losses
        if self.n_iter == 0:
            self._set_probas(_shares(model.result_.data), data)
        self.priors_ = pd.Series(model.prevalence_, index=data.classes, name="prior")
        pairs = data.given()
        worker = data.workers.get_indexer(pairs.get_level_values("worker"))
        label = data.classes.get_indexer(pairs.get_level_values("label"))
        errors, columns = model.confusion_[worker, :, label], data.classes.rename(None)
        self.errors_ = pd.DataFrame(errors, index=pairs, columns=columns)


@dataclass(eq=False)
class DawidSkene(OneCoinDawidSkene):
    """Dawid and Skene's model: a confusion matrix per worker, estimated by EM.

    The equations are those of `annotruth.DawidSkene`; start, smoothing, loss and stopping rule are
    crowd-kit's, so that the numbers are too: EM stops when the loss increases by less than ``tol``, and
    warns after ``n_iter`` iterations. ``initial_error_strategy`` says how the ``initial_error`` of
    `fit` is used: "assign" starts from these confusion matrices, which must be those of all workers;
    "addition" adds counts of earlier labels to the start; None ignores it.

    ``priors_`` is the prior probability of each label; ``errors_`` has one row per worker and label
    given, and one column per true label. ``loss_history_`` is the expected log-likelihood of labels and
    classes plus the entropy of the classes, per label. It counts the prior of a task's class once per
    label, so that it is no bound of the log-likelihood, and may decrease.
    """

    def fit(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series[Any] | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> Self:
        """Fit to a frame of task, worker, label.

        ``true_labels`` is a Series by task. ``initial_error`` is a frame indexed by worker and label
        given, with one column per true label.
        """
        self._initial_error = initial_error
        return super().fit(data, true_labels)

    def _fit_model(self, data: TaskLabels) -> Estimator:
        model = _DawidSkeneModel(max_iter=self.n_iter, tol=self.tol)
        model.initial = _initial_errors(self._initial_error, self.initial_error_strategy, data)
        return model.fit(data.labels)


def _shares(labels: Labels) -> Floats:
    """Return the observed shares of labels, tasks x classes; known truths have probability 1."""
    shares = labels.observed_shares()
    known = np.flatnonzero(labels.known >= 0)
    shares[known] = np.eye(labels.n_categories)[labels.known[known]]
    return shares


def _initial_errors(
    errors: pd.DataFrame | None, strategy: Strategy | None, data: TaskLabels
) -> InitialErrors | None:
    """Return initial confusion matrices in the order of the labels; None if none are used."""
    if errors is None or strategy is None:
        return None
    if strategy not in ("assign", "addition"):
        raise InputError(
            f"initial_error_strategy is {shown(strategy)}: choose 'assign' or 'addition'"
        )
    if list(errors.index.names) != ["worker", "label"]:
        raise InputError(
            f"the index of initial_error is {shown(list(errors.index.names))}: name its levels "
            "worker and label"
        )
    if strategy == "assign":
        _check_assigned(errors, data)
    rows = pd.MultiIndex.from_product([data.classes, data.workers], names=["label", "worker"])
    given = errors.reorder_levels(["label", "worker"]).reindex(index=rows, columns=data.classes)
    shape = (len(data.classes), len(data.workers))
    return InitialErrors(
        errors=np.ascontiguousarray(given.fillna(0.0).to_numpy(float)).reshape(*shape, -1),
        is_given=given.notna().any(axis="columns").to_numpy().reshape(shape),
        replace=strategy == "assign",
    )


def _check_assigned(errors: pd.DataFrame, data: TaskLabels) -> None:
    """Refuse confusion matrices to start from that are incomplete, or no probabilities."""
    pairs = data.given()
    missing = pairs[~pairs.isin(errors.index)]
    if len(missing):
        worker, label = missing[0]
        raise InputError(
            f"initial_error has no row of worker {shown(worker)} and label {shown(label)}: add the "
            "rows of all workers in the data, or pass initial_error_strategy='addition'"
        )
    sums = errors.groupby("worker").sum()
    if (errors <= 1.0).all(axis=None) and not np.allclose(sums, 1.0):
        raise InputError(
            "The sum of each worker's error matrix in initial_error should be 1.0 for every true "
            "label: divide by the sums, or pass counts"
        )
