r"""Held-out labels, and labels that are drawn at random to compare with.

``fold`` has one entry per label, as in `annotruth.kernels.item_states`. Folds and random labels follow
from hashes of what labels and their items are, not from names or order. Each kernel processes items
``lo:hi`` of a block. NumPy twins: `annotruth.kernels.reference.held_out`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.item_states import _confusion_row, _find_kept, _leave_item_out, _temper
from annotruth.kernels.robust_gpm import _empty_rows
from annotruth.kernels.shared import NEVER, NOT_SAMPLED

_TWO_53 = 2.0**53
_LABELS_COMPARED = 64  # in a cell, to number equal hashes


@compiled
def hash_annotators(
    block: Block,
    lo: int,
    hi: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
    sums: Floats,
) -> None:
    """Add up the hashes of the items that each annotator labelled."""
    for e in range(lo, hi):
        item_hash = _hash_item(block, e, annotator_hash, category_hash)
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            # 20 bits, so that sums of floats are exact.
            value = _mix(item_hash + category_hash[block.cell_category[c]]) >> np.uint64(44)
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                sums[block.annotator[j]] += float(value)


@compiled
def hash_items(
    block: Block,
    lo: int,
    hi: int,
    item_hash: Floats,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
) -> None:
    """Write a hash of each item's labels: 52 bits, which a float holds."""
    for e in range(lo, hi):
        item_hash[e] = float(_hash_item(block, e, annotator_hash, category_hash) >> np.uint64(12))


@compiled
def assign_folds(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    item_hash: Floats,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
    held_share: float,
    n_folds: int,
    sampled_share: float,
) -> None:
    """Write the fold of each label, by hashes of the label and its item.

    ``held_share`` of the labels are held out in each fold, of ``sampled_share`` of the items.
    """
    for e in range(lo, hi):
        own = np.uint64(item_hash[e])
        sampled = _uniform(_mix(own)) < sampled_share
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                label = _hash_label(block, c, j, annotator_hash, category_hash)
                number = math.floor(_uniform(_mix(own + label)) / held_share)
                fold[j] = (number if number < n_folds else NEVER) if sampled else NOT_SAMPLED


@compiled
def score(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    first_state: Codes,
    correlations: Floats,
    total: Floats,
    products: Floats,
) -> None:
    """Add up the log-probabilities of held-out labels by several predictors, and their products.

    The tables hold the states of several models side by side, those of model m from
    ``first_state[m]`` on. The predictors are every model with each of the ``correlations``, model by
    model. ``total[0]`` is the number of labels.
    """
    n_models, n_correlations = len(first_state) - 1, len(correlations)
    n_predictors = products.shape[0]
    rows = _empty_rows(block, lo, hi)
    n_states = prior.shape[0]
    logs, weights = np.empty(n_states), np.empty((n_correlations, n_states))
    values, row = np.empty(n_predictors), np.empty(n_states)
    for e in range(lo, hi):
        n_rows = _find_kept(block, e, fold, held, counts.shape[1] - 1, 1, rows)
        if n_rows == 0 or n_rows == _count_sampled(block, e, fold):
            continue
        for m in range(n_models):
            first, last = first_state[m], first_state[m + 1]
            _leave_item_out(
                block,
                e,
                prior[first:last],
                truth_likelihood[:, first:last],
                counts[:, :, first:last],
                pseudo_counts[:, :, first:last],
                rows,
                n_rows,
                logs[first:last],
            )
            for r in range(n_correlations):
                _temper(
                    block.known[e],
                    prior[first:last],
                    truth_likelihood[:, first:last],
                    logs[first:last],
                    1.0 / (1.0 + (n_rows - 1) * correlations[r]),
                    weights[r, first:last],
                )
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                if fold[j] != held:
                    continue
                _confusion_row(counts, pseudo_counts, block.annotator[j], n, row)
                for m in range(n_models):
                    for r in range(n_correlations):
                        p = 0.0
                        for z in range(first_state[m], first_state[m + 1]):
                            p += weights[r, z] * row[z]
                        values[m * n_correlations + r] = math.log(p)
                total[0] += 1.0
                for a in range(n_predictors):
                    total[a + 1] += values[a]
                    for b in range(n_predictors):
                        products[a, b] += values[a] * values[b]


