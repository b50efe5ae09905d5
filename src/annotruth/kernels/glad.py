r"""Passes of GLAD.

With ability :math:`\alpha_s` and :math:`\beta_e = e^{b_e}`, the inverse of the item's difficulty, a
label is correct with probability :math:`\sigma(\alpha_s \beta_e)`; each of the K - 1 wrong classes
has an equal share of the rest. As :math:`\log \sigma(x) - \log(1 - \sigma(x)) = x`, the posterior of
the truth depends on the sum of abilities :math:`A_c` and the number of labels :math:`n_c` of each cell:

.. math:: p(z_e = c \mid r) \propto w_c = \exp(\beta_e A_c + n_c \log(K - 1)),

where a class without labels has :math:`w = 1`. With the truth summed out and the prior
:math:`b_e \sim N(1, 1)`, item e adds to the log-posterior, up to a constant,

.. math:: f_e(b) = \log \tfrac1K \sum_c w_c
    - \sum_s \left(\log(1 + e^{\alpha_s \beta}) + \log(K - 1)\right) - \tfrac12 (b - 1)^2.

If the truth is known, the sum over c is its weight alone, without 1/K.

Each kernel processes items ``lo:hi`` of a block. With one category every label is correct and b stays
as it is. NumPy twins: `annotruth.kernels.reference.glad`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.shared import (
    GLAD_MAX_HALVINGS,
    GLAD_MAX_STEP,
    GLAD_MIN_CURVATURE,
    GLAD_ROUNDING,
)

# The log of a product of numbers from 1 to 2 is taken before it can overflow.
_LOG_ABOVE = 1e280


class GLADCurve(NamedTuple):
    """An item's f at some b, and its derivatives."""

    f: float
    slope: float
    curvature: float
    log_likelihood: float
    other: float  # the probability of each class without labels


@compiled
def start(block: Block, lo: int, hi: int, b: Floats) -> None:
    """Set b to the mode of its prior, 1."""
    b[lo:hi] = 1.0


@compiled
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
    n_steps: int,
    n_categories: int,
    slope: Floats,
    curvature: Floats,
    bound: Floats,
    steepest: Floats,
    missing: Floats,
    totals: Floats,
) -> None:
    r"""Shift b, increase f by Newton steps on b, and add up what the update of alpha needs.

    ``n_steps`` Newton steps are taken, each halved until f does not decrease. Writes the sum of
    abilities and p(z = c) of every cell, and p of each class without labels.

    With :math:`x = \alpha_s \beta_e` at the new b, adds by annotator: ``slope`` and
    ``curvature`` of the expected log-likelihood in alpha, :math:`\beta (p - \sigma(x))` and
    :math:`\beta^2 \sigma(x) (1 - \sigma(x))`; ``bound``, the curvature of a parabola that
    is a lower bound, :math:`\beta^2 \tanh(x/2) / 2x`; ``steepest``, :math:`\beta^8`; ``missing``, by
    which the curvature of the log-likelihood itself is less as the truth is unknown,
    :math:`\beta^2 p (1 - p)`. Adds to ``totals`` the log-likelihood and the sums of b - 1 and of
    its square.
    """
    if n_categories == 1:
        posterior[block.item_ptr[lo] : block.item_ptr[hi]] = 1.0
        return
    p_correct = np.empty(_most_labels(block, lo, hi))
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            total[c] = 0.0
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                total[c] += alpha[block.annotator[j]]
        new = b[e] + shift
        curve = _curve(block, e, new, alpha, n_categories, total, posterior, p_correct)
        for _ in range(n_steps):
            step = curve.slope / max(abs(curve.curvature), GLAD_MIN_CURVATURE)
            step = min(max(step, -GLAD_MAX_STEP), GLAD_MAX_STEP)
            lowest = curve.f - GLAD_ROUNDING * (1.0 + abs(curve.f))
            for _ in range(GLAD_MAX_HALVINGS):
                curve = _curve(
                    block, e, new + step, alpha, n_categories, total, posterior, p_correct
                )
                if curve.f >= lowest:
                    break
                step *= 0.5
            new += step
        b[e] = new
        other[e] = curve.other
        totals[0] += curve.log_likelihood
        totals[1] += new - 1.0
        totals[2] += (new - 1.0) ** 2

        beta = math.exp(new)
        square, eighth = beta**2, beta**8
        begin = block.cell_ptr[block.item_ptr[e]]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            unknown = square * posterior[c] * (1.0 - posterior[c])
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                x = alpha[s] * beta
                sigma = p_correct[j - begin]
                slope[s] += beta * (posterior[c] - sigma)
                curvature[s] += square * sigma * (1.0 - sigma)
                # tanh(x/2) = 2 sigma - 1; the ratio has its maximum, 1/4, at 0.
                bound[s] += square * ((sigma - 0.5) / x if abs(x) > 1e-3 else 0.25)
                steepest[s] += eighth
                missing[s] += unknown


