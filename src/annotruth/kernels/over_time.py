r"""Passes over the labels of each annotator in order of time: a hidden Markov model.

Label t of an annotator has the probability :math:`S_t` if it is serious and :math:`I_t` if it is not,
so at the reliability :math:`\epsilon_k`, one of K levels, it has

.. math:: b_t(k) = \epsilon_k S_t + (1 - \epsilon_k) I_t.

A *constant* annotator has one level, drawn from ``start``, for all labels. A *changing* one keeps the
level from one label to the next with probability 1 - h and draws it anew from ``jump`` otherwise.
Labels are in order of time within each sequence s, ``begin[s]:end[s]``: the labels of an annotator, or a
part of them. NumPy twins: `annotruth.kernels.reference.over_time`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats, Singles
from annotruth.kernels.compiled import compiled, compiled_in_any_order


@compiled_in_any_order
def label_evidence(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    if_serious: Floats,
    if_irregular: Floats,
    ratios: Singles,
) -> None:
    r"""Write the probability of each label if it is serious, and if it is not.

    ``posterior`` of the items is items x classes; the label itself is taken out of it, as in
    `annotruth.kernels.robust_gpm.leave_one_out`, which divides it by the label's confusion. ``ratios``
    are annotators x labels x 3 x classes: 1, P(label | serious) and P(label | irregular), each over
    the confusion; one row is read per label, in single precision.
    """
    n_classes = posterior.shape[1]
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                row = ratios[block.annotator[j], n]
                total = p_serious = p_irregular = 0.0
                for k in range(n_classes):
                    total += posterior[e, k] * row[0, k]
                    p_serious += posterior[e, k] * row[1, k]
                    p_irregular += posterior[e, k] * row[2, k]
                if_serious[j] = p_serious / total
                if_irregular[j] = p_irregular / total


@compiled
def sort_within(lo: int, hi: int, begin: Codes, end: Codes, key: Floats, order: Codes) -> None:
    """Sort the places ``order[begin[s]:end[s]]`` of each annotator by their keys; ties stay.

    Short sorts are faster than one of all labels.
    """
    for s in range(lo, hi):
        places = order[begin[s] : end[s]].copy()
        order[begin[s] : end[s]] = places[np.argsort(key[places], kind="mergesort")]


_LABELS_PER_SCALING = 8  # products of so many probabilities do not underflow


@compiled_in_any_order
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
    constant: Floats,
) -> None:
    """Write each sequence's log-likelihood as a constant and as a changing one, sequences x 2.

    ``constant`` gets the posterior of the level of a constant one, sequences x levels.
    """
    work = np.empty(len(levels))
    for s in range(lo, hi):
        own = serious[begin[s] : end[s]], irregular[begin[s] : end[s]]
        log_likelihood[s, 0] = _constant_levels(*own, levels, start, constant[s])
        log_likelihood[s, 1] = _log_changing(*own, levels, start, jump, hazard, work)


@compiled_in_any_order
def _constant_levels(
    serious: Floats, irregular: Floats, levels: Floats, start: Floats, posterior: Floats
) -> float:
    """Write the posterior of the level of a constant sequence, and return its log-likelihood."""
    posterior[:] = start
    log = 0.0
    for t in range(len(serious)):
        for k in range(len(levels)):
            posterior[k] *= irregular[t] + levels[k] * (serious[t] - irregular[t])
        if t % _LABELS_PER_SCALING == _LABELS_PER_SCALING - 1:
            log += _normalise(posterior)
    return log + _normalise(posterior)


@compiled_in_any_order
def _log_changing(
    serious: Floats,
    irregular: Floats,
    levels: Floats,
    start: Floats,
    jump: Floats,
    hazard: float,
    forward: Floats,
) -> float:
    """Return the log-likelihood of a changing sequence; ``forward`` has room for the levels."""
    forward[:] = start
    log, stay, jumping = 0.0, 1.0, 0.0  # there is no jump before the first label
    for t in range(len(serious)):
        total = 0.0
        for k in range(len(levels)):
            p = irregular[t] + levels[k] * (serious[t] - irregular[t])
            forward[k] = (stay * forward[k] + jumping * jump[k]) * p
            total += forward[k]
        if t % _LABELS_PER_SCALING == _LABELS_PER_SCALING - 1:
            log += _normalise(forward)
            total = 1.0
        stay, jumping = 1.0 - hazard, hazard * total
    return log + _normalise(forward)


@compiled_in_any_order
def _normalise(weights: Floats) -> float:
    """Scale weights to a sum of 1, and return the log of their sum."""
    total = 0.0
    for k in range(len(weights)):
        total += weights[k]
    for k in range(len(weights)):
        weights[k] /= total
    return math.log(total)


@compiled_in_any_order
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
    first_window: Codes,
    last_window: Codes,
    by_window: Floats,
    p_change: Floats,
    without: Floats,
) -> None:
    r"""Run forward-backward and write what follows from the posterior of the levels.

    ``p_changing`` is the probability that each sequence is a changing one. ``by_window`` gets the sum
    over labels of the posterior if it is, windows x levels; the windows of a sequence are
    ``first_window[s]:last_window[s]`` and divide its labels evenly. ``p_change`` gets the probability
    that a changing level is another one than at the label before. ``without`` gets the mean reliability at each
    label without the label's own evidence, labels x 2: of a constant annotator, and of both kinds by
    ``p_changing``. With the posterior :math:`\gamma_t(k)` it is
    :math:`\sum_k \epsilon_k \gamma_t(k) / b_t(k)` over :math:`\sum_k \gamma_t(k) / b_t(k)`.
    """
    n_levels = len(levels)
    constant, after, likelihoods = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
    for s in range(lo, hi):
        first, n = begin[s], end[s] - begin[s]
        if n == 0:
            continue
        n_windows = last_window[s] - first_window[s]
        by_window[first_window[s] : last_window[s]] = 0.0
        own = serious[first : end[s]], irregular[first : end[s]]
        _constant_levels(*own, levels, start, constant)
        forward = np.empty((n, n_levels))
        _run_forward(*own, levels, start, jump, hazard, forward)
        after[:] = 1.0
        share = p_changing[s]
        p_change[first] = 0.0
        for i in range(n - 1, -1, -1):
            t = first + i
            total = 0.0
            for k in range(n_levels):
                total += forward[i, k] * after[k]
            window = by_window[first_window[s] + i * n_windows // n]
            weight = weight_constant = mean = mean_constant = 0.0
            for k in range(n_levels):
                p = irregular[t] + levels[k] * (serious[t] - irregular[t])
                gamma = forward[i, k] * after[k] / total
                window[k] += gamma
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


@compiled_in_any_order
def _run_forward(
    serious: Floats,
    irregular: Floats,
    levels: Floats,
    start: Floats,
    jump: Floats,
    hazard: float,
    forward: Floats,
) -> None:
    """Write the posterior of the level at each label given the labels up to it, labels x levels."""
    for t in range(len(serious)):
        total = 0.0
        for k in range(len(levels)):
            before = start[k]
            if t > 0:
                before = forward[t - 1, k] + hazard * (jump[k] - forward[t - 1, k])
            forward[t, k] = before * (irregular[t] + levels[k] * (serious[t] - irregular[t]))
            total += forward[t, k]
        for k in range(len(levels)):
            forward[t, k] /= total
