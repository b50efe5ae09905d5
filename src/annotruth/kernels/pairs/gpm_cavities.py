r"""Differences of votes by the votes of all others. NumPy twins: `annotruth.kernels.reference.pairs.gpm_cavities`.

If the differences of an annotator's votes have the mean m and the covariance C given all sites, and the
annotator's own sites are (K, z), then without these they have

.. math:: m' = (I + C G) (m - C z), \quad C' = C + C G C, \quad G = K^{1/2} (I - K^{1/2} C K^{1/2})^{-1} K^{1/2}.

Where an annotator has more votes than there are scores, this is done per context given theta, and theta is
solved for without these votes.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.compiled import compiled_in_any_order
from annotruth.kernels.pairs.gpm_contexts import (
    ContextLayout,
    ContextPosterior,
    Equations,
    Rows,
    common_variance,
    make_rows,
    row_width,
    set_row,
)
from annotruth.kernels.pairs.gpm_outcomes import Sites, VoteDifferences

MAX_VOTES_AT_ONCE = 256
"""Of an annotator in a context: more are taken in parts."""

_MIN_PIVOT = 1e-10
_FEW_VOTES = 40


@compiled_in_any_order
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
    """Set the differences of votes by the votes of all but their annotators ``lo:hi``.

    Votes of an annotator are sorted by context.
    """
    n_all, width = len(solved.solution), row_width(at)
    for s in range(lo, hi):
        first, m = ptr[s], ptr[s + 1] - ptr[s]
        if m == 0:
            continue
        rows = make_rows(m, width)
        column, design = rows.column, rows.design
        for a in range(m):
            set_row(at, posterior, first + a, n_all - at.covariates.shape[1], rows, a)
        root = np.sqrt(sites.precision[first : first + m])
        shift = sites.shift[first : first + m]
        if m <= n_all or m <= _FEW_VOTES:
            matrix = _covariances(at, posterior, first, rows, solved.covariance)
            full = rows.base.copy()
            for a in range(m):
                for i in range(rows.size[a]):
                    full[a] += design[a, i] * solved.solution[column[a, i]]
            _leave_out(matrix, root, shift, full)
            for a in range(m):
                found.mean[first + a], found.variance[first + a] = full[a], max(matrix[a, a], 0.0)
            continue
        less, other = solved.information.copy(), solved.right_side.copy()
        begin = 0
        while begin < m:
            end = begin + 1
            while (
                end < m
                and len(at.item_ptr) > 1
                and at.context[first + end] == at.context[first + begin]
                and end - begin < MAX_VOTES_AT_ONCE
            ):
                end += 1
            _leave_out_of_context(
                at, posterior, first, begin, end, rows, root, shift, less, other, found.variance
            )
            begin = end
        for i in range(n_all):
            for j in range(i):
                less[i, j] = 0.5 * (less[i, j] + less[j, i])
        _cholesky(less)
        _solve_lower(less, other, 0)
        _solve_upper(less, other)
        inverse, unit = np.empty((n_all, n_all)), np.empty(n_all)
        for i in range(n_all):
            unit[:] = 0.0
            unit[i] = 1.0
            _solve_lower(less, unit, i)
            _solve_upper(less, unit)
            inverse[i] = unit
        for a in range(m):
            total, spread = rows.base[a], found.variance[first + a]
            for i in range(rows.size[a]):
                value = design[a, i]
                total += value * other[column[a, i]]
                if value != 0.0:
                    for j in range(rows.size[a]):
                        spread += value * design[a, j] * inverse[column[a, i], column[a, j]]
            found.mean[first + a], found.variance[first + a] = total, max(spread, 0.0)


@compiled_in_any_order
def _covariances(
    at: ContextLayout,
    posterior: ContextPosterior,
    first: int,
    rows: Rows,
    covariance: Floats,
) -> Floats:
    """Return the covariance of the differences of one annotator's votes."""
    column, design, size = rows.column, rows.design, rows.size
    m, n_all = len(size), len(covariance)
    matrix, product = np.empty((m, m)), np.empty(n_all)
    has_contexts = len(at.item_ptr) > 1
    for a in range(m):
        product[:] = 0.0
        for i in range(size[a]):
            value, row = design[a, i], column[a, i]
            for x in range(n_all):
                product[x] += value * covariance[row, x]
        for b in range(m):
            total = 0.0
            for i in range(size[b]):
                total += design[b, i] * product[column[b, i]]
            if has_contexts and at.context[first + a] == at.context[first + b]:
                total += common_variance(at, posterior, first + a, first + b)
            matrix[a, b] = total
    return matrix


