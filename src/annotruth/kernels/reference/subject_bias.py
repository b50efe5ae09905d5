"""NumPy twins of the kernels ``subject_bias``."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows
from annotruth.kernels.shared import VARIANCE_ROUNDING


def log_density(r: Floats, variance: Floats) -> Floats:
    """Return the log-density of residuals."""
    return -0.5 * (np.log(2.0 * np.pi * variance) + r**2 / variance)


def sum_columns(by: Codes, n: int, *columns: Floats) -> Floats:
    """Return the sums of columns by code, n x columns."""
    return np.stack([np.bincount(by, column, minlength=n) for column in columns], axis=-1)


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Set psi to the mean vote, or the known truth, and a2 to a share of the votes' variance."""
    rows = label_rows(block, lo, hi)
    x, item = a.values[rows.category], rows.item - lo
    count, total = np.bincount(item), np.bincount(item, x)
    a.psi[lo:hi] = np.where(block.known[lo:hi] >= 0, a.values[block.known[lo:hi]], total / count)
    r = x - a.psi[rows.item]
    a.a2[lo:hi] = a.share * np.bincount(item, r**2) / count
    a.moments += sum_columns(rows.annotator, len(a.moments), r, r**2)


def _residuals(rows: LabelRows, a: Arrays) -> Floats:
    """Return what is left of votes after scores and biases."""
    r: Floats = a.values[rows.category] - a.psi[rows.item] - a.b[rows.annotator]
    return r


def _weights(rows: LabelRows, a: Arrays) -> Floats:
    """Return the inverse of the variance of every vote."""
    w: Floats = 1.0 / (a.v2[rows.annotator] + a.a2[rows.item])
    return w


def _better_ambiguity(rows: LabelRows, lo: int, hi: int, a: Arrays) -> Floats:
    """Return squared ambiguities of items whose likelihood is at least as large."""
    item, old = rows.item - lo, a.a2[lo:hi]
    r, w = _residuals(rows, a), _weights(rows, a)
    n, w1, w2, w2r2 = sum_columns(item, hi - lo, np.ones_like(w), w, w**2, (w * r) ** 2).T
    em = old + old**2 * (w2r2 - w1) / n
    mm = old * np.sqrt(w2r2 / w1)
    safe = np.maximum(np.where(w2r2 > w1, np.maximum(em, mm), np.minimum(em, mm)), 0.0)
    scoring = np.maximum(old + (w2r2 - w1) / w2, 0.0)
    at_safe, at_scoring = (
        np.bincount(item, log_density(r, a.v2[rows.annotator] + proposed[item]))
        for proposed in (safe, scoring)
    )
    # At the optimum they are equal up to rounding: choose scoring.
    is_better = at_scoring >= at_safe - VARIANCE_ROUNDING * (1.0 + np.abs(at_safe))
    better: Floats = np.where(is_better, scoring, safe)
    return better


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Update the items, then add up what the update of the annotators needs."""
    rows = label_rows(block, lo, hi)
    z, known = a.values[rows.category] - a.b[rows.annotator], block.known[lo:hi]
    a.totals[0] += log_density(_residuals(rows, a), 1.0 / _weights(rows, a)).sum()
    for round_ in range(a.rounds + 1):
        if round_ > 0:
            a.a2[lo:hi] = _better_ambiguity(rows, lo, hi, a)
        w = _weights(rows, a)
        a.precision[lo:hi], total = sum_columns(rows.item - lo, hi - lo, w, w * z).T
        a.psi[lo:hi] = np.where(known >= 0, a.values[known], total / a.precision[lo:hi])
    r, w = _residuals(rows, a), _weights(rows, a)
    a.totals[1] += log_density(r, 1.0 / w).sum()
    a.moments += sum_columns(rows.annotator, len(a.moments), w, w * r, w**2, w**2 * r, (w * r) ** 2)


def log_likelihood_by_annotator(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up, by annotator, the log-likelihood at each row of ``proposed`` variances."""
    rows = label_rows(block, lo, hi)
    r = _residuals(rows, a)
    for k, v2 in enumerate(a.proposed):
        density = log_density(r, v2[rows.annotator] + a.a2[rows.item])
        np.add.at(a.log_likelihood[k], rows.annotator, density)


def shift_level(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Subtract ``move`` from the scores that are not known truths; add up wr and w over the others."""
    rows = label_rows(block, lo, hi)
    a.psi[lo:hi] -= np.where(block.known[lo:hi] < 0, a.move, 0.0)
    known = block.known[rows.item] >= 0
    w = known * _weights(rows, a)
    a.totals += [(w * _residuals(rows, a)).sum(), w.sum()]


def set_ambiguity(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Set the squared ambiguity of each item to that of its group."""
    a.a2[lo:hi] = a.group_a2[a.group[lo:hi]]


def moments_by_group(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add to ``moments[g]`` the sums of 1, w, w^2 and (wr)^2 over the votes of group g."""
    rows = label_rows(block, lo, hi)
    r, w = _residuals(rows, a), _weights(rows, a)
    a.moments += sum_columns(
        a.group[rows.item], len(a.moments), np.ones_like(w), w, w**2, (w * r) ** 2
    )


def log_likelihood_by_group(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up, by group, the log-likelihood at each row of ``proposed`` ambiguities."""
    rows = label_rows(block, lo, hi)
    r = _residuals(rows, a)
    groups = a.group[rows.item]
    for k, group_a2 in enumerate(a.proposed):
        density = log_density(r, a.v2[rows.annotator] + group_a2[groups])
        np.add.at(a.log_likelihood[k], groups, density)
