"""The aggregators that are models of annotruth, in crowd-kit's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.loss_steps import DawidSkeneLossSteps, InitialErrors, OneCoinLossSteps
from annotruth.crowdkit.votes import COLUMNS, PROBABILITIES, label_series, select, winners
from annotruth.engines import Session
from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Floats
from annotruth.models import gpm, robust_gpm
from annotruth.models.base import Estimator
from annotruth.models.confusion import dawid_skene, glad
from annotruth.models.distribution import Distribution
from annotruth.models.em import History, ProgressCallback, Steps
from annotruth.models.em_estimator import EMEstimator
from annotruth.observations import Labels
from annotruth.observations.frames import LABEL_ROLES

P = TypeVar("P")
Strategy = Literal["assign", "addition"]


class TaskLabels(NamedTuple):
    """The labels of a frame, and their ids as pandas has them, in the order of ``labels``."""

    frame: pd.DataFrame
    labels: Labels
    tasks: pd.Index[Any]
    workers: pd.Index[Any]
    classes: pd.Index[Any]

    def with_known(self, true_labels: pd.Series[Any] | None) -> TaskLabels:
        """Return the labels with known truths, of which those of other tasks are left out."""
        if true_labels is None:
            return self
        known = true_labels[true_labels.index.isin(self.tasks)]
        return self._replace(labels=self.labels.with_gold(known)) if len(known) else self

    def given(self) -> pd.MultiIndex:
        """Return the distinct pairs of a worker and a label that the worker gave."""
        return pd.MultiIndex.from_frame(self.frame[["worker", "label"]].drop_duplicates())


def read_labels(data: Any) -> TaskLabels:
    """Return the labels of a frame of task, worker, label; labels are classes, even numbers."""
    frame = select(data)
    columns = dict(zip(LABEL_ROLES, COLUMNS, strict=True))
    labels = Labels.of(frame, columns=columns, scale="nominal", duplicates="keep")
    tasks, workers = (pd.Index(frame[name].unique(), name=name) for name in ("task", "worker"))
    classes = pd.Index(labels.scale.categories.to_pylist(), name="label")
    return TaskLabels(frame, labels, tasks, workers, classes)


class ModelAggregator(BaseClassificationAggregator):
    """Base of the aggregators that are models of annotruth.

    ``model_`` is the fitted estimator (``model_.result_`` has its tables, report and advice),
    ``probas_`` the probability of each label, one row per task, ``skills_`` the reliability of each
    worker, ``loss_history_`` the mean log-likelihood per label after every iteration.
    """

    predictions: ClassVar[Mapping[str, str]] = PROBABILITIES
    model_: Estimator

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Fit to a frame of task, worker, label; ``true_labels`` is a Series by task."""
        task_labels = read_labels(data)
        self.model_ = self._fit_model(task_labels.with_known(true_labels))
        self._set_results(task_labels)
        return self

    def _model(self) -> Estimator:
        """Return the estimator with the options of this aggregator."""
        raise NotImplementedError

    def _fit_model(self, data: TaskLabels) -> Estimator:
        return self._model().fit(data.labels)

    def _set_results(self, data: TaskLabels) -> None:
        fit = self.model_.result_
        assert fit.distribution is not None
        self._set_probas(fit.distribution.dense(len(data.classes)), data)
        self.skills_ = pd.Series(fit.reliability, index=data.workers, name="skill")
        self.loss_history_ = (fit.history.log_likelihood[1:] / data.labels.n_labels).tolist()

    def _set_probas(self, probas: Floats, data: TaskLabels) -> None:
        self.probas_ = pd.DataFrame(probas, index=data.tasks, columns=data.classes)
        self.labels_ = label_series(winners(probas), data.tasks, data.classes)


class AllowsNoIterations(EMEstimator):
    """Part of estimators that return their start for ``max_iter=0``."""

    def _run_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None = None
    ) -> tuple[P, History]:
        if self.max_iter != 0:
            return super()._run_em(steps, start, progress)
        log_likelihood = np.array([steps.finalize(start)])
        return start, History(log_likelihood, np.empty(0), False, "no iterations")


@dataclass(eq=False)
class GPM(ModelAggregator):
    """`annotruth.GPM`, for many labels per task; ``random_state`` has no effect."""

    n_iter: int = 1000
    tol: float = 1e-4
    random_state: int | None = None

    def _model(self) -> Estimator:
        return gpm.GPM(max_iter=self.n_iter, tol=self.tol)


@dataclass(eq=False)
class RobustGPM(GPM):
    """`annotruth.RobustGPM`, the default model of annotruth; ``random_state`` has no effect."""

    def _model(self) -> Estimator:
        return robust_gpm.RobustGPM(max_iter=self.n_iter, tol=self.tol)


@dataclass(kw_only=True)
class _GLADModel(AllowsNoIterations, glad.GLAD):
    """GLAD, which returns its start without iterations."""


@dataclass(eq=False)
class GLAD(ModelAggregator):
    """`annotruth.GLAD`: abilities of workers (``alphas_``), log-easiness of tasks (``betas_``).

    The model is crowd-kit's, with the priors N(1, 1) and equally likely labels. Its M-steps are
    Newton steps, so that ``silent``, ``m_step_max_iter`` and ``m_step_tol`` have no effect, and
    ``tol`` is the change of the log-posterior. Other priors are refused.
    """

    n_iter: int = 100
    tol: float = 1e-5
    silent: bool = True
    labels_priors: pd.Series[Any] | None = None
    alphas_priors_mean: pd.Series[Any] | None = None
    betas_priors_mean: pd.Series[Any] | None = None
    m_step_max_iter: int = 25
    m_step_tol: float = 1e-2

    def __post_init__(self) -> None:
        for option, because in (
            ("labels_priors", "all labels are equally likely"),
            ("alphas_priors_mean", "the prior mean of abilities is 1"),
            ("betas_priors_mean", "the prior mean of betas is 1"),
        ):
            if getattr(self, option) is not None:
                raise InputError(f"{option} is not supported: {because}; leave it out")

    def _model(self) -> Estimator:
        return _GLADModel(max_iter=self.n_iter, tol=self.tol)

    def _set_results(self, data: TaskLabels) -> None:
        super()._set_results(data)
        fit = self.model_.result_
        ability, difficulty = fit.annotator_columns["ability"], fit.item_columns["difficulty"]
        self.alphas_ = pd.Series(ability, index=data.workers, name="alpha")
        self.betas_ = pd.Series(-np.log(difficulty), index=data.tasks, name="beta")
        # crowd-kit's names and order.
        self.probas_ = self.probas_.sort_index().rename_axis(columns="variable")
        self.labels_ = self.labels_.sort_index()


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

    def _model(self) -> Estimator:
        return _OneCoinModel(max_iter=self.n_iter, tol=self.tol)

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
    votes = np.diff(labels.cell_ptr)
    shares = votes / labels.labels_per_item[labels.item_of_cell()]
    probas = Distribution.of_cells(labels, shares).dense(labels.n_categories)
    known = np.flatnonzero(labels.known >= 0)
    probas[known] = np.eye(labels.n_categories)[labels.known[known]]
    return probas


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
