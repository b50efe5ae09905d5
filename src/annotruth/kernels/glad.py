r"""GLAD's passes over the labels.

With ability :math:`\alpha_s` and :math:`\beta_e = e^{b_e}`, one over the item's difficulty, a
label is right with probability :math:`\sigma(\alpha_s \beta_e)`; each of the K - 1 wrong classes
has an even share of the rest. As :math:`\log \sigma(x) - \log(1 - \sigma(x)) = x`, what labels
say of the truth needs only the sum of abilities :math:`A_c` and the count :math:`n_c` of a cell:

.. math:: p(z_e = c \mid r) \propto w_c = \exp(\beta_e A_c + n_c \log(K - 1)),

where a class that nobody chose has :math:`w = 1`. Item e adds to the log-posterior, its truth
summed out and its prior :math:`b_e \sim N(1, 1)` counted, up to a constant

.. math:: f_e(b) = \log \tfrac1K \sum_c w_c
    - \sum_s \left(\log(1 + e^{\alpha_s \beta}) + \log(K - 1)\right) - \tfrac12 (b - 1)^2.

Where the truth is known, the sum over c is its weight alone, without 1/K.

Each kernel works on items ``lo:hi`` of a block. With one category every label is right: labels
say nothing, and b stays where it is. Plain twins: `annotruth.kernels.reference.glad`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

# Newton's step on b: it takes the curve for no flatter, goes no farther, and is halved no more
# often than this; below the rounding of f a fall cannot be told from none.
FLATTEST = 0.1
FARTHEST = 1.0
MOST_HALVINGS = 60
ROUNDING = 1e-13

# A product of numbers from 1 to 2 is logged before it can overflow.
_LOG_ABOVE = 1e280


class Curve(NamedTuple):
    """An item's f at some b, and what comes with it."""

    f: float
    slope: float
    curvature: float
    log_likelihood: float
    other: float  # the probability of each class that nobody chose


@compiled
def start(block: Block, lo: int, hi: int, b: Floats) -> None:
    """Put every item where its prior is highest, b = 1."""
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
    n_moves: int,
    n_categories: int,
    slope: Floats,
    curvature: Floats,
    bound: Floats,
    steepest: Floats,
    missing: Floats,
    totals: Floats,
) -> None:
    r"""Shift b, raise f by Newton steps on b, and add up what the abilities need.

    ``n_moves`` Newton steps are taken, each halved until f does not fall. Leaves in the state
    the sum of abilities and p(z = c) of every cell, and p of each class nobody chose.

    With :math:`x = \alpha_s \beta_e` at the new b, adds by annotator: ``slope`` and
    ``curvature`` of the expected log-likelihood in alpha, :math:`\beta (p - \sigma(x))` and
    :math:`\beta^2 \sigma(x) (1 - \sigma(x))`; ``bound``, a curvature that no parabola under it
    needs to exceed, :math:`\beta^2 \tanh(x/2) / 2x`; ``steepest``, :math:`\beta^8`; ``missing``, by
    which the curve of the log-likelihood itself is flatter as the truth is not known,
    :math:`\beta^2 p (1 - p)`. Adds to ``totals`` the log-likelihood and the sums of b - 1 and of
    its square.
    """
    if n_categories == 1:
        posterior[block.item_ptr[lo] : block.item_ptr[hi]] = 1.0
        return
    right = np.empty(_most_labels(block, lo, hi))
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            total[c] = 0.0
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                total[c] += alpha[block.annotator[j]]
        at = b[e] + shift
        here = _curve(block, e, at, alpha, n_categories, total, posterior, right)
        for _ in range(n_moves):
            move = here.slope / max(abs(here.curvature), FLATTEST)
            move = min(max(move, -FARTHEST), FARTHEST)
            lowest = here.f - ROUNDING * (1.0 + abs(here.f))
            for _ in range(MOST_HALVINGS):
                here = _curve(block, e, at + move, alpha, n_categories, total, posterior, right)
                if here.f >= lowest:
                    break
                move *= 0.5
            at += move
        b[e] = at
        other[e] = here.other
        totals[0] += here.log_likelihood
        totals[1] += at - 1.0
        totals[2] += (at - 1.0) ** 2

        beta = math.exp(at)
        square, eighth = beta**2, beta**8
        begin = block.cell_ptr[block.item_ptr[e]]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            unknown = square * posterior[c] * (1.0 - posterior[c])
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                x = alpha[s] * beta
                sigma = right[j - begin]
                slope[s] += beta * (posterior[c] - sigma)
                curvature[s] += square * sigma * (1.0 - sigma)
                # tanh(x/2) = 2 sigma - 1; at 0 the ratio has its highest value, 1/4.
                bound[s] += square * ((sigma - 0.5) / x if abs(x) > 1e-3 else 0.25)
                steepest[s] += eighth
                missing[s] += unknown


