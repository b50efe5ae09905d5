"""Metrics of workers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.votes import MajorityVote, get_accuracy

__all__ = ["accuracy_on_aggregates"]


def accuracy_on_aggregates(
    answers: pd.DataFrame,
    aggregator: BaseClassificationAggregator | None = None,
    aggregates: pd.Series[Any] | None = None,
    by: str | None = None,
) -> Any:
    """Return the share of labels that are the aggregated label of their task.

    ``aggregates`` is a Series by task, by default what the ``aggregator`` (by default the majority vote)
    returns. ``by`` is the column to group by, such as "worker"; by default the share of all labels.
    """
    if aggregates is None:
        aggregates = (aggregator or MajorityVote()).fit_predict(answers)
    return get_accuracy(answers, aggregates, by=by)
