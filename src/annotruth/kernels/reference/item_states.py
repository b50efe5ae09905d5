"""NumPy twins of `annotruth.kernels.item_states`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows
from annotruth.kernels.shared import (
    AGREEMENT_BINS,
    NEVER,
    NOT_SAMPLED,
    mix_bits,
)


def hash_annotators(
    block: Block,
    lo: int,
    hi: int,
    annotator_hash: NDArray[np.uint64],
    category_hash: NDArray[np.uint64],
    sums: Floats,
) -> None:
    """Add up the hashes of the items that each annotator labelled."""
    labels = label_rows(block, lo, hi)
    item_hash = _hash_items(labels, lo, hi, annotator_hash, category_hash)
    values = mix_bits(item_hash[labels.item - lo] + category_hash[labels.category]) >> np.uint64(44)
    np.add.at(sums, labels.annotator, values.astype(np.float64))


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
    hashes = annotator_hash[labels.annotator]
    same = np.zeros(len(hashes), dtype=np.uint64)
    for j in range(len(hashes)):
        in_cell = labels.cell[:j] == labels.cell[j]
        same[j] = np.count_nonzero(hashes[:j][in_cell] == hashes[j])
    label = mix_bits(hashes + category_hash[labels.category] + mix_bits(same))
    number = np.floor(_uniform(mix_bits(own + label)) / held_share)
    sampled = _uniform(mix_bits(own)) < sampled_share
    fold[labels.place] = np.where(sampled, np.where(number < n_folds, number, NEVER), NOT_SAMPLED)


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
    states: Floats,
) -> None:
    """Add up with observed shares or known truths, divided among subtypes, as posteriors."""
    labels = _kept(block, lo, hi, fold, held)
    shares = _shares(labels, lo, hi, counts.shape[1])
    weights = subtypes[_agreement_bin(shares)]
    known = block.known[lo:hi, np.newaxis]
    certain = np.eye(counts.shape[1])[block.known[lo:hi]] * shares.any(axis=1, keepdims=True)
    classes = np.where(known < 0, shares, certain)
    posteriors = (classes[:, :, np.newaxis] * weights[:, np.newaxis]).reshape(hi - lo, -1)
    np.add.at(counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    states += posteriors.sum(axis=0)


def step(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    prior: Floats,
    truth_likelihood: Floats,
    confusion: Floats,
    counts: Floats,
    states: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by state, and the log-likelihood, of labels kept."""
    labels = _kept(block, lo, hi, fold, held)
    log_joint = np.log(prior) + _log_truth(block, lo, hi, truth_likelihood)
    np.add.at(log_joint, labels.item - lo, np.log(confusion)[labels.annotator, labels.category])
    has_labels = np.bincount(labels.item - lo, minlength=hi - lo) > 0
    posteriors = softmax(log_joint, axis=1) * has_labels[:, np.newaxis]
    np.add.at(counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    states += posteriors.sum(axis=0)
    log_likelihood[0] += np.logaddexp.reduce(log_joint[has_labels], axis=1).sum()


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
    without_items: Floats,
    total: Floats,
    products: Floats,
) -> None:
    """Add up the log-probabilities of held-out labels by several predictors, and their products."""
    kept = _kept(block, lo, hi, fold, held)
    n_kept = np.bincount(kept.item - lo, minlength=hi - lo)
    labels = label_rows(block, lo, hi)
    is_scored = (fold[labels.place] == held) & (n_kept[labels.item - lo] > 0)
    item, annotator, category = (
        codes[is_scored] for codes in (labels.item - lo, labels.annotator, labels.category)
    )
    confusion = _confusion(counts, pseudo_counts)
    values = []
    for first, last in pairwise(first_state):
        model = slice(first, last)
        tables = (truth_likelihood[:, model], counts[:, :, model], pseudo_counts[:, :, model])
        logs, log_prior = _leave_item_out(block, lo, hi, kept, prior[model], *tables)
        for correlation in correlations:
            tempering = 1.0 / (1.0 + np.maximum(n_kept - 1, 0) * correlation)
            weights = softmax(log_prior + tempering[:, np.newaxis] * logs, axis=1)
            p = (weights[item] * confusion[annotator, category][:, model]).sum(axis=1)
            values.append(np.log(p))
    values += list(np.log(without_items[annotator, category]).T)
    table = np.array(values)
    total[0] += table.shape[1]
    total[1:] += table.sum(axis=1)
    products += table @ table.T


