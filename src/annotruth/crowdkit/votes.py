"""Frames of task, worker, label as integer codes, and the aggregators that count votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd

from annotruth.crowdkit.base import (
    BaseClassificationAggregator,
    MissingColumnError,
    ProbabilityAggregator,
)
from annotruth.errors import InputError, listed, shown
from annotruth.kernels.arrays import Codes, Floats

COLUMNS = ("task", "worker", "label")
_MAX_MESSAGE = 1e300  # larger ones would overflow in the next iteration of KOS


class Votes(NamedTuple):
    """One entry per row of a frame: codes, which index the sorted ids."""

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


def get_accuracy(data: pd.DataFrame, true_labels: pd.Series[Any], by: str | None = None) -> Any:
    """Return the share of labels that are right, among those of tasks with a true label.

    A label that a worker gave a task several times counts once. A task may have several true labels:
    a label is right if it is one of them. With ``by`` (worker, task, label or true_label), a Series.
    """
    weighted = "weight" in data
    frame = select(data, (*COLUMNS, "weight")) if weighted else select(data).assign(weight=1)
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
    """Return the frame with the column ``skill`` of the row's worker; options as for `MajorityVote`."""
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


@dataclass(eq=False)
class MajorityVote(ProbabilityAggregator):
    """The label with the most votes, or with the largest sum of the workers' skills.

    Of tied labels, the first in sorted order is returned. Labels of workers without a skill are an
    "error", left out ("ignore", if every task keeps one), or count by ``default_skill`` ("value").
    ``probas_`` are the shares of the labels, ``skills_`` the workers' shares of winning labels.
    """

    default_skill: float | None = None
    on_missing_skill: str = "error"

    def fit(self, data: pd.DataFrame, skills: pd.Series[Any] | None = None) -> Self:
        """Count the votes of a frame of task, worker, label; ``skills`` are a Series by worker."""
        frame = select(data)
        weight = None
        if skills is not None:
            frame = add_skills_to_data(frame, skills, self.on_missing_skill, self.default_skill)
            weight = frame["skill"].to_numpy(float)
        votes = encode(frame)
        shares = shares_of(votes.scores(weight))
        self.probas_ = pd.DataFrame(shares, index=votes.tasks, columns=votes.labels)
        winner = winners(shares)
        self.labels_ = label_series(winner, votes.tasks, votes.labels)
        accuracy = votes.distinct().worker_accuracy(winner)
        self.skills_ = pd.Series(accuracy, index=votes.workers, name="skill")
        return self


class SkillVote(BaseClassificationAggregator):
    """Base of the votes that are weighted by skills, which ``fit`` estimates.

    ``labels_`` and the shares of weighted votes, one row per task, are set by a prediction.
    """

    shares: ClassVar[str] = "probas_"

    def _predict(self, data: pd.DataFrame) -> Self:
        vote = MajorityVote().fit(data, self.skills_)
        self.labels_ = vote.labels_
        setattr(self, self.shares, vote.probas_)
        return self

    def predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Return the label of each task, by the skills of the fit; every worker must have one."""
        return self._predict(data).labels_


class ProbabilityVote(SkillVote, ProbabilityAggregator):
    """Base of the weighted votes whose shares are probabilities."""

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the probability of each label, one row per task, by the skills of the fit."""
        return self._predict(data).probas_


@dataclass(eq=False)
class Wawa(ProbabilityVote):
    """Worker agreement with aggregate: votes weighted by the workers' agreement with the majority."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Estimate the skills from a frame of task, worker, label."""
        self.skills_ = MajorityVote().fit(data).skills_
        return self


