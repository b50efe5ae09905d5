"""NumPy twins of ``native/held_out.cpp``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats, mix_bits
from annotruth.kernels.reference.rows import LabelRows, class_posteriors, label_rows
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER, NOT_SAMPLED


def agreement(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Count the items by the share of their most frequent label, in equal bins from 1 to 0."""
    labels = _kept(block, lo, hi, a)
    shares = _shares(labels, lo, hi, int(block.cell_category.max()) + 1)
    bins = _agreement_bin(shares[shares.any(axis=1)])
    a.items += np.bincount(bins, minlength=AGREEMENT_BINS)


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up with observed shares or known truths, divided among subtypes, as posteriors."""
    labels = _kept(block, lo, hi, a)
    shares = _shares(labels, lo, hi, a.counts.shape[1])
    weights = a.subtypes[_agreement_bin(shares)]
    known = block.known[lo:hi, np.newaxis]
    certain = np.eye(a.counts.shape[1])[block.known[lo:hi]] * shares.any(axis=1, keepdims=True)
    by_class = np.where(known < 0, shares, certain)
    posteriors = (by_class[:, :, np.newaxis] * weights[:, np.newaxis]).reshape(hi - lo, -1)
    np.add.at(a.counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    a.classes += posteriors.sum(axis=0)


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up posteriors by annotator and label, by state, and the log-likelihood, of labels kept."""
    labels = _kept(block, lo, hi, a)
    row = labels.annotator, labels.category
    posteriors, logs = class_posteriors(block, lo, hi, labels.item, a.confusion[row], a)
    has_labels = np.bincount(labels.item - lo, minlength=hi - lo) > 0
    np.add.at(a.counts, row, posteriors[labels.item - lo])
    a.classes += posteriors[has_labels].sum(axis=0)
    a.log_likelihood[0] += logs[has_labels].sum()


def hash_annotators(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up the hashes of the items that each annotator labelled."""
    labels = label_rows(block, lo, hi)
    item_hash = _hash_items(labels, lo, hi, a)
    values = mix_bits(item_hash[labels.item - lo] + a.category_hash[labels.category])
    np.add.at(a.hash, labels.annotator, (values >> np.uint64(44)).astype(np.float64))


def hash_items(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write a hash of each item's labels: 52 bits, which a float holds."""
    labels = label_rows(block, lo, hi)
    hashes = _hash_items(labels, lo, hi, a)
    a.item_hash[lo:hi] = (hashes >> np.uint64(12)).astype(np.float64)


def assign_folds(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the fold of each label, by hashes of the label and its item."""
    labels = label_rows(block, lo, hi)
    own = a.item_hash[labels.item].astype(np.uint64)
    label = _hash_labels(labels, a)
    number = np.floor(_uniform(mix_bits(own + label)) / a.held_share)
    sampled = _uniform(mix_bits(own)) < a.sampled_share
    number[number >= a.n_folds] = NEVER
    a.fold[labels.place] = np.where(sampled, number, NOT_SAMPLED)


def count_drawn(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Count the labels of each draw by annotator and group."""
    labels = label_rows(block, lo, hi)
    label_hash = _hash_labels(labels, a)
    sampled = a.fold[labels.place] != NOT_SAMPLED
    for r in range(a.counts.shape[2]):
        given = _drawn(labels, a.first_draw + r, label_hash, a)
        np.add.at(a.counts[:, :, r], (labels.annotator[sampled], given[sampled]), 1.0)


def agree(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up expected serious labels by annotator, and the log-likelihood ratio to chance, by draw."""
    labels = label_rows(block, lo, hi)
    label_hash = _hash_labels(labels, a)
    sampled = a.fold[labels.place] != NOT_SAMPLED
    item, annotator = labels.item[sampled] - lo, labels.annotator[sampled]
    has_labels = np.bincount(item, minlength=hi - lo) > 0
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        log_known = np.log(np.eye(len(a.prior))[a.group[np.maximum(known, 0)]])
    log_prior = np.where((known >= 0)[:, np.newaxis], log_known, np.log(a.prior))
    for r in range(a.eps.shape[1]):
        given = _drawn(labels, a.first_draw + r, label_hash, a)[sampled]
        wrong = 1.0 - a.eps[annotator, r]
        odds = a.eps[annotator, r] / (wrong * a.shares[annotator, given, r])
        logs = log_prior.copy()
        np.add.at(logs, (item, given), np.log1p(odds))
        a.log_ratio[r] += np.log(wrong).sum() + logsumexp(logs, axis=1)[has_labels].sum()
        posterior = softmax(logs, axis=1)[item, given]
        np.add.at(a.serious[:, r], annotator, posterior * odds / (1.0 + odds))


def _drawn(labels: LabelRows, draw: int, label_hash: NDArray[np.uint64], a: Arrays) -> Codes:
    """Return the labels of a draw."""
    if draw == 0:
        given: Codes = a.group[labels.category]
        return given
    seed = a.item_hash[labels.item].astype(np.uint64) + mix_bits(np.array([draw], dtype=np.uint64))
    mixed = mix_bits(seed + label_hash)
    truth = np.searchsorted(a.prior[:-1].cumsum(), _uniform(mix_bits(seed)), "right")
    cumulative = a.chance[labels.annotator, :-1].cumsum(axis=1)
    random = (_uniform(mix_bits(mixed))[:, np.newaxis] >= cumulative).sum(axis=1)
    return np.where(_uniform(mixed) < a.reliability, truth, random)


def _kept(block: Block, lo: int, hi: int, a: Arrays) -> LabelRows:
    """Return the labels that are kept while a fold is held out."""
    labels = label_rows(block, lo, hi)
    folds = a.fold[labels.place]
    kept = (a.held == NEVER) | ((folds != a.held) & (folds != NOT_SAMPLED))
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


def _hash_labels(labels: LabelRows, a: Arrays) -> NDArray[np.uint64]:
    """Return hashes of labels' annotators and categories; equal ones in a cell are numbered."""
    hashes = a.annotator_hash[labels.annotator]
    same = np.zeros(len(hashes), dtype=np.uint64)
    for j in range(len(hashes)):
        in_cell = labels.cell[:j] == labels.cell[j]
        same[j] = np.count_nonzero(hashes[:j][in_cell] == hashes[j])
    return mix_bits(hashes + a.category_hash[labels.category] + mix_bits(same))


def _hash_items(labels: LabelRows, lo: int, hi: int, a: Arrays) -> NDArray[np.uint64]:
    """Return a hash of the annotators and categories of each item's labels, in any order."""
    total = np.zeros(hi - lo, dtype=np.uint64)
    hashes = mix_bits(a.annotator_hash[labels.annotator] + a.category_hash[labels.category])
    np.add.at(total, labels.item - lo, hashes)
    return mix_bits(total)


def _uniform(value: NDArray[np.uint64]) -> Floats:
    uniform: Floats = (value >> np.uint64(11)) / 2.0**53
    return uniform