@compiled_in_any_order
def _leave_out(matrix: Floats, root: Floats, shift: Floats, mean: Floats) -> Floats:
    """Remove sites from means and from the diagonal of covariances; return the factor used."""
    m = len(mean)
    factor, part = np.empty((m, m)), np.empty(m)
    for a in range(m):
        for b in range(m):
            factor[a, b] = -root[a] * matrix[a, b] * root[b]
        factor[a, a] += 1.0
    _cholesky(factor)
    rest = mean.copy()
    for a in range(m):
        for b in range(m):
            rest[a] -= matrix[a, b] * shift[b]
        part[a] = root[a] * rest[a]
    _solve_lower(factor, part, 0)
    _solve_upper(factor, part)
    diagonal = np.empty(m)
    for a in range(m):
        total = rest[a]
        for b in range(m):
            total += matrix[a, b] * root[b] * part[b]
        mean[a] = total
    for a in range(m):
        for b in range(m):
            part[b] = root[b] * matrix[b, a]
        _solve_lower(factor, part, 0)
        total = matrix[a, a]
        for b in range(m):
            total += part[b] * part[b]
        diagonal[a] = total
    for a in range(m):
        matrix[a, a] = diagonal[a]
    return factor


@compiled_in_any_order
def _leave_out_of_context(
    at: ContextLayout,
    posterior: ContextPosterior,
    first: int,
    begin: int,
    end: int,
    rows: Rows,
    root: Floats,
    shift: Floats,
    information: Floats,
    right_side: Floats,
    variance: Floats,
) -> None:
    """Remove the sites of votes ``begin:end`` of an annotator, which are of one context.

    Their design, base and variance become those without the sites, given theta; what the sites add to
    the equations of theta is subtracted.
    """
    column, design, base = rows.column, rows.design, rows.base
    m, k = end - begin, rows.size[begin]
    own_root, before = root[begin:end], design[begin:end, :k].copy()
    old_base = base[begin:end].copy()
    if len(at.item_ptr) > 1:
        matrix = np.empty((m, m))
        for a in range(m):
            for b in range(m):
                matrix[a, b] = common_variance(at, posterior, first + begin + a, first + begin + b)
        common = matrix.copy()
        factor = _leave_out(matrix, own_root, shift[begin:end], base[begin:end])
        part = np.empty(m)
        for a in range(m):
            variance[first + begin + a] = max(matrix[a, a], 0.0)
        for i in range(k):
            for b in range(m):
                part[b] = own_root[b] * before[b, i]
            _solve_lower(factor, part, 0)
            _solve_upper(factor, part)
            for a in range(m):
                total = before[a, i]
                for b in range(m):
                    total += common[a, b] * own_root[b] * part[b]
                design[begin + a, i] = total
    else:
        variance[first + begin] = 0.0
    for a in range(m):
        known = own_root[a] * own_root[a]
        rest = shift[begin + a] - known * old_base[a]
        for i in range(k):
            value, row = design[begin + a, i], column[begin + a, i]
            right_side[row] -= value * rest
            if value != 0.0:
                for j in range(k):
                    information[row, column[begin + a, j]] -= value * known * before[a, j]


@compiled_in_any_order
def _cholesky(matrix: Floats) -> None:
    """Replace the lower triangle by the Cholesky factor."""
    for j in range(len(matrix)):
        total = matrix[j, j]
        for k in range(j):
            total -= matrix[j, k] * matrix[j, k]
        pivot = math.sqrt(max(total, _MIN_PIVOT))
        matrix[j, j] = pivot
        for i in range(j + 1, len(matrix)):
            total = 0.0
            for k in range(j):
                total += matrix[i, k] * matrix[j, k]
            matrix[i, j] = (matrix[i, j] - total) / pivot


@compiled_in_any_order
def _solve_lower(factor: Floats, x: Floats, first: int) -> None:
    """Solve with a Cholesky factor, in place; x is 0 before ``first``."""
    for i in range(first, len(x)):
        total = 0.0
        for k in range(first, i):
            total += factor[i, k] * x[k]
        x[i] = (x[i] - total) / factor[i, i]


@compiled_in_any_order
def _solve_upper(factor: Floats, x: Floats) -> None:
    """Solve with the transpose of a Cholesky factor, in place."""
    for i in range(len(x) - 1, -1, -1):
        value = x[i] / factor[i, i]
        x[i] = value
        for k in range(i):
            x[k] -= factor[i, k] * value


@compiled_in_any_order
def leave_votes_out(
    at: ContextLayout, lo: int, hi: int, sites: Sites, covariance: Floats, found: VoteDifferences
) -> None:
    """Set the differences of the votes ``lo:hi`` by all other votes, where these are many.

    There are no contexts. ``covariance`` is that of items, or one variance per item on its diagonal:
    items x 1. On entry, means are by all votes.
    """
    full = covariance.shape[1] > 1
    for v in range(lo, hi):
        i, j = at.left[v], at.right[v]
        if full:
            c = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]
        else:
            c = covariance[i, 0] + covariance[j, 0]
        left_over = max(1.0 - sites.precision[v] * c, 0.05)
        found.mean[v] = (found.mean[v] - c * sites.shift[v]) / left_over
        found.variance[v] = c / left_over
