"""crowd-kit's classes and terms for annotruth's models, so that programs change only the import.

>>> from annotruth.crowdkit import DawidSkene  # was: from crowdkit.aggregation import DawidSkene
>>> DawidSkene(n_iter=100).fit_predict(frame)  # doctest: +SKIP

A frame has the columns task, worker, label. Labels are classes, even if they are numbers, and a
worker's second label on a task is another vote. In all else the models behave as in annotruth:
ids keep their type, a fit that reaches its maximum number of iterations warns, and nothing is
random. For ordinal scales, scores and intervals use the models of `annotruth`; ``model_`` is the
underlying one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from annotruth.errors import AnnotruthError, InputError
from annotruth.labels import Labels
from annotruth.labels.frames import check_pandas_installed
from annotruth.models import baselines, dawid_skene, glad, gpm, robust_gpm
from annotruth.models.base import Estimator

if TYPE_CHECKING:
    import pandas as pd

    from annotruth.models.result import Fit

__all__ = ["GLAD", "GPM", "DawidSkene", "MajorityVote", "RobustGPM"]

_COLUMNS = {"item": "task", "annotator": "worker", "label": "label"}

Model = TypeVar("Model", bound=Estimator)


class _Aggregator(Generic[Model]):
    """Base class of the aggregators of classes.

    Attributes
    ----------
    model_
        The underlying estimator, with ``model_.result_`` after fitting.
    """

    model_: Model

    def fit(self, data: Any, true_labels: Any = None) -> Self:
        """Fit to a frame of task, worker, label; ``true_labels`` is a Series by task."""
        labels = Labels.of(data, columns=_COLUMNS, scale="nominal", duplicates="keep")
        self.model_.fit(labels, gold=true_labels)
        return self

    def fit_predict(self, data: Any, true_labels: Any = None) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> pd.DataFrame:
        """Fit and return the probability of each label, one row per task."""
        return self.fit(data, true_labels).probas_

    @property
    def labels_(self) -> pd.Series[Any]:
        """The label of each task: a Series named agg_label."""
        return self.model_.labels_

    @property
    def probas_(self) -> pd.DataFrame:
        """The distribution of each task, one column per label."""
        return self.model_.probas_.rename_axis(columns="label")

    @property
    def skills_(self) -> pd.Series[Any]:
        """The reliability of each worker: a Series named skill."""
        return self.model_.skills_

    @property
    def loss_history_(self) -> list[float]:
        """The mean log-likelihood per label, at the start and after every iteration."""
        fit = self._fitted()
        history: list[float] = (fit.history.log_likelihood / fit.data.n_labels).tolist()
        return history

    def _fitted(self) -> Fit:
        if not hasattr(self.model_, "result_"):
            raise AnnotruthError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self.model_.result_


class MajorityVote(_Aggregator[baselines.MajorityVote]):
    """The most frequent label of each task; of tied labels, the first in sorted order.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import MajorityVote
    >>> votes = [("t1", "w1", "cat"), ("t1", "w2", "cat"), ("t1", "w3", "dog")]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> MajorityVote().fit_predict(frame)["t1"]
    'cat'
    """

    def __init__(self, default_skill: float | None = None, on_missing_skill: str = "error") -> None:
        # Both options concern missing skills; skills are not supported.
        self.model_ = baselines.MajorityVote()

    def fit(self, data: Any, skills: Any = None) -> Self:
        """Fit to a frame of task, worker, label."""
        if skills is not None:
            raise InputError(
                "votes are not weighted by given skills: leave skills out, or use RobustGPM or "
                "DawidSkene, which estimate them"
            )
        return super().fit(data)

    def fit_predict(self, data: Any, skills: Any = None) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, skills).labels_

    def fit_predict_proba(self, data: Any, skills: Any = None) -> pd.DataFrame:
        """Fit and return the share of each label, one row per task."""
        return self.fit(data, skills).probas_

    @property
    def skills_(self) -> pd.Series[Any]:
        """The share of each worker's labels that agree with the result: a Series named skill."""
        check_pandas_installed()
        import pandas as pd

        fit = self._fitted()
        assert fit.label is not None
        is_right = fit.label[fit.data.item_of_label()] == fit.data.category_of_label()
        share = np.bincount(fit.data.annotator, is_right) / fit.data.labels_per_annotator
        workers = pd.Index(fit.data.annotators.to_pandas(), name="worker")
        return pd.Series(share, index=workers, name="skill")


class DawidSkene(_Aggregator[dawid_skene.DawidSkene]):
    """Dawid and Skene's model by plain EM; ``tol`` is the change in log-likelihood per label.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import DawidSkene
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> DawidSkene(n_iter=100).fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

    def __init__(
        self, n_iter: int = 100, tol: float = 1e-5, initial_error_strategy: str | None = None
    ) -> None:
        _refuse(initial_error_strategy, "initial_error_strategy")
        # As in crowd-kit, an iteration is one EM step.
        self.model_ = dawid_skene.DawidSkene(max_iter=n_iter, tol=tol, acceleration=False)

    @property
    def priors_(self) -> pd.Series[Any]:
        """The prior probability of each label: a Series named prior."""
        return self.model_.priors_

    @property
    def errors_(self) -> pd.DataFrame:
        """The confusion matrix of each worker: given labels (rows) by true labels (columns)."""
        return self.model_.errors_


class GLAD(_Aggregator[glad.GLAD]):
    """GLAD; M-steps are Newton steps, so the options of crowd-kit's inner loop have no effect.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import GLAD
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> GLAD().fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

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
    """GPM, in place of crowd-kit's MACE where there are many labels per task.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import GPM
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> GPM().fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

    def __init__(
        self, n_iter: int = 1000, tol: float = 1e-4, random_state: int | None = None
    ) -> None:
        # Nothing is random; random_state is accepted for compatibility.
        self.model_ = gpm.GPM(max_iter=n_iter, tol=tol)


class RobustGPM(_Aggregator[robust_gpm.RobustGPM]):
    """RobustGPM, in place of crowd-kit's MACE where there are few labels per task.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import RobustGPM
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> RobustGPM().fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

    def __init__(
        self, n_iter: int = 1000, tol: float = 1e-4, random_state: int | None = None
    ) -> None:
        # Nothing is random; random_state is accepted for compatibility.
        self.model_ = robust_gpm.RobustGPM(max_iter=n_iter, tol=tol)


def _refuse(value: Any, option: str) -> None:
    if value is not None:
        raise InputError(f"{option} is not supported: leave it out")
