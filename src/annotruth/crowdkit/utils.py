"""crowd-kit's helper functions for frames of task, worker, label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.votes import add_skills_to_data, get_accuracy
from annotruth.errors import InputError

__all__ = [
    "add_skills_to_data",
    "clone_aggregator",
    "evaluate",
    "evaluate_equal",
    "evaluate_in",
    "factorize",
    "get_accuracy",
    "get_most_probable_labels",
    "normalize_rows",
]

Aggregator = TypeVar("Aggregator", bound=BaseClassificationAggregator)


def evaluate_in(row: pd.Series[Any]) -> int:
    """Return 1 if the predicted label is one of the true labels, else 0."""
    return int(row["label_pred"] in row["label_true"])


def evaluate_equal(row: pd.Series[Any]) -> int:
    """Return 1 if the predicted label is the true label, else 0."""
    return int(row["label_pred"] == row["label_true"])


def evaluate(
    df_true: pd.DataFrame,
    df_pred: pd.DataFrame,
    evaluate_func: Callable[[pd.Series[Any]], int] = evaluate_in,
) -> float:
    """Return the mean of ``evaluate_func`` over the tasks of two frames of task, label.

    The function gets a row with ``label_true`` and ``label_pred``.
    """
    both = df_true.merge(df_pred, on="task", suffixes=("_true", "_pred"))
    if len(both) != len(df_true):
        raise InputError(
            f"{len(df_true):,} tasks have a true label, but {len(both):,} of these a prediction: "
            "give both frames the same tasks, each once"
        )
    return float(both.apply(evaluate_func, axis=1).mean())


def factorize(data: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sorted distinct values, and an array of the values' codes in the data's shape."""
    values, codes = np.unique(data, return_inverse=True)
    return values, codes.reshape(data.shape)


def get_most_probable_labels(proba: pd.DataFrame) -> pd.Series[Any]:
    """Return the column of the highest probability of each row."""
    return proba.idxmax(axis="columns") if proba.size else pd.Series([], dtype=object)


def normalize_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores divided by the sum of their row."""
    return scores.div(scores.sum(axis="columns"), axis="index")


def clone_aggregator(aggregator: Aggregator) -> Aggregator:
    """Return a new aggregator with the same options, which is not fitted."""
    return replace(aggregator)  # type: ignore[type-var]
