r"""Passes of the model of subject bias, inconsistency and content ambiguity.

A vote is :math:`x_{e,s} \sim N(\psi_e + b_s, v_s^2 + a_e^2)`. With the residual
:math:`r = x - \psi_e - b_s` and the weight :math:`w = 1 / (v_s^2 + a_e^2)`, a vote adds

.. math:: \ell = -\tfrac12 \log 2\pi + \tfrac12 \log w - \tfrac12 w r^2

to the log-likelihood. Each kernel processes items ``lo:hi`` of a block. ``psi``, ``a2`` (the squared
ambiguity) and ``precision`` have one entry per item, ``b`` and ``v2`` one per annotator, and
``values`` is the score of each category. Where groups of items have one ambiguity each, ``group[e]`` is
the item's group and ``group_a2`` the squared ambiguity of each. NumPy twins: `annotruth.kernels.reference.subject_bias`.
"""

from __future__ import annotations

import math

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.shared import VARIANCE_ROUNDING, propose_variances

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)

_propose_variances = compiled(propose_variances)


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

    Adds to ``moments`` the sums of r and of r^2 of each annotator, at bias 0.
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
    """Return a squared ambiguity of an item whose likelihood is at least as large."""
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
    safe, scoring = _propose_variances(a, n, w, w2, w2r2, 0.0)
    at_safe = log_likelihood(block, e, score, safe, values, b, v2)
    at_scoring = log_likelihood(block, e, score, scoring, values, b, v2)
    is_better = at_scoring >= at_safe - VARIANCE_ROUNDING * (1.0 + abs(at_safe))
    better: float = scoring if is_better else safe
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
    """Update the items, then add up what the update of the annotators needs.

    Sets psi to its optimum; then, ``rounds`` times, increases the likelihood in a2 and sets psi
    again. ``precision`` is that of psi. Adds to ``moments[s]`` the sums of w, wr, w^2, w^2 r and
    (wr)^2 over s's votes after the update, and to ``totals`` the log-likelihood before and after.
    """
    for e in range(lo, hi):
        a = a2[e]
        totals[0] += log_likelihood(block, e, psi[e], a, values, b, v2)
        score, new_precision = _best_score(block, e, a, values, b, v2)
        for _ in range(rounds):
            before, a = a, _better_ambiguity(block, e, score, a, values, b, v2)
            if a == before:  # many remain at 0
                break
            score, new_precision = _best_score(block, e, a, values, b, v2)
        psi[e] = score
        a2[e] = a
        precision[e] = new_precision
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
def log_likelihood_by_annotator(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    b: Floats,
    proposed: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at each row of ``proposed`` variances."""
    for e in range(lo, hi):
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - psi[e]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                r = x - b[s]
                for k in range(proposed.shape[0]):
                    variance = proposed[k, s] + a2[e]
                    log_likelihood[k, s] -= _HALF_LOG_2PI + 0.5 * (
                        math.log(variance) + r * r / variance
                    )


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
    move: float,
    totals: Floats,
) -> None:
    """Subtract ``move`` from the scores that are not known truths; add up wr and w over the others.

    Votes of items without a known truth do not change if their scores decrease and all biases
    increase by the same amount. The ratio of the sums is the optimum of that amount.
    """
    for e in range(lo, hi):
        if block.known[e] < 0:
            psi[e] -= move
            continue
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - psi[e]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                w = 1.0 / (v2[s] + a2[e])
                totals[0] += w * (x - b[s])
                totals[1] += w


@compiled
def set_ambiguity(
    block: Block, lo: int, hi: int, a2: Floats, group: Codes, group_a2: Floats
) -> None:
    """Set the squared ambiguity of each item to that of its group."""
    for e in range(lo, hi):
        a2[e] = group_a2[group[e]]


@compiled
def moments_by_group(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    moments: Floats,
) -> None:
    """Add to ``moments[g]`` the sums of 1, w, w^2 and (wr)^2 over the votes of group g."""
    for e in range(lo, hi):
        g = group[e]
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            x = values[block.cell_category[c]] - psi[e]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                w = 1.0 / (v2[s] + a2[e])
                moments[g, 0] += 1.0
                moments[g, 1] += w
                moments[g, 2] += w * w
                moments[g, 3] += (w * (x - b[s])) ** 2


_item_log_likelihood = log_likelihood  # an argument has the name


@compiled
def log_likelihood_by_group(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    proposed: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up, by group, the log-likelihood at each row of ``proposed`` ambiguities."""
    for e in range(lo, hi):
        g = group[e]
        for k in range(proposed.shape[0]):
            log_likelihood[k, g] += _item_log_likelihood(
                block, e, psi[e], proposed[k, g], values, b, v2
            )
