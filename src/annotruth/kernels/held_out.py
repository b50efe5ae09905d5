r"""Passes over labels some of which are held out, and over labels that are drawn at random.

``fold`` has one entry per label: the number of the fold in which the label is held out, `NEVER`, or
`NOT_SAMPLED` for labels of items that are left out of all folds. A kernel leaves out the labels of
the fold ``held``. Folds and random labels follow from hashes of what labels and their items are, not
from names or order. Latent states are ordered by class: state z is of class z // M, with M subtypes
per class. Each kernel processes items ``lo:hi`` of a block. NumPy twins:
`annotruth.kernels.reference.held_out`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.robust_gpm import _empty_rows, _posterior
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER, NOT_SAMPLED

_TWO_53 = 2.0**53
_LABELS_COMPARED = 64  # in a cell, to number equal hashes
# What products are divided by before they can overflow.
_LARGE = 1e100
_LOG_LARGE = math.log(_LARGE)


@compiled
def agreement(block: Block, lo: int, hi: int, fold: Floats, held: int, items: Floats) -> None:
    """Count the items by the share of their most frequent label, in equal bins from 1 to 0."""
    for e in range(lo, hi):
        n_kept, most = _count_kept(block, e, fold, held)
        if n_kept > 0:
            items[_agreement_bin(most, n_kept)] += 1.0


@compiled
def start(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    subtypes: Floats,
    counts: Floats,
    classes: Floats,
) -> None:
    """Add up what `step` does, with observed shares or known truths as the posteriors of classes.

    ``subtypes``, agreement bins x subtypes, divides each class by how much the item's labels agree.
    """
    n_subtypes = subtypes.shape[1]
    for e in range(lo, hi):
        n_kept, most = _count_kept(block, e, fold, held)
        if n_kept == 0:
            continue
        weights = subtypes[_agreement_bin(most, n_kept)]
        for d in range(block.item_ptr[e], block.item_ptr[e + 1]):
            k = block.cell_category[d] if block.known[e] < 0 else block.known[e]
            share = _count_cell(block, d, fold, held) / n_kept
            for g in range(n_subtypes):
                posterior = share * weights[g]
                classes[k * n_subtypes + g] += posterior
                for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
                    n = block.cell_category[c]
                    for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                        if _is_kept(fold[j], held):
                            counts[block.annotator[j], n, k * n_subtypes + g] += posterior


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    counts: Floats,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by state, and the log-likelihood, of labels kept."""
    n_states = prior.shape[0]
    posterior = np.empty(n_states)
    rows = _empty_rows(block, lo, hi)
    flat, flat_counts = confusion.reshape(-1), counts.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_kept(block, e, fold, held, confusion.shape[1], n_states, rows)
        if n_rows == 0:
            continue
        log_likelihood[0] += _posterior(block, e, prior, known_truth, flat, rows, n_rows, posterior)
        for z in range(n_states):
            classes[z] += posterior[z]
        for j in range(n_rows):
            row = flat_counts[rows[j] : rows[j] + n_states]
            for z in range(n_states):
                row[z] += posterior[z]


