"""NumPy twins of `annotruth.kernels.pairs.gpm_contexts`, which document them."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.gpm_contexts import ContextLayout, ContextPosterior
from annotruth.kernels.pairs.gpm_outcomes import Sites, VoteDifferences


def _signs(at: ContextLayout, votes: slice | Codes, k: int) -> Floats:
    """Return +1 at the left and -1 at the right item: votes x items of their context."""
    left, right = at.left[votes], at.right[votes]
    rows, signs = np.arange(len(left)), np.zeros((len(left), k))
    signs[rows, left] += 1.0
    signs[rows, right] -= 1.0
    return signs


def solve_contexts(
    at: ContextLayout,
    lo: int,
    hi: int,
    sites: Sites,
    posterior: ContextPosterior,
    information: Floats,
    right_side: Floats,
) -> None:
    """Set the posterior of the contexts ``lo:hi``; add up the equations of theta and coefficients."""
    precision, shift, covariates = sites.precision, sites.shift, at.covariates
    n = len(right_side) - covariates.shape[1]
    for c in range(lo, hi):
        local = slice(at.item_ptr[c], at.item_ptr[c + 1])
        items, t = at.items[local], posterior.variance[local]
        votes = at.votes[at.vote_ptr[c] : at.vote_ptr[c + 1]]
        x, y = _signs(at, votes, len(items)), covariates[votes]
        weighted = x * precision[votes][:, np.newaxis]
        laplacian, h, f = weighted.T @ x, x.T @ shift[votes], weighted.T @ y
        b = np.linalg.inv(np.eye(len(items)) + t[:, np.newaxis] * laplacian)
        posterior.design[at.square_ptr[c] : at.square_ptr[c + 1]] = b.ravel()
        posterior.mean[local], posterior.covariate[local] = (b * t) @ h, (b * t) @ f
        information[np.ix_(items, items)] += laplacian @ b
        information[items, n:] += b.T @ f
        information[n:, items] += (b.T @ f).T
        information[n:, n:] += (y * precision[votes][:, np.newaxis]).T @ y
        information[n:, n:] -= f.T @ posterior.covariate[local]
        right_side[items] += b.T @ h
        right_side[n:] += y.T @ shift[votes] - posterior.covariate[local].T @ h


def set_differences(
    at: ContextLayout,
    lo: int,
    hi: int,
    posterior: ContextPosterior,
    solution: Floats,
    found: VoteDifferences,
) -> None:
    """Set the differences of the votes of the contexts ``lo:hi``, or without contexts of the votes."""
    has_contexts = len(at.item_ptr) > 1
    votes = at.votes[at.vote_ptr[lo] : at.vote_ptr[hi]] if has_contexts else range(lo, hi)
    for v in votes:
        design, base, common = vote_rows(at, slice(v, v + 1), posterior, len(solution))
        found.mean[v] = base[0] + design[0] @ solution
        found.variance[v] = max(common[0, 0], 0.0)


def vote_rows(
    at: ContextLayout, votes: slice, posterior: ContextPosterior, n_all: int
) -> tuple[Floats, Floats, Floats]:
    """Return the design on theta and coefficients, the means at 0, and the covariance given these."""
    rows = range(*votes.indices(len(at.left)))
    n = n_all - at.covariates.shape[1]
    design, base = np.zeros((len(rows), n_all)), np.zeros(len(rows))
    common = np.zeros((len(rows), len(rows)))
    design[:, n:] = at.covariates[votes]
    if len(at.item_ptr) == 1:
        design[:, :n] = _signs(at, votes, n)
        return design, base, common
    context = at.context[votes]
    for c in np.unique(context):
        local = slice(at.item_ptr[c], at.item_ptr[c + 1])
        k = local.stop - local.start
        b = posterior.design[at.square_ptr[c] : at.square_ptr[c + 1]].reshape(k, k)
        own = np.flatnonzero(context == c)
        x = _signs(at, (own + rows.start).astype(np.int64), k)
        design[np.ix_(own, at.items[local])] = x @ b
        design[own, n:] -= x @ posterior.covariate[local]
        base[own] = x @ posterior.mean[local]
        common[np.ix_(own, own)] = x @ (b * posterior.variance[local]) @ x.T
    return design, base, common
