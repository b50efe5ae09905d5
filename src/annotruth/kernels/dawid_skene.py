r"""Dawid and Skene's passes over the labels.

With class prior :math:`p_k` and confusion rates :math:`\pi_{s,k,l}`, the chance that annotator s
says l of an item of class k, item e is of class k with probability

.. math:: T_{e,k} \propto p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}}.

Each kernel works on items ``lo:hi`` of a block. ``rates`` and ``counts`` are annotators x labels
x classes, ``rates[s, l, k]``: what one label says of all classes stands together in memory. A
known truth leaves its own class alone possible, and its likelihood is that of truth and labels.
Plain twins: `annotruth.kernels.reference.dawid_skene`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

Floats = NDArray[np.float64]

# An item's products are plain above this, and kept as logarithms below; sums of logarithms are
# products logged before they can underflow.
_LOG_BELOW = 1e-100


@compiled
def _log_joint(block: Block, e: int, prior: Floats, rates: Floats, joint: Floats) -> float:
    """Set ``joint`` to the classes' products over the largest, and return its logarithm.

    Every class has a logarithm of its own, fed whenever its product becomes small, so that no
    number of labels can underflow. -inf: no class can give these labels.
    """
    product = np.ones(prior.shape[0])
    for k in range(prior.shape[0]):
        if prior[k] > 0.0 and (block.known[e] < 0 or block.known[e] == k):
            joint[k] = math.log(prior[k])
        else:
            joint[k] = -np.inf
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            for k in range(prior.shape[0]):
                rate = rates[s, n, k]
                if rate == 0.0:
                    joint[k] = -np.inf
                elif product[k] * rate < _LOG_BELOW:
                    joint[k] += math.log(product[k]) + math.log(rate)
                    product[k] = 1.0
                else:
                    product[k] *= rate
    top = -np.inf
    for k in range(prior.shape[0]):
        joint[k] += math.log(product[k])
        top = max(top, joint[k])
    for k in range(prior.shape[0]):
        joint[k] = math.exp(joint[k] - top) if joint[k] > -np.inf else 0.0
    return top


@compiled
def _classify(
    block: Block, e: int, prior: Floats, rates: Floats, posterior: Floats
) -> tuple[float, float]:
    """Write the posterior of item e; its likelihood is ``evidence * exp(log_scale)``."""
    known = block.known[e]
    n_classes = prior.shape[0]
    for k in range(n_classes):
        posterior[k] = prior[k] if known < 0 or known == k else 0.0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            for k in range(n_classes):
                posterior[k] *= rates[s, n, k]
    evidence = 0.0
    for k in range(n_classes):
        evidence += posterior[k]
    log_scale = 0.0
    if evidence < _LOG_BELOW:
        # Products only fall, so what has underflowed beside a larger one is nothing; here the
        # largest may have lost digits too.
        log_scale = _log_joint(block, e, prior, rates, posterior)
        if log_scale == -np.inf:
            for k in range(n_classes):
                posterior[k] = prior[k] if known < 0 else 1.0 if known == k else 0.0
            return 1.0, log_scale
        evidence = 0.0
        for k in range(n_classes):
            evidence += posterior[k]
    for k in range(n_classes):
        posterior[k] /= evidence
    return evidence, log_scale


@compiled
def start(block: Block, lo: int, hi: int, counts: Floats, classes: Floats) -> None:
    """Add up the counts with the observed shares, or the known truths, as posteriors."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for d in range(first, last):
            k = block.cell_category[d] if known < 0 else known
            share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total
            classes[k] += share
            for c in range(first, last):
                n = block.cell_category[c]
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    counts[block.annotator[j], n, k] += share


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    rates: Floats,
    counts: Floats,
    classes: Floats,
    totals: Floats,
) -> None:
    """Take one E-step and add up what the M-step needs (the paper's eq. 2.5, 2.3 and 2.4).

    ``counts[s, l, k]`` is the sum of the posteriors of class k over s's labels l, ``classes[k]``
    that over items, ``totals[0]`` the log-likelihood before the step.
    """
    n_classes = prior.shape[0]
    posterior = np.empty(n_classes)
    log_likelihood = 0.0
    product = 1.0
    for e in range(lo, hi):
        evidence, log_scale = _classify(block, e, prior, rates, posterior)
        log_likelihood += log_scale
        product *= evidence
        if product < _LOG_BELOW or product > 1.0 / _LOG_BELOW:
            log_likelihood += math.log(product)
            product = 1.0
        for k in range(n_classes):
            classes[k] += posterior[k]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                for k in range(n_classes):
                    counts[s, n, k] += posterior[k]
    totals[0] += log_likelihood + math.log(product)


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    rates: Floats,
    totals: Floats,
) -> None:
    """Write the posterior of every item and add the log-likelihood to ``totals[0]``."""
    for e in range(lo, hi):
        evidence, log_scale = _classify(block, e, prior, rates, posterior[e])
        totals[0] += math.log(evidence) + log_scale
