"""Frames of task, worker, label as integer codes, and weighted votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotruth.crowdkit.errors import MissingColumnError
from annotruth.errors import InputError, listed, shown
from annotruth.kernels.arrays import Codes, Floats

COLUMNS = ("task", "worker", "label")


class Votes(NamedTuple):
    """One entry per row of a frame: codes, which index the sorted ids.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit.votes import encode
    >>> rows = [("t2", "w1", "cat"), ("t1", "w1", "dog")]
    >>> votes = encode(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    >>> votes.task.tolist(), votes.tasks.tolist()
    ([1, 0], ['t1', 't2'])
    """

    task: Codes
    worker: Codes
    label: Codes
    tasks: pd.Index[Any]
    workers: pd.Index[Any]
    labels: pd.Index[Any]

    def scores(self, weight: Floats | None = None) -> Floats:
        """Return the number of votes, or the sum of their weights, tasks x labels."""
        n_tasks, n_labels = len(self.tasks), len(self.labels)
        cell = self.task * n_labels + self.label
        scores = np.bincount(cell, weight, minlength=n_tasks * n_labels)
        return scores.reshape(n_tasks, n_labels).astype(float)

    def distinct(self) -> Votes:
        """Return the votes without repetitions of a worker's label of a task."""
        pair = self.task * len(self.workers) + self.worker
        _, first = np.unique(pair * len(self.labels) + self.label, return_index=True)
        return self._replace(
            task=self.task[first], worker=self.worker[first], label=self.label[first]
        )

    def worker_accuracy(self, winner: Codes) -> Floats:
        """Return the share of each worker's votes that are the winner of their task."""
        is_right = self.label == winner[self.task]
        accuracy: Floats = np.bincount(self.worker, is_right) / np.bincount(self.worker)
        return accuracy


def select(data: Any, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Return the named columns of a frame, without rows that have a missing value."""
    if not isinstance(data, pd.DataFrame):
        raise InputError(f"the labels are {shown(data)}: pass a pandas frame of {listed(columns)}")
    for name in columns:
        if name not in data.columns:
            found = listed([str(column) for column in data.columns])
            raise MissingColumnError(f"no column {name!r} (found: {found}): rename one")
    return data[list(columns)].dropna()


def encode(data: Any) -> Votes:
    """Return the rows of a frame of task, worker, label as codes."""
    frame = select(data)
    codes, ids = zip(*(pd.factorize(frame[name], sort=True) for name in COLUMNS), strict=True)
    named = (pd.Index(index, name=name) for name, index in zip(COLUMNS, ids, strict=True))
    return Votes(*codes, *named)


def shares_of(scores: Floats) -> Floats:
    """Return each row divided by its sum; NaN where the sum is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = scores / scores.sum(axis=1, keepdims=True)
    return shares


def winners(shares: Floats) -> Codes:
    """Return the column of the largest share in each row: the first, where several are equal."""
    if not shares.shape[1]:
        return np.zeros(0, dtype=np.int64)
    winner: Codes = np.where(np.isnan(shares), -np.inf, shares).argmax(axis=1)
    return winner


def label_series(winner: Codes, tasks: pd.Index[Any], labels: pd.Index[Any]) -> pd.Series[Any]:
    """Return the label of each task as the Series agg_label."""
    return pd.Series(labels.take(winner).array, index=tasks, name="agg_label")
