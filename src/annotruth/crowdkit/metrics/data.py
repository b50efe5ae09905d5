"""Metrics of labels: agreement, and how certain they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import entropy

from annotruth.coefficients import krippendorff_alpha
from annotruth.crowdkit.base import BaseClassificationAggregator, MissingSkillError
from annotruth.crowdkit.votes import COLUMNS, MajorityVote, encode, select
from annotruth.errors import shown
from annotruth.observations import Labels, Scale

__all__ = ["alpha_krippendorff", "consistency", "uncertainty"]

_MIN_TOTAL = 1e-6  # added to the sums of probabilities, as in crowd-kit


def consistency(
    answers: pd.DataFrame,
    workers_skills: pd.Series[Any] | None = None,
    aggregator: BaseClassificationAggregator | None = None,
    by_task: bool = False,
) -> Any:
    r"""Return the posterior probability of the aggregated labels, given the workers' skills.

    A worker of skill q gives the right label with probability q, and each of the K - 1 others
    with probability :math:`(1 - q) / (K - 1)`; all labels are equally likely.

    ``workers_skills`` is a Series by worker, by default the skills that the ``aggregator`` (by default
    the majority vote) estimates. ``by_task`` returns a Series by task instead of the mean.
    """
    aggregator = MajorityVote() if aggregator is None else aggregator
    aggregated = aggregator.fit_predict(answers)
    if workers_skills is None:
        workers_skills = _skills_of(aggregator)
    frame = select(answers)
    likelihood = _likelihoods(frame, workers_skills).groupby(frame["task"]).prod()
    column = likelihood.columns.get_indexer(pd.Index(aggregated[likelihood.index]))
    products, total = likelihood.to_numpy(), likelihood.sum(axis="columns").to_numpy()
    of_winner = products[np.arange(len(products)), column]
    posterior = np.divide(of_winner, total, out=np.zeros_like(total), where=total != 0.0)
    consistencies = pd.Series(posterior, index=likelihood.index)
    return consistencies if by_task else consistencies.mean()


def uncertainty(
    answers: pd.DataFrame,
    workers_skills: pd.Series[Any] | None = None,
    aggregator: BaseClassificationAggregator | None = None,
    compute_by: str = "task",
    aggregate: bool = True,
) -> Any:
    """Return the entropy of the labels of a task, or of a worker, in nats.

    A label counts by the worker's skill in ``workers_skills``, a Series, and the others by the rest; by
    default the skills are those that the ``aggregator`` estimates, or 1. ``compute_by`` is the column to
    group by, "task" or "worker"; without ``aggregate``, a Series by group instead of the mean.
    """
    if workers_skills is None and aggregator is not None:
        aggregator.fit_predict(answers)
        workers_skills = _skills_of(aggregator)
    frame = select(answers, tuple(dict.fromkeys((*COLUMNS, compute_by))))
    sums = _likelihoods(frame, workers_skills).groupby(frame[compute_by]).sum()
    shares = sums.div(sums.sum(axis="columns") + _MIN_TOTAL, axis="index")
    uncertainties = pd.Series(entropy(shares.to_numpy(), axis=1), index=sums.index)
    return uncertainties.mean() if aggregate else uncertainties


def binary_distance(label: Hashable, other: Hashable) -> float:
    """Return 0 for equal labels, 1 for others."""
    return 0.0 if label == other else 1.0


def alpha_krippendorff(
    answers: pd.DataFrame, distance: Callable[[Any, Any], float] = binary_distance
) -> float:
    r"""Return Krippendorff's alpha, `annotruth.coefficients.krippendorff_alpha`, with any distance.

    The distance :math:`\delta(l, m)` of two labels stands for the squared difference. It is 1 if all
    labels of tasks with two labels or more are equal, and nan if no task has two labels.
    """
    votes = encode(answers)
    if np.bincount(votes.task, minlength=1).max() < 2:
        return float("nan")
    labels = Labels.from_codes(
        *(votes.task, votes.worker, votes.label),
        items=np.arange(len(votes.tasks)),
        annotators=np.arange(len(votes.workers)),
        scale=Scale.nominal([str(code) for code in range(len(votes.labels))]),
    )
    table = np.array([[distance(a, b) for b in votes.labels] for a in votes.labels], dtype=float)
    alpha = krippendorff_alpha(labels, table)
    return 1.0 if np.isnan(alpha) else alpha


def _skills_of(aggregator: BaseClassificationAggregator) -> pd.Series[Any]:
    skills: pd.Series[Any] | None = getattr(aggregator, "skills_", None)
    if skills is None:
        raise MissingSkillError(
            f"{type(aggregator).__name__} estimates no skills: pass workers_skills"
        )
    return skills


def _likelihoods(frame: pd.DataFrame, skills: pd.Series[Any] | None) -> pd.DataFrame:
    """Return the probability of each row's label if each label, a column, were right."""
    code, labels = pd.factorize(frame["label"])
    skill = np.ones(len(frame))
    if skills is not None:
        skill = frame["worker"].map(skills).to_numpy(float)
    if np.isnan(skill).any():
        worker = frame["worker"].iloc[int(np.isnan(skill).argmax())]
        raise MissingSkillError(f"workers_skills has no skill of {shown(worker)}: add it")
    is_given = code[:, np.newaxis] == np.arange(len(labels))
    wrong = (1.0 - skill) / max(len(labels) - 1, 1)
    likelihood = np.where(is_given, skill[:, np.newaxis], wrong[:, np.newaxis])
    return pd.DataFrame(likelihood, index=frame.index, columns=pd.Index(labels))
