r"""Scores within contexts, given Gaussian sites. NumPy twins: `annotruth.kernels.reference.pairs.gpm_contexts`.

The difference of vote v in context c is :math:`D_v = x_v (\theta + u_c) + y_v \cdot k` with
:math:`u_{ic} \sim N(0, t_{ic})`, covariates y and coefficients k. With the Laplacian L of the sites of a
context, :math:`B = (I + T L)^{-1}` and :math:`S = B T`, the posterior of u given theta and k is normal with
covariance S, and :math:`D_v` has the design :math:`x_v B` of theta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.pairs.gpm_outcomes import Sites, VoteDifferences


class ContextLayout(NamedTuple):
    """Votes by context. Item a of context c is ``items[item_ptr[c] + a]``.

    Without contexts, ``item_ptr`` has one entry, and ``left`` and ``right`` are codes of items.
    """

    context: Codes
    left: Codes  # places of both items in the context
    right: Codes
    item_ptr: Codes
    items: Codes
    vote_ptr: Codes
    votes: Codes  # those of context c are votes[vote_ptr[c]:vote_ptr[c + 1]]
    square_ptr: Codes  # of a matrix per context
    covariates: Floats  # of each vote, in order of votes


class ContextPosterior(NamedTuple):
    """The posterior of contexts: B one after the other, and per item the mean of u and S F."""

    variance: Floats  # the prior's: t, 0 where an item has no effect of its own
    design: Floats  # B
    mean: Floats  # of u where theta and the coefficients are 0
    covariate: Floats  # items of contexts x covariates: by what a coefficient lowers u


class Equations(NamedTuple):
    """The equations of theta and the coefficients, and once they are solved the posterior of these."""

    information: Floats
    right_side: Floats
    covariance: Floats
    solution: Floats


@compiled
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
    q = at.covariates.shape[1]
    n = len(right_side) - q
    for c in range(lo, hi):
        first = at.item_ptr[c]
        k = at.item_ptr[c + 1] - first
        laplacian, h, f = np.zeros((k, k)), np.zeros(k), np.zeros((k, q))
        for place in range(at.vote_ptr[c], at.vote_ptr[c + 1]):
            v = at.votes[place]
            i, j, w = at.left[v], at.right[v], sites.precision[v]
            laplacian[i, i] += w
            laplacian[j, j] += w
            laplacian[i, j] -= w
            laplacian[j, i] -= w
            h[i] += sites.shift[v]
            h[j] -= sites.shift[v]
            for x in range(q):
                value = at.covariates[v, x]
                f[i, x] += w * value
                f[j, x] -= w * value
                right_side[n + x] += value * sites.shift[v]
                for y in range(q):
                    information[n + x, n + y] += w * value * at.covariates[v, y]
        t = posterior.variance[first : first + k]
        b = _inverse(laplacian, t)
        start = at.square_ptr[c]
        for i in range(k):
            total = 0.0
            for j in range(k):
                posterior.design[start + i * k + j] = b[i, j]
                total += b[i, j] * t[j] * h[j]
            posterior.mean[first + i] = total
            for x in range(q):
                total = 0.0
                for j in range(k):
                    total += b[i, j] * t[j] * f[j, x]
                posterior.covariate[first + i, x] = total
        for i in range(k):
            item = at.items[first + i]
            for j in range(k):
                total = 0.0
                for m in range(k):
                    total += laplacian[i, m] * b[m, j]
                information[item, at.items[first + j]] += total
                right_side[item] += b[j, i] * h[j]
            for x in range(q):
                total = 0.0
                for m in range(k):
                    total += b[m, i] * f[m, x]
                information[item, n + x] += total
                information[n + x, item] += total
                right_side[n + x] -= posterior.covariate[first + i, x] * h[i]
                for y in range(q):
                    information[n + y, n + x] -= f[i, y] * posterior.covariate[first + i, x]


@compiled
def _inverse(laplacian: Floats, t: Floats) -> Floats:
    """Return the inverse of I + T L, whose rows are dominated by their diagonal."""
    k = len(t)
    matrix, inverse = np.empty((k, k)), np.eye(k)
    for i in range(k):
        for j in range(k):
            matrix[i, j] = t[i] * laplacian[i, j]
        matrix[i, i] += 1.0
    for i in range(k):
        scale = 1.0 / matrix[i, i]
        for j in range(k):
            matrix[i, j] *= scale
            inverse[i, j] *= scale
        for row in range(k):
            factor = matrix[row, i]
            if row == i or factor == 0.0:
                continue
            for j in range(k):
                matrix[row, j] -= factor * matrix[i, j]
                inverse[row, j] -= factor * inverse[i, j]
    return inverse


class Rows(NamedTuple):
    """The differences of some votes as functions of theta and the coefficients: a row per vote."""

    column: Codes  # votes x terms: of which score or coefficient
    design: Floats  # votes x terms: by what it is multiplied
    size: Codes  # how many terms each vote has
    base: Floats  # the mean where all are 0


@compiled
def make_rows(n_votes: int, width: int) -> Rows:
    """Return rows for some votes, to be set."""
    shape = n_votes, width
    return Rows(
        np.empty(shape, np.int64), np.empty(shape), np.empty(n_votes, np.int64), np.empty(n_votes)
    )


@compiled
def row_width(at: ContextLayout) -> int:
    """Return how many terms a row may have."""
    width = 2
    for c in range(len(at.item_ptr) - 1):
        width = max(width, at.item_ptr[c + 1] - at.item_ptr[c])
    return width + int(at.covariates.shape[1])


@compiled
def set_row(
    at: ContextLayout, posterior: ContextPosterior, v: int, n_items: int, rows: Rows, place: int
) -> None:
    """Set the row of vote v."""
    i, j, q = at.left[v], at.right[v], int(at.covariates.shape[1])
    if len(at.item_ptr) == 1:
        rows.column[place, 0], rows.column[place, 1] = i, j
        rows.design[place, 0], rows.design[place, 1] = 1.0, -1.0
        for x in range(q):
            rows.column[place, 2 + x] = n_items + x
            rows.design[place, 2 + x] = at.covariates[v, x]
        rows.size[place], rows.base[place] = 2 + q, 0.0
        return
    c = at.context[v]
    first, start = at.item_ptr[c], at.square_ptr[c]
    k = int(at.item_ptr[c + 1] - first)
    i_row, j_row = start + i * k, start + j * k
    for a in range(k):
        rows.column[place, a] = at.items[first + a]
        rows.design[place, a] = posterior.design[i_row + a] - posterior.design[j_row + a]
    for x in range(q):
        lowered = posterior.covariate[first + i, x] - posterior.covariate[first + j, x]
        rows.column[place, k + x] = n_items + x
        rows.design[place, k + x] = at.covariates[v, x] - lowered
    rows.size[place] = k + q
    rows.base[place] = posterior.mean[first + i] - posterior.mean[first + j]


@compiled
def set_differences(
    at: ContextLayout,
    lo: int,
    hi: int,
    posterior: ContextPosterior,
    solution: Floats,
    found: VoteDifferences,
) -> None:
    """Set the differences of the votes of the contexts ``lo:hi``, given theta and the coefficients.

    Without contexts, those of the votes ``lo:hi``.
    """
    q = at.covariates.shape[1]
    n_items = len(solution) - q
    if len(at.item_ptr) == 1:
        for v in range(lo, hi):
            total = solution[at.left[v]] - solution[at.right[v]]
            for x in range(q):
                total += at.covariates[v, x] * solution[n_items + x]
            found.mean[v], found.variance[v] = total, 0.0
        return
    for c in range(lo, hi):
        first, start = at.item_ptr[c], at.square_ptr[c]
        k = int(at.item_ptr[c + 1] - first)
        score = np.empty(k)
        for i in range(k):
            total = posterior.mean[first + i]
            for j in range(k):
                total += posterior.design[start + i * k + j] * solution[at.items[first + j]]
            for x in range(q):
                total -= posterior.covariate[first + i, x] * solution[n_items + x]
            score[i] = total
        for place in range(at.vote_ptr[c], at.vote_ptr[c + 1]):
            v = at.votes[place]
            total = score[at.left[v]] - score[at.right[v]]
            for x in range(q):
                total += at.covariates[v, x] * solution[n_items + x]
            found.mean[v], found.variance[v] = total, max(common_variance(at, posterior, v, v), 0.0)


@compiled
def common_variance(at: ContextLayout, posterior: ContextPosterior, v: int, w: int) -> float:
    """Return the covariance of the differences of two votes of one context, given theta."""
    c = at.context[v]
    first, start = at.item_ptr[c], at.square_ptr[c]
    k = at.item_ptr[c + 1] - first
    i, j, a, b = at.left[v], at.right[v], at.left[w], at.right[w]
    of_left = posterior.design[start + i * k + a] - posterior.design[start + j * k + a]
    of_right = posterior.design[start + i * k + b] - posterior.design[start + j * k + b]
    covariance: float = (
        of_left * posterior.variance[first + a] - of_right * posterior.variance[first + b]
    )
    return covariance
