r"""What annotators' weights of ways make of the ways' tables, and counts of the weights.

In single precision, for some annotators ``lo:hi`` at a time. Annotator s would repeat the label
``repeated[s]``: for it they have the table ``repeating``, for others ``plain``. Plain twins:
`annotruth.kernels.reference.strategies`.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, Singles
from annotruth.kernels.compiled import compiled
from annotruth.kernels.simd.simd8 import log
from annotruth.kernels.simd.simd32 import SIMD32, add_weighted_rows, exp_and_sum, largest

LEAST = 1e-9
"""Strategies of less weight are passed over: of 125, four fifths after a few steps."""

NEVER = -1e30
"""A log-prior of what is no way, but fills up a row."""


@compiled
def mix(
    lo: int,
    hi: int,
    weights: Singles,
    log_prior: Singles,
    plain: Singles,
    repeating: Singles,
    repeated: Codes,
    mixed: Singles,
    divergence: Floats,
) -> None:
    r"""Average the tables over each annotator's weights w, and compare w with their prior p.

    The tables are ways x labels x kinds, ``mixed`` is annotators x labels x kinds; ``log_prior``
    has one row for all or one each. ``divergence`` gets :math:`\sum_g w_g (\log w_g - \log p_g)`.
    """
    n_ways, n_labels, _ = plain.shape
    plain, repeating = plain.reshape(-1), repeating.reshape(-1)
    rows, share = np.empty(n_ways + 1, dtype=np.int64), np.empty(n_ways + 1, dtype=np.float32)
    expected, terms = np.empty(n_ways + 1), np.empty(n_ways + 1)
    for s in range(lo, hi):
        prior = log_prior[s if len(log_prior) > 1 else 0]
        n_used = 0
        for g in range(n_ways):  # without a branch, which would often be foreseen wrongly
            rows[n_used] = g * n_labels * SIMD32
            share[n_used] = weights[s, g]
            expected[n_used] = prior[g]
            n_used += weights[s, g] >= LEAST
        for i in range(n_used):
            terms[i] = share[i] * (log(np.float64(share[i])) - expected[i])
        divergence[s] = terms[:n_used].sum()
        row = mixed[s].reshape(-1)
        row[:] = 0.0
        for n in range(n_labels):
            table = repeating if n == repeated[s] else plain
            add_weighted_rows(table, rows, n * SIMD32, share, n_used, row, n * SIMD32)


@compiled
def _weigh(
    lo: int,
    hi: int,
    sums: Singles,
    counts: Singles,
    log_prior: Singles,
    beyond: Singles,
    repeated: Codes,
    weights: Singles,
) -> None:
    """Weigh ways by their log-tables' sums over the annotators' counts.

    ``sums`` are those of the plain tables, for annotators from ``lo`` on; they are overwritten.
    ``beyond`` is labels x kinds x ways: what the label they would repeat has beyond the plain one.
    Rows of ways, but for those of ``weights``, are filled up to a multiple of 32.
    """
    n_kinds, n_ways = beyond.shape[1:]
    rows = np.arange(n_kinds) * n_ways
    for s in range(lo, hi):
        logs, prior = sums[s - lo], log_prior[s if len(log_prior) > 1 else 0]
        count, table = counts[s, repeated[s]], beyond[repeated[s]].reshape(-1)
        for g in range(n_ways):
            logs[g] += prior[g]
        top = np.float32(NEVER)
        for at in range(0, n_ways, SIMD32):
            add_weighted_rows(table, rows, at, count, n_kinds, logs, at)
            top = max(top, largest(logs, at))
        total = np.float32(0.0)
        for at in range(0, n_ways, SIMD32):
            total += exp_and_sum(logs, at, top)
        over = np.float32(1.0) / total
        row = weights[s]
        for g in range(len(row)):
            row[g] = logs[g] * over


def weigh(
    lo: int,
    hi: int,
    flat_counts: Singles,
    tables: Singles,
    counts: Singles,
    log_prior: Singles,
    beyond: Singles,
    repeated: Codes,
    weights: Singles,
) -> None:
    """Sum the plain tables over the annotators' counts, and weigh ways by the sums."""
    sums = flat_counts[lo:hi] @ tables
    _weigh(lo, hi, sums, counts, log_prior, beyond, repeated, weights)
