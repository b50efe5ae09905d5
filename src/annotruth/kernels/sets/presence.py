r"""Passes of the model of answers that are sets of labels.

An item of type k has the label l with probability :math:`\theta_{k,l}`, labels independently given
the type. With :math:`r_{e,l}` the sum over the item's answers of the log-likelihood ratio of label l
being present, ``present[s, l]`` where annotator s gives it and ``absent[s, l]`` where not,

.. math::
    w_{e,k} &\propto \pi_k \prod_l (\theta_{k,l} e^{r_{e,l}} + 1 - \theta_{k,l}) \\
    T_{e,l} &= \sum_k w_{e,k} \frac{\theta_{k,l} e^{r_{e,l}}}
        {\theta_{k,l} e^{r_{e,l}} + 1 - \theta_{k,l}}

are the posteriors of the type and of the labels. A known truth replaces T. Each kernel processes items
``lo:hi`` of a block; ``members`` is sets x labels. NumPy twins: `annotruth.kernels.reference.sets.presence`.
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
    posterior: Floats,
    members: Floats,
    hits: Floats,
    positives: Floats,
) -> None:
    """Write the share of each item's answers that give each label, and add up what `step` does."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        posterior[e] = 0.0
        for c in range(first, last):
            share = (block.cell_ptr[c + 1] - block.cell_ptr[c]) / total
            posterior[e] += share * members[block.cell_category[c]]
        if block.known[e] >= 0:
            posterior[e] = members[block.known[e]]
        _add_counts(block, e, posterior[e], members, hits, positives)


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    evidence: Floats,
    members: Floats,
    present: Floats,
    absent: Floats,
    theta: Floats,
    types: Floats,
    hits: Floats,
    positives: Floats,
    type_items: Floats,
    type_labels: Floats,
    log_likelihood: Floats,
) -> None:
    """Take one E-step and add up what the M-step needs.

    Over the answers of annotator s, ``positives[s, l]`` is the sum of T, and ``hits[s, l]`` that of
    T where s gives the label l. ``type_items[k]`` is the sum of w, ``type_labels[k, l]`` that of the
    items' labels within the type, and ``log_likelihood[0]`` that of the logarithm of what w is
    divided by: the log-likelihood relative to that of items without labels.
    """
    n_types, n_labels = theta.shape
    within = np.empty((n_types, n_labels))
    weight = np.empty(n_types)
    for e in range(lo, hi):
        evidence[e] = 0.0
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            given = members[block.cell_category[c]]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                for m in range(n_labels):
                    evidence[e, m] += present[s, m] if given[m] > 0.0 else absent[s, m]
        known = block.known[e]
        top = -np.inf
        for k in range(n_types):
            log_weight = math.log(types[k])
            for m in range(n_labels):
                if known >= 0:
                    is_in = members[known, m]
                    log_weight += is_in * (math.log(theta[k, m]) + evidence[e, m]) + (
                        1.0 - is_in
                    ) * math.log(1.0 - theta[k, m])
                    within[k, m] = is_in
                else:
                    shift = max(evidence[e, m], 0.0)
                    one = theta[k, m] * math.exp(evidence[e, m] - shift)
                    none = (1.0 - theta[k, m]) * math.exp(-shift)
                    log_weight += shift + math.log(one + none)
                    within[k, m] = one / (one + none)
            weight[k] = log_weight
            top = max(top, log_weight)
        total = 0.0
        for k in range(n_types):
            weight[k] = math.exp(weight[k] - top)
            total += weight[k]
        log_likelihood[0] += top + math.log(total)
        posterior[e] = 0.0
        for k in range(n_types):
            share = weight[k] / total
            type_items[k] += share
            for m in range(n_labels):
                posterior[e, m] += share * within[k, m]
                type_labels[k, m] += share * within[k, m]
        _add_counts(block, e, posterior[e], members, hits, positives)


@compiled
def _add_counts(
    block: Block, e: int, posterior: Floats, members: Floats, hits: Floats, positives: Floats
) -> None:
    """Add an item's posteriors to the counts of the annotators who answered."""
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        given = members[block.cell_category[c]]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            for m in range(posterior.shape[0]):
                positives[s, m] += posterior[m]
                hits[s, m] += posterior[m] * given[m]