@compiled
def sum_correct(
    block: Block, lo: int, hi: int, b: Floats, alpha: Floats, n_categories: int, correct: Floats
) -> None:
    """Add up, by annotator, the probability that each label is correct."""
    for e in range(lo, hi):
        beta = math.exp(b[e])
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        for j in range(block.cell_ptr[first], block.cell_ptr[last]):
            s = block.annotator[j]
            correct[s] += 1.0 / (1.0 + math.exp(-alpha[s] * beta)) if n_categories > 1 else 1.0


@compiled
def _most_labels(block: Block, lo: int, hi: int) -> int:
    most = 0
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        most = max(most, block.cell_ptr[last] - block.cell_ptr[first])
    return most


@compiled
def _curve(
    block: Block,
    e: int,
    b: float,
    alpha: Floats,
    n_categories: int,
    total: Floats,
    posterior: Floats,
    p_correct: Floats,
) -> GLADCurve:
    """Compute f and its derivatives at b.

    Writes p(z = c) of the item's cells and the probability that each of its labels is correct.
    """
    beta = math.exp(b)
    log_wrong = math.log(n_categories - 1.0)
    top_cell, log_sum, mean, variance, other = _posterior(
        block, e, beta, n_categories, total, posterior
    )

    # log(1 + exp(x)) and its derivatives in beta, over the labels. The x of the most likely class,
    # which are in its weight, are subtracted label by label: large sums would cancel.
    begin = block.cell_ptr[block.item_ptr[e]]
    value = first = second = 0.0
    product = 1.0
    n_others = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        if c != top_cell:
            n_others += block.cell_ptr[c + 1] - block.cell_ptr[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            a = alpha[block.annotator[j]]
            x = a * beta
            y = math.exp(-abs(x))
            likely = 1.0 / (1.0 + y)
            unlikely = y * likely
            sigma = likely if x >= 0.0 else unlikely
            p_correct[j - begin] = sigma
            first += a * sigma
            second += a * a * likely * unlikely
            value += max(-x if c == top_cell else x, 0.0)
            product *= 1.0 + y
            if product > _LOG_ABOVE:
                value += math.log(product)
                product = 1.0
    value += math.log(product)

    log_likelihood = log_sum - value - n_others * log_wrong
    rise = beta * (mean - first)
    return GLADCurve(
        log_likelihood - 0.5 * (b - 1.0) ** 2,
        rise - (b - 1.0),
        rise + beta * beta * (variance - second) - 1.0,
        log_likelihood,
        other,
    )


@compiled
def _posterior(
    block: Block, e: int, beta: float, n_categories: int, total: Floats, posterior: Floats
) -> tuple[int, float, float, float, float]:
    """Write p(z = c) of the item's cells.

    Returns the most likely cell, -1 if that is a class without labels; the log of the mean weight
    divided by that of this class; the mean and the variance of A_c under p, which are the derivatives
    of the log of the mean weight in beta; and the probability of each class without labels.
    """
    first, last = block.item_ptr[e], block.item_ptr[e + 1]
    known = block.known[e]
    log_wrong = math.log(n_categories - 1.0)
    top_cell = -1
    mean = variance = 0.0
    if known >= 0:
        for c in range(first, last):
            agrees = block.cell_category[c] == known
            posterior[c] = 1.0 if agrees else 0.0
            if agrees:
                top_cell, mean = c, total[c]
        return top_cell, 0.0, mean, variance, 0.0

    n_empty = n_categories - (last - first)
    top = 0.0 if n_empty > 0 else -math.inf
    for c in range(first, last):
        posterior[c] = beta * total[c] + (block.cell_ptr[c + 1] - block.cell_ptr[c]) * log_wrong
        if posterior[c] > top:
            top_cell, top = c, posterior[c]
    other = math.exp(-top) if n_empty > 0 else 0.0
    weight = n_empty * other
    for c in range(first, last):
        posterior[c] = math.exp(posterior[c] - top)
        weight += posterior[c]
    for c in range(first, last):
        posterior[c] /= weight
        mean += posterior[c] * total[c]
    other /= weight
    variance = n_empty * other * mean * mean
    for c in range(first, last):
        variance += posterior[c] * (total[c] - mean) ** 2
    return top_cell, math.log(weight / n_categories), mean, variance, other
