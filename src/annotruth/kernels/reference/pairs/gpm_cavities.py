"""NumPy twins of ``native/pairs_gpm_cavities.cpp``, which documents them."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs import (
    ContextLayout,
    ContextPosterior,
    Equations,
    Sites,
    VoteDifferences,
)
from annotruth.kernels.reference.pairs.gpm_contexts import vote_rows


def leave_annotators_out(
    at: ContextLayout,
    lo: int,
    hi: int,
    ptr: Codes,
    sites: Sites,
    posterior: ContextPosterior,
    solved: Equations,
    found: VoteDifferences,
) -> None:
    """Set the differences of votes by the votes of all but their annotators ``lo:hi``."""
    for s in range(lo, hi):
        own = slice(ptr[s], ptr[s + 1])
        design, base, common = vote_rows(at, own, posterior, len(solved.solution))
        full = design @ solved.covariance @ design.T + common
        root = np.sqrt(sites.precision[own])
        without = np.eye(len(root)) - root[:, np.newaxis] * full * root
        gain = root[:, np.newaxis] * np.linalg.solve(without, np.diag(root))
        rest = base + design @ solved.solution - full @ sites.shift[own]
        found.mean[own] = rest + full @ gain @ rest
        found.variance[own] = np.maximum(np.diag(full + full @ gain @ full), 0.0)


def leave_votes_out(
    at: ContextLayout, lo: int, hi: int, sites: Sites, covariance: Floats, found: VoteDifferences
) -> None:
    """Set the differences of the votes ``lo:hi`` by all other votes, where these are many."""
    own = slice(lo, hi)
    i, j = at.left[own], at.right[own]
    if covariance.shape[1] > 1:
        c = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
    else:
        c = covariance[i, 0] + covariance[j, 0]
    left_over = np.maximum(1.0 - sites.precision[own] * c, 0.05)
    found.mean[own] = (found.mean[own] - c * sites.shift[own]) / left_over
    found.variance[own] = c / left_over
