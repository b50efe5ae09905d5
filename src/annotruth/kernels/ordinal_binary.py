r"""Ord-bin's passes over the labels: every threshold of the scale at once.

Threshold t asks whether the truth lies above category t (codes from 0), so N categories have
T = N - 1 thresholds, and a label of code n answers yes to the thresholds below n. Annotator s
answers threshold t with four rates, each annotators x thresholds:

=============  ===================  ======================
..             label above t        label not above t
=============  ===================  ======================
truth above    ``hit``              ``miss``
truth below    ``false_alarm``      ``rejection``
=============  ===================  ======================

Kernels take the logarithms of the rates, of the thresholds' ``prevalence``, the probability that
a truth lies above, and of its complement ``absence``; minus infinity stands for what cannot be.
Plain twins: `annotruth.kernels.reference.ordinal_binary`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled


@compiled
def start(
    block: Block,
    lo: int,
    hi: int,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
    prevalence: Floats,
) -> None:
    """Add up the answers with the share of labels above t in place of mu[e, t]."""
    n_thresholds = len(prevalence)
    above, below = np.empty(n_thresholds), np.empty(n_thresholds)
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        above[:] = 0.0
        for c in range(first, last):
            for t in range(block.cell_category[c]):
                above[t] += block.cell_ptr[c + 1] - block.cell_ptr[c]
        for t in range(n_thresholds):
            above[t] /= block.cell_ptr[last] - block.cell_ptr[first]
            below[t] = 1.0 - above[t]
        _know(block.known[e], above, below)
        _count(block, e, above, below, hit, miss, false_alarm, rejection)
        prevalence += above


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    log_hit: Floats,
    log_miss: Floats,
    log_false_alarm: Floats,
    log_rejection: Floats,
    log_prevalence: Floats,
    log_absence: Floats,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
    prevalence: Floats,
    log_likelihood: Floats,
) -> None:
    """Take one E-step and add up the answers for the M-step.

    Adds mu[e, t] of s's labels above t to ``hit[s, t]``, of the others to ``miss[s, t]``, in the
    same way 1 - mu to ``false_alarm`` and ``rejection``, mu of the items to ``prevalence[t]``,
    and to ``log_likelihood[t]`` that of the given rates.
    """
    above, below = np.empty(len(prevalence)), np.empty(len(prevalence))
    for e in range(lo, hi):
        _weigh(block, e, log_hit, log_miss, log_prevalence, above)
        _weigh(block, e, log_false_alarm, log_rejection, log_absence, below)
        _decide(block.known[e], above, below, log_likelihood)
        _count(block, e, above, below, hit, miss, false_alarm, rejection)
        prevalence += above


@compiled
def distribution(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    log_hit: Floats,
    log_miss: Floats,
    log_false_alarm: Floats,
    log_rejection: Floats,
    log_prevalence: Floats,
    log_absence: Floats,
    log_likelihood: Floats,
) -> None:
    """Write every item's distribution: mu made falling, then its differences.

    Adds to ``log_likelihood[t]`` that of the given rates.
    """
    n_thresholds = len(log_likelihood)
    above, below = np.empty(n_thresholds), np.empty(n_thresholds)
    for e in range(lo, hi):
        _weigh(block, e, log_hit, log_miss, log_prevalence, above)
        _weigh(block, e, log_false_alarm, log_rejection, log_absence, below)
        _decide(block.known[e], above, below, log_likelihood)
        _make_falling(above)
        higher = 1.0
        for t in range(n_thresholds):
            theta[e, t] = higher - above[t]
            higher = above[t]
        theta[e, n_thresholds] = higher


@compiled
def _weigh(
    block: Block, e: int, log_yes: Floats, log_no: Floats, log_prior: Floats, weight: Floats
) -> None:
    """Write the log-probability of item e's labels and one side of every threshold."""
    weight[:] = log_prior
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            for t in range(n):
                weight[t] += log_yes[s, t]
            for t in range(n, len(weight)):
                weight[t] += log_no[s, t]


@compiled
def _decide(known: int, above: Floats, below: Floats, log_likelihood: Floats) -> None:
    """Turn the two log-probabilities into mu and 1 - mu, and add up the log-likelihood."""
    for t in range(len(above)):
        if known >= 0:
            log_likelihood[t] += above[t] if known > t else below[t]
        else:
            likelier = max(above[t], below[t])
            ratio = math.exp(min(above[t], below[t]) - likelier)
            log_likelihood[t] += likelier + math.log1p(ratio)
            if above[t] < below[t]:
                above[t], below[t] = ratio / (1.0 + ratio), 1.0 / (1.0 + ratio)
            else:
                above[t], below[t] = 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)
    _know(known, above, below)


@compiled
def _know(known: int, above: Floats, below: Floats) -> None:
    """Let a known truth decide."""
    if known >= 0:
        for t in range(len(above)):
            above[t] = 1.0 if known > t else 0.0
            below[t] = 1.0 - above[t]


@compiled
def _count(
    block: Block,
    e: int,
    above: Floats,
    below: Floats,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
) -> None:
    """Add item e's answers to its annotators'."""
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            for t in range(n):
                hit[s, t] += above[t]
                false_alarm[s, t] += below[t]
            for t in range(n, len(above)):
                miss[s, t] += above[t]
                rejection[s, t] += below[t]


@compiled
def _make_falling(above: Floats) -> None:
    """Replace the sequence by the nearest one, in squares, that never rises.

    Pool adjacent violators: neighbours out of order share their mean, until none are.
    """
    mean, width = np.empty(len(above)), np.empty(len(above), np.int64)
    pools = 0
    for t in range(len(above)):
        mean[pools], width[pools] = above[t], 1
        pools += 1
        while pools > 1 and mean[pools - 2] < mean[pools - 1]:
            one, other = width[pools - 2], width[pools - 1]
            total = one * mean[pools - 2] + other * mean[pools - 1]
            mean[pools - 2] = total / (one + other)
            width[pools - 2] = one + other
            pools -= 1
    t = 0
    for pool in range(pools):
        for _ in range(width[pool]):
            above[t] = mean[pool]
            t += 1
