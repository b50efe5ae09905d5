"""NumPy twins of the kernels ``ordinal_mixture``."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats
from annotruth.kernels.reference.gpm import label_behavior
from annotruth.kernels.reference.rows import LabelRows, label_rows


def _label_entries(rows: LabelRows, table: Floats, level: Codes, shift: Codes) -> Floats:
    """Return the entries of a table for every label: labels x difficulties x nodes."""
    row = level[rows.annotator][:, np.newaxis] + shift
    entries: Floats = table[row, rows.category[:, np.newaxis]]
    return entries


def _split(rows: LabelRows, a: Arrays, place: int = 1) -> tuple[Floats, Floats]:
    """Return how likely every label is serious and given, and irregular: labels x difficulties x nodes.

    ``place`` is that of the annotator's noise level in ``levels``.
    """
    eps = a.eps[rows.annotator][:, np.newaxis, np.newaxis]
    serious = eps * _label_entries(rows, a.probability, a.levels[:, place], a.shift)
    return serious, (1.0 - eps) * label_behavior(rows, a)[:, np.newaxis, np.newaxis]


def _posteriors(
    block: Block, lo: int, hi: int, rows: LabelRows, f: Floats, a: Arrays
) -> tuple[Floats, Floats]:
    """Return each item's posterior, items x difficulties x nodes, and log-likelihood."""
    log_weight = np.empty((hi - lo, *a.prior.shape))
    for e, known in enumerate(block.known[lo:hi]):
        allowed = a.prior
        if known >= 0:
            allowed = np.where(np.arange(a.prior.shape[1]) == a.anchor[known], a.prior, 0.0)
            allowed = allowed / allowed.sum()
        with np.errstate(divide="ignore"):
            log_weight[e] = np.log(allowed)
    np.add.at(log_weight, rows.item - lo, np.log(f))
    log_likelihood = logsumexp(log_weight, axis=(1, 2), keepdims=True)
    return np.exp(log_weight - log_likelihood), log_likelihood


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Take one E-step and add up what the update of the annotators needs."""
    rows = label_rows(block, lo, hi)
    f = [np.add(*_split(rows, a, place)) for place in range(3)]
    weight, item_log_likelihood = _posteriors(block, lo, hi, rows, f[1], a)
    label_weight = weight[rows.item - lo]
    share = label_weight * _split(rows, a)[0] / f[1]
    mu = share.sum(axis=(1, 2))
    np.add.at(a.serious, rows.annotator, mu)
    if len(a.pi):
        np.add.at(a.irregular, (rows.annotator, rows.category), 1.0 - mu)
    for place in range(3):
        if len(a.log_probability):
            log_p = _label_entries(rows, a.log_probability, a.levels[:, place], a.shift)
            more = (share * log_p).sum(axis=(1, 2))
        else:
            more = np.log((label_weight * f[place] / f[1]).sum(axis=(1, 2)))
        np.add.at(a.gain[:, place], rows.annotator, more)
    a.log_likelihood[0] += item_log_likelihood.sum()


def summarize(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Summarize the items' posteriors, and write how likely each label was serious."""
    rows = label_rows(block, lo, hi)
    serious, irregular = _split(rows, a)
    f = serious + irregular
    weight, item_log_likelihood = _posteriors(block, lo, hi, rows, f, a)

    mass = weight.sum(axis=1)
    known = block.known[lo:hi]
    a.score[lo:hi, 0] = mass @ a.nodes
    for e in range(hi - lo):
        below = np.concatenate([[0.0], mass[e].cumsum()])
        ends = np.interp([0.025, 0.975], below, a.edges)
        a.score[lo + e, 1:] = ends if known[e] < 0 else a.score[lo + e, 0]
    a.difficulty[lo:hi] = weight.sum(axis=2) @ a.gamma
    a.theta[lo:hi] = np.einsum("ejk,jnk->en", weight, a.probability[a.typical_level + a.shift])
    a.theta[lo:hi][known >= 0] = np.eye(a.theta.shape[1])[known[known >= 0]]

    a.p_serious[rows.place] = (weight[rows.item - lo] * serious / f).sum(axis=(1, 2))
    a.log_likelihood[0] += item_log_likelihood.sum()


def posterior(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write each item's posterior on the lattice, items x difficulties x nodes."""
    rows = label_rows(block, lo, hi)
    a.weight[lo:hi], _ = _posteriors(block, lo, hi, rows, np.add(*_split(rows, a)), a)


def leave_one_out(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the probability of each label, if serious, given the item's other labels."""
    rows = label_rows(block, lo, hi)
    f = np.add(*_split(rows, a))
    weight, _ = _posteriors(block, lo, hi, rows, f, a)
    without = weight[rows.item - lo] / f
    without /= without.sum(axis=(1, 2), keepdims=True)
    p = _label_entries(rows, a.probability, a.tried_level, a.shift)
    a.predicted[rows.place] = (without * p).sum(axis=(1, 2))


def log_likelihood_by_annotator(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    rows = label_rows(block, lo, hi)
    behavior = label_behavior(rows, a)
    p_label, label_eps = a.predicted[rows.place], a.eps[rows.annotator]
    p = label_eps * p_label + (1.0 - label_eps) * behavior
    np.add.at(a.log_likelihood, rows.annotator, np.log(p))
    np.add.at(a.slope, rows.annotator, (p_label - behavior) / p)
