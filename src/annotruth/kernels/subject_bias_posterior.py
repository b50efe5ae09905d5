r"""Passes for the posterior of scores in the model of `annotruth.kernels.subject_bias`.

An item's squared ambiguity is ``offset[e]`` plus one of ``levels``, whose prior has the logarithm
``log_prior``. Scores have a flat prior and are integrated out. With z = x - b_s, w the inverse of
``variance[s]`` plus the squared ambiguity, :math:`W = \sum_s w` and :math:`\psi = \sum_s w z / W`,

.. math::
    \log p(x_e \mid a) &= \tfrac12 \sum_s (\log w - w (z - \psi)^2) - \tfrac12 \log W, \\
    x_{e,s} \mid x_{e,-s}, a &\sim N(\psi_{-s} + b_s,\; 1/w + 1/(W - w)), \quad
    z - \psi_{-s} = (z - \psi) W / (W - w).

NumPy twins: `annotruth.kernels.reference.subject_bias_posterior`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Floats
from annotruth.kernels.compiled import compiled


@compiled
def _at_level(
    block: Block, e: int, a: float, values: Floats, b: Floats, variance: Floats
) -> tuple[float, float, float]:
    """Return the score, its precision, and log p(x_e | a)."""
    precision = 0.0
    total = 0.0
    log_w = 0.0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        x = values[block.cell_category[c]]
        for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[i]
            w = 1.0 / (variance[s] + a)
            precision += w
            total += w * (x - b[s])
            log_w += math.log(w)
    is_known = block.known[e] >= 0
    score = values[block.known[e]] if is_known else total / precision
    square = 0.0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        x = values[block.cell_category[c]] - score
        for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            s = block.annotator[i]
            square += (x - b[s]) ** 2 / (variance[s] + a)
    log_p = 0.5 * (log_w - square)
    if not is_known:
        log_p -= 0.5 * math.log(precision)
    return score, precision, log_p


@compiled
def _log_sum(log_weights: Floats, weights: Floats) -> float:
    """Return the log of the sum of exponentials, and set ``weights`` to them, normalised."""
    highest = -np.inf
    for j in range(len(weights)):
        highest = max(highest, log_weights[j])
    total = 0.0
    for j in range(len(weights)):
        weights[j] = math.exp(log_weights[j] - highest)
        total += weights[j]
    for j in range(len(weights)):
        weights[j] /= total
    result: float = highest + math.log(total)
    return result


@compiled
def _add_coupling(
    block: Block, e: int, share: float, a: float, v2: Floats, coupling: Floats
) -> None:
    """Add a share of an item's information on biases: w on the diagonal, less w w' / W."""
    first, last = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
    precision = 0.0
    for i in range(first, last):
        w = 1.0 / (v2[block.annotator[i]] + a)
        precision += w
        coupling[block.annotator[i], block.annotator[i]] += share * w
    if block.known[e] >= 0:
        return
    for i in range(first, last):
        w = 1.0 / (v2[block.annotator[i]] + a)
        for k in range(first, last):
            other = 1.0 / (v2[block.annotator[k]] + a)
            coupling[block.annotator[i], block.annotator[k]] -= share * w * other / precision


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    offset: Floats,
    values: Floats,
    b: Floats,
    v2: Floats,
    variance: Floats,
    levels: Floats,
    log_prior: Floats,
    v2_levels: Floats,
    log_hyper: Floats,
    log_likelihood: Floats,
    information: Floats,
    moments: Floats,
    hyper: Floats,
    coupling: Floats,
) -> None:
    """Add up the log-likelihood of every inconsistency, given the other votes on each item.

    Adds to ``log_likelihood[s, k]`` the logarithm of p(x_es | x_e,-s) with the k-th of ``v2_levels``
    as the squared inconsistency of s, ambiguities summed out; to ``information[s, k]`` the Fisher
    information of the bias in it; to ``moments[s]`` the expectations of wr and w; and to
    ``hyper[h]`` the log-likelihood of the items with the prior ``log_hyper[h]`` of ambiguities. Unless
    it is empty, adds to ``coupling`` the Fisher information of all biases, scores profiled out.
    """
    n_levels, n_v2 = len(levels), len(v2_levels)
    score, precision = np.empty(n_levels), np.empty(n_levels)
    log_p, logs, share = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
    y2, a2 = np.empty(n_levels), np.empty(n_levels)
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        is_known = block.known[e] >= 0
        for j in range(n_levels):
            score[j], precision[j], log_p[j] = _at_level(
                block, e, offset[e] + levels[j], values, b, variance
            )
        for h in range(len(hyper)):
            for j in range(n_levels):
                logs[j] = log_p[j] + log_hyper[h, j]
            hyper[h] += _log_sum(logs, share)
        for j in range(n_levels):
            logs[j] = log_p[j] + log_prior[j]
        _log_sum(logs, share)
        for c in range(first, last):
            x = values[block.cell_category[c]]
            for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[i]
                for j in range(n_levels):
                    w = share[j] / (variance[s] + offset[e] + levels[j])
                    moments[s, 0] += w * (x - b[s] - score[j])
                    moments[s, 1] += w
        if len(coupling):
            for j in range(n_levels):
                _add_coupling(block, e, share[j], offset[e] + levels[j], v2, coupling)
        if not is_known and block.cell_ptr[last] - block.cell_ptr[first] < 2:
            continue  # nothing to compare the vote with
        for c in range(first, last):
            x = values[block.cell_category[c]]
            for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[i]
                for j in range(n_levels):
                    a = offset[e] + levels[j]
                    y = x - b[s] - score[j]
                    of_score = 0.0
                    if not is_known:
                        others = precision[j] - 1.0 / (variance[s] + a)
                        y *= precision[j] / others
                        of_score = 1.0 / others
                    own = variance[s] + a + of_score
                    y2[j] = y * y
                    a2[j] = a + of_score
                    logs[j] = log_p[j] + log_prior[j] + 0.5 * (math.log(own) + y2[j] / own)
                _log_sum(logs, share)
                for k in range(n_v2):
                    # The square root keeps the logarithm out of the loop over levels.
                    highest = -np.inf
                    for j in range(n_levels):
                        logs[j] = -0.5 * y2[j] / (v2_levels[k] + a2[j])
                        if share[j] > 0.0:
                            highest = max(highest, logs[j])
                    total = 0.0
                    expected = 0.0
                    for j in range(n_levels):
                        if share[j] > 0.0:
                            w = 1.0 / (v2_levels[k] + a2[j])
                            p = share[j] * math.exp(logs[j] - highest) * math.sqrt(w)
                            total += p
                            expected += p * w
                    log_likelihood[s, k] += highest + math.log(total)
                    information[s, k] += expected / total


@compiled
def _bias_variance(
    block: Block, e: int, a: float, v2: Floats, b_variance: Floats, b_covariance: Floats
) -> float:
    """Return the variance of the weighted sum of the biases in an item's votes."""
    first, last = block.cell_ptr[block.item_ptr[e]], block.cell_ptr[block.item_ptr[e + 1]]
    total = 0.0
    for i in range(first, last):
        s = block.annotator[i]
        w = 1.0 / (v2[s] + a)
        if len(b_covariance):
            for k in range(first, last):
                other = block.annotator[k]
                total += w * b_covariance[s, other] / (v2[other] + a)
        else:
            total += w * w * b_variance[s]
    return max(total, 0.0)


