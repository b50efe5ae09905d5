"""crowd-kit's classes and words over our models, so that a program changes its import alone.

>>> from annotruth.crowdkit import DawidSkene  # was: from crowdkit.aggregation import DawidSkene
>>> DawidSkene(n_iter=100).fit_predict(frame)  # doctest: +SKIP

A frame has the columns task, worker, label; labels are classes, also where they are numbers; a
person's second label on a task counts as another vote. All but that is annotruth: ids keep their
type, a cap of iterations that is reached warns, and nothing is random. For ordered scales, scores
and intervals take the models of `annotruth` itself; ``model_`` is the one behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from annotruth.errors import AnnotruthError, InputError
from annotruth.labels import Labels
from annotruth.labels.frames import need_pandas
from annotruth.models import baselines, dawid_skene, glad, gpm, robust_gpm
from annotruth.models.base import Estimator

if TYPE_CHECKING:
    import pandas as pd

    from annotruth.models.result import Fit

__all__ = ["GLAD", "GPM", "DawidSkene", "MajorityVote", "RobustGPM"]

_COLUMNS = {"item": "task", "annotator": "worker", "label": "label"}

Model = TypeVar("Model", bound=Estimator)


class _Aggregator(Generic[Model]):
    """What crowd-kit's aggregators of classes share.

    Attributes
    ----------
    model_
        The estimator behind, with ``model_.result_`` after fitting.
    """

    model_: Model

    def fit(self, data: Any, true_labels: Any = None) -> Self:
        """Fit to a frame of task, worker, label; known truths are a Series by task."""
        labels = Labels.of(data, columns=_COLUMNS, scale="nominal", duplicates="keep")
        self.model_.fit(labels, gold=true_labels)
        return self

    def fit_predict(self, data: Any, true_labels: Any = None) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> pd.DataFrame:
        """Fit and return how likely each label is to be right, a row a task."""
        return self.fit(data, true_labels).probas_

    @property
    def labels_(self) -> pd.Series[Any]:
        """The label of each task: a Series named agg_label."""
        return self.model_.labels_

    @property
    def probas_(self) -> pd.DataFrame:
        """The distribution of each task, one column a label."""
        return self.model_.probas_.rename_axis(columns="label")

    @property
    def skills_(self) -> pd.Series[Any]:
        """The reliability of each worker: a Series named skill."""
        return self.model_.skills_

    @property
    def loss_history_(self) -> list[float]:
        """The mean log-likelihood of a label, at the start and after every iteration."""
        fit = self._fitted()
        history: list[float] = (fit.history.log_likelihood / fit.data.n_labels).tolist()
        return history

    def _fitted(self) -> Fit:
        if not hasattr(self.model_, "result_"):
            raise AnnotruthError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self.model_.result_


class MajorityVote(_Aggregator[baselines.MajorityVote]):
    """The most frequent label of each task; a tie goes to the label that sorts first."""

    def __init__(self, default_skill: float | None = None, on_missing_skill: str = "error") -> None:
        # Both say what to do with skills that are not given; here none are.
        self.model_ = baselines.MajorityVote()

    def fit(self, data: Any, skills: Any = None) -> Self:
        """Fit to a frame of task, worker, label."""
        if skills is not None:
            raise InputError(
                "votes are not weighed by given skills: leave skills out, or take RobustGPM or "
                "DawidSkene, which learn whom to trust"
            )
        return super().fit(data)

    def fit_predict(self, data: Any, skills: Any = None) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, skills).labels_

    def fit_predict_proba(self, data: Any, skills: Any = None) -> pd.DataFrame:
        """Fit and return the share of each label, a row a task."""
        return self.fit(data, skills).probas_

    @property
    def skills_(self) -> pd.Series[Any]:
        """The share of each worker's labels that are their task's: a Series named skill."""
        need_pandas()
        import pandas as pd

        fit = self._fitted()
        assert fit.label is not None
        right = fit.label[fit.data.item_of_label()] == fit.data.category_of_label()
        share = np.bincount(fit.data.annotator, right) / fit.data.labels_per_annotator
        workers = pd.Index(fit.data.annotators.to_pandas(), name="worker")
        return pd.Series(share, index=workers, name="skill")


class DawidSkene(_Aggregator[dawid_skene.DawidSkene]):
    """Dawid and Skene's model by plain EM; ``tol`` is of the log-likelihood a label."""

    def __init__(
        self, n_iter: int = 100, tol: float = 1e-5, initial_error_strategy: str | None = None
    ) -> None:
        _refuse(initial_error_strategy, "initial_error_strategy")
        # Iterations are to mean what they mean there: one step of EM each.
        self.model_ = dawid_skene.DawidSkene(max_iter=n_iter, tol=tol, acceleration=False)

    @property
    def priors_(self) -> pd.Series[Any]:
        """How frequent each label is: a Series named prior."""
        return self.model_.priors_

    @property
    def errors_(self) -> pd.DataFrame:
        """How often each worker says a label (rows) where another is right (columns)."""
        return self.model_.errors_


class GLAD(_Aggregator[glad.GLAD]):
    """GLAD; steps are Newton's, so that there is no inner loop to set."""

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-5,
        silent: bool = True,
        labels_priors: Any = None,
        alphas_priors_mean: Any = None,
        betas_priors_mean: Any = None,
        m_step_max_iter: int = 25,
        m_step_tol: float = 1e-2,
    ) -> None:
        _refuse(labels_priors, "labels_priors")
        _refuse(alphas_priors_mean, "alphas_priors_mean")
        _refuse(betas_priors_mean, "betas_priors_mean")
        self.model_ = glad.GLAD(max_iter=n_iter, tol=tol)

    @property
    def alphas_(self) -> pd.Series[Any]:
        """The ability of each worker: a Series named alpha."""
        return self.model_.alphas_

    @property
    def betas_(self) -> pd.Series[Any]:
        """The log of each task's easiness: a Series named beta."""
        return self.model_.betas_


class GPM(_Aggregator[gpm.GPM]):
    """GPM; where crowd-kit's MACE stood, and labels a task are many."""

    def __init__(
        self, n_iter: int = 1000, tol: float = 1e-4, random_state: int | None = None
    ) -> None:
        # Nothing is random: the state is there for programs that set it.
        self.model_ = gpm.GPM(max_iter=n_iter, tol=tol)


class RobustGPM(_Aggregator[robust_gpm.RobustGPM]):
    """RobustGPM; where crowd-kit's MACE stood, and labels a task are few."""

    def __init__(
        self, n_iter: int = 1000, tol: float = 1e-4, random_state: int | None = None
    ) -> None:
        # Nothing is random here either.
        self.model_ = robust_gpm.RobustGPM(max_iter=n_iter, tol=tol)


def _refuse(value: Any, option: str) -> None:
    if value is not None:
        raise InputError(f"{option} is not offered here: leave it out")
