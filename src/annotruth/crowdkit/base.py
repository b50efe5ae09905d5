"""The base classes of the aggregators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from annotruth.errors import NotFittedError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BaseClassificationAggregator", "BasePairwiseAggregator"]


class Aggregator:
    """Base of all classes: options are attributes of the same name.

    `fit` stores results in attributes that end with an underscore.

    Examples
    --------
    >>> from annotruth.crowdkit import BradleyTerry
    >>> BradleyTerry(20)
    BradleyTerry(n_iter=20, tol=1e-05)
    """

    def options(self) -> dict[str, Any]:
        """Return the options by name."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"{type(self).__name__}({options})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and not name.startswith("_"):
                raise NotFittedError(
                    f"this {type(self).__name__} has no {name}: it is not fitted yet, call fit first"
                )
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class BaseClassificationAggregator(Aggregator):
    """Base of the classes that aggregate a frame of task, worker, label.

    Attributes
    ----------
    labels_
        The label of each task: a Series named agg_label, by task.

    Examples
    --------
    >>> from annotruth.crowdkit import DawidSkene
    >>> from annotruth.crowdkit.base import BaseClassificationAggregator
    >>> issubclass(DawidSkene, BaseClassificationAggregator)
    True
    >>> DawidSkene(20)
    DawidSkene(n_iter=20, tol=1e-05, initial_error_strategy=None)
    """

    labels_: pd.Series[Any]

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of task, worker, label."""
        raise NotImplementedError

    def fit_predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data).labels_


class BasePairwiseAggregator(Aggregator):
    """Base of the classes that aggregate a frame of worker, left, right, label.

    Attributes
    ----------
    scores_
        The score of each item: a Series named agg_score, by item.

    Examples
    --------
    >>> from annotruth.crowdkit import NoisyBradleyTerry
    >>> issubclass(NoisyBradleyTerry, BasePairwiseAggregator)
    True
    """

    scores_: pd.Series[Any]

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of worker, left, right, label."""
        raise NotImplementedError

    def fit_predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Fit and return the score of each item."""
        return self.fit(data).scores_
