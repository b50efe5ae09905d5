r"""Dawid and Skene's passes over the labels.

With class prior :math:`p_k` and confusion :math:`\pi_{s,k,l}`, the chance that annotator s says l
of an item of class k, item e is of class k with probability

.. math:: T_{e,k} \propto p_k \prod_{s \in l_e} \pi_{s,k,r_{e,s}}.

Each kernel works on items ``lo:hi`` of a block. ``rates`` and ``counts`` are labels x annotators
x classes, ``rates[l, s, k]``: what one label says of all classes is one row in memory. ``rows``
remembers, for each label, where that row begins: whole numbers in the bytes of floats, so that
the passes need not find them anew. A known truth leaves its own class alone possible, and its
likelihood is that of truth and labels. Plain twins: `annotruth.kernels.reference.dawid_skene`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import prefetch

Places = NDArray[np.uint64]

# Products of probabilities are logged before they can underflow.
_LOG_BELOW = 1e-100
# Rates of more numbers than this are far from the core, so what is soon needed is fetched: the
# rates of the label this many after, and the counts of this one. With 50,000 annotators and 5
# classes that took a pass from 27 to 22 ns a label; smaller tables it would slow.
_NEAR = 400_000
_AHEAD = np.uint64(20)


@compiled
def start(block: Block, lo: int, hi: int, rows: Floats, counts: Floats, classes: Floats) -> None:
    """Write the rows, and add up the counts of `step` with the observed shares as posteriors.

    A known truth takes the place of the shares.
    """
    places = rows.view(np.uint64)
    n_annotators, n_classes = counts.shape[1], counts.shape[2]
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for c in range(first, last):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                places[j] = (n * n_annotators + block.annotator[j]) * n_classes
        for d in range(first, last):
            k = block.cell_category[d] if known < 0 else known
            share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total
            classes[k] += share
            for c in range(first, last):
                n = block.cell_category[c]
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    counts[n, block.annotator[j], k] += share


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    prior: Floats,
    rates: Floats,
    counts: Floats,
    classes: Floats,
    totals: Floats,
) -> None:
    """Take one E-step and add up what the M-step needs (the paper's eq. 2.5, 2.3 and 2.4).

    ``counts[l, s, k]`` is the sum of the posteriors of class k over s's labels l, ``classes[k]``
    that over the items, ``totals[0]`` the log-likelihood before the step.
    """
    places = rows.view(np.uint64)
    flat_rates, flat_counts = rates.reshape(-1), counts.reshape(-1)
    n_classes = prior.shape[0]
    joint = np.empty(n_classes)
    is_far, last_place = flat_rates.size > _NEAR, np.uint64(len(places) - 1)
    log_likelihood = 0.0
    items_product = 1.0
    for e in range(lo, hi):
        known = block.known[e]
        # Unsigned, so that no index need be looked at for being negative.
        begin = np.uint64(block.cell_ptr[block.item_ptr[e]])
        end = np.uint64(block.cell_ptr[block.item_ptr[e + 1]])
        if is_far:
            for j in range(begin, end):
                prefetch(flat_counts, np.int64(places[j]))
                prefetch(flat_rates, np.int64(places[min(j + _AHEAD, last_place)]))
        # Class by class, so that a product stays in its register.
        total = 0.0
        for k in range(n_classes):
            product = prior[k] if known < 0 or known == k else 0.0
            for j in range(begin, end):
                product *= flat_rates[places[j] + np.uint64(k)]
            joint[k] = product
            total += product
        # Products only fall, so what has underflowed beside a larger total is nothing.
        if total < _LOG_BELOW:
            total, log_scale = _joint_in_logs(places[begin:end], known, prior, flat_rates, joint)
            log_likelihood += log_scale
        items_product *= total
        if not _LOG_BELOW < items_product < 1.0 / _LOG_BELOW:
            log_likelihood += math.log(items_product)
            items_product = 1.0
        for k in range(n_classes):
            posterior = joint[k] / total
            classes[k] += posterior
            for j in range(begin, end):
                flat_counts[places[j] + np.uint64(k)] += posterior
    totals[0] += log_likelihood + math.log(items_product)


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    rows: Floats,
    posterior: Floats,
    prior: Floats,
    rates: Floats,
    totals: Floats,
) -> None:
    """Write the posterior, items x classes, and add the log-likelihood to ``totals[0]``."""
    places = rows.view(np.uint64)
    flat_rates = rates.reshape(-1)
    for e in range(lo, hi):
        begin, end = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
        total, log_scale = _joint_in_logs(
            places[begin:end], block.known[e], prior, flat_rates, posterior[e]
        )
        posterior[e] /= total
        totals[0] += log_scale + math.log(total)


@compiled
def _joint_in_logs(
    places: Places, known: int, prior: Floats, flat_rates: Floats, joint: Floats
) -> tuple[float, float]:
    """Multiply an item's probabilities class by class, however many labels it has.

    A product that becomes small goes into a logarithm. Sets ``joint`` to the classes' products
    over the largest, and returns their sum and the logarithm of the largest. That is -inf when
    no class can give these labels: then they tell nothing, and the prior or the truth stands.
    """
    top = -np.inf
    for k in range(prior.shape[0]):
        log_joint = 0.0 if known < 0 or known == k else -np.inf
        product = prior[k]
        for place in places:
            rate = flat_rates[place + np.uint64(k)]
            if product * rate < _LOG_BELOW:
                log_joint += np.log(product)
                product = 1.0
            product *= rate
        joint[k] = log_joint + np.log(product)
        top = max(top, joint[k])
    total = 0.0
    for k in range(prior.shape[0]):
        if top > -np.inf:
            joint[k] = math.exp(joint[k] - top)
        elif known < 0:
            joint[k] = prior[k]
        else:
            joint[k] = 1.0 if known == k else 0.0
        total += joint[k]
    return total, top