@compiled
def score_moments(
    block: Block,
    lo: int,
    hi: int,
    offset: Floats,
    mean: Floats,
    variance: Floats,
    spread: Floats,
    values: Floats,
    b: Floats,
    b_variance: Floats,
    b_covariance: Floats,
    v2: Floats,
    v2_moments: Floats,
    levels: Floats,
    log_prior: Floats,
) -> None:
    """Set the posterior mean and variance of each score, and the variance of that variance.

    ``v2_moments[s]`` are the mean and the variance of the squared inconsistency, and the variance of
    its logarithm. Biases have the covariance ``b_covariance``; if that is empty, they are independent
    with variances ``b_variance``.
    """
    n_levels = len(levels)
    logs, share = np.empty(n_levels), np.empty(n_levels)
    m, total, of_total = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
    variance_less_bias = v2**2 / (v2 + b_variance)
    for e in range(lo, hi):
        if block.known[e] >= 0:
            mean[e] = values[block.known[e]]
            variance[e] = 0.0
            spread[e] = 0.0
            continue
        for j in range(n_levels):
            a = offset[e] + levels[j]
            logs[j] = log_prior[j] + _at_level(block, e, a, values, b, variance_less_bias)[2]
            m[j], precision, _ = _at_level(block, e, a, values, b, v2)
            noise = 0.0
            of_total[j] = 0.0
            for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
                r = values[block.cell_category[c]] - m[j]
                for i in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    s = block.annotator[i]
                    w = 1.0 / (v2[s] + a)
                    u = w / precision
                    noise += u * u * (v2_moments[s, 0] + a)
                    noise += (u * (r - b[s]) * v2[s] * w) ** 2 * v2_moments[s, 2]
                    of_total[j] += u**4 * v2_moments[s, 1]
            of_biases = _bias_variance(block, e, a, v2, b_variance, b_covariance)
            total[j] = noise + of_biases / precision**2
        _log_sum(logs, share)
        average, expected = 0.0, 0.0
        for j in range(n_levels):
            average += share[j] * m[j]
            expected += share[j] * total[j]
        mean[e], variance[e], spread[e] = average, expected, 0.0
        for j in range(n_levels):
            variance[e] += share[j] * (m[j] - average) ** 2
            spread[e] += share[j] * ((total[j] - expected) ** 2 + of_total[j])
