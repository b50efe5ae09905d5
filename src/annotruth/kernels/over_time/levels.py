r"""Passes over the labels of each annotator in order of time: a hidden Markov model.

Label t of an annotator has the probability :math:`S_t` if it is serious and :math:`I_t` if it is not,
so at the reliability :math:`\epsilon_k`, one of K levels, it has

.. math:: b_t(k) = \epsilon_k S_t + (1 - \epsilon_k) I_t.

A *constant* annotator has one level, drawn from ``start``, for all labels. A *changing* one keeps the
level from one label to the next with probability 1 - h and draws it anew from ``jump`` otherwise.
Labels are in order of time within each sequence s, ``begin[s]:end[s]``: the labels of an annotator, or a
part of them. NumPy twins: `annotruth.kernels.reference.over_time.levels`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled


@compiled
def likelihood(
    lo: int,
    hi: int,
    begin: Codes,
    end: Codes,
    serious: Floats,
    irregular: Floats,
    levels: Floats,
    start: Floats,
    jump: Floats,
    hazard: float,
    log_likelihood: Floats,
) -> None:
    """Write each sequence's log-likelihood as a constant and as a changing one, sequences x 2."""
    n_levels = len(levels)
    constant, changing = np.empty(n_levels), np.empty(n_levels)
    for s in range(lo, hi):
        constant[:] = start
        changing[:] = start
        logs_constant = logs_changing = 0.0
        for t in range(begin[s], end[s]):
            sum_constant = sum_changing = 0.0
            for k in range(n_levels):
                p = irregular[t] + levels[k] * (serious[t] - irregular[t])
                constant[k] *= p
                sum_constant += constant[k]
                moved = changing[k]
                if t > begin[s]:
                    moved += hazard * (jump[k] - moved)
                changing[k] = moved * p
                sum_changing += changing[k]
            for k in range(n_levels):
                constant[k] /= sum_constant
                changing[k] /= sum_changing
            logs_constant += math.log(sum_constant)
            logs_changing += math.log(sum_changing)
        log_likelihood[s, 0], log_likelihood[s, 1] = logs_constant, logs_changing


@compiled
def smooth(
    lo: int,
    hi: int,
    begin: Codes,
    end: Codes,
    serious: Floats,
    irregular: Floats,
    levels: Floats,
    start: Floats,
    jump: Floats,
    hazard: float,
    p_changing: Floats,
    window: Codes,
    by_window: Floats,
    p_change: Floats,
    without: Floats,
) -> None:
    r"""Run forward-backward and write what follows from the posterior of the levels.

    ``p_changing`` is the probability that each sequence is a changing one. ``by_window`` gets the sum over
    labels of the posterior, windows x levels; ``window`` has the window of each label. ``p_change``
    gets the probability that the level of a changing annotator is another one than at the label before.
    ``without`` gets the mean reliability at each label without the label's own evidence, labels x 2:
    of a constant annotator, and of both kinds by ``p_changing``. With the posterior
    :math:`\gamma_t(k)` it is :math:`\sum_k \epsilon_k \gamma_t(k) / b_t(k)` over
    :math:`\sum_k \gamma_t(k) / b_t(k)`.
    """
    n_levels = len(levels)
    constant, after, likelihoods = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
    for s in range(lo, hi):
        first, n = begin[s], end[s] - begin[s]
        if n == 0:
            continue
        forward = np.empty((n, n_levels))
        constant[:] = start
        for i in range(n):
            total = total_constant = 0.0
            for k in range(n_levels):
                p = irregular[first + i] + levels[k] * (serious[first + i] - irregular[first + i])
                constant[k] *= p
                total_constant += constant[k]
                before = start[k]
                if i > 0:
                    before = forward[i - 1, k] + hazard * (jump[k] - forward[i - 1, k])
                forward[i, k] = before * p
                total += forward[i, k]
            for k in range(n_levels):
                forward[i, k] /= total
                constant[k] /= total_constant
        after[:] = 1.0
        share = p_changing[s]
        p_change[first] = 0.0
        for i in range(n - 1, -1, -1):
            t = first + i
            total = 0.0
            for k in range(n_levels):
                total += forward[i, k] * after[k]
            weight = weight_constant = mean = mean_constant = 0.0
            for k in range(n_levels):
                p = irregular[t] + levels[k] * (serious[t] - irregular[t])
                gamma = forward[i, k] * after[k] / total
                by_window[window[t], k] += share * gamma + (1.0 - share) * constant[k]
                weight += gamma / p
                mean += levels[k] * gamma / p
                weight_constant += constant[k] / p
                mean_constant += levels[k] * constant[k] / p
                likelihoods[k] = p * after[k]
            without[t, 0] = mean_constant / weight_constant
            # Given the other labels, an annotator changes with another probability than given all.
            odds = share * weight
            odds_constant = (1.0 - share) * weight_constant
            without[t, 1] = (share * mean + (1.0 - share) * mean_constant) / (odds + odds_constant)
            if i == 0:
                continue
            jumped = moved = stayed = 0.0
            for k in range(n_levels):
                jumped += hazard * jump[k] * likelihoods[k]
                stayed += hazard * jump[k] * forward[i - 1, k] * likelihoods[k]
                moved += (1.0 - hazard) * forward[i - 1, k] * likelihoods[k]
            # Whoever draws the level they had has not changed.
            p_change[t] = (jumped - stayed) / (jumped + moved)
            scale = 1.0 / (jumped + moved)
            for k in range(n_levels):
                after[k] = scale * ((1.0 - hazard) * likelihoods[k] + jumped)
