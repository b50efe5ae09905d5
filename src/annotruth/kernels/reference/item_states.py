"""NumPy twins of `annotruth.kernels.item_states`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import softmax

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.held_out import _kept, _shares
from annotruth.kernels.reference.rows import LabelRows, label_rows, log_known_truth


def summarize(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write each item's probabilities of the right label and shares of opinion, and p_serious."""
    labels = label_rows(block, lo, hi)
    weights = _tempered(block, lo, hi, a)
    given = _shares(labels, lo, hi, a.right.shape[1]) > 0
    mean = weights @ a.right_labels
    top = np.where(given, mean, 0.0).max(axis=1, keepdims=True)
    known = block.known[lo:hi]
    capped = np.where(given, mean, np.minimum(mean, top * (1.0 - 1e-9)))
    is_open = known < 0
    a.right[lo:hi] = np.where(is_open[:, np.newaxis], capped, mean)
    a.right[lo:hi][is_open] /= capped[is_open].sum(axis=1, keepdims=True)
    is_truth = (known >= 0) & (known < a.right.shape[1])
    a.right[lo:hi][is_truth] = np.eye(a.right.shape[1])[known[is_truth]]
    a.opinion[lo:hi] = weights @ a.opinions
    rows = a.serious[labels.annotator, labels.category]
    a.p_serious[labels.place] = (weights[labels.item - lo] * rows).sum(axis=1)


def posterior(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write each item's posterior over the states."""
    a.posterior[lo:hi] = _tempered(block, lo, hi, a)


def score(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up the log-probabilities of held-out labels by several predictors, and their products."""
    kept = _kept(block, lo, hi, a)
    n_kept = np.bincount(kept.item - lo, minlength=hi - lo)
    labels = label_rows(block, lo, hi)
    is_scored = (a.fold[labels.place] == a.held) & (n_kept[labels.item - lo] > 0)
    item, annotator, category = (
        codes[is_scored] for codes in (labels.item - lo, labels.annotator, labels.category)
    )
    confusion = _confusion(a.counts, a.pseudo_counts)
    values = []
    for first, last in pairwise(a.first_state):
        model = slice(first, last)
        tables = ("prior", "known_truth", "counts", "pseudo_counts")
        own = Arrays(**{name: getattr(a, name)[..., model] for name in tables})
        logs, log_prior = _leave_item_out(block, lo, hi, kept, own)
        for correlation in a.correlations:
            tempering = 1.0 / (1.0 + np.maximum(n_kept - 1, 0) * correlation)
            weights = softmax(log_prior + tempering[:, np.newaxis] * logs, axis=1)
            p = (weights[item] * confusion[annotator, category][:, model]).sum(axis=1)
            values.append(np.log(p))
    table = np.array(values)
    a.total[0] += table.shape[1]
    a.total[1:] += table.sum(axis=1)
    a.products += table @ table.T


def _tempered(block: Block, lo: int, hi: int, a: Arrays) -> Floats:
    """Return the items' posteriors, each item taken out of the counts, its labels correlated."""
    labels = label_rows(block, lo, hi)
    logs, log_prior = _leave_item_out(block, lo, hi, labels, a)
    n_labels = np.bincount(labels.item - lo, minlength=hi - lo)
    tempering = 1.0 / (1.0 + (n_labels - 1) * a.correlation)
    posteriors: Floats = softmax(log_prior + tempering[:, np.newaxis] * logs, axis=1)
    return posteriors


def _leave_item_out(
    block: Block, lo: int, hi: int, labels: LabelRows, a: Arrays
) -> tuple[Floats, Floats]:
    """Return the log-likelihood of items' labels without the items' own counts, and the log-prior."""
    log_prior = np.log(a.prior) + log_known_truth(block, lo, hi, a.known_truth)
    item, s = labels.item - lo, labels.annotator
    logs = np.zeros((hi - lo, len(a.prior)))
    np.add.at(logs, item, np.log(_confusion(a.counts, a.pseudo_counts))[s, labels.category])
    own = softmax(log_prior + logs, axis=1)[item]
    label, every = (
        np.maximum(a.counts[s, n] - own, 0.0) + a.pseudo_counts[s, n]
        for n in (labels.category, a.counts.shape[1] - 1)
    )
    logs[:] = 0.0
    np.add.at(logs, item, np.log(label / every))
    return logs, log_prior


def _confusion(counts: Floats, pseudo_counts: Floats) -> Floats:
    mass = counts + pseudo_counts
    confusion: Floats = mass[:, :-1] / mass[:, -1:]
    return confusion
