"""Plain twins of the ordinal-discrete mixture's kernels."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.reference.rows import LabelRows, label_rows


def _behavior(rows: LabelRows, pi: Floats, chance: float) -> Floats:
    each = pi[rows.annotator, rows.category] if len(pi) else np.full(len(rows.item), chance)
    return each[:, np.newaxis, np.newaxis]


def _of_labels(rows: LabelRows, table: Floats, level: Codes, shift: Codes) -> Floats:
    """Look every label up: labels x difficulties x nodes."""
    row = level[rows.annotator][:, np.newaxis] + shift
    found: Floats = table[row, rows.category[:, np.newaxis]]
    return found


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
    totals: Floats,
) -> None:
    """E-step, and the sums of the M-step; or, without log-probabilities, of a bold one."""
    rows = label_rows(block, lo, hi)
    each = eps[rows.annotator][:, np.newaxis, np.newaxis]
    c2 = (1.0 - each) * _behavior(rows, pi, chance)
    at = [each * _of_labels(rows, probability, levels[:, place], shift) + c2 for place in range(3)]
    weight, log_likelihood = _posteriors(block, lo, hi, rows, at[1], prior, anchor)
    own = weight[rows.item - lo]
    share = own * (at[1] - c2) / at[1]
    mu = share.sum(axis=(1, 2))
    np.add.at(serious, rows.annotator, mu)
    if len(pi):
        np.add.at(irregular, (rows.annotator, rows.category), 1.0 - mu)
    for place in range(3):
        if len(log_probability):
            log_p = _of_labels(rows, log_probability, levels[:, place], shift)
            more = (share * log_p).sum(axis=(1, 2))
        else:
            more = np.log((own * at[place] / at[1]).sum(axis=(1, 2)))
        np.add.at(gain[:, place], rows.annotator, more)
    totals[0] += log_likelihood.sum()


def posterior(
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
    widening: Floats,
    typical: int,
    totals: Floats,
) -> None:
    """Items' scores, difficulties and distributions, and the labels' probabilities."""
    rows = label_rows(block, lo, hi)
    each = eps[rows.annotator][:, np.newaxis, np.newaxis]
    p = _of_labels(rows, probability, levels[:, 1], shift)
    f = each * p + (1.0 - each) * _behavior(rows, pi, chance)
    weight, log_likelihood = _posteriors(block, lo, hi, rows, f, prior, anchor)

    mass = weight.sum(axis=1)
    known = block.known[lo:hi]
    score[lo:hi, 0] = mass @ nodes
    for e in range(hi - lo):
        below = np.concatenate([[0.0], mass[e].cumsum()])
        ends = np.interp([0.025, 0.975], below, edges)
        score[lo + e, 1:] = ends if known[e] < 0 else score[lo + e, 0]
    difficulty[lo:hi] = weight.sum(axis=2) @ widening
    theta[lo:hi] = np.einsum("ejk,jnk->en", weight, probability[typical + shift])
    theta[lo:hi][known >= 0] = np.eye(theta.shape[1])[known[known >= 0]]

    p_serious[rows.place] = (weight[rows.item - lo] * each * p / f).sum(axis=(1, 2))
    totals[0] += log_likelihood.sum()


def judge(
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
    """Each item's posterior on the lattice."""
    rows = label_rows(block, lo, hi)
    each = eps[rows.annotator][:, np.newaxis, np.newaxis]
    f = each * _of_labels(rows, probability, levels[:, 1], shift)
    f += (1.0 - each) * _behavior(rows, pi, chance)
    weight[lo:hi], _ = _posteriors(block, lo, hi, rows, f, prior, anchor)


def predict(
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
    tried: Codes,
) -> None:
    """Probability of each label, if serious, given the item's other labels."""
    rows = label_rows(block, lo, hi)
    each = eps[rows.annotator][:, np.newaxis, np.newaxis]
    f = each * _of_labels(rows, probability, levels[:, 1], shift)
    f += (1.0 - each) * _behavior(rows, pi, chance)
    weight, _ = _posteriors(block, lo, hi, rows, f, prior, anchor)
    without = weight[rows.item - lo] / f
    without /= without.sum(axis=(1, 2), keepdims=True)
    p = _of_labels(rows, probability, tried, shift)
    predicted[rows.place] = (without * p).sum(axis=(1, 2))


def support(
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
    """Log-likelihood by annotator at eps, and its slope in eps."""
    rows = label_rows(block, lo, hi)
    behavior = _behavior(rows, pi, chance)[:, 0, 0]
    likely, each = predicted[rows.place], eps[rows.annotator]
    p = each * likely + (1.0 - each) * behavior
    np.add.at(log_likelihood, rows.annotator, np.log(p))
    np.add.at(slope, rows.annotator, (likely - behavior) / p)
