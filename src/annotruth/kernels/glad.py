r"""GLAD's passes over the labels.

With ability :math:`\alpha_s` and :math:`b_e = \log \beta_e` (the item's difficulty is
:math:`1/\beta_e`), a label is right with probability :math:`\sigma(\alpha_s \beta_e)` and is any
one of the K - 1 wrong classes with the rest shared evenly. As
:math:`\log \sigma(x) - \log(1 - \sigma(x)) = x`, what the labels say of the truth needs only the
sum of abilities and the count of each cell, :math:`A_c` and :math:`n_c`:

.. math:: p(z_e = c \mid r) \propto \exp(\beta_e A_c + n_c \log(K - 1)),

and 1 in place of the exponential for each class that nobody chose. With the prior N(1, 1) of b,
the log-posterior of an item, its truth summed out, is up to a constant

.. math:: f_e(b) = \log \sum_c \exp(\beta A_c + n_c \log(K - 1)) - \sum_s \log(1 + e^{\alpha_s \beta})
          - \tfrac12 (b - 1)^2, \qquad \beta = e^b.

Each kernel works on items ``lo:hi`` of a block. With one category every label is right, so
labels say nothing and b stays at its prior. Plain twins: `annotruth.kernels.reference.glad`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

Floats = NDArray[np.float64]

# A product of numbers in 1..2 is logged before it can overflow.
_LOG_ABOVE = 1e280
# An item's Newton step: least curvature, longest step, most halvings, and the rounding of f
# below which no fall can be told from none.
_FLATTEST = 0.1
_LONGEST = 1.0
_HALVINGS = 60
_ROUNDING = 1e-13


@compiled
def start(block: Block, lo: int, hi: int, b: Floats) -> None:
    """Put every item at its prior, b = 1."""
    b[lo:hi] = 1.0


@compiled
def _truth(
    block: Block,
    e: int,
    beta: float,
    n_categories: int,
    total: Floats,
    posterior: Floats,
) -> tuple[float, float, float, float]:
    """Write p(z = c) of the item's cells.

    Returns the log of the sum of weights, the mean and variance of ``total`` under p, and the
    probability of each class nobody chose.
    """
    first, last = block.item_ptr[e], block.item_ptr[e + 1]
    known = block.known[e]
    spread = math.log(n_categories - 1.0)
    if known >= 0:
        log_sum = 0.0
        mean = 0.0
        for c in range(first, last):
            posterior[c] = 1.0 if block.cell_category[c] == known else 0.0
            if posterior[c] > 0.0:
                labels = block.cell_ptr[c + 1] - block.cell_ptr[c]
                log_sum = beta * total[c] + labels * spread
                mean = total[c]
        return log_sum, mean, 0.0, 0.0

    unchosen = n_categories - (last - first)
    top = 0.0 if unchosen > 0 else -math.inf
    for c in range(first, last):
        labels = block.cell_ptr[c + 1] - block.cell_ptr[c]
        posterior[c] = beta * total[c] + labels * spread
        top = max(top, posterior[c])
    other = math.exp(-top) if unchosen > 0 else 0.0
    weight = unchosen * other
    for c in range(first, last):
        posterior[c] = math.exp(posterior[c] - top)
        weight += posterior[c]
    mean = 0.0
    for c in range(first, last):
        posterior[c] /= weight
        mean += posterior[c] * total[c]
    variance = unchosen * other / weight * mean * mean
    for c in range(first, last):
        variance += posterior[c] * (total[c] - mean) ** 2
    return top + math.log(weight) - math.log(n_categories), mean, variance, other / weight


@compiled
def _label_terms(
    block: Block, e: int, beta: float, alpha: Floats, right: Floats
) -> tuple[float, float, float]:
    """Write sigma(alpha beta) of the item's labels to ``right``.

    Returns the sums over the labels of log(1 + exp(alpha beta)) and of its first two
    derivatives in beta.
    """
    begin = block.cell_ptr[block.item_ptr[e]]
    end = block.cell_ptr[block.item_ptr[e + 1]]
    value = 0.0
    slope = 0.0
    curvature = 0.0
    product = 1.0
    for j in range(begin, end):
        a = alpha[block.annotator[j]]
        x = a * beta
        y = math.exp(-abs(x))
        far = 1.0 / (1.0 + y)
        near = y * far
        sigma = far if x >= 0.0 else near
        right[j - begin] = sigma
        slope += a * sigma
        curvature += a * a * (far * near)
        value += max(x, 0.0)
        product *= 1.0 + y
        if product > _LOG_ABOVE:
            value += math.log(product)
            product = 1.0
    return value + math.log(product), slope, curvature


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
    n_categories: int,
    inner: int,
    slope: Floats,
    curvature: Floats,
    bound: Floats,
    steep: Floats,
    totals: Floats,
) -> None:
    longest = 0
    for e in range(lo, hi):
        labels = block.cell_ptr[block.item_ptr[e + 1]] - block.cell_ptr[block.item_ptr[e]]
        longest = max(longest, labels)
    right = np.empty(longest)
    spread = math.log(n_categories - 1.0)
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        begin = block.cell_ptr[first]
        labels = block.cell_ptr[last] - begin
        for c in range(first, last):
            total[c] = 0.0
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                total[c] += alpha[block.annotator[j]]
        now = b[e] + shift
        beta = math.exp(now)
        log_sum, mean, variance, rest = _truth(block, e, beta, n_categories, total, posterior)
        value, first_, second = _label_terms(block, e, beta, alpha, right)
        f = log_sum - value - 0.5 * (now - 1.0) ** 2
        for i in range(inner):
            rise = beta * (mean - first_)
            bend = rise + beta * beta * (variance - second) - 1.0
            move = (rise - (now - 1.0)) / max(abs(bend), _FLATTEST)
            move = min(max(move, -_LONGEST), _LONGEST)
            for h in range(_HALVINGS):
                trial = now + move
                beta = math.exp(trial)
                log_sum, mean, variance, rest = _truth(block, e, beta, n_categories, total, posterior)
                value, first_, second = _label_terms(block, e, beta, alpha, right)
                g = log_sum - value - 0.5 * (trial - 1.0) ** 2
                if g >= f - _ROUNDING * (1.0 + abs(f)):
                    break
                totals[3] += 1
                move *= 0.5
            now = trial
            f = g
        b[e] = now
        other[e] = rest
        for c in range(first, last):
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                sigma = right[j - begin]
                x = alpha[s] * beta
                slope[s] += beta * (posterior[c] - sigma)
                curvature[s] += beta * beta * sigma * (1.0 - sigma)
                bound[s] += beta * beta * ((sigma - 0.5) / x if abs(x) > 1e-3 else 0.25)
                steep[s] += beta ** 8
        totals[0] += log_sum - value - labels * spread
        totals[1] += now - 1.0
        totals[2] += (now - 1.0) ** 2
