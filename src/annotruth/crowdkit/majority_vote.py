"""Majority votes, with equal or with given weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from annotruth.crowdkit.base import BaseClassificationAggregator
from annotruth.crowdkit.utils import add_skills_to_data, get_accuracy
from annotruth.crowdkit.votes import encode, label_series, select, shares_of, winners


class MajorityVote(BaseClassificationAggregator):
    """The label with the most votes, or with the largest sum of the workers' skills.

    Of tied labels, the first in sorted order is returned.

    Parameters
    ----------
    default_skill
        The skill of workers without one, for ``on_missing_skill="value"``.
    on_missing_skill
        What to do with labels of workers without a skill: "error", "ignore" (leave the labels out,
        if every task keeps one) or "value" (use ``default_skill``).

    Attributes
    ----------
    probas_
        The share of each label, one row per task.
    skills_
        The share of each worker's labels that are the label of their task.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import MajorityVote
    >>> votes = [("t1", "w1", "cat"), ("t1", "w2", "cat"), ("t1", "w3", "dog")]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> MajorityVote().fit_predict(frame)["t1"]
    'cat'
    >>> MajorityVote().fit_predict(frame, skills=pd.Series({"w1": 0.1, "w2": 0.1, "w3": 0.9}))["t1"]
    'dog'
    """

    probas_: pd.DataFrame
    skills_: pd.Series[Any]

    def __init__(self, default_skill: float | None = None, on_missing_skill: str = "error") -> None:
        self.default_skill = default_skill
        self.on_missing_skill = on_missing_skill

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

    def fit_predict(
        self, data: pd.DataFrame, skills: pd.Series[Any] | None = None
    ) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, skills).labels_

    def fit_predict_proba(
        self, data: pd.DataFrame, skills: pd.Series[Any] | None = None
    ) -> pd.DataFrame:
        """Fit and return the share of each label, one row per task."""
        return self.fit(data, skills).probas_


class _SkillVote(BaseClassificationAggregator):
    """Base of the votes that are weighted by skills, which ``fit`` estimates."""

    probas_: pd.DataFrame
    skills_: pd.Series[Any]

    def predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Return the label of each task, by the skills of the fit; every worker must have one."""
        return self._vote(data).labels_

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the share of each label, one row per task, by the skills of the fit."""
        return self._vote(data).probas_

    def fit_predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data).predict(data)

    def fit_predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Fit and return the share of each label, one row per task."""
        return self.fit(data).predict_proba(data)

    def _vote(self, data: pd.DataFrame) -> Self:
        vote = MajorityVote().fit(data, self.skills_)
        self.labels_, self.probas_ = vote.labels_, vote.probas_
        return self


class Wawa(_SkillVote):
    """Worker agreement with aggregate: votes weighted by the workers' agreement with the majority.

    Attributes
    ----------
    skills_
        The share of each worker's labels that are the majority's.
    probas_
        The shares of the weighted votes, one row per task; after a prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import Wawa
    >>> votes = [("t1", "w1", "cat"), ("t1", "w2", "cat"), ("t1", "w3", "dog"), ("t2", "w1", "dog")]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> wawa = Wawa()
    >>> wawa.fit_predict(frame).to_dict()
    {'t1': 'cat', 't2': 'dog'}
    >>> wawa.skills_.to_dict()
    {'w1': 1.0, 'w2': 1.0, 'w3': 0.0}
    """

    def fit(self, data: pd.DataFrame) -> Self:
        """Estimate the skills from a frame of task, worker, label."""
        self.skills_ = MajorityVote().fit(data).skills_
        return self


class ZeroBasedSkill(_SkillVote):
    r"""Votes weighted by skills that approach the workers' agreement with the weighted vote.

    All skills start slightly above chance. Each iteration moves them by the learning rate towards
    the share of the worker's labels that won the vote.

    Parameters
    ----------
    n_iter
        The number of iterations.
    lr_init, lr_steps_to_reduce, lr_reduce_factor
        The learning rate, and by which factor it is multiplied every so many iterations.
    eps
        How far above chance the skills start.

    Attributes
    ----------
    skills_
        The skill of each worker.
    probas_
        The shares of the weighted votes, one row per task; after a prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import ZeroBasedSkill
    >>> votes = [("t1", "w1", "cat"), ("t1", "w2", "cat"), ("t1", "w3", "dog"), ("t2", "w1", "dog")]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> ZeroBasedSkill().fit_predict(frame).to_dict()
    {'t1': 'cat', 't2': 'dog'}
    """

    def __init__(
        self,
        n_iter: int = 100,
        lr_init: float = 1.0,
        lr_steps_to_reduce: int = 20,
        lr_reduce_factor: float = 0.5,
        eps: float = 1e-5,
    ) -> None:
        self.n_iter = n_iter
        self.lr_init = lr_init
        self.lr_steps_to_reduce = lr_steps_to_reduce
        self.lr_reduce_factor = lr_reduce_factor
        self.eps = eps

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


class GoldMajorityVote(_SkillVote):
    """Votes weighted by the workers' accuracy on tasks whose label is known.

    Every worker of a prediction must have labelled a task of known label.

    Attributes
    ----------
    skills_
        The share of each worker's labels of known tasks that are right.
    probas_
        The shares of the weighted votes, one row per task; after a prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import GoldMajorityVote
    >>> votes = [(task, worker, "cat") for task in ("t1", "t2") for worker in ("w1", "w2")]
    >>> votes += [("t1", "w3", "dog"), ("t2", "w3", "dog")]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> GoldMajorityVote().fit_predict(frame, true_labels=pd.Series({"t1": "dog"})).to_dict()
    {'t1': 'dog', 't2': 'dog'}
    """

    def fit(  # type: ignore[override]
        self, data: pd.DataFrame, true_labels: pd.Series[Any]
    ) -> Self:
        """Estimate the skills; ``true_labels`` is a Series by task."""
        self.skills_ = get_accuracy(data, true_labels, by="worker").rename("skill")
        return self

    def fit_predict(  # type: ignore[override]
        self, data: pd.DataFrame, true_labels: pd.Series[Any]
    ) -> pd.Series[Any]:
        """Fit and return the label of each task."""
        return self.fit(data, true_labels).predict(data)

    def fit_predict_proba(  # type: ignore[override]
        self, data: pd.DataFrame, true_labels: pd.Series[Any]
    ) -> pd.DataFrame:
        """Fit and return the share of each label, one row per task."""
        return self.fit(data, true_labels).predict_proba(data)