@compiled
def hash_annotators(
    block: Block,
    lo: int,
    hi: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
    hash: Floats,
) -> None:
    """Add up the hashes of the items that each annotator labelled."""
    for e in range(lo, hi):
        item_hash = _hash_item(block, e, annotator_hash, category_hash)
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            # 20 bits, so that sums of floats are exact.
            value = _mix(item_hash + category_hash[block.cell_category[c]]) >> np.uint64(44)
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                hash[block.annotator[j]] += float(value)


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
def count_drawn(
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
    chance: Floats,
    counts: Floats,
) -> None:
    """Count the labels of each draw by annotator and group; see `agree`."""
    for e in range(lo, hi):
        if _count_sampled(block, e, fold) == 0:
            continue
        own = np.uint64(item_hash[e])
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                g = group[block.cell_category[c]]
                label = _hash_label(block, c, j, annotator_hash, category_hash)
                for r in range(counts.shape[2]):
                    drawn = _draw_label(
                        first_draw + r, own, label, g, reliability, prior, chance[s]
                    )
                    counts[s, drawn, r] += 1.0


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
    chance: Floats,
    shares: Floats,
    eps: Floats,
    serious: Floats,
    log_ratio: Floats,
) -> None:
    r"""Add up expected serious labels by annotator, and the log-likelihood ratio to chance, by draw.

    Categories are merged into groups. Draw 0 are the labels themselves. In other draws, labels are
    an item's class, drawn from ``prior``, with the probability ``reliability``, and otherwise
    random with the annotator's row of ``chance``. With the ``shares`` p of an annotator's labels in
    a draw, reliabilities :math:`\epsilon` and the ``prior`` :math:`\pi`, the ratio of item e is

    .. math:: \sum_k \pi_k \prod_{s \in l_e} \Big(1 - \epsilon_s
              + \frac{\epsilon_s 1_{r_{e,s} = k}}{p_{s,k}}\Big).
    """
    given, own_group = _empty_rows(block, lo, hi), _empty_rows(block, lo, hi)
    label_hash, odds = np.empty(len(given), dtype=np.uint64), np.empty(len(given))
    joint, exponent = np.empty(len(prior)), np.empty(len(prior))
    for e in range(lo, hi):
        n_labels = _count_sampled(block, e, fold)
        if n_labels == 0:
            continue
        own = np.uint64(item_hash[e])
        first = block.cell_ptr[block.item_ptr[e]]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                own_group[j - first] = group[block.cell_category[c]]
                label_hash[j - first] = _hash_label(block, c, j, annotator_hash, category_hash)
        for r in range(eps.shape[1]):
            for k in range(len(prior)):
                joint[k] = prior[k] if block.known[e] < 0 else 0.0
                exponent[k] = 0.0
            if block.known[e] >= 0:
                joint[group[block.known[e]]] = 1.0
            wrong, log_scale = 1.0, 0.0
            for i in range(n_labels):
                s = block.annotator[first + i]
                g = _draw_label(
                    first_draw + r, own, label_hash[i], own_group[i], reliability, prior, chance[s]
                )
                given[i] = g
                odds[i] = eps[s, r] / ((1.0 - eps[s, r]) * shares[s, g, r])
                wrong *= 1.0 - eps[s, r]
                joint[g] *= 1.0 + odds[i]
                if wrong < 1.0 / _LARGE:
                    wrong *= _LARGE
                    log_scale -= _LOG_LARGE
                if joint[g] > _LARGE:
                    joint[g] /= _LARGE
                    exponent[g] += 1.0
            total = highest = 0.0
            for k in range(len(prior)):
                highest = max(highest, exponent[k])
            for k in range(len(prior)):
                if highest > 0.0:
                    joint[k] *= _LARGE ** (exponent[k] - highest)
                total += joint[k]
            log_scale += highest * _LOG_LARGE
            log_ratio[r] += log_scale + math.log(wrong * total)
            for i in range(n_labels):
                p_right = joint[given[i]] / total
                serious[block.annotator[first + i], r] += p_right * odds[i] / (1.0 + odds[i])


@compiled
def _draw_label(
    draw: int,
    item_hash: np.uint64,
    label_hash: np.uint64,
    label: int,
    reliability: float,
    prior: Floats,
    chance: Floats,
) -> int:
    """Return a label in a draw: the label itself, the item's class in that draw, or a random one."""
    if draw == 0:
        return label
    seed = item_hash + _mix(np.uint64(draw))
    mixed = _mix(seed + label_hash)
    if _uniform(mixed) < reliability:
        return _draw(_uniform(_mix(seed)), prior)
    return _draw(_uniform(_mix(mixed)), chance)


@compiled
def _draw(uniform: float, shares: Floats) -> int:
    """Return the place of a uniform number from 0 to 1 among shares."""
    for k in range(len(shares) - 1):
        uniform -= shares[k]
        if uniform < 0.0:
            return k
    return len(shares) - 1


@compiled
def _is_kept(fold: float, held: int) -> bool:
    """Whether a label is kept while the fold ``held`` is held out; all are if it is NEVER."""
    return held == NEVER or (fold != held and fold != NOT_SAMPLED)


@compiled
def _count_cell(block: Block, c: int, fold: Floats, held: int) -> int:
    """Return the number of labels kept in a cell."""
    n = 0
    for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
        n += _is_kept(fold[j], held)
    return n


@compiled
def _count_kept(block: Block, e: int, fold: Floats, held: int) -> tuple[int, int]:
    """Return the number of labels kept of an item, and of those that name its most frequent one."""
    n_kept, most = 0, 0
    if held != NEVER and fold[block.cell_ptr[block.item_ptr[e]]] == NOT_SAMPLED:
        return n_kept, most
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = _count_cell(block, c, fold, held)
        n_kept += n
        most = max(most, n)
    return n_kept, most


@compiled
def _find_kept(
    block: Block, e: int, fold: Floats, held: int, n_labels: int, width: int, rows: Codes
) -> int:
    """Write where the row of each kept label begins, in rows of a width; return their number."""
    n_rows = 0
    if held != NEVER and fold[block.cell_ptr[block.item_ptr[e]]] == NOT_SAMPLED:
        return n_rows
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            if _is_kept(fold[j], held):
                rows[n_rows] = (np.int64(block.annotator[j]) * n_labels + n) * width
                n_rows += 1
    return n_rows


@compiled
def _agreement_bin(most: int, n_labels: int) -> int:
    """Return the bin of a share, from 0 for unanimous labels."""
    return round((1.0 - most / n_labels) * (AGREEMENT_BINS - 1))


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
