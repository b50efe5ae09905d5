"""The base class of the aggregators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from annotruth.errors import NotFittedError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BaseClassificationAggregator"]


class BaseClassificationAggregator:
    """Base of the classes that aggregate a frame of task, worker, label.

    Options are attributes of the same name. `fit` stores results in attributes that end with an
    underscore.

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
