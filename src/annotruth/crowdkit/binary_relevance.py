"""Lists of labels, aggregated label by label."""

from __future__ import annotations

from typing import Any, Self

import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.majority_vote import MajorityVote
from annotruth.crowdkit.utils import clone_aggregator
from annotruth.crowdkit.votes import select
from annotruth.errors import InputError, shown


class BinaryRelevance(BaseClassificationAggregator):
    """Aggregates lists of labels: each label on its own, as given (1) or not given (0).

    Parameters
    ----------
    base_aggregator
        The aggregator for each label, by default the majority vote. It is not fitted itself.

    Attributes
    ----------
    labels_
        The list of labels of each task.
    aggregators_
        The fitted aggregator of each label.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import BinaryRelevance
    >>> rows = [("t1", "w1", ["house", "tree"]), ("t1", "w2", ["house"]), ("t1", "w3", ["house"])]
    >>> frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    >>> BinaryRelevance().fit_predict(frame)["t1"]
    ['house']
    """

    aggregators_: dict[Any, BaseClassificationAggregator]

    def __init__(self, base_aggregator: BaseClassificationAggregator | None = None) -> None:
        if base_aggregator is None:
            base_aggregator = MajorityVote()
        if not isinstance(base_aggregator, BaseClassificationAggregator):
            raise InputError(
                f"base_aggregator is {shown(base_aggregator)}: pass one of annotruth.crowdkit, such "
                "as MajorityVote()"
            )
        self.base_aggregator = base_aggregator

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of task, worker, label whose labels are lists."""
        frame = select(data)
        self.aggregators_ = {}
        if not len(frame):
            self.labels_ = pd.Series(dtype=float, name="agg_label")
            return self
        given = [set(labels) for labels in frame["label"]]
        chosen: dict[Any, list[Any]] = {task: [] for task in frame["task"].drop_duplicates()}
        for label in pd.factorize(pd.Series(list(set().union(*given))), sort=True)[1]:
            aggregator = clone_aggregator(self.base_aggregator)
            is_given = [int(label in labels) for labels in given]
            predicted = aggregator.fit_predict(frame.assign(label=is_given))
            self.aggregators_[label] = aggregator
            for task in predicted.index[predicted == 1]:
                chosen[task].append(label)
        self.labels_ = pd.Series(chosen, name="agg_label").rename_axis("task")
        return self
