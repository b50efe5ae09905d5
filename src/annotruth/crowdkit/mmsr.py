"""M-MSR: skills by robust rank-one matrix completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import eigsh

from annotruth.crowdkit.votes import SkillVote, Votes, encode
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats


@dataclass(eq=False)
class MMSR(SkillVote):
    r"""Matrix mean-subsequence-reduced algorithm: votes weighted by the log-odds of the skills.

    Ma and Olshevsky, "Adversarial Crowdsourcing Through Robust Rank-One Matrix Completion", NeurIPS
    2020. With K labels, :math:`s_i` the skill of worker i (1 always right, 0 guesses), and
    :math:`C_{ij}` the share of common tasks on which workers i and j agree,

    .. math:: \text{E}\left[\frac{K}{K-1} C_{ij} - \frac{1}{K-1}\right] = s_i s_j.

    The sizes of the skills are estimated from the sizes of these entries by alternating means,
    without the largest and smallest F ratios; the signs from those of the entries. A worker's
    weight, its ``skills_``, is :math:`\log ((K - 1) p_i / (1 - p_i))` with :math:`p_i` the probability
    of a right label. Iterations end when the rank-one matrix changes by less than ``tol``
    (``loss_history_``); ``random_state`` is the seed of the start. ``scores_`` are the shares of the
    weighted votes after a prediction, which sum to 1 but may be negative.
    """

    n_iter: int = 10000
    tol: float = 1e-10
    random_state: int | None = 0

    shares: ClassVar[str] = "scores_"

    def predict_score(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the share of each label, one row per task, by the skills of the fit."""
        scores: pd.DataFrame = self._predict(data).scores_
        return scores

    def fit_predict_score(self, data: pd.DataFrame) -> pd.DataFrame:
        """Fit as ``fit`` does; return the share of each label, one row per task."""
        return self.fit(data).predict_score(data)

    def fit(self, data: pd.DataFrame) -> Self:
        """Estimate the skills from a frame of task, worker, label."""
        votes = encode(data)
        n_labels = len(votes.labels)
        if n_labels < 2:
            raise InputError(f"MMSR needs two labels or more, not {n_labels}: use MajorityVote")
        # The start is drawn for workers in the order of the frame.
        order = pd.unique(votes.worker)
        agreement = _agreement(votes, order)
        if not agreement.is_observed.any():
            raise InputError("MMSR needs workers with common tasks: use MajorityVote")
        size = self._sizes(agreement)
        skill = size * _signs(agreement.matrix)
        margin = 1.0 / np.sqrt(len(votes.tasks))
        skill = np.maximum(np.minimum(skill, 1.0 - margin), -1.0 / (n_labels - 1) + margin)
        p = (skill * (n_labels - 1) + 1.0) / n_labels
        weight = np.log(p * (n_labels - 1) / (1.0 - p))
        self.skills_ = pd.Series(weight, index=votes.workers.take(order), name="skill")
        return self

    def _sizes(self, agreement: _Agreement) -> Floats:
        """Return the absolute values of the skills."""
        target = np.where(agreement.is_observed, np.abs(agreement.matrix), np.nan)
        n_workers = len(target)
        n_trimmed = max(int(agreement.is_observed.sum(axis=0).min() // 2) - 1, 0)
        draws = np.random.RandomState(self.random_state).uniform(size=n_workers)
        u, v = draws.copy(), draws.copy()
        self.loss_history_ = []
        for _ in range(self.n_iter):
            u_before, v_before = u, v
            v = _trimmed_means(_ratios(target, u), v, n_trimmed, agreement.n_tasks)
            u = _trimmed_means(_ratios(target, v), u, n_trimmed, agreement.n_tasks)
            change = np.linalg.norm(np.outer(u, v) - np.outer(u_before, v_before))
            self.loss_history_.append(float(change))
            if change < self.tol:
                break
        sizes: Floats = u / np.sqrt(np.linalg.norm(u) / np.linalg.norm(v))
        return sizes


class _Agreement(NamedTuple):
    """The matrix whose expectation is the product of skills, and which entries are observed."""

    matrix: Floats
    is_observed: NDArray[np.bool_]
    n_tasks: int


def _agreement(votes: Votes, order: NDArray[Any]) -> _Agreement:
    """Return the agreement of workers in the given order, scaled to 1 and around 0 by chance.

    Of several labels that a worker gave a task, the last one counts.
    """
    n_tasks, n_workers, n_labels = len(votes.tasks), len(votes.workers), len(votes.labels)
    place = np.empty(n_workers, dtype=np.int64)
    place[order] = np.arange(n_workers)
    reverse = slice(None, None, -1)
    pair = (votes.task * n_workers + votes.worker)[reverse]
    _, last = np.unique(pair, return_index=True)
    worker, label = place[votes.worker[reverse][last]], votes.label[reverse][last]
    column = votes.task[reverse][last] * n_labels + label
    ones = np.ones(len(last))
    given = coo_array((ones, (worker, column)), shape=(n_workers, n_tasks * n_labels)).tocsr()
    seen = coo_array((ones, (worker, column // n_labels)), shape=(n_workers, n_tasks)).tocsr()
    n_equal, n_common = (given @ given.T).toarray(), (seen @ seen.T).toarray()
    np.fill_diagonal(n_common, 0.0)
    # As in crowd-kit, workers without common tasks agree on none of them.
    share = np.divide(n_equal, n_common, out=np.zeros_like(n_equal), where=n_common > 0)
    matrix = (share * n_labels - 1.0) / (n_labels - 1)
    return _Agreement(matrix, n_common > 0, n_tasks)


def _ratios(target: Floats, factor: Floats) -> Floats:
    """Return the rows of a matrix divided by their factor, sorted by column; NaN come last."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = np.sort(target / factor[:, np.newaxis], axis=0)
    return ratios


def _trimmed_means(ratios: Floats, old: Floats, n_trimmed: int, n_tasks: int) -> Floats:
    """Return the mean of each sorted column, without the ``n_trimmed`` smallest and largest.

    Only ratios on the same side of the old value are left out: all of these, if they are fewer.
    """
    first = np.minimum((ratios < old).sum(axis=0), n_trimmed)
    n_ratios = (~np.isnan(ratios)).sum(axis=0)
    last = n_ratios - np.minimum((ratios > old).sum(axis=0), n_trimmed)
    row = np.arange(len(ratios))[:, np.newaxis]
    is_kept = (row >= first) & (row < last)
    n_kept = is_kept.sum(axis=0)
    total = np.where(is_kept, ratios, 0.0).sum(axis=0)
    means: Floats = np.divide(total, n_kept, out=old.copy(), where=n_kept > 0)
    means[(n_kept == 1) & (total == 0.0)] = 1.0 / np.sqrt(n_tasks)
    return means


def _signs(matrix: Floats) -> Floats:
    """Return the signs of the skills, given the matrix of their products.

    Workers whose product is negative should differ in sign. A positive product becomes a node
    that differs from both workers; the graph is then as bipartite as possible, and the parts are
    the signs of the eigenvector of the smallest eigenvalue of its normalised adjacency.
    """
    n_workers = len(matrix)
    differing = np.nonzero(matrix < 0.0)
    left, right = np.nonzero(np.triu(matrix > 0.0))
    node = n_workers + np.arange(len(left))
    row = np.concatenate([differing[0], left, right, node, node])
    column = np.concatenate([differing[1], node, node, left, right])
    n = n_workers + len(left)
    scale = 1.0 / np.sqrt(np.bincount(row, minlength=n))
    graph = coo_array((scale[row] * scale[column], (row, column)), shape=(n, n)).tocsr()
    start = np.random.RandomState(0).uniform(size=n)
    part = np.sign(eigsh(graph, 1, which="SA", v0=start)[1][:n_workers, 0])
    signs: Floats = np.sign(part.sum()) * part
    return signs
