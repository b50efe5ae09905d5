r"""Passes over the votes for the model of subject bias, inconsistency and content ambiguity.

A vote is :math:`x_{e,s} \sim N(\psi_e + b_s, v_s^2 + a_e^2)`. With the residual
:math:`r = x - \psi_e - b_s` and the weight :math:`w = 1 / (v_s^2 + a_e^2)`, a vote adds

.. math:: \ell = -\tfrac12 \log 2\pi + \tfrac12 \log w - \tfrac12 w r^2

to the log-likelihood. Each kernel works on items ``lo:hi`` of a block. ``psi``, ``a2`` (the
squared ambiguity) and ``precision`` have one entry an item, ``b`` and ``v2`` one an annotator,
``values`` holds the number behind each category. Plain twins: `annotruth.kernels.reference.subject_bias`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)

ROUNDING = 1e-12
"""How far a scoring step may fall behind the safe one, relative to the log-likelihood.

At the optimum the two are equal up to rounding; without this slack rounding would choose.
"""


def proposals(x: Any, n: Any, w: Any, w2: Any, w2r2: Any, floor: float) -> tuple[Any, Any]:
    r"""Propose two new values of a variance x that n votes share, their other part fixed.

    Takes the sums of :math:`w, w^2, w^2 r^2` over the votes, as numbers or, for many variances,
    arrays. With :math:`R = \sum w^2 r^2 / \sum w`,

    - a safe one, that never lowers the log-likelihood: the further of EM's
      :math:`x (1 + (R - 1) x \sum w / n)` and MM's :math:`x \sqrt R`, which bounds
      :math:`-\log` by its tangent and :math:`1 / (x + y)` by the split of its parts;
    - Fisher scoring's :math:`x + \sum (w^2 r^2 - w) / \sum w^2`, which is fast, reaches the
      optimum at once where the other part is 0, and has to be tried.

    Both are at least ``floor``; between x and its bound's optimum the bound only rises, so the
    safe one stays safe.
    """
    ratio = w2r2 / w
    em = 1.0 + (ratio - 1.0) * x * w / n
    mm = np.sqrt(ratio)
    # Both factors lie on the same side of 1, so one of these two is 1.
    factor = np.maximum(np.maximum(em, mm), 1.0) * np.minimum(np.minimum(em, mm), 1.0)
    return np.maximum(x * factor, floor), np.maximum(x + (w2r2 - w) / w2, floor)


_proposals = compiled(proposals)


@compiled
def start(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    share: float,
    moments: Floats,
) -> None:
    """Set psi to the mean vote, or the known truth, and a2 to a share of the votes' variance.

    Adds the sums of r and of r^2 of each annotator (at bias 0) to ``moments``.
    """
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        n = block.cell_ptr[last] - block.cell_ptr[first]
        total = 0.0
        for c in range(first, last):
            total += (block.cell_ptr[c + 1] - block.cell_ptr[c]) * values[block.cell_category[c]]
        score = values[block.known[e]] if block.known[e] >= 0 else total / n
        square = 0.0
        for c in range(first, last):
            r = values[block.cell_category[c]] - score
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                moments[block.annotator[j], 0] += r
                moments[block.annotator[j], 1] += r * r
                square += r * r
        psi[e] = score
        a2[e] = share * square / n


@compiled
def log_likelihood(
    block: Block, e: int, score: float, a: float, values: Floats, b: Floats, v2: Floats
) -> float:
    """Return the log-likelihood of an item's votes at a squared ambiguity a."""
    total = 0.0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        x = values[block.cell_category[c]] - score
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            r = x - b[s]
            variance = v2[s] + a
            total -= _HALF_LOG_2PI + 0.5 * (math.log(variance) + r * r / variance)
    return total


@compiled
def _best_score(
    block: Block, e: int, a: float, values: Floats, b: Floats, v2: Floats
) -> tuple[float, float]:
    """Return the weighted mean of an item's votes less their biases, and its precision."""
    precision = 0.0
    total = 0.0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        x = values[block.cell_category[c]]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            w = 1.0 / (v2[s] + a)
            precision += w
            total += w * (x - b[s])
    if block.known[e] >= 0:
        return values[block.known[e]], precision
    return total / precision, precision


@compiled
def _better_ambiguity(
    block: Block, e: int, score: float, a: float, values: Floats, b: Floats, v2: Floats
) -> float:
    """Return a squared ambiguity of an item that is at least as likely."""
    w = 0.0
    w2 = 0.0
    w2r2 = 0.0
    first, last = block.item_ptr[e], block.item_ptr[e + 1]
    for c in range(first, last):
        x = values[block.cell_category[c]] - score
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[j]
            weight = 1.0 / (v2[s] + a)
            w += weight
            w2 += weight * weight
            w2r2 += (weight * (x - b[s])) ** 2
    n = float(block.cell_ptr[last] - block.cell_ptr[first])
    safe, scoring = _proposals(a, n, w, w2, w2r2, 0.0)
    at_safe = log_likelihood(block, e, score, safe, values, b, v2)
    at_scoring = log_likelihood(block, e, score, scoring, values, b, v2)
    good = at_scoring >= at_safe - ROUNDING * (1.0 + abs(at_safe))
    better: float = scoring if good else safe
    return better


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    precision: Floats,
    values: Floats,
    b: Floats,
    v2: Floats,
    rounds: int,
    moments: Floats,
    totals: Floats,
) -> None:
    """Improve the items, then add up what their annotators need.

    Replaces psi by its best value; then, ``rounds`` times, a2 by a likelier one and psi again.
    ``precision`` is that of psi. Adds to ``moments[s]`` the sums of w, wr, w^2, w^2 r and
    (wr)^2 over s's votes after this, to ``totals`` the log-likelihood before and after it.
    """
    for e in range(lo, hi):
        a = a2[e]
        totals[0] += log_likelihood(block, e, psi[e], a, values, b, v2)
        score, certainty = _best_score(block, e, a, values, b, v2)
        for _ in range(rounds):
            before, a = a, _better_ambiguity(block, e, score, a, values, b, v2)
            if a == before:  # many are held at 0
                break
            score, certainty = _best_score(block, e, a, values, b, v2)
        psi[e] = score
        a2[e] = a
        precision[e] = certainty
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - score
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                w = 1.0 / (v2[s] + a)
                wr = w * (x - b[s])
                moments[s, 0] += w
                moments[s, 1] += wr
                moments[s, 2] += w * w
                moments[s, 3] += w * wr
                moments[s, 4] += wr * wr
                totals[1] += 0.5 * (math.log(w) - wr * wr / w) - _HALF_LOG_2PI


@compiled
def try_annotators(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    b: Floats,
    v2: Floats,
    sums: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at each row of proposals ``v2``."""
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - psi[e]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                r = x - b[s]
                for k in range(v2.shape[0]):
                    variance = v2[k, s] + a2[e]
                    sums[k, s] -= _HALF_LOG_2PI + 0.5 * (math.log(variance) + r * r / variance)


@compiled
def shift_level(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    b: Floats,
    v2: Floats,
    by: float,
    totals: Floats,
) -> None:
    """Lower the scores by ``by`` except known truths, and add the sums of wr and w over these.

    Lowering all other scores and raising all biases by the ratio of the sums is the best move
    of this kind: votes of items without a known truth do not feel it.
    """
    for e in range(lo, hi):
        if block.known[e] < 0:
            psi[e] -= by
            continue
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - psi[e]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                w = 1.0 / (v2[s] + a2[e])
                totals[0] += w * (x - b[s])
                totals[1] += w
