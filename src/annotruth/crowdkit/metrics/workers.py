"""Metrics of workers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.majority_vote import MajorityVote
from annotruth.crowdkit.utils import get_accuracy

__all__ = ["accuracy_on_aggregates"]


def accuracy_on_aggregates(
    answers: pd.DataFrame,
    aggregator: BaseClassificationAggregator | None = None,
    aggregates: pd.Series[Any] | None = None,
    by: str | None = None,
) -> Any:
    """Return the share of labels that are the aggregated label of their task.

    Parameters
    ----------
    answers
        A frame of task, worker, label.
    aggregator
        What aggregates the labels, by default the majority vote.
    aggregates
        The aggregated labels, a Series by task, if they are known.
    by
        The column to group by, such as "worker"; the share of all labels by default.
    """
    if aggregates is None:
        aggregates = (aggregator or MajorityVote()).fit_predict(answers)
    return get_accuracy(answers, aggregates, by=by)
