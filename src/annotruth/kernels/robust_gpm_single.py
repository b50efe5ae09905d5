r"""RobustGPM's passes for many labels and 32 latent classes, in single precision.

They compute what `annotruth.kernels.robust_gpm` does, from logarithms:

.. math:: w_{e,k} \propto \exp \left(b_k + \sum_{s \in l_e} \log a_{s,r_{e,s},k}\right),

where :math:`b_k` is the log of the prior, plus that of the likelihood of a known truth. A row of 32
singles is two cache lines. Reading one row and adding to one row per label takes most of the time.
Sums of few logs are singles; sums of many, and the log-likelihood, are doubles.

Over annotators ``lo:hi`` instead of items, `mix` averages the tables of the response strategies by
their weights, and `strategy_weights` computes the weights from the counts. Annotator s would repeat
the label ``repeated[s]``: for it they have the table ``repeating``, for others ``plain``. NumPy
twins: `annotruth.kernels.reference.robust_gpm_single`.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats, Singles
from annotruth.kernels.compiled import compiled
from annotruth.kernels.shared import LOG_ZERO
from annotruth.kernels.simd import SIMD8, SIMD32
from annotruth.kernels.simd.item_rows import find_rows, item_labels, most_labels
from annotruth.kernels.simd.simd8 import Offsets, log
from annotruth.kernels.simd.simd32 import (
    add_to_rows,
    add_weighted_rows,
    exp_and_sum,
    largest,
    log_row,
    scale_row,
    sum_rows,
)

LEAST_WEIGHT = 1e-9
"""Strategies of less weight are skipped: four fifths of 125 after a few steps."""

_ITEMS_AT_ONCE = 512  # their posteriors stay in the cache, and one table at a time is read
_LABELS_PER_SUM = 16  # whose logs are added up in single precision


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    log_prior: Singles,
    log_confusion: Singles,
    counts: Floats | Singles,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by class, and the items' log-likelihood.

    ``log_prior`` is (categories + 1) x classes: one row for each known truth, and the last for items
    without one. ``log_confusion`` and ``counts`` are annotators x labels x classes.
    """
    n_labels = log_confusion.shape[1]
    log_prior, table, counts = log_prior.reshape(-1), log_confusion.reshape(-1), counts.reshape(-1)
    size = most_labels(block, lo, hi, _ITEMS_AT_ONCE) + SIMD8
    category, rows = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    item_rows, zeros = SIMD32 * np.arange(_ITEMS_AT_ONCE), np.zeros(SIMD32, dtype=np.float32)
    posterior = np.empty(_ITEMS_AT_ONCE * SIMD32, dtype=np.float32)
    mass = np.empty(_ITEMS_AT_ONCE, dtype=np.float32)
    for start in range(lo, hi, _ITEMS_AT_ONCE):
        end = min(start + _ITEMS_AT_ONCE, hi)
        find_rows(block, start, end, n_labels, SIMD32, category, rows)
        log_likelihood[0] += _log_joint(block, start, end, log_prior, table, rows, posterior)
        mass[:] = 1.0
        for e in range(end - start):
            top = largest(posterior, SIMD32 * e)
            mass[e] = exp_and_sum(posterior, SIMD32 * e, top)
            scale_row(posterior, SIMD32 * e, np.float32(1.0) / mass[e])
            log_likelihood[0] += float(top)
        for at in range(0, _ITEMS_AT_ONCE, SIMD32):
            log_row(mass, at)
        for e in range(_ITEMS_AT_ONCE):
            log_likelihood[0] += float(mass[e])
        for e in range(start, end):
            first, last = item_labels(block, start, e)
            add_to_rows(counts, rows, first, last, posterior, SIMD32 * (e - start))
        sum_rows(zeros, 0, posterior, item_rows, 0, end - start, posterior, 0)
        add_to_rows(classes, item_rows, 0, 1, posterior, 0)


@compiled
def leave_one_out(
    block: Block,
    lo: int,
    hi: int,
    log_prior: Singles,
    log_confusion: Singles,
    strategies: Singles,
    repeating: Singles,
    repeated: Codes,
    log_likelihood: Floats,
) -> None:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy.

    The posterior of a label's item is that without the label itself. ``strategies`` and
    ``repeating`` are labels x classes x strategies, padded to a multiple of 32; the second is for
    the label that the annotator would repeat.
    """
    n_labels, n_classes, n_strategies = strategies.shape
    log_prior, table = log_prior.reshape(-1), log_confusion.reshape(-1)
    size = most_labels(block, lo, hi, _ITEMS_AT_ONCE) + SIMD8
    category, rows = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    logs = np.empty(_ITEMS_AT_ONCE * SIMD32, dtype=np.float32)
    without = np.empty(SIMD32, dtype=np.float32)
    mixture = np.empty(n_strategies, dtype=np.float32)
    zero, minus_one = np.zeros(1, dtype=np.int64), np.full(1, -1.0, dtype=np.float32)
    class_rows = n_strategies * np.arange(n_classes)
    for start in range(lo, hi, _ITEMS_AT_ONCE):
        end = min(start + _ITEMS_AT_ONCE, hi)
        find_rows(block, start, end, n_labels, SIMD32, category, rows)
        _log_joint(block, start, end, log_prior, table, rows, logs)
        annotator = block.annotator[block.cell_ptr[block.item_ptr[start]] :]
        for e in range(start, end):
            first, last = item_labels(block, start, e)
            for j in range(first, last):
                sum_rows(logs, SIMD32 * (e - start), table, rows, 0, 0, without, 0)
                add_weighted_rows(table, zero, rows[j], minus_one, 1, without, 0)
                total = exp_and_sum(without, 0, largest(without, 0))
                scale_row(without, 0, np.float32(1.0) / total)
                s, n = annotator[j], category[j]
                label_table = (repeating if repeated[s] == n else strategies)[n].reshape(-1)
                mixture[:] = 0.0
                for at in range(0, n_strategies, SIMD32):
                    add_weighted_rows(label_table, class_rows, at, without, n_classes, mixture, at)
                    log_row(mixture, at)
                row = log_likelihood[s]
                for g in range(len(row)):
                    row[g] += mixture[g]


@compiled
def _log_joint(
    block: Block,
    lo: int,
    hi: int,
    log_prior: Singles,
    table: Singles,
    rows: Offsets,
    sums: Singles,
) -> float:
    """Write each item's log-joint up to a constant, and return the sum of the constants."""
    n_labels = len(log_prior) // SIMD32 - 1
    constants = 0.0
    for e in range(lo, hi):
        first, last = item_labels(block, lo, e)
        known, at = block.known[e], SIMD32 * (e - lo)
        prior = SIMD32 * (n_labels if known < 0 else int(known))
        if last - first <= _LABELS_PER_SUM:
            sum_rows(log_prior, prior, table, rows, first, last, sums, at)
        else:
            constants += _sum_many_rows(log_prior, prior, table, rows, first, last, sums, at)
    return constants


