"""NumPy twins of `annotruth.kernels.held_out`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from annotruth.kernels.arrays import Block, Codes, Floats, mix_bits
from annotruth.kernels.reference.rows import LabelRows, label_rows
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER, NOT_SAMPLED


def agreement(block: Block, lo: int, hi: int, fold: Floats, held: int, items: Floats) -> None:
    """Count the items by the share of their most frequent label, in equal bins from 1 to 0."""
    labels = _kept(block, lo, hi, fold, held)
    shares = _shares(labels, lo, hi, int(block.cell_category.max()) + 1)
    bins = _agreement_bin(shares[shares.any(axis=1)])
    items += np.bincount(bins, minlength=AGREEMENT_BINS)


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
    """Add up with observed shares or known truths, divided among subtypes, as posteriors."""
    labels = _kept(block, lo, hi, fold, held)
    shares = _shares(labels, lo, hi, counts.shape[1])
    weights = subtypes[_agreement_bin(shares)]
    known = block.known[lo:hi, np.newaxis]
    certain = np.eye(counts.shape[1])[block.known[lo:hi]] * shares.any(axis=1, keepdims=True)
    by_class = np.where(known < 0, shares, certain)
    posteriors = (by_class[:, :, np.newaxis] * weights[:, np.newaxis]).reshape(hi - lo, -1)
    np.add.at(counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    classes += posteriors.sum(axis=0)


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
    labels = _kept(block, lo, hi, fold, held)
    log_joint = np.log(prior) + _log_truth(block, lo, hi, known_truth)
    np.add.at(log_joint, labels.item - lo, np.log(confusion)[labels.annotator, labels.category])
    has_labels = np.bincount(labels.item - lo, minlength=hi - lo) > 0
    posteriors = softmax(log_joint, axis=1) * has_labels[:, np.newaxis]
    np.add.at(counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    classes += posteriors.sum(axis=0)
    log_likelihood[0] += np.logaddexp.reduce(log_joint[has_labels], axis=1).sum()


def hash_annotators(
    block: Block,
    lo: int,
    hi: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
    hash: Floats,
) -> None:
    """Add up the hashes of the items that each annotator labelled."""
    labels = label_rows(block, lo, hi)
    item_hash = _hash_items(labels, lo, hi, annotator_hash, category_hash)
    values = mix_bits(item_hash[labels.item - lo] + category_hash[labels.category]) >> np.uint64(44)
    np.add.at(hash, labels.annotator, values.astype(np.float64))


def hash_items(
    block: Block,
    lo: int,
    hi: int,
    item_hash: Floats,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
) -> None:
    """Write a hash of each item's labels: 52 bits, which a float holds."""
    labels = label_rows(block, lo, hi)
    hashes = _hash_items(labels, lo, hi, annotator_hash, category_hash)
    item_hash[lo:hi] = (hashes >> np.uint64(12)).astype(np.float64)


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
    """Write the fold of each label, by hashes of the label and its item."""
    labels = label_rows(block, lo, hi)
    own = item_hash[labels.item].astype(np.uint64)
    label = _hash_labels(labels, annotator_hash, category_hash)
    number = np.floor(_uniform(mix_bits(own + label)) / held_share)
    sampled = _uniform(mix_bits(own)) < sampled_share
    fold[labels.place] = np.where(sampled, np.where(number < n_folds, number, NEVER), NOT_SAMPLED)


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
    """Count the labels of each draw by annotator and group."""
    labels = label_rows(block, lo, hi)
    hashes = item_hash, _hash_labels(labels, annotator_hash, category_hash)
    sampled = fold[labels.place] != NOT_SAMPLED
    for r in range(counts.shape[2]):
        given = _drawn(labels, first_draw + r, *hashes, reliability, group, prior, chance)
        np.add.at(counts[:, :, r], (labels.annotator[sampled], given[sampled]), 1.0)


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
    """Add up expected serious labels by annotator, and the log-likelihood ratio to chance, by draw."""
    labels = label_rows(block, lo, hi)
    hashes = item_hash, _hash_labels(labels, annotator_hash, category_hash)
    sampled = fold[labels.place] != NOT_SAMPLED
    item, annotator = labels.item[sampled] - lo, labels.annotator[sampled]
    has_labels = np.bincount(item, minlength=hi - lo) > 0
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        log_known = np.log(np.eye(len(prior))[group[np.maximum(known, 0)]])
    log_prior = np.where((known >= 0)[:, np.newaxis], log_known, np.log(prior))
    for r in range(eps.shape[1]):
        given = _drawn(labels, first_draw + r, *hashes, reliability, group, prior, chance)[sampled]
        wrong = 1.0 - eps[annotator, r]
        odds = eps[annotator, r] / (wrong * shares[annotator, given, r])
        logs = log_prior.copy()
        np.add.at(logs, (item, given), np.log1p(odds))
        log_ratio[r] += np.log(wrong).sum() + logsumexp(logs, axis=1)[has_labels].sum()
        posterior = softmax(logs, axis=1)[item, given]
        np.add.at(serious[:, r], annotator, posterior * odds / (1.0 + odds))


