"""The base classes of the aggregators, and the errors that crowd-kit raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

    ``fit`` stores results in attributes that end with an underscore. The methods that begin with
    ``fit_predict`` take the arguments of ``fit``, and return one of these attributes.
    """

    labels_: pd.Series[Any]
    probas_: pd.DataFrame
    scores_: Any
    skills_: pd.Series[Any]
    loss_history_: list[float]

    def fit(self, data: pd.DataFrame) -> Any:
        """Fit to a frame; return the aggregator."""
        raise NotImplementedError

    def _predict(self, data: pd.DataFrame) -> Any:
        """Predict after a fit, where that is a step of its own; return the aggregator."""
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and not name.startswith("_"):
                raise NotFittedError(
                    f"this {type(self).__name__} has no {name}: it is not fitted yet, call fit first"
                )
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class BaseClassificationAggregator(Aggregator):
    """Base of the classes that aggregate a frame of task, worker, label."""

    def fit_predict(self, data: pd.DataFrame, *given: Any, **named: Any) -> pd.Series[Any]:
        """Fit as ``fit`` does; return the label of each task, a Series named agg_label."""
        labels: pd.Series[Any] = self.fit(data, *given, **named)._predict(data).labels_
        return labels


class ProbabilityAggregator(BaseClassificationAggregator):
    """Base of the classes that have the probability of each label."""

    def fit_predict_proba(self, data: pd.DataFrame, *given: Any, **named: Any) -> pd.DataFrame:
        """Fit as ``fit`` does; return the probability of each label, one row per task."""
        probas: pd.DataFrame = self.fit(data, *given, **named)._predict(data).probas_
        return probas


class BasePairwiseAggregator(Aggregator):
    """Base of the classes that aggregate a frame of worker, left, right, label."""

    def fit_predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Fit as ``fit`` does; return the score of each item, a Series named agg_score."""
        scores: pd.Series[Any] = self.fit(data).scores_
        return scores