@compiled
def right(
    block: Block, lo: int, hi: int, b: Floats, alpha: Floats, n_categories: int, sums: Floats
) -> None:
    """Add up, by annotator, the probability that each label is right."""
    for e in range(lo, hi):
        beta = math.exp(b[e])
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        for j in range(block.cell_ptr[first], block.cell_ptr[last]):
            s = block.annotator[j]
            sums[s] += 1.0 / (1.0 + math.exp(-alpha[s] * beta)) if n_categories > 1 else 1.0


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
    right: Floats,
) -> Curve:
    """Compute f and its derivatives at b.

    Writes p(z = c) of the item's cells and the probability that each of its labels is right.
    """
    beta = math.exp(b)
    spread = math.log(n_categories - 1.0)
    lead, log_sum, mean, variance, other = _truth(block, e, beta, n_categories, total, posterior)

    # log(1 + exp(x)) and its derivatives in beta, over the labels. The leading class's x, which
    # its weight holds, is taken off label by label: of large sums nothing would be left.
    begin = block.cell_ptr[block.item_ptr[e]]
    value = first = second = 0.0
    product = 1.0
    n_others = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        if c != lead:
            n_others += block.cell_ptr[c + 1] - block.cell_ptr[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            a = alpha[block.annotator[j]]
            x = a * beta
            y = math.exp(-abs(x))
            likely = 1.0 / (1.0 + y)
            unlikely = y * likely
            sigma = likely if x >= 0.0 else unlikely
            right[j - begin] = sigma
            first += a * sigma
            second += a * a * likely * unlikely
            value += max(-x if c == lead else x, 0.0)
            product *= 1.0 + y
            if product > _LOG_ABOVE:
                value += math.log(product)
                product = 1.0
    value += math.log(product)

    log_likelihood = log_sum - value - n_others * spread
    rise = beta * (mean - first)
    return Curve(
        log_likelihood - 0.5 * (b - 1.0) ** 2,
        rise - (b - 1.0),
        rise + beta * beta * (variance - second) - 1.0,
        log_likelihood,
        other,
    )


@compiled
def _truth(
    block: Block, e: int, beta: float, n_categories: int, total: Floats, posterior: Floats
) -> tuple[int, float, float, float, float]:
    """Write p(z = c) of the item's cells.

    Returns the leading cell, -1 where that is a class nobody chose; the log of the mean weight
    over that class's; the mean and the variance of A_c under p, which are the derivatives of the
    log of the mean weight in beta; and the probability of each class that nobody chose.
    """
    first, last = block.item_ptr[e], block.item_ptr[e + 1]
    known = block.known[e]
    spread = math.log(n_categories - 1.0)
    lead = -1
    mean = variance = 0.0
    if known >= 0:
        for c in range(first, last):
            agrees = block.cell_category[c] == known
            posterior[c] = 1.0 if agrees else 0.0
            if agrees:
                lead, mean = c, total[c]
        return lead, 0.0, mean, variance, 0.0

    unchosen = n_categories - (last - first)
    top = 0.0 if unchosen > 0 else -math.inf
    for c in range(first, last):
        posterior[c] = beta * total[c] + (block.cell_ptr[c + 1] - block.cell_ptr[c]) * spread
        if posterior[c] > top:
            lead, top = c, posterior[c]
    other = math.exp(-top) if unchosen > 0 else 0.0
    weight = unchosen * other
    for c in range(first, last):
        posterior[c] = math.exp(posterior[c] - top)
        weight += posterior[c]
    for c in range(first, last):
        posterior[c] /= weight
        mean += posterior[c] * total[c]
    other /= weight
    variance = unchosen * other * mean * mean
    for c in range(first, last):
        variance += posterior[c] * (total[c] - mean) ** 2
    return lead, math.log(weight / n_categories), mean, variance, other