def _drawn(
    labels: LabelRows,
    draw: int,
    item_hash: Floats,
    label_hash: NDArray[np.uint64],
    reliability: float,
    group: Codes,
    prior: Floats,
    chance: Floats,
) -> Codes:
    """Return the labels of a draw."""
    if draw == 0:
        return group[labels.category]
    seed = item_hash[labels.item].astype(np.uint64) + mix_bits(np.array([draw], dtype=np.uint64))
    mixed = mix_bits(seed + label_hash)
    truth = np.searchsorted(prior[:-1].cumsum(), _uniform(mix_bits(seed)), "right")
    cumulative = chance[labels.annotator, :-1].cumsum(axis=1)
    random = (_uniform(mix_bits(mixed))[:, np.newaxis] >= cumulative).sum(axis=1)
    return np.where(_uniform(mixed) < reliability, truth, random)


def _kept(block: Block, lo: int, hi: int, fold: Floats, held: int) -> LabelRows:
    """Return the labels that are kept while a fold is held out."""
    labels = label_rows(block, lo, hi)
    folds = fold[labels.place]
    kept = (held == NEVER) | ((folds != held) & (folds != NOT_SAMPLED))
    return LabelRows(*(codes[kept] for codes in labels))


def _shares(labels: LabelRows, lo: int, hi: int, n_categories: int) -> Floats:
    """Return the share of each category in the labels of items; zeros without labels."""
    counts = np.zeros((hi - lo, n_categories))
    np.add.at(counts, (labels.item - lo, labels.category), 1.0)
    shares: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return shares


def _agreement_bin(shares: Floats) -> Codes:
    bins: Codes = np.round((1.0 - shares.max(axis=1)) * (AGREEMENT_BINS - 1)).astype(np.int64)
    return bins


def _log_truth(block: Block, lo: int, hi: int, known_truth: Floats) -> Floats:
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        logs: Floats = np.where(known[:, np.newaxis] < 0, 0.0, np.log(known_truth)[known])
    return logs


def _hash_labels(
    labels: LabelRows, annotator_hash: NDArray[np.uint64], category_hash: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return hashes of labels' annotators and categories; equal ones in a cell are numbered."""
    hashes = annotator_hash[labels.annotator]
    same = np.zeros(len(hashes), dtype=np.uint64)
    for j in range(len(hashes)):
        in_cell = labels.cell[:j] == labels.cell[j]
        same[j] = np.count_nonzero(hashes[:j][in_cell] == hashes[j])
    return mix_bits(hashes + category_hash[labels.category] + mix_bits(same))


def _hash_items(
    labels: LabelRows,
    lo: int,
    hi: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    """Return a hash of the annotators and categories of each item's labels, in any order."""
    total = np.zeros(hi - lo, dtype=np.uint64)
    hashes = mix_bits(annotator_hash[labels.annotator] + category_hash[labels.category])
    np.add.at(total, labels.item - lo, hashes)
    return mix_bits(total)


def _uniform(value: NDArray[np.uint64]) -> Floats:
    uniform: Floats = (value >> np.uint64(11)) / 2.0**53
    return uniform