@compiled
def agree(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    item_hash: Floats,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
    first_draw: int,
    reliability: float,
    group: Codes,
    prior: Floats,
    shares: Floats,
    eps: Floats,
    n_labels: Floats,
    serious: Floats,
    log_ratio: Floats,
) -> None:
    r"""Add up labels and expected serious labels by annotator, and the log-likelihood ratio to chance.

    Categories are merged into groups. Draw 0 are the labels themselves. In other draws, labels are
    an item's class, drawn from ``prior``, with the probability ``reliability``, and otherwise
    random with the annotator's ``shares``, p. With reliabilities
    :math:`\epsilon`, one per annotator and draw, and the ``prior`` :math:`\pi`, the ratio of item e is

    .. math:: \sum_k \pi_k \prod_{s \in l_e} \Big(1 - \epsilon_s
              + \frac{\epsilon_s 1_{r_{e,s} = k}}{p_{s,k}}\Big).
    """
    given, logs = _empty_rows(block, lo, hi), np.empty(len(prior))
    for e in range(lo, hi):
        if _count_sampled(block, e, fold) == 0:
            continue
        own = np.uint64(item_hash[e])
        first = block.cell_ptr[block.item_ptr[e]]
        for r in range(eps.shape[1]):
            for k in range(len(prior)):
                logs[k] = math.log(prior[k])
            if block.known[e] >= 0:
                logs[:] = -np.inf
                logs[group[block.known[e]]] = 0.0
            seed = _mix(np.uint64(first_draw + r))
            truth = _draw(_uniform(_mix(own + seed)), prior)
            wrong = 0.0
            for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    s = block.annotator[j]
                    g = group[block.cell_category[c]]
                    if first_draw + r > 0:
                        label = _hash_label(block, c, j, annotator_hash, category_hash)
                        g = _draw_label(own + label + seed, truth, reliability, shares[s])
                    given[j - first] = g
                    wrong += math.log(1.0 - eps[s, r])
                    logs[g] += math.log1p(eps[s, r] / ((1.0 - eps[s, r]) * shares[s, g]))
            total = 0.0
            most = logs.max()
            for k in range(len(prior)):
                logs[k] = math.exp(logs[k] - most)
                total += logs[k]
            log_ratio[r] += wrong + most + math.log(total)
            for j in range(first, block.cell_ptr[block.item_ptr[e + 1]]):
                s, g = block.annotator[j], given[j - first]
                odds = eps[s, r] / ((1.0 - eps[s, r]) * shares[s, g])
                if r == 0:
                    n_labels[s] += 1.0
                serious[s, r] += logs[g] / total * odds / (1.0 + odds)


@compiled
def _draw_label(seed: np.uint64, truth: int, reliability: float, shares: Floats) -> int:
    """Return a label that is right with some probability, and random otherwise."""
    if _uniform(_mix(seed)) < reliability:
        return truth
    return _draw(_uniform(_mix(_mix(seed))), shares)


@compiled
def _draw(uniform: float, shares: Floats) -> int:
    """Return the place of a uniform number from 0 to 1 among shares."""
    for k in range(len(shares) - 1):
        uniform -= shares[k]
        if uniform < 0.0:
            return k
    return len(shares) - 1


@compiled
def _count_sampled(block: Block, e: int, fold: Floats) -> int:
    """Return the number of labels of an item, or 0 if it is left out of all folds."""
    first = block.cell_ptr[block.item_ptr[e]]
    last = block.cell_ptr[block.item_ptr[e + 1]]
    return 0 if fold[first] == NOT_SAMPLED else last - first


@compiled
def _hash_item(
    block: Block,
    e: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
) -> np.uint64:
    """Return a hash of the annotators and categories of an item's labels, in any order."""
    total = np.uint64(0)
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            total += _mix(
                annotator_hash[block.annotator[j]] + category_hash[block.cell_category[c]]
            )
    return _mix(total)


@compiled
def _hash_label(
    block: Block,
    c: int,
    j: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
) -> np.uint64:
    """Return a hash of the annotator and the category of label j, which is in cell c.

    Equal hashes in a cell are numbered, or their labels would be held out together.
    """
    own = annotator_hash[block.annotator[j]]
    same = np.uint64(0)
    for i in range(max(block.cell_ptr[c], j - _LABELS_COMPARED), j):
        if annotator_hash[block.annotator[i]] == own:
            same += np.uint64(1)
    return _mix(own + category_hash[block.cell_category[c]] + _mix(same))


@compiled
def _mix(value: np.uint64) -> np.uint64:
    """Return a hash of a number (the finalizer of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _uniform(value: np.uint64) -> float:
    """Return a hash as a number from 0 to below 1."""
    return float(value >> np.uint64(11)) / _TWO_53
