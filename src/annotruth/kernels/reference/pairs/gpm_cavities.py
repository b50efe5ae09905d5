"""NumPy twins of `annotruth.kernels.pairs.gpm_cavities`, which document them."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.gpm_contexts import ContextLayout, ContextPosterior
from annotruth.kernels.reference.pairs.gpm_contexts import vote_rows


def leave_annotators_out(
    at: ContextLayout,
    lo: int,
    hi: int,
    ptr: Codes,
    precision: Floats,
    shift: Floats,
    covariates: Floats,
    posterior: ContextPosterior,
    information: Floats,
    right_side: Floats,
    covariance: Floats,
    solution: Floats,
    mean: Floats,
    variance: Floats,
) -> None:
    """Set mean and variance of each vote's difference by the votes of all but its annotator."""
    for s in range(lo, hi):
        own = slice(ptr[s], ptr[s + 1])
        design, base, common = vote_rows(at, own, covariates, posterior, len(solution))
        full = design @ covariance @ design.T + common
        root = np.sqrt(precision[own])
        without = np.eye(len(root)) - root[:, np.newaxis] * full * root
        gain = root[:, np.newaxis] * np.linalg.solve(without, np.diag(root))
        rest = base + design @ solution - full @ shift[own]
        mean[own] = rest + full @ gain @ rest
        variance[own] = np.maximum(np.diag(full + full @ gain @ full), 0.0)


def leave_votes_out(
    lo: int,
    hi: int,
    left: Codes,
    right: Codes,
    precision: Floats,
    shift: Floats,
    covariance: Floats,
    mean: Floats,
    variance: Floats,
) -> None:
    """Set mean and variance of the differences ``lo:hi`` by all other votes, where these are many."""
    at = slice(lo, hi)
    i, j = left[at], right[at]
    if covariance.shape[1] > 1:
        c = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
    else:
        c = covariance[i, 0] + covariance[j, 0]
    left_over = np.maximum(1.0 - precision[at] * c, 0.05)
    mean[at] = (mean[at] - c * shift[at]) / left_over
    variance[at] = c / left_over