@compiled
def _sum_many_rows(
    log_prior: Singles,
    prior: int,
    table: Singles,
    rows: Offsets,
    first: int,
    last: int,
    sums: Singles,
    at: int,
) -> float:
    """Add up rows in double precision; subtract the largest sum from all and return it."""
    total = np.zeros(SIMD32)
    zeros = np.zeros(SIMD32, dtype=np.float32)
    partial = np.empty(SIMD32, dtype=np.float32)
    total += log_prior[prior : prior + SIMD32]
    for j in range(first, last, _LABELS_PER_SUM):
        sum_rows(zeros, 0, table, rows, j, min(j + _LABELS_PER_SUM, last), partial, 0)
        total += partial
    top = float(total.max())
    for k in range(SIMD32):
        sums[at + k] = total[k] - top
    return top


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
    r"""Average tables by each annotator's weights w of the strategies.

    The tables are strategies x labels x classes, ``mixed`` is annotators x labels x classes. The
    padded ``log_prior`` has one row for all annotators or one each. ``divergence`` gets the
    Kullback-Leibler divergence from the prior p, :math:`\sum_g w_g (\log w_g - \log p_g)`.
    """
    n_strategies, n_labels, _ = plain.shape
    plain, repeating = plain.reshape(-1), repeating.reshape(-1)
    rows = np.empty(n_strategies + 1, dtype=np.int64)
    share = np.empty(n_strategies + 1, dtype=np.float32)
    log_p, terms = np.empty(n_strategies + 1), np.empty(n_strategies + 1)
    for s in range(lo, hi):
        prior = log_prior[s if len(log_prior) > 1 else 0]
        n_used = 0
        for g in range(n_strategies):  # without a branch, which would often be mispredicted
            rows[n_used] = g * n_labels * SIMD32
            share[n_used] = weights[s, g]
            log_p[n_used] = prior[g]
            n_used += weights[s, g] >= LEAST_WEIGHT
        for i in range(n_used):
            terms[i] = share[i] * (log(np.float64(share[i])) - log_p[i])
        divergence[s] = terms[:n_used].sum()
        row = mixed[s].reshape(-1)
        row[:] = 0.0
        for n in range(n_labels):
            table = repeating if n == repeated[s] else plain
            add_weighted_rows(table, rows, n * SIMD32, share, n_used, row, n * SIMD32)


def strategy_weights(
    lo: int,
    hi: int,
    flat_counts: Singles,
    plain: Singles,
    counts: Singles,
    log_prior: Singles,
    extra: Singles,
    repeated: Codes,
    weights: Singles,
) -> None:
    """Compute each annotator's weights of the strategies from the counts.

    The log-likelihood of a strategy is the product of the counts with ``plain``, labels and classes
    x strategies, plus that of the counts of the repeated label with ``extra``, labels x classes x
    strategies: by how much it differs from the plain table. Rows of strategies are padded, except
    those of ``weights``.
    """
    log_likelihood = flat_counts[lo:hi] @ plain
    normalise_weights(lo, hi, log_likelihood, counts, log_prior, extra, repeated, weights)


@compiled
def normalise_weights(
    lo: int,
    hi: int,
    log_likelihood: Singles,
    counts: Singles,
    log_prior: Singles,
    extra: Singles,
    repeated: Codes,
    weights: Singles,
) -> None:
    """Complete the log-likelihood of annotators ``lo:hi``, in place, and write their weights."""
    n_classes, n_strategies = extra.shape[1:]
    rows = np.arange(n_classes) * n_strategies
    for s in range(lo, hi):
        logs, prior = log_likelihood[s - lo], log_prior[s if len(log_prior) > 1 else 0]
        count, table = counts[s, repeated[s]], extra[repeated[s]].reshape(-1)
        for g in range(n_strategies):
            logs[g] += prior[g]
        top = np.float32(LOG_ZERO)
        for at in range(0, n_strategies, SIMD32):
            add_weighted_rows(table, rows, at, count, n_classes, logs, at)
            top = max(top, largest(logs, at))
        total = np.float32(0.0)
        for at in range(0, n_strategies, SIMD32):
            total += exp_and_sum(logs, at, top)
        over = np.float32(1.0) / total
        row = weights[s]
        for g in range(len(row)):
            row[g] = logs[g] * over