def summarize(
    block: Block,
    lo: int,
    hi: int,
    right: Floats,
    opinion: Floats,
    p_serious: Floats,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
    right_labels: Floats,
    opinions: Floats,
    serious: Floats,
) -> None:
    """Write each item's probabilities of the right label and shares of opinion, and p_serious."""
    labels = label_rows(block, lo, hi)
    weights = _tempered(block, lo, hi, prior, truth_likelihood, counts, pseudo_counts, correlation)
    given = _shares(labels, lo, hi, right.shape[1]) > 0
    mean = weights @ right_labels
    top = np.where(given, mean, 0.0).max(axis=1, keepdims=True)
    mean = np.where(given, mean, np.minimum(mean, top * (1.0 - 1e-9)))
    known = block.known[lo:hi]
    right[lo:hi] = np.where(
        known[:, np.newaxis] < 0,
        mean / mean.sum(axis=1, keepdims=True),
        np.eye(right.shape[1])[known],
    )
    opinion[lo:hi] = weights @ opinions
    rows = serious[labels.annotator, labels.category]
    p_serious[labels.place] = (weights[labels.item - lo] * rows).sum(axis=1)


def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
) -> None:
    """Write each item's posterior over the states."""
    posterior[lo:hi] = _tempered(
        block, lo, hi, prior, truth_likelihood, counts, pseudo_counts, correlation
    )


def _tempered(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
) -> Floats:
    """Return the items' posteriors, each item taken out of the counts, its labels correlated."""
    labels = label_rows(block, lo, hi)
    logs, log_prior = _leave_item_out(
        block, lo, hi, labels, prior, truth_likelihood, counts, pseudo_counts
    )
    n_labels = np.bincount(labels.item - lo, minlength=hi - lo)
    tempering = 1.0 / (1.0 + (n_labels - 1) * correlation)
    posteriors: Floats = softmax(log_prior + tempering[:, np.newaxis] * logs, axis=1)
    return posteriors


def _leave_item_out(
    block: Block,
    lo: int,
    hi: int,
    labels: LabelRows,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
) -> tuple[Floats, Floats]:
    """Return the log-likelihood of items' labels without the items' own counts, and the log-prior."""
    log_prior = np.log(prior) + _log_truth(block, lo, hi, truth_likelihood)
    item = labels.item - lo
    logs = np.zeros((hi - lo, len(prior)))
    confusion = _confusion(counts, pseudo_counts)
    np.add.at(logs, item, np.log(confusion)[labels.annotator, labels.category])
    own = softmax(log_prior + logs, axis=1)[item]
    label, every = (
        np.maximum(counts[labels.annotator, n] - own, 0.0) + pseudo_counts[labels.annotator, n]
        for n in (labels.category, np.full(len(item), counts.shape[1] - 1))
    )
    logs[:] = 0.0
    np.add.at(logs, item, np.log(label / every))
    return logs, log_prior


def _confusion(counts: Floats, pseudo_counts: Floats) -> Floats:
    mass = counts + pseudo_counts
    confusion: Floats = mass[:, :-1] / mass[:, -1:]
    return confusion


def _log_truth(block: Block, lo: int, hi: int, truth_likelihood: Floats) -> Floats:
    known = block.known[lo:hi]
    with np.errstate(divide="ignore"):
        logs: Floats = np.where(known[:, np.newaxis] < 0, 0.0, np.log(truth_likelihood)[known])
    return logs


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
