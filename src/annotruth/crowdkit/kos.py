"""KOS: belief propagation for two labels."""

from __future__ import annotations

from typing import Self

import numpy as np
import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.votes import encode, label_series
from annotruth.errors import InputError

_MAX_MESSAGE = 1e300  # larger ones would overflow in the next iteration


class KOS(BaseClassificationAggregator):
    r"""Karger, Oh and Shah's message passing, for two labels.

    "Budget-Optimal Task Allocation for Reliable Crowdsourcing Systems", Operations Research 62
    (2014), 1-24. With labels :math:`A_{ij} = \pm 1` of worker j on task i, messages between tasks
    and workers are sums over all other neighbours,

    .. math::
        x_{i \to j} = \sum_{j' \ne j} A_{ij'} y_{j' \to i}, \qquad
        y_{j \to i} = \sum_{i' \ne i} A_{i'j} x_{i' \to j},

    starting with :math:`y \sim N(1, 1)`. A task's label is the sign of :math:`\sum_j A_{ij} y_{j \to
    i}`; a sum of 0 counts as the label of the first row.

    Parameters
    ----------
    n_iter
        The number of iterations; fewer if messages would overflow.
    random_state
        The seed of the first messages.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import KOS
    >>> votes = [(task, worker, "yes") for task in ("t1", "t2", "t3") for worker in ("w1", "w2")]
    >>> votes += [(task, "w3", "no") for task in ("t1", "t2", "t3")]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> KOS(n_iter=10).fit_predict(frame).to_dict()
    {'t1': 'yes', 't2': 'yes', 't3': 'yes'}
    """

    def __init__(self, n_iter: int = 100, random_state: int = 0) -> None:
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of task, worker, label with two different labels."""
        votes = encode(data)
        if not len(votes.task):
            self.labels_ = pd.Series([], dtype=object, name="agg_label")
            return self
        if len(votes.labels) != 2:
            raise InputError(
                f"KOS is for two labels, not {len(votes.labels):,}: use DawidSkene or MajorityVote"
            )
        first = votes.label[0]
        sign = np.where(votes.label == first, 1.0, -1.0)
        # The draws are those of crowd-kit, so that results are too.
        reliability = np.random.RandomState(self.random_state).normal(1.0, 1.0, len(sign))
        for _ in range(self.n_iter):
            message = sign * reliability
            total = np.bincount(votes.task, message)[votes.task]
            if (np.abs(total) > _MAX_MESSAGE).any():
                break
            message = sign * (total - message)
            total = np.bincount(votes.worker, message)[votes.worker]
            if (np.abs(total) > _MAX_MESSAGE).any():
                break
            reliability = total - message
        is_first = np.bincount(votes.task, sign * reliability) >= 0.0
        self.labels_ = label_series(np.where(is_first, first, 1 - first), votes.tasks, votes.labels)
        return self
