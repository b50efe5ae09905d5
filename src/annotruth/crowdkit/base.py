"""The base classes of the aggregators, and the errors that crowd-kit raises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from annotruth.errors import InputError, NotFittedError, one_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BaseClassificationAggregator", "BasePairwiseAggregator"]


class MissingColumnError(InputError, KeyError):
    """A frame lacks a column; a `KeyError`, as in crowd-kit."""

    def __str__(self) -> str:
        return one_line(self.args[0])  # a KeyError shows the repr of its message


class MissingSkillError(InputError, AssertionError):
    """Workers without a skill, or an aggregator without skills; an `AssertionError`, as in crowd-kit."""


class Aggregator:
    """Base of all classes, whose options are the fields of a dataclass.

    ``fit`` stores results in attributes that end with an underscore. Every method of ``predictions``
    takes the arguments of ``fit``, and returns the attribute beside its name.
    """

    predictions: ClassVar[Mapping[str, str]] = {}

    labels_: pd.Series[Any]
    probas_: pd.DataFrame
    scores_: Any
    skills_: pd.Series[Any]
    loss_history_: list[float]

    def __init_subclass__(cls) -> None:
        for name, attribute in cls.predictions.items():
            setattr(cls, name, _fit_and_return(cls.fit, name, attribute))

    def fit(self, data: pd.DataFrame) -> Any:
        """Fit to a frame; return the aggregator."""
        raise NotImplementedError

    def _predict(self, data: pd.DataFrame) -> None:
        """Predict after a fit, where that is a step of its own."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and not name.startswith("_"):
                raise NotFittedError(
                    f"this {type(self).__name__} has no {name}: it is not fitted yet, call fit first"
                )
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def _fit_and_return(fit: Callable[..., Any], name: str, attribute: str) -> Callable[..., Any]:
    """Return a method with the signature of ``fit`` that fits and returns an attribute."""
    signature = inspect.signature(fit)

    def method(self: Any, *given: Any, **named: Any) -> Any:
        arguments = signature.bind(self, *given, **named).arguments
        self.fit(*given, **named)._predict(arguments["data"])
        return getattr(self, attribute)

    method.__name__ = name
    method.__doc__ = f"Fit as ``fit`` does, and return ``{attribute}``."
    method.__signature__ = signature.replace(return_annotation=Any)  # type: ignore[attr-defined]
    return method


class BaseClassificationAggregator(Aggregator):
    """Base of the classes that aggregate a frame of task, worker, label.

    ``labels_`` is the label of each task: a Series named agg_label, by task.
    """

    predictions: ClassVar[Mapping[str, str]] = {"fit_predict": "labels_"}

    fit_predict: Callable[..., pd.Series[Any]]


class BasePairwiseAggregator(Aggregator):
    """Base of the classes that aggregate a frame of worker, left, right, label.

    ``scores_`` is the score of each item: a Series named agg_score, by item.
    """

    predictions: ClassVar[Mapping[str, str]] = {"fit_predict": "scores_"}
