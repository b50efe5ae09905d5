"""NumPy twins of ``native/people.cpp``."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows, log_known_truth
from annotruth.kernels.shared import LEAST_LABEL_PROBABILITY

_NEWTON_STEPS, _NEWTON_LIMIT, _DAMPING, _CONVERGED = 25, 1.0, 0.8, 1e-10


def moments(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up each annotator's cavities, and how far their labels agree with them."""
    labels = label_rows(block, lo, hi)
    posterior, cavity, has_cavity = _cavities(block, lo, hi, labels, a)
    right = a.right_labels.T[labels.category]
    p_right = (posterior * right).sum(axis=1)
    np.add.at(a.moments[:, 4], labels.annotator, p_right)
    np.add.at(a.moments[:, 5], labels.annotator, p_right * (1.0 - p_right))
    annotator, category = labels.annotator[has_cavity], labels.category[has_cavity]
    np.add.at(a.states, annotator, cavity)
    _add_moments(a.moments, annotator, category, cavity @ a.agreement, a.shares)
    np.add.at(a.moments[:, 6], annotator, (cavity * right[has_cavity]).sum(axis=1))


def log_likelihood(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up each annotator's log-likelihood in every response strategy, given the cavities."""
    labels = label_rows(block, lo, hi)
    _, cavity, has_cavity = _cavities(block, lo, hi, labels, a)
    s, n = labels.annotator[has_cavity], labels.category[has_cavity]
    p_serious = [
        (cavity * table[n] * a.normaliser[s, v]).sum(axis=1) * a.factor[s, v, n]
        for v, table in enumerate(a.serious)
    ]
    p_serious.append((cavity * a.serious[0][a.confused[s, n]]).sum(axis=1))
    for g, (v, b, eps) in enumerate(zip(a.variant, a.behavior, a.reliability, strict=True)):
        p = eps * p_serious[v] + (1.0 - eps) * a.careless[s, b, n]
        np.add.at(a.log_likelihood[:, g], s, np.log(np.maximum(p, LEAST_LABEL_PROBABILITY)))


def count_compared(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Count annotators' labels of items with two or more labels, annotators x categories."""
    labels = label_rows(block, lo, hi)
    compared = np.bincount(labels.item - lo, minlength=hi - lo)[labels.item - lo] > 1
    np.add.at(a.counts, (labels.annotator[compared], labels.category[compared]), 1.0)


def agreement(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up how far annotators' labels agree with those of other members, without a model."""
    labels = label_rows(block, lo, hi)
    item, s, n = labels.item - lo, labels.annotator, labels.category
    counts = np.zeros((hi - lo, len(a.table)))
    np.add.at(counts, (item, n), a.member[s])
    others = counts[item]
    others[np.arange(len(n)), n] -= a.member[s]
    total = others.sum(axis=1)
    is_seen = total > 0.0
    cavity = (others[is_seen] / total[is_seen, np.newaxis]) @ a.table
    np.add.at(a.sums, s[is_seen], cavity)
    _add_moments(a.moments, s[is_seen], n[is_seen], cavity, a.shares)


def fit_tilts(lo: int, hi: int, a: Arrays) -> None:
    """Find each annotator's tilts of the tables of serious labels, of the highest posterior."""
    states, counts = a.states[lo:hi], a.counts[lo:hi]
    n = counts.shape[1]
    for v, (theta, deviation) in enumerate(zip(a.theta, a.deviation, strict=True)):
        tilt, moves = np.zeros_like(counts), np.full(len(counts), deviation > 0.0)
        for _ in range(_NEWTON_STEPS):
            expected, variance = _tilted_moments(theta, states, tilt)
            if not moves.any():
                break
            slope = counts - expected - tilt / deviation**2
            step = slope / (variance + 1.0 / deviation**2)
            tilt[moves] += _DAMPING * np.clip(step[moves], -_NEWTON_LIMIT, _NEWTON_LIMIT)
            moves &= np.abs(step).max(axis=1) >= _CONVERGED
        if deviation > 0.0:
            _, variance = _tilted_moments(theta, states, tilt)
            a.variance[lo:hi, v] += (1.0 / (variance + 1.0 / deviation**2)).sum(axis=1)
            volume = np.log1p(deviation**2 * variance).sum(axis=1) * (n - 1) / (2 * n)
            a.log_prior[lo:hi, v] = -(tilt**2).sum(axis=1) / (2.0 * deviation**2) - volume
        a.factor[lo:hi, v] = np.exp(tilt)
        a.normaliser[lo:hi, v] = 1.0 / (np.exp(tilt) @ theta)


def _tilted_moments(theta: Floats, states: Floats, tilt: Floats) -> tuple[Floats, Floats]:
    """Return expected counts of labels with a tilt, and their variances, annotators x categories."""
    factor = np.exp(tilt)
    total = factor @ theta
    expected = factor * ((states / total) @ theta.T)
    variance: Floats = expected - factor**2 * ((states / total**2) @ (theta**2).T)
    return expected, variance


def _add_moments(
    moments: Floats, annotator: Codes, category: Codes, cavity: Floats, shares: Floats
) -> None:
    """Add up the first four moments of labels, given c(n) of each."""
    own = shares[annotator]
    columns = (
        np.ones(len(cavity)),
        cavity[np.arange(len(cavity)), category],
        (own * cavity**2).sum(axis=1),
        (own * cavity).sum(axis=1) ** 2,
    )
    for place, column in enumerate(columns):
        np.add.at(moments[:, place], annotator, column)


def _cavities(
    block: Block, lo: int, hi: int, labels: LabelRows, a: Arrays
) -> tuple[Floats, Floats, Codes]:
    """Return each label's item posterior, the cavities of labels that have one, and which do."""
    item, s, weight = labels.item - lo, labels.annotator, a.weight[labels.annotator, np.newaxis]
    log_prior = np.log(a.prior) + log_known_truth(block, lo, hi, a.known_truth)
    total = np.zeros((hi - lo, len(a.prior)))
    np.add.at(total, item, a.log_share[s, labels.category] * weight)
    own = softmax(log_prior + total, axis=1)[item]
    mass, every = (
        np.maximum(a.counts[s, n] - own, 0.0) + a.pseudo_counts[s, n]
        for n in (labels.category, a.counts.shape[1] - 1)
    )
    logs = np.log(np.maximum(mass / every, LEAST_LABEL_PROBABILITY)) * weight
    total = np.zeros((hi - lo, len(a.prior)))
    np.add.at(total, item, logs)
    n_labels = np.bincount(item, minlength=hi - lo)[item, np.newaxis]
    tempered = total[item] / (1.0 + (n_labels - 1) * a.correlation)
    posterior = softmax(log_prior[item] + tempered, axis=1)
    has_cavity = np.flatnonzero(n_labels > 1)
    without = (total[item] - logs) / (1.0 + np.maximum(n_labels - 2, 0) * a.correlation)
    cavity: Floats = softmax((log_prior[item] + without)[has_cavity], axis=1)
    return posterior, cavity, has_cavity