@dataclass(eq=False)
class ZeroBasedSkill(ProbabilityVote):
    """Votes weighted by skills that approach the workers' agreement with the weighted vote.

    All skills start ``eps`` above chance. Each iteration moves them by the learning rate towards the
    share of the worker's labels that won the vote; every ``lr_steps_to_reduce`` iterations the rate is
    multiplied by ``lr_reduce_factor``.
    """

    n_iter: int = 100
    lr_init: float = 1.0
    lr_steps_to_reduce: int = 20
    lr_reduce_factor: float = 0.5
    eps: float = 1e-5

    def fit(self, data: pd.DataFrame) -> Self:
        """Estimate the skills from a frame of task, worker, label."""
        votes = encode(data)
        distinct = votes.distinct()
        skills = np.full(len(votes.workers), 1.0 / max(len(votes.labels), 1) + self.eps)
        for iteration in range(1, self.n_iter + 1):
            rate = self.lr_init * self.lr_reduce_factor ** (iteration // self.lr_steps_to_reduce)
            winner = winners(shares_of(votes.scores(skills[votes.worker])))
            skills = skills + rate * (distinct.worker_accuracy(winner) - skills)
        self.skills_ = pd.Series(skills, index=votes.workers, name="skill")
        return self


@dataclass(eq=False)
class GoldMajorityVote(ProbabilityVote):
    """Votes weighted by the workers' accuracy on tasks whose label is known.

    Every worker of a prediction must have labelled a task of known label.
    """

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any]) -> Self:  # type: ignore[override]
        """Estimate the skills; ``true_labels`` is a Series by task."""
        self.skills_ = get_accuracy(data, true_labels, by="worker").rename("skill")
        return self


@dataclass(eq=False)
class KOS(BaseClassificationAggregator):
    r"""Karger, Oh and Shah's message passing, for two labels.

    "Budget-Optimal Task Allocation for Reliable Crowdsourcing Systems", Operations Research 62
    (2014), 1-24. With labels :math:`A_{ij} = \pm 1` of worker j on task i, messages between tasks
    and workers are sums over all other neighbours,

    .. math::
        x_{i \to j} = \sum_{j' \ne j} A_{ij'} y_{j' \to i}, \qquad
        y_{j \to i} = \sum_{i' \ne i} A_{i'j} x_{i' \to j},

    starting with :math:`y \sim N(1, 1)`, drawn with the seed ``random_state``; ``n_iter`` iterations,
    fewer if messages would overflow. A task's label is the sign of :math:`\sum_j A_{ij} y_{j \to i}`;
    a sum of 0 counts as the label of the first row.
    """

    n_iter: int = 100
    random_state: int = 0

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


@dataclass(eq=False)
class BinaryRelevance(BaseClassificationAggregator):
    """Aggregates lists of labels: each label on its own, as given (1) or not given (0).

    Each label is aggregated by a copy of ``base_aggregator``, the majority vote by default, which
    is not fitted itself; ``aggregators_`` has the copies. ``labels_`` is the list of labels of each task.
    """

    base_aggregator: BaseClassificationAggregator | None = None

    def __post_init__(self) -> None:
        if self.base_aggregator is None:
            self.base_aggregator = MajorityVote()
        if not isinstance(self.base_aggregator, BaseClassificationAggregator):
            raise InputError(
                f"base_aggregator is {shown(self.base_aggregator)}: pass one of annotruth.crowdkit, "
                "such as MajorityVote()"
            )

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of task, worker, label whose labels are lists."""
        frame = select(data)
        self.aggregators_: dict[Any, BaseClassificationAggregator] = {}
        if not len(frame):
            self.labels_ = pd.Series(dtype=float, name="agg_label")
            return self
        given = [set(labels) for labels in frame["label"]]
        chosen: dict[Any, list[Any]] = {task: [] for task in frame["task"].drop_duplicates()}
        for label in pd.factorize(pd.Series(list(set().union(*given))), sort=True)[1]:
            aggregator: Any = replace(self.base_aggregator)  # type: ignore[type-var]
            is_given = [int(label in labels) for labels in given]
            predicted = aggregator.fit_predict(frame.assign(label=is_given))
            self.aggregators_[label] = aggregator
            for task in predicted.index[predicted == 1]:
                chosen[task].append(label)
        self.labels_ = pd.Series(chosen, name="agg_label").rename_axis("task")
        return self
