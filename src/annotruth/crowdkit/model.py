"""The base of the aggregators that are models of annotruth."""

from __future__ import annotations

from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.votes import COLUMNS, label_series, select, winners
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.labels import Labels
from annotruth.labels.frames import LABEL_ROLES
from annotruth.models.base import Estimator
from annotruth.models.em import History, ProgressCallback, Steps
from annotruth.models.em_estimator import EMEstimator

P = TypeVar("P")


class TaskLabels(NamedTuple):
    """The labels of a frame, and their ids as pandas has them, in the order of ``labels``.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit.model import read_labels
    >>> rows = [("t2", "w1", True), ("t1", "w1", False)]
    >>> data = read_labels(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    >>> data.tasks.tolist(), data.classes.tolist()
    (['t2', 't1'], [False, True])
    """

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

    Attributes
    ----------
    model_
        The estimator of annotruth; ``model_.result_`` has its tables, report and advice.
    labels_, probas_
        The label of each task, and the probability of each label, one row per task.
    skills_
        The reliability of each worker.
    loss_history_
        The mean log-likelihood per label after every iteration.

    Examples
    --------
    >>> from annotruth.crowdkit import GLAD
    >>> from annotruth.crowdkit.model import ModelAggregator
    >>> issubclass(GLAD, ModelAggregator)
    True
    """

    model_: Estimator
    probas_: pd.DataFrame
    skills_: pd.Series[Any]
    loss_history_: list[float]

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Fit to a frame of task, worker, label; ``true_labels`` is a Series by task."""
        task_labels = read_labels(data)
        self.model_ = self._fit_model(task_labels.with_known(true_labels))
        self._set_results(task_labels)
        return self

    def fit_predict(
        self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None
    ) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(
        self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None
    ) -> pd.DataFrame:
        """Fit and return the probability of each label, one row per task."""
        return self.fit(data, true_labels).probas_

    def _model(self) -> Estimator:
        """Return the estimator with the options of this aggregator."""
        raise NotImplementedError

    def _fit_model(self, data: TaskLabels) -> Estimator:
        """Return the fitted estimator."""
        return self._model().fit(data.labels)

    def _set_results(self, data: TaskLabels) -> None:
        """Store the results of the fitted estimator."""
        fit = self.model_.result_
        assert fit.distribution is not None
        self._set_probas(fit.distribution.dense(len(data.classes)), data)
        self.skills_ = pd.Series(fit.reliability, index=data.workers, name="skill")
        self.loss_history_ = (fit.history.log_likelihood[1:] / data.labels.n_labels).tolist()

    def _set_probas(self, probas: Floats, data: TaskLabels) -> None:
        """Store the probabilities, and the labels of highest probability."""
        self.probas_ = pd.DataFrame(probas, index=data.tasks, columns=data.classes)
        self.labels_ = label_series(winners(probas), data.tasks, data.classes)


class AllowsNoIterations(EMEstimator):
    """Part of estimators that return their start for ``max_iter=0``.

    Examples
    --------
    >>> from annotruth.crowdkit import GLAD
    >>> from annotruth.crowdkit.model import AllowsNoIterations
    >>> isinstance(GLAD(n_iter=0)._model(), AllowsNoIterations)
    True
    """

    def _run_em(
        self, steps: Steps[P], start: P, progress: ProgressCallback | None = None
    ) -> tuple[P, History]:
        if self.max_iter != 0:
            return super()._run_em(steps, start, progress)
        log_likelihood = np.array([steps.finalize(start)])
        return start, History(log_likelihood, np.empty(0), False, "no iterations")


def refuse(option: str, value: Any, because: str) -> None:
    """Raise if an option that the model does not have is given."""
    if value is not None:
        raise InputError(f"{option} is not supported: {because}; leave it out")
