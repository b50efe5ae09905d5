"""crowd-kit's aggregators of pair comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from annotruth.crowdkit.base import BasePairwiseAggregator
from annotruth.crowdkit.votes import select
from annotruth.errors import InputError, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.pairs.graph import net_sums, sums_at


class PairVotes(NamedTuple):
    """One entry per row of a frame of left, right, label: codes, which index the sorted ids."""

    left: Codes
    right: Codes
    left_won: Any
    items: pd.Index[Any]


def encode_pairs(data: Any) -> PairVotes:
    """Return the rows of a frame of left, right, label as codes; label is the id of the winner."""
    frame = select(data, ("left", "right", "label"))
    every_id = pd.concat([frame[name] for name in frame.columns], ignore_index=True)
    codes, items = pd.factorize(every_id, sort=True)
    left, right, label = codes.reshape(3, len(frame))
    neither = np.flatnonzero((label != left) & (label != right))
    if len(neither):
        winner = shown(items[label[neither[0]]])
        raise InputError(
            f"row {neither[0] + 1} has the label {winner}, which is neither its left nor its right "
            f"({len(neither):,} in all): give the id of the item that won, or leave out ties"
        )
    return PairVotes(left, right, label == left, pd.Index(items))


@dataclass(eq=False)
class BradleyTerry(BasePairwiseAggregator):
    r"""Bradley and Terry's model, with the MM algorithm of Hunter (Annals of Statistics, 2004).

    An item with strength :math:`p_i` beats another with probability :math:`p_i / (p_i + p_j)`. Each
    iteration sets

    .. math:: p_i = \frac{w_i}{\sum_j n_{ij} / (p_i + p_j)},

    with the item's wins :math:`w_i` and the comparisons :math:`n_{ij}`, and divides by the sum.
    There is no prior: the strength of an item that never won is 0. `annotruth.BradleyTerry` has a
    prior, ties, a side bias and intervals. Iterations end when the strengths change by less than ``tol``
    in sum, which ``loss_history_`` has. (crowd-kit 1.4.2 compares the strengths with themselves, and so
    ends after two iterations unless it is 0.)
    """

    n_iter: int
    tol: float = 1e-5

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of left, right, label."""
        votes = encode_pairs(data)
        n = len(votes.items)
        self.loss_history_ = []
        strength = np.full(n, 1.0 / max(n, 1))
        winner = np.where(votes.left_won, votes.left, votes.right)
        wins = np.bincount(winner, minlength=n)
        for _ in range(self.n_iter if n else 0):
            old = strength
            both = old[votes.left] + old[votes.right]
            # Of two items that never won nothing is known but that they are weaker than all others.
            share = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0)
            compared = sums_at(votes.left, share, n) + sums_at(votes.right, share, n)
            strength = np.divide(wins, compared, out=np.zeros(n), where=compared > 0)
            strength /= strength.sum()
            self.loss_history_.append(float(np.abs(strength - old).sum()))
            if self.loss_history_[-1] < self.tol:
                break
        self.scores_ = pd.Series(strength, index=votes.items, name="agg_score")
        return self


@dataclass(eq=False)
class NoisyBradleyTerry(BasePairwiseAggregator):
    r"""Bradley and Terry's model with the skill and the bias of each worker.

    Worker k prefers the left item i to j with probability

    .. math:: \sigma(\gamma_k) \sigma(s_i - s_j) + (1 - \sigma(\gamma_k)) \sigma(q_k).

    The log-likelihood, less ``regularization_ratio`` times the log-loss of one win and one loss of
    every item against a virtual one, is maximised by L-BFGS-B from a random start. In crowd-kit 1.4.2
    the gradient has another sign of the regularization than the objective, is off by one index for
    skills and biases, and has the last vote of each worker only, so that its scores are not those
    of a maximum; here the gradient is right. `annotruth.PairGPM` has ties, intervals and named
    behaviors.

    ``scores_`` are those of the items, between 0 and 1; ``skills_`` the probability that each worker
    compares the items, ``biases_`` that of left when a worker does not.
    """

    n_iter: int = 100
    tol: float = 1e-5
    regularization_ratio: float = 1e-5
    random_state: int = 0

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a frame of worker, left, right, label."""
        frame = select(data, ("worker", "left", "right", "label"))
        votes = encode_pairs(frame)
        worker, workers = pd.factorize(frame["worker"], sort=True)
        n_items, n_workers = len(votes.items), len(workers)
        # The draws are those of crowd-kit: of the virtual item, the items, the biases, the skills.
        start = np.random.RandomState(self.random_state).rand(1 + n_items + 2 * n_workers)
        if self.n_iter and len(worker):
            start = minimize(
                noisy_loss,
                start,
                args=(votes, worker, n_workers, self.regularization_ratio),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.n_iter, "ftol": self.tol},
            ).x
        scores, biases, skills = np.split(expit(start[1:]), [n_items, n_items + n_workers])
        items = votes.items.rename("label")
        self.scores_ = pd.Series(scores, index=items, name="agg_score")
        self.biases_ = pd.Series(biases, index=workers, name="bias")
        self.skills_ = pd.Series(skills, index=workers, name="skill")
        return self


def noisy_loss(
    x: Floats, votes: PairVotes, worker: Codes, n_workers: int, regularization_ratio: float
) -> tuple[float, Floats]:
    """Return the objective of `NoisyBradleyTerry`, with the sign changed, and its gradient."""
    n_items = len(votes.items)
    virtual = x[0]
    scores, biases, skills = np.split(x[1:], [n_items, n_items + n_workers])
    y = np.where(votes.left_won, 1.0, -1.0)
    difference, bias, skill = (
        scores[votes.left] - scores[votes.right],
        biases[worker],
        skills[worker],
    )
    compares, guesses = expit(y * difference), expit(y * bias)
    p_compares, p_guesses = expit(skill), expit(-skill)
    p = p_compares * compares + p_guesses * guesses
    against = scores - virtual
    regularization = (log_expit(against) + log_expit(-against)).sum()
    loss = -np.log(p).sum() - regularization_ratio * regularization

    by_difference = p_compares * y * compares * (1.0 - compares) / p
    by_bias = p_guesses * y * guesses * (1.0 - guesses) / p
    by_skill = p_compares * p_guesses * (compares - guesses) / p
    pull = regularization_ratio * np.tanh(against / 2.0)
    gradient = np.concatenate(
        [
            [pull.sum()],
            net_sums(votes.left, votes.right, by_difference, n_items) - pull,
            sums_at(worker, by_bias, n_workers),
            sums_at(worker, by_skill, n_workers),
        ]
    )
    return float(loss), -gradient
