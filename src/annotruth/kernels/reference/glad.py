"""NumPy twins of the kernels ``glad``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from annotruth.kernels.arrays import Arrays, Block, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows
from annotruth.kernels.shared import (
    GLAD_MAX_HALVINGS,
    GLAD_MAX_STEP,
    GLAD_MIN_CURVATURE,
    GLAD_ROUNDING,
)


class GLADCurves(NamedTuple):
    """Every item's f at some b, its derivatives, and p(z = c), items x categories."""

    f: Floats
    slope: Floats
    curvature: Floats
    log_likelihood: Floats
    p: Floats


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Set b to the mode of its prior, 1."""
    a.b[lo:hi] = 1.0


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Increase f by Newton steps on b, and add up what the update of alpha needs."""
    rows = label_rows(block, lo, hi)
    known = block.known[lo:hi]
    if a.n_categories == 1:
        a.posterior[rows.cell] = 1.0
        return
    a.total[rows.cell] = 0.0
    np.add.at(a.total, rows.cell, a.alpha[rows.annotator])

    new = a.b[lo:hi] + a.shift
    curve = _curves(rows, lo, new, known, a)
    for _ in range(a.n_steps):
        step = curve.slope / np.maximum(np.abs(curve.curvature), GLAD_MIN_CURVATURE)
        step = np.clip(step, -GLAD_MAX_STEP, GLAD_MAX_STEP)
        lowest = curve.f - GLAD_ROUNDING * (1.0 + np.abs(curve.f))
        for _ in range(GLAD_MAX_HALVINGS):
            curve = _curves(rows, lo, new + step, known, a)
            decreases = ~(curve.f >= lowest)
            if not decreases.any():
                break
            step = np.where(decreases, 0.5 * step, step)
        new = new + step
    a.b[lo:hi] = new

    item = rows.item - lo
    a.posterior[rows.cell] = curve.p[item, rows.category]
    has_labels = np.zeros(curve.p.shape, dtype=bool)
    has_labels[item, rows.category] = True
    n_empty = a.n_categories - has_labels.sum(axis=1)
    has_other = (n_empty > 0) & (known < 0)
    a.other[lo:hi] = np.where(has_other, np.where(has_labels, 0.0, curve.p).max(axis=1), 0.0)

    beta = np.exp(new)[item]
    x = a.alpha[rows.annotator] * beta
    sigma = expit(x)
    far = np.abs(x) > 1e-3
    ratio = np.where(far, np.tanh(0.5 * x) / np.where(far, 2.0 * x, 1.0), 0.25)
    np.add.at(a.slope, rows.annotator, beta * (a.posterior[rows.cell] - sigma))
    np.add.at(a.curvature, rows.annotator, beta**2 * sigma * (1.0 - sigma))
    np.add.at(a.bound, rows.annotator, beta**2 * ratio)
    np.add.at(a.steepest, rows.annotator, beta**8)
    p = a.posterior[rows.cell]
    np.add.at(a.missing, rows.annotator, beta**2 * p * (1.0 - p))
    a.totals += curve.log_likelihood.sum(), (new - 1.0).sum(), ((new - 1.0) ** 2).sum()


def sum_correct(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Add up, by annotator, the probability that each label is correct."""
    rows = label_rows(block, lo, hi)
    p = expit(a.alpha[rows.annotator] * np.exp(a.b[rows.item]))
    np.add.at(a.correct, rows.annotator, p if a.n_categories > 1 else 1.0)


def _curves(rows: LabelRows, lo: int, b: Floats, known: NDArray[np.int32], a: Arrays) -> GLADCurves:
    """Compute f and its derivatives at b, the truth summed over all categories."""
    item, beta, n_categories = rows.item - lo, np.exp(b), a.n_categories
    ability = a.alpha[rows.annotator]
    x = ability * beta[item]
    log_wrong = np.log(n_categories - 1.0)

    total = np.zeros((len(b), n_categories))
    log_weight = np.zeros((len(b), n_categories))
    np.add.at(total, (item, rows.category), ability)
    np.add.at(log_weight, (item, rows.category), x + log_wrong)
    excluded = (known[:, np.newaxis] >= 0) & (known[:, np.newaxis] != np.arange(n_categories))
    log_weight[excluded] = -np.inf
    log_sum = logsumexp(log_weight, axis=1)
    p = np.exp(log_weight - log_sum[:, np.newaxis])
    mean = (p * total).sum(axis=1)
    variance = (p * (total - mean[:, np.newaxis]) ** 2).sum(axis=1)

    sigma = expit(x)
    value = np.bincount(item, np.logaddexp(0.0, x) + log_wrong)
    first = np.bincount(item, ability * sigma)
    second = np.bincount(item, ability**2 * sigma * (1.0 - sigma))
    log_prior = np.where(known >= 0, 0.0, -np.log(n_categories))
    log_likelihood: Floats = log_sum + log_prior - value
    rise = beta * (mean - first)
    return GLADCurves(
        log_likelihood - 0.5 * (b - 1.0) ** 2,
        rise - (b - 1.0),
        rise + beta**2 * (variance - second) - 1.0,
        log_likelihood,
        p,
    )
