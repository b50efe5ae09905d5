"""Plain twins of GLAD's kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.glad import FARTHEST, FLATTEST, MOST_HALVINGS, ROUNDING
from annotruth.kernels.reference.rows import LabelRows, label_rows


class Curves(NamedTuple):
    """Every item's f at some b, with p(z = c), items x categories."""

    f: Floats
    slope: Floats
    curvature: Floats
    log_likelihood: Floats
    p: Floats


def start(block: Block, lo: int, hi: int, b: Floats) -> None:
    """Every b at the peak of its prior."""
    b[lo:hi] = 1.0


def step(
    block: Block,
    lo: int,
    hi: int,
    b: Floats,
    total: Floats,
    posterior: Floats,
    other: Floats,
    alpha: Floats,
    shift: float,
    n_moves: int,
    n_categories: int,
    slope: Floats,
    curvature: Floats,
    bound: Floats,
    steepest: Floats,
    missing: Floats,
    totals: Floats,
) -> None:
    """Newton steps on b, halved where f would fall; then the sums of the abilities."""
    rows = label_rows(block, lo, hi)
    known = block.known[lo:hi]
    if n_categories == 1:
        posterior[rows.cell] = 1.0
        return
    total[rows.cell] = 0.0
    np.add.at(total, rows.cell, alpha[rows.annotator])

    at = b[lo:hi] + shift
    here = _curves(rows, lo, at, known, alpha, n_categories)
    for _ in range(n_moves):
        move = here.slope / np.maximum(np.abs(here.curvature), FLATTEST)
        move = np.clip(move, -FARTHEST, FARTHEST)
        lowest = here.f - ROUNDING * (1.0 + np.abs(here.f))
        for _ in range(MOST_HALVINGS):
            here = _curves(rows, lo, at + move, known, alpha, n_categories)
            falls = ~(here.f >= lowest)
            if not falls.any():
                break
            move = np.where(falls, 0.5 * move, move)
        at = at + move
    b[lo:hi] = at

    item = rows.item - lo
    posterior[rows.cell] = here.p[item, rows.category]
    chosen = np.zeros(here.p.shape, dtype=bool)
    chosen[item, rows.category] = True
    unchosen = n_categories - chosen.sum(axis=1)
    some = (unchosen > 0) & (known < 0)
    other[lo:hi] = np.where(some, np.where(chosen, 0.0, here.p).max(axis=1), 0.0)

    beta = np.exp(at)[item]
    x = alpha[rows.annotator] * beta
    sigma = expit(x)
    far = np.abs(x) > 1e-3
    ratio = np.where(far, np.tanh(0.5 * x) / np.where(far, 2.0 * x, 1.0), 0.25)
    np.add.at(slope, rows.annotator, beta * (posterior[rows.cell] - sigma))
    np.add.at(curvature, rows.annotator, beta**2 * sigma * (1.0 - sigma))
    np.add.at(bound, rows.annotator, beta**2 * ratio)
    np.add.at(steepest, rows.annotator, beta**8)
    p = posterior[rows.cell]
    np.add.at(missing, rows.annotator, beta**2 * p * (1.0 - p))
    totals += here.log_likelihood.sum(), (at - 1.0).sum(), ((at - 1.0) ** 2).sum()


def right(
    block: Block, lo: int, hi: int, b: Floats, alpha: Floats, n_categories: int, sums: Floats
) -> None:
    """Probability that each label is right, by annotator."""
    rows = label_rows(block, lo, hi)
    p = expit(alpha[rows.annotator] * np.exp(b[rows.item]))
    np.add.at(sums, rows.annotator, p if n_categories > 1 else 1.0)


def _curves(
    rows: LabelRows, lo: int, b: Floats, known: NDArray[np.int32], alpha: Floats, n_categories: int
) -> Curves:
    """Values and derivatives of f, the truth summed over all categories."""
    item, beta = rows.item - lo, np.exp(b)
    ability = alpha[rows.annotator]
    x = ability * beta[item]
    spread = np.log(n_categories - 1.0)

    total = np.zeros((len(b), n_categories))
    log_weight = np.zeros((len(b), n_categories))
    np.add.at(total, (item, rows.category), ability)
    np.add.at(log_weight, (item, rows.category), x + spread)
    excluded = (known[:, np.newaxis] >= 0) & (known[:, np.newaxis] != np.arange(n_categories))
    log_weight[excluded] = -np.inf
    log_sum = logsumexp(log_weight, axis=1)
    p = np.exp(log_weight - log_sum[:, np.newaxis])
    mean = (p * total).sum(axis=1)
    variance = (p * (total - mean[:, np.newaxis]) ** 2).sum(axis=1)

    sigma = expit(x)
    value = np.bincount(item, np.logaddexp(0.0, x) + spread)
    first = np.bincount(item, ability * sigma)
    second = np.bincount(item, ability**2 * sigma * (1.0 - sigma))
    log_prior = np.where(known >= 0, 0.0, -np.log(n_categories))
    log_likelihood = log_sum + log_prior - value
    rise = beta * (mean - first)
    return Curves(
        log_likelihood - 0.5 * (b - 1.0) ** 2,
        rise - (b - 1.0),
        rise + beta**2 * (variance - second) - 1.0,
        log_likelihood,
        p,
    )
