"""NumPy twins of `annotruth.kernels.item_states`."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows
from annotruth.kernels.shared import (
    AGREEMENT_BINS,
    NEVER,
    NOT_SAMPLED,
)


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
