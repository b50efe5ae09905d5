"""Plain twins of the kernels of annotators' ways, in doubles and with no way passed over."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats, Singles


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
    """Average the tables over each annotator's weights, and compare these with their prior."""
    n_ways = len(plain)
    for s in range(lo, hi):
        w = weights[s].astype(np.float64)
        prior = log_prior[s % len(log_prior), :n_ways]
        divergence[s] = (w * (np.log(np.maximum(w, 1e-300)) - prior)).sum()
        mixed[s] = np.tensordot(w, plain, axes=1)
        mixed[s, repeated[s]] = w @ repeating[:, repeated[s]]


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
    """Weigh ways by their log-tables' sums over the annotators' counts."""
    sums = flat_counts[lo:hi].astype(np.float64) @ tables
    for s in range(lo, hi):
        more = counts[s, repeated[s]].astype(np.float64) @ beyond[repeated[s]]
        logs = sums[s - lo] + log_prior[s % len(log_prior)] + more
        shares = np.exp(logs - logs.max())
        weights[s] = (shares / shares.sum())[: weights.shape[1]]
