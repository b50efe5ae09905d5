"""NumPy twins of `annotruth.kernels.item_states`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import softmax

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.held_out import _kept, _log_truth, _shares
from annotruth.kernels.reference.rows import LabelRows, label_rows


def summarize(
    block: Block,
    lo: int,
    hi: int,
    right: Floats,
    opinion: Floats,
    p_serious: Floats,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
    right_labels: Floats,
    opinions: Floats,
    serious: Floats,
) -> None:
    """Write each item's probabilities of the right label and shares of opinion, and p_serious."""
    labels = label_rows(block, lo, hi)
    weights = _tempered(block, lo, hi, prior, known_truth, counts, pseudo_counts, correlation)
    given = _shares(labels, lo, hi, right.shape[1]) > 0
    mean = weights @ right_labels
    top = np.where(given, mean, 0.0).max(axis=1, keepdims=True)
    known = block.known[lo:hi]
    capped = np.where(given, mean, np.minimum(mean, top * (1.0 - 1e-9)))
    is_open = known < 0
    right[lo:hi] = np.where(is_open[:, np.newaxis], capped, mean)
    right[lo:hi][is_open] /= capped[is_open].sum(axis=1, keepdims=True)
    is_truth = (known >= 0) & (known < right.shape[1])
    right[lo:hi][is_truth] = np.eye(right.shape[1])[known[is_truth]]
    opinion[lo:hi] = weights @ opinions
    rows = serious[labels.annotator, labels.category]
    p_serious[labels.place] = (weights[labels.item - lo] * rows).sum(axis=1)


def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
) -> None:
    """Write each item's posterior over the states."""
    posterior[lo:hi] = _tempered(
        block, lo, hi, prior, known_truth, counts, pseudo_counts, correlation
    )


def score(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    first_state: Codes,
    correlations: Floats,
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
        tables = (known_truth[:, model], counts[:, :, model], pseudo_counts[:, :, model])
        logs, log_prior = _leave_item_out(block, lo, hi, kept, prior[model], *tables)
        for correlation in correlations:
            tempering = 1.0 / (1.0 + np.maximum(n_kept - 1, 0) * correlation)
            weights = softmax(log_prior + tempering[:, np.newaxis] * logs, axis=1)
            p = (weights[item] * confusion[annotator, category][:, model]).sum(axis=1)
            values.append(np.log(p))
    table = np.array(values)
    total[0] += table.shape[1]
    total[1:] += table.sum(axis=1)
    products += table @ table.T


def _tempered(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
) -> Floats:
    """Return the items' posteriors, each item taken out of the counts, its labels correlated."""
    labels = label_rows(block, lo, hi)
    logs, log_prior = _leave_item_out(
        block, lo, hi, labels, prior, known_truth, counts, pseudo_counts
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
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
) -> tuple[Floats, Floats]:
    """Return the log-likelihood of items' labels without the items' own counts, and the log-prior."""
    log_prior = np.log(prior) + _log_truth(block, lo, hi, known_truth)
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
