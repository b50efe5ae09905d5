"""NumPy twins of `annotruth.kernels.ordinal_mixture`."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows


def _behavior(rows: LabelRows, pi: Floats, chance: float) -> Floats:
    """Return the probability of every label if it is irregular: labels x 1 x 1."""
    p = pi[rows.annotator, rows.category] if len(pi) else np.full(len(rows.item), chance)
    return p[:, np.newaxis, np.newaxis]


def _label_entries(rows: LabelRows, table: Floats, level: Codes, shift: Codes) -> Floats:
    """Return the entries of a table for every label: labels x difficulties x nodes."""
    row = level[rows.annotator][:, np.newaxis] + shift
    entries: Floats = table[row, rows.category[:, np.newaxis]]
    return entries


def _posteriors(
    block: Block, lo: int, hi: int, rows: LabelRows, f: Floats, prior: Floats, anchor: Codes
) -> tuple[Floats, Floats]:
    """Return each item's posterior, items x difficulties x nodes, and log-likelihood."""
    log_weight = np.empty((hi - lo, *prior.shape))
    for e, known in enumerate(block.known[lo:hi]):
        if known < 0:
            allowed = prior
        else:
            allowed = np.where(np.arange(prior.shape[1]) == anchor[known], prior, 0.0)
            allowed = allowed / allowed.sum()
        with np.errstate(divide="ignore"):
            log_weight[e] = np.log(allowed)
    np.add.at(log_weight, rows.item - lo, np.log(f))
    log_likelihood = logsumexp(log_weight, axis=(1, 2), keepdims=True)
    return np.exp(log_weight - log_likelihood), log_likelihood


def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    log_probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    serious: Floats,
    gain: Floats,
    irregular: Floats,
    log_likelihood: Floats,
) -> None:
    """Take one E-step and add up what the update of the annotators needs."""
    rows = label_rows(block, lo, hi)
    label_eps = eps[rows.annotator][:, np.newaxis, np.newaxis]
    c2 = (1.0 - label_eps) * _behavior(rows, pi, chance)
    f = [
        label_eps * _label_entries(rows, probability, levels[:, place], shift) + c2
        for place in range(3)
    ]
    weight, item_log_likelihood = _posteriors(block, lo, hi, rows, f[1], prior, anchor)
    label_weight = weight[rows.item - lo]
    share = label_weight * (f[1] - c2) / f[1]
    mu = share.sum(axis=(1, 2))
    np.add.at(serious, rows.annotator, mu)
    if len(pi):
        np.add.at(irregular, (rows.annotator, rows.category), 1.0 - mu)
    for place in range(3):
        if len(log_probability):
            log_p = _label_entries(rows, log_probability, levels[:, place], shift)
            more = (share * log_p).sum(axis=(1, 2))
        else:
            more = np.log((label_weight * f[place] / f[1]).sum(axis=(1, 2)))
        np.add.at(gain[:, place], rows.annotator, more)
    log_likelihood[0] += item_log_likelihood.sum()


def summarize(
    block: Block,
    lo: int,
    hi: int,
    score: Floats,
    difficulty: Floats,
    theta: Floats,
    p_serious: Floats,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    nodes: Floats,
    edges: Floats,
    gamma: Floats,
    typical_level: int,
    log_likelihood: Floats,
) -> None:
    """Summarize the items' posteriors, and write how likely each label was serious."""
    rows = label_rows(block, lo, hi)
    label_eps = eps[rows.annotator][:, np.newaxis, np.newaxis]
    p = _label_entries(rows, probability, levels[:, 1], shift)
    f = label_eps * p + (1.0 - label_eps) * _behavior(rows, pi, chance)
    weight, item_log_likelihood = _posteriors(block, lo, hi, rows, f, prior, anchor)

    mass = weight.sum(axis=1)
    known = block.known[lo:hi]
    score[lo:hi, 0] = mass @ nodes
    for e in range(hi - lo):
        below = np.concatenate([[0.0], mass[e].cumsum()])
        ends = np.interp([0.025, 0.975], below, edges)
        score[lo + e, 1:] = ends if known[e] < 0 else score[lo + e, 0]
    difficulty[lo:hi] = weight.sum(axis=2) @ gamma
    theta[lo:hi] = np.einsum("ejk,jnk->en", weight, probability[typical_level + shift])
    theta[lo:hi][known >= 0] = np.eye(theta.shape[1])[known[known >= 0]]

    p_serious[rows.place] = (weight[rows.item - lo] * label_eps * p / f).sum(axis=(1, 2))
    log_likelihood[0] += item_log_likelihood.sum()


def posterior(
    block: Block,
    lo: int,
    hi: int,
    weight: Floats,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
) -> None:
    """Write each item's posterior on the lattice, items x difficulties x nodes."""
    rows = label_rows(block, lo, hi)
    label_eps = eps[rows.annotator][:, np.newaxis, np.newaxis]
    f = label_eps * _label_entries(rows, probability, levels[:, 1], shift)
    f += (1.0 - label_eps) * _behavior(rows, pi, chance)
    weight[lo:hi], _ = _posteriors(block, lo, hi, rows, f, prior, anchor)


def leave_one_out(
    block: Block,
    lo: int,
    hi: int,
    predicted: Floats,
    prior: Floats,
    shift: Codes,
    anchor: Codes,
    probability: Floats,
    levels: Codes,
    eps: Floats,
    pi: Floats,
    chance: float,
    tried_level: Codes,
) -> None:
    """Write the probability of each label, if serious, given the item's other labels."""
    rows = label_rows(block, lo, hi)
    label_eps = eps[rows.annotator][:, np.newaxis, np.newaxis]
    f = label_eps * _label_entries(rows, probability, levels[:, 1], shift)
    f += (1.0 - label_eps) * _behavior(rows, pi, chance)
    weight, _ = _posteriors(block, lo, hi, rows, f, prior, anchor)
    without = weight[rows.item - lo] / f
    without /= without.sum(axis=(1, 2), keepdims=True)
    p = _label_entries(rows, probability, tried_level, shift)
    predicted[rows.place] = (without * p).sum(axis=(1, 2))


def log_likelihood_by_annotator(
    block: Block,
    lo: int,
    hi: int,
    predicted: Floats,
    eps: Floats,
    pi: Floats,
    chance: float,
    log_likelihood: Floats,
    slope: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    rows = label_rows(block, lo, hi)
    behavior = _behavior(rows, pi, chance)[:, 0, 0]
    p_label, label_eps = predicted[rows.place], eps[rows.annotator]
    p = label_eps * p_label + (1.0 - label_eps) * behavior
    np.add.at(log_likelihood, rows.annotator, np.log(p))
    np.add.at(slope, rows.annotator, (p_label - behavior) / p)
