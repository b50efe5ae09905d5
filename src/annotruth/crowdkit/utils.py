"""crowd-kit's helper functions for frames of task, worker, label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.votes import COLUMNS, select
from annotruth.errors import InputError, shown

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


def get_accuracy(data: pd.DataFrame, true_labels: pd.Series[Any], by: str | None = None) -> Any:
    """Return the share of labels that are right, among those of tasks with a true label.

    Parameters
    ----------
    data
        A frame of task, worker, label, and optionally of the weight of each label. A label that a
        worker gave a task several times counts once.
    true_labels
        A Series by task. A task may have several: a label is right if it is one of them.
    by
        The column to group by: "worker", "task", "label", "true_label"; the share of all by default.

    Returns
    -------
    Series or float
        The shares by group, or of all labels.
    """
    if "weight" in data:
        frame = select(data, (*COLUMNS, "weight"))
    else:
        frame = select(data).assign(weight=1)
    truths = pd.Series(true_labels, name="true_label", dtype=object)
    frame = frame.join(truths, on="task") if len(frame) else frame.assign(true_label=None)
    frame = frame[frame["true_label"].notna()]
    is_right = frame["label"].to_numpy(object) == frame["true_label"].to_numpy(object)
    frame = frame.assign(score=frame["weight"] * is_right).sort_values("score")
    sums = frame.drop_duplicates(list(COLUMNS), keep="last")
    if by is not None:
        by_group = sums.groupby(by)[["score", "weight"]].sum()
        return by_group["score"] / by_group["weight"]
    return sums["score"].sum() / sums["weight"].sum()


def add_skills_to_data(
    data: pd.DataFrame,
    skills: pd.Series[Any],
    on_missing_skill: str,
    default_skill: float | None,
) -> pd.DataFrame:
    """Return the frame with the column ``skill``, the skill of the row's worker.

    `annotruth.crowdkit.MajorityVote` describes the options.
    """
    if on_missing_skill not in ("error", "ignore", "value"):
        raise InputError(
            f"on_missing_skill is {shown(on_missing_skill)}: choose error, ignore or value"
        )
    if (on_missing_skill == "value") != (default_skill is not None):
        raise InputError(
            'default_skill and on_missing_skill="value" belong together: pass both or neither'
        )
    frame = data.join(skills.rename("skill"), on="worker")
    missing = frame["skill"].isna()
    if not missing.any() or on_missing_skill == "value":
        return frame.fillna({"skill": default_skill}) if missing.any() else frame
    if on_missing_skill == "error":
        worker = frame["worker"][missing].iloc[0]
        raise InputError(
            f"{missing.sum():,} labels are of workers without a skill, such as {shown(worker)}: add "
            'their skills, or pass on_missing_skill="ignore" or "value"'
        )
    kept = frame[~missing]
    lost = frame["task"][~frame["task"].isin(kept["task"])]
    if len(lost):
        raise InputError(
            f"{lost.nunique():,} tasks have no worker with a skill, such as {shown(lost.iloc[0])}: "
            'add skills, or pass on_missing_skill="value"'
        )
    return kept


def clone_aggregator(aggregator: Aggregator) -> Aggregator:
    """Return a new aggregator with the same options, which is not fitted."""
    return type(aggregator)(**aggregator.options())
