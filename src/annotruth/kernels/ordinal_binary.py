r"""Passes of Ord-bin: all thresholds of the scale at once.

Threshold t is the binary question whether the truth is above category t (codes from 0), so N
categories have T = N - 1 thresholds, and a label of code n is a yes to all thresholds below n.
Annotator s responds to threshold t with four probabilities, each annotators x thresholds:

=============  ===================  ======================
..             label above t        label not above t
=============  ===================  ======================
truth above t  ``hit``              ``miss``
not above t    ``false_alarm``      ``rejection``
=============  ===================  ======================

Kernels take the logarithms of these probabilities, of the ``prevalence`` of each threshold, the
probability that a truth is above it, and of its complement ``absence``; minus infinity stands for
what is impossible. ``mu[e, t]`` is the posterior probability that the truth of item e is above t.
NumPy twins: `annotruth.kernels.reference.ordinal_binary`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Floats
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
    """Add up what `step` does, with the share of labels above t as mu[e, t]."""
    n_thresholds = len(prevalence)
    above, below = np.empty(n_thresholds), np.empty(n_thresholds)
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        for t in range(n_thresholds):
            above[t] = 0.0
        for c in range(first, last):
            for t in range(block.cell_category[c]):
                above[t] += block.cell_ptr[c + 1] - block.cell_ptr[c]
        for t in range(n_thresholds):
            above[t] /= block.cell_ptr[last] - block.cell_ptr[first]
            below[t] = 1.0 - above[t]
        _apply_known_truth(block.known[e], above, below)
        _add_to_sums(block, e, above, below, hit, miss, false_alarm, rejection)
        for t in range(n_thresholds):
            prevalence[t] += above[t]


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
    """Take one E-step and add up what the M-step needs.

    Adds mu[e, t] of s's labels above t to ``hit[s, t]`` and of the others to ``miss[s, t]``, likewise
    1 - mu to ``false_alarm`` and ``rejection``, mu of the items to ``prevalence[t]``, and the
    log-likelihood before the step to ``log_likelihood[t]``.
    """
    n_thresholds = len(prevalence)
    above, below = np.empty(n_thresholds), np.empty(n_thresholds)
    for e in range(lo, hi):
        _log_joint(block, e, log_hit, log_miss, log_prevalence, above)
        _log_joint(block, e, log_false_alarm, log_rejection, log_absence, below)
        _normalise(block.known[e], above, below, log_likelihood)
        _add_to_sums(block, e, above, below, hit, miss, false_alarm, rejection)
        for t in range(n_thresholds):
            prevalence[t] += above[t]


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
    """Write every item's distribution: the differences of mu, made non-increasing.

    Adds the log-likelihood to ``log_likelihood[t]``.
    """
    n_thresholds = len(log_likelihood)
    above, below = np.empty(n_thresholds), np.empty(n_thresholds)
    for e in range(lo, hi):
        _log_joint(block, e, log_hit, log_miss, log_prevalence, above)
        _log_joint(block, e, log_false_alarm, log_rejection, log_absence, below)
        _normalise(block.known[e], above, below, log_likelihood)
        _make_non_increasing(above)
        higher = 1.0
        for t in range(n_thresholds):
            theta[e, t] = higher - above[t]
            higher = above[t]
        theta[e, n_thresholds] = higher


@compiled
def _log_joint(
    block: Block, e: int, log_yes: Floats, log_no: Floats, log_prior: Floats, log_joint: Floats
) -> None:
    """Write the log-probability of item e's labels and of one side of each threshold."""
    for t in range(len(log_joint)):
        log_joint[t] = log_prior[t]
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            for t in range(n):
                log_joint[t] += log_yes[s, t]
            for t in range(n, len(log_joint)):
                log_joint[t] += log_no[s, t]


@compiled
def _normalise(known: int, above: Floats, below: Floats, log_likelihood: Floats) -> None:
    """Turn the two log-probabilities into mu and 1 - mu, and add up the log-likelihood."""
    for t in range(len(above)):
        if known >= 0:
            log_likelihood[t] += above[t] if known > t else below[t]
        else:
            larger = max(above[t], below[t])
            ratio = math.exp(min(above[t], below[t]) - larger)
            log_likelihood[t] += larger + math.log1p(ratio)
            if above[t] < below[t]:
                above[t], below[t] = ratio / (1.0 + ratio), 1.0 / (1.0 + ratio)
            else:
                above[t], below[t] = 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)
    _apply_known_truth(known, above, below)


@compiled
def _apply_known_truth(known: int, above: Floats, below: Floats) -> None:
    """Set mu to 1 or 0 where the truth is known."""
    if known >= 0:
        for t in range(len(above)):
            above[t] = 1.0 if known > t else 0.0
            below[t] = 1.0 - above[t]


@compiled
def _add_to_sums(
    block: Block,
    e: int,
    above: Floats,
    below: Floats,
    hit: Floats,
    miss: Floats,
    false_alarm: Floats,
    rejection: Floats,
) -> None:
    """Add item e to the sums of its annotators."""
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
def _make_non_increasing(above: Floats) -> None:
    """Replace a sequence by the non-increasing one that is nearest in least squares.

    Pool adjacent violators: neighbors in increasing order are replaced by their mean, until there
    are none.
    """
    mean, width = np.empty(len(above)), np.empty(len(above), np.int64)
    n_pools = 0
    for t in range(len(above)):
        mean[n_pools], width[n_pools] = above[t], 1
        n_pools += 1
        while n_pools > 1 and mean[n_pools - 2] < mean[n_pools - 1]:
            n_left, n_right = width[n_pools - 2], width[n_pools - 1]
            total = n_left * mean[n_pools - 2] + n_right * mean[n_pools - 1]
            mean[n_pools - 2] = total / (n_left + n_right)
            width[n_pools - 2] = n_left + n_right
            n_pools -= 1
    t = 0
    for pool in range(n_pools):
        for _ in range(width[pool]):
            above[t] = mean[pool]
            t += 1
