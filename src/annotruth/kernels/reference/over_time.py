"""NumPy twins of the kernels ``over_time``: matrices of transitions, in logarithms."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.rows import label_rows


def label_evidence(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the probability of each label if it is serious, and if it is not."""
    labels = label_rows(block, lo, hi)
    rows = a.ratios[labels.annotator, labels.category].astype(np.float64)
    total, serious, irregular = np.einsum("jk,jik->ij", a.posterior[labels.item], rows)
    a.if_serious[labels.place] = serious / total
    a.if_irregular[labels.place] = irregular / total


def sort_within(lo: int, hi: int, a: Arrays) -> None:
    """Sort the places ``order[begin[s]:end[s]]`` of each annotator by their keys; ties stay."""
    annotator = np.repeat(np.arange(lo, hi), (a.end - a.begin)[lo:hi])
    some = slice(a.begin[lo], a.end[hi - 1])
    a.order[some] = a.order[some][np.lexsort((a.key[a.order[some]], annotator))]


def _log_emissions(s: int, a: Arrays) -> Floats:
    """Return the log-probability of a sequence's labels at each level, labels x levels."""
    of = slice(a.begin[s], a.end[s])
    p = np.outer(a.serious[of], a.levels) + np.outer(a.irregular[of], 1.0 - a.levels)
    logs: Floats = np.log(p)
    return logs


def _log_transitions(jump: Floats, hazard: float) -> Floats:
    """Return the log-probability of each level after each, levels x levels."""
    logs: Floats = np.log((1.0 - hazard) * np.eye(len(jump)) + hazard * jump)
    return logs


def _forward(emissions: Floats, start: Floats, transitions: Floats) -> Floats:
    """Return the log-probability of the level at each label and of the labels up to it."""
    forward = np.empty_like(emissions)
    forward[:1] = np.log(start) + emissions[:1]
    for i in range(1, len(emissions)):
        forward[i] = logsumexp(forward[i - 1][:, np.newaxis] + transitions, axis=0) + emissions[i]
    return forward


def _backward(emissions: Floats, transitions: Floats) -> Floats:
    """Return the log-probability of the labels after each one, given the level there."""
    backward = np.zeros_like(emissions)
    for i in range(len(emissions) - 1, 0, -1):
        backward[i - 1] = logsumexp(transitions + emissions[i] + backward[i], axis=1)
    return backward


def likelihood(lo: int, hi: int, a: Arrays) -> None:
    """Write each sequence's log-likelihood as a constant and as a changing one, sequences x 2."""
    transitions = _log_transitions(a.jump, a.hazard)
    for s in range(lo, hi):
        emissions = _log_emissions(s, a)
        logs = np.log(a.start) + emissions.sum(axis=0)
        a.log_likelihood[s, 0] = logsumexp(logs)
        a.log_likelihood[s, 1] = _log_changing(emissions, a.start, transitions)
        a.constant[s] = np.exp(logs - a.log_likelihood[s, 0])


def _log_changing(emissions: Floats, start: Floats, transitions: Floats) -> float:
    """Return the log-likelihood of a changing sequence; 0 without labels."""
    if not len(emissions):
        return 0.0
    return float(logsumexp(_forward(emissions, start, transitions)[-1]))


def smooth(lo: int, hi: int, a: Arrays) -> None:
    """Run forward-backward and write what follows from the posterior of the levels."""
    transitions = _log_transitions(a.jump, a.hazard)
    for s in range(lo, hi):
        of = slice(a.begin[s], a.end[s])
        emissions = _log_emissions(s, a)
        if not len(emissions):
            continue
        forward = _forward(emissions, a.start, transitions)
        backward = _backward(emissions, transitions)
        total = logsumexp(forward[-1])
        gamma = np.exp(forward + backward - total)
        logs = np.log(a.start) + emissions.sum(axis=0)
        constant = np.broadcast_to(np.exp(logs - logsumexp(logs)), gamma.shape)
        mixed = a.p_changing[s] * gamma + (1.0 - a.p_changing[s]) * constant
        n_windows = a.last_window[s] - a.first_window[s]
        window = a.first_window[s] + np.arange(len(mixed)) * n_windows // len(mixed)
        a.by_window[a.first_window[s] : a.last_window[s]] = 0.0
        np.add.at(a.by_window, window, gamma)
        arriving = (emissions + backward)[1:, np.newaxis, :]
        pairs = np.exp(forward[:-1, :, np.newaxis] + transitions + arriving - total)
        pairs[:, np.arange(len(a.levels)), np.arange(len(a.levels))] = 0.0
        a.p_change[of] = np.append(0.0, pairs.sum(axis=(1, 2)))
        for column, posterior in enumerate((constant, mixed)):
            weights = posterior / np.exp(emissions)
            a.without[of, column] = weights @ a.levels / weights.sum(axis=1)
