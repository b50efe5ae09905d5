"""Dawid and Skene's models in crowd-kit's interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from annotruth.crowdkit.confusion_steps import (
    DawidSkeneLossSteps,
    InitialErrors,
    OneCoinLossSteps,
)
from annotruth.crowdkit.model import AllowsNoIterations, ModelAggregator, TaskLabels
from annotruth.crowdkit.votes import select
from annotruth.engines import Session
from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.models import dawid_skene
from annotruth.models.base import Estimator
from annotruth.models.confusion import one_coin
from annotruth.models.distribution import Distribution

Strategy = Literal["assign", "addition"]


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
class _OneCoinModel(AllowsNoIterations, one_coin.OneCoin):
    """The one-coin model with crowd-kit's steps, in the order of the frame."""

    parameter_axes = None
    acceleration: bool = False

    def _steps(self, labels: Labels, session: Session) -> OneCoinLossSteps:
        self.steps = OneCoinLossSteps(self._equations(labels), session)
        return self.steps


class _ConfusionAggregator(ModelAggregator):
    """Base of Dawid and Skene's model and of the one-coin model."""

    priors_: pd.Series[Any]
    errors_: pd.DataFrame

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-5,
        initial_error_strategy: Strategy | None = None,
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.initial_error_strategy = initial_error_strategy

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Fit to a frame of task, worker, label; ``true_labels`` is a Series by task."""
        if not len(select(data)):
            self.probas_, self.errors_ = pd.DataFrame(), pd.DataFrame()
            self.priors_ = pd.Series(dtype=float, name="prior")
            self.labels_ = pd.Series(dtype=float, name="agg_label")
            return self
        return super().fit(data, true_labels)

    def _set_results(self, data: TaskLabels) -> None:
        super()._set_results(data)
        model = self.model_
        assert isinstance(model, _DawidSkeneModel | _OneCoinModel)
        self.loss_history_ = model.steps.losses
        if self.n_iter == 0:
            self._set_probas(_shares(model.result_.data), data)
        self.priors_ = pd.Series(model.prevalence_, index=data.classes, name="prior")
        self.errors_ = _errors(model.confusion_, data)


class DawidSkene(_ConfusionAggregator):
    """Dawid and Skene's model: a confusion matrix per worker, estimated by EM.

    The equations are those of `annotruth.DawidSkene`; start, smoothing, loss and stopping rule are
    crowd-kit's, so that the numbers are too.

    Parameters
    ----------
    n_iter
        The maximum number of iterations; reaching it warns.
    tol
        EM stops when the loss increases by less.
    initial_error_strategy
        How the ``initial_error`` of `fit` is used: "assign" starts from these confusion matrices,
        which must be those of all workers; "addition" adds counts of earlier labels to the
        start. None ignores it.

    Attributes
    ----------
    priors_
        The prior probability of each label.
    errors_
        The confusion matrices: one row per worker and label given, one column per true label.
    loss_history_
        crowd-kit's loss after every iteration: the expected log-likelihood of labels and classes,
        plus the entropy of the classes, per label. It counts the prior of a task's class
        once per label, so that it is no bound of the log-likelihood, and may decrease.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import DawidSkene
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> DawidSkene(n_iter=100).fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
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

    def fit_predict(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series[Any] | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, true_labels, initial_error).labels_

    def fit_predict_proba(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series[Any] | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Fit and return the probability of each label, one row per task."""
        return self.fit(data, true_labels, initial_error).probas_

    def _model(self) -> _DawidSkeneModel:
        return _DawidSkeneModel(max_iter=self.n_iter, tol=self.tol)

    def _fit_model(self, data: TaskLabels) -> Estimator:
        model = self._model()
        model.initial = _initial_errors(self._initial_error, self.initial_error_strategy, data)
        return model.fit(data.labels)


class OneCoinDawidSkene(_ConfusionAggregator):
    """The one-coin model: one accuracy per worker, errors uniform over the other labels.

    The equations are those of `annotruth.OneCoin`; start, loss and stopping rule are crowd-kit's.

    Parameters
    ----------
    n_iter, tol
        As for `DawidSkene`.
    initial_error_strategy
        Has no effect.

    Attributes
    ----------
    skills_
        The accuracy of each worker.
    priors_, errors_, loss_history_
        As for `DawidSkene`.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import OneCoinDawidSkene
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> OneCoinDawidSkene(n_iter=100).fit(frame).skills_.round(2).to_dict()
    {'w0': 1.0, 'w1': 1.0, 'w2': 1.0}
    """

    def _model(self) -> _OneCoinModel:
        return _OneCoinModel(max_iter=self.n_iter, tol=self.tol)


def _shares(labels: Labels) -> Floats:
    """Return the observed shares of labels, tasks x classes; known truths have probability 1."""
    votes = np.diff(labels.cell_ptr)
    shares = votes / labels.labels_per_item[labels.item_of_cell()]
    probas = Distribution.of_cells(labels, shares).dense(labels.n_categories)
    known = np.flatnonzero(labels.known >= 0)
    probas[known] = np.eye(labels.n_categories)[labels.known[known]]
    return probas


def _errors(confusion: Floats, data: TaskLabels) -> pd.DataFrame:
    """Return confusion matrices, workers x true labels x labels, for the labels workers gave."""
    pairs = pd.MultiIndex.from_frame(data.frame[["worker", "label"]].drop_duplicates())
    worker = data.workers.get_indexer(pairs.get_level_values("worker"))
    label = data.classes.get_indexer(pairs.get_level_values("label"))
    return pd.DataFrame(confusion[worker, :, label], index=pairs, columns=data.classes.rename(None))


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
    pairs = pd.MultiIndex.from_frame(data.frame[["worker", "label"]].drop_duplicates())
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
