"""The graph of comparisons: its connected parts, its counts, and systems of its Laplacian."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from annotruth.engines import Engine, Pass, Sum
from annotruth.errors import AnnotruthError
from annotruth.kernels.arrays import Codes, Floats, PairBlock, inner, slices
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT
from annotruth.observations.pairs.votes import UnsortedVotes

MAX_DENSE_ITEMS = 3000
"""The number of items up to which matrices of items x items are computed."""

_DRAWS = 64  # for the variances of more items
_DRAWS_OF_TRACE = 8
_CG_TOL = 1e-10
_COUNTED_AT_ONCE = 1 << 22  # comparisons
_SAMPLED_PAIRS = 10  # per item


@dataclass(frozen=True, eq=False)
class PairCounts:
    """The outcomes of the pairs that were compared, added up over annotators.

    They are `annotruth.engines.PassData`, so passes over pairs run on the engines as passes over
    comparisons do.
    """

    n_items: int
    left: Codes  # each ordered pair occurs once
    right: Codes
    votes: Floats  # how often each outcome occurred: pairs x (left, right, tie)

    @cached_property
    def n_votes(self) -> Floats:
        """How often each pair was compared."""
        total: Floats = self.votes.sum(axis=1)
        return total

    @cached_property
    def net_wins(self) -> Floats:
        """Half of how much more often each item won than it lost."""
        half_votes = (self.votes[:, LEFT] - self.votes[:, RIGHT]) / 2.0
        return net_sums(self.left, self.right, half_votes, self.n_items)

    @property
    def n_annotators(self) -> int:
        """0, as annotators are alike."""
        return 0

    @property
    def n_labels(self) -> int:
        """The number of pairs."""
        return len(self.left)

    def length(self, per: str) -> int:
        """Return the number of pairs."""
        return len(self.left)

    def block(self) -> PairBlock:
        """Return the arrays that kernels read."""
        left, right = self.left.astype(np.int32), self.right.astype(np.int32)
        return PairBlock(left, right, self.n_votes)

    def partition(self, n_partitions: int) -> NDArray[np.int64]:
        """Return the ``n_partitions + 1`` bounds that divide the pairs evenly."""
        return np.linspace(0, len(self.left), n_partitions + 1).astype(np.int64)

    def zeros(self, shape: int | tuple[int, ...]) -> Floats:
        """Return an array of zeros in memory."""
        return np.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Accept everything: the counts are in memory."""


def count_pairs(data: UnsortedVotes, engine: Engine) -> PairCounts:
    """Return the counts of the ordered pairs that were compared, sorted by left, then by right."""
    n, n_outcomes = data.n_items, len(OUTCOMES)
    # With more pairs than comparisons, a table of all pairs would take longer than sorting.
    if n * n <= data.n_labels:
        table = Sum("votes", (n, n, n_outcomes))
        with closing(engine.open(data)) as session:
            votes = session.run_pass(Pass("pairs.layout.add_votes", sums=(table,)))["votes"]
        of_outcomes = votes.reshape(-1, n_outcomes).T
        pairs = np.flatnonzero(of_outcomes[0] + of_outcomes[1] + of_outcomes[2])
        # By outcome, as sums over pairs are computed.
        by_outcome = np.array([of_outcome[pairs] for of_outcome in of_outcomes], dtype=np.float64)
        return PairCounts(n, *np.divmod(pairs, n), by_outcome.T)
    cells, counts = np.zeros(0, dtype=np.int64), np.zeros(0)
    for at in slices(data.n_labels, _COUNTED_AT_ONCE):
        pair = data.left[at].astype(np.int64) * n + data.right[at]
        new, n_new = np.unique(pair * n_outcomes + data.outcome[at], return_counts=True)
        cells, place = np.unique(np.concatenate([cells, new]), return_inverse=True)
        counts = sums_at(place, np.concatenate([counts, n_new]), len(cells))
        data.check_room(4 * (cells.nbytes + counts.nbytes), f"the counts of {len(cells):,} pairs")
    pairs, position = np.unique(cells // n_outcomes, return_inverse=True)
    votes = np.zeros((len(pairs), n_outcomes))
    votes[position, cells % n_outcomes] = counts
    return PairCounts(n, *np.divmod(pairs, n), votes)


def connected_parts(n_items: int, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Return the connected part of the graph that each item is in: 0 for the largest.

    Scores of items in different parts cannot be compared. Of equal parts, that of the first item
    comes first. An item that was never compared is a part of its own.
    """
    # If the graph of some pairs is connected, so is that of all, which takes longer to search.
    step = len(left) // (_SAMPLED_PAIRS * n_items + 1) + 1
    if step > 1 and not connected_parts(n_items, left[::step], right[::step]).any():
        return np.zeros(n_items, dtype=np.int64)
    ones = np.ones(len(left), dtype=np.int8)
    graph = coo_array((ones, (left, right)), shape=(n_items, n_items))
    n_parts, part = connected_components(graph, directed=False)
    first = np.full(n_parts, n_items)
    np.minimum.at(first, part, np.arange(n_items))
    order = np.lexsort((first, -np.bincount(part, minlength=n_parts)))
    number = np.empty(n_parts, dtype=np.int64)
    number[order] = np.arange(n_parts)
    return number[part]


def sums_at(codes: Codes, values: Floats, n: int) -> Floats:
    """Return the sums of the values of each of the codes below n."""
    sums: NDArray[Any] = np.bincount(codes, values, n)
    return sums


def net_sums(left: Codes, right: Codes, values: Floats, n: int) -> Floats:
    """Return the sums of pairs' values over each item's pairs, negative where it is on the right."""
    return sums_at(left, values, n) - sums_at(right, values, n)


def net_sums_of_contexts(
    context: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    values: Floats,
    shape: tuple[int, int],
) -> Floats:
    """Return the sums of votes' values, negative for the right item: contexts x items, the shape."""
    sums = np.zeros(shape)
    np.add.at(sums, (context, left), values)
    np.add.at(sums, (context, right), -values)
    return sums


def center_in_parts(values: Floats, part: NDArray[np.int64]) -> Floats:
    """Return values less the mean of their part.

    ``values`` has the items along its first axis.
    """
    columns = values.reshape(len(values), -1)
    size = np.bincount(part)[:, np.newaxis]
    sums = np.stack([np.bincount(part, column) for column in columns.T], axis=1)
    centered: Floats = columns - (sums / size)[part]
    return centered.reshape(values.shape)


class LaplacianSystem:
    r"""Equations with the matrix :math:`A = L + r I`, where L is the Laplacian of weighted pairs.

    .. math:: x^T L x = \sum_p w_p (x_{\mathrm{left}_p} - x_{\mathrm{right}_p})^2

    It is the information about items' scores: w is that of a pair about the difference of its two
    scores, and r the precision of the prior. Up to `MAX_DENSE_ITEMS` items, A is factorised
    (Cholesky); for more, equations are solved by conjugate gradients. A pair may occur several times.
    """

    def __init__(
        self, left: Codes, right: Codes, weight: Floats, ridge: float, part: NDArray[np.int64]
    ) -> None:
        self._pairs = left, right, weight
        self._ridge, self._part = ridge, part
        n = len(part)
        self.is_dense = n <= MAX_DENSE_ITEMS
        """Whether the inverse is computed as a matrix."""
        if self.is_dense:
            self._factor = _cholesky(self._dense(n))
        else:
            self.diagonal = sums_at(left, weight, n) + sums_at(right, weight, n) + ridge
            upper = coo_array((-weight, (left, right)), shape=(n, n))
            self._matrix = csr_array(upper + upper.T + diags_array(self.diagonal))

    def solve(self, values: Floats) -> Floats:
        """Return x with A x = values, for one or several columns of values."""
        if self.is_dense:
            solution: Floats = lapack.dpotrs(self._factor, values, lower=1)[0]
            return solution
        if values.ndim == 1:
            return self._by_conjugate_gradients(values)
        return np.stack([self._by_conjugate_gradients(column) for column in values.T], axis=1)

    @cached_property
    def centered_inverse(self) -> Floats:
        """The covariance of scores with precision A, less the mean of their part.

        Only the variances, estimated from draws, if there are more than `MAX_DENSE_ITEMS` items.
        """
        if not self.is_dense:
            return self._centered_variances(_DRAWS)
        lower = lapack.dlauum(self._inverse_factor, lower=1)[0]  # zeros above it, as in the factor
        centered: Floats = lower + lower.T
        centered[np.diag_indices_from(centered)] /= 2.0
        # The mean of a part is independent of the differences within it, with a known variance.
        if not self._part.any():
            centered -= 1.0 / (self._ridge * len(self._part))
            return centered
        same_part = self._part[:, np.newaxis] == self._part
        size = np.bincount(self._part)[self._part]
        centered -= same_part / (self._ridge * size)
        return centered

    def centered_trace(self) -> float:
        """Return the sum of the variances of `centered_inverse`, from fewer draws."""
        if not self.is_dense:
            return float(self._centered_variances(_DRAWS_OF_TRACE).sum())
        elements = self._inverse_factor.ravel(order="K")  # half as long as the inverse takes
        return inner(elements, elements) - len(np.unique(self._part)) / self._ridge

    @cached_property
    def _inverse_factor(self) -> Floats:
        """The inverse of the Cholesky factor."""
        inverse: Floats = lapack.dtrtri(self._factor, lower=1)[0]
        return inverse

    def _centered_variances(self, n_draws: int) -> Floats:
        r"""Return estimates of the variances of centred scores.

        The variance of :math:`x_i` is its variance given all others, :math:`1 / A_{ii}`, plus that of
        its mean given them. The share of the part's mean in the latter is known; draws give the rest.
        """
        draws = center_in_parts(self._draw(n_draws), self._part)
        product: Floats = np.asarray(self._matrix @ draws)
        of_mean = ((draws - product / self.diagonal[:, np.newaxis]) ** 2).mean(axis=1)
        size = np.bincount(self._part)[self._part]
        of_item = (1.0 - 2.0 / size + self._ridge / (size * self.diagonal)) / self.diagonal
        variances: Floats = np.where(size == 1, 0.0, of_item + of_mean)
        return variances

    def _dense(self, n_items: int) -> Floats:
        left, right, weight = self._pairs
        above = sums_at(left * n_items + right, weight, n_items**2).reshape(n_items, n_items)
        matrix: Floats = above + above.T
        degree = self._ridge + matrix.sum(axis=0)
        np.negative(matrix, out=matrix)
        matrix[np.diag_indices(n_items)] = degree
        return matrix.T  # the same matrix, in the order of LAPACK

    def _by_conjugate_gradients(self, values: Floats) -> Floats:
        shape = (len(values), len(values))
        jacobi = LinearOperator(shape, matvec=lambda x: x / self.diagonal, dtype=np.float64)
        solution, failed = cg(self._matrix, values, rtol=_CG_TOL, maxiter=10_000, M=jacobi)
        if failed:
            raise AnnotruthError(
                "the scores could not be computed: conjugate gradients did not converge"
            )
        return np.asarray(solution, dtype=np.float64)

    def _draw(self, n_draws: int) -> Floats:
        """Return draws with the precision A, items x draws; always the same."""
        left, right, weight = self._pairs
        rng = np.random.default_rng(0)
        n = len(self.diagonal)
        noise = rng.standard_normal((n, n_draws)) * np.sqrt(self._ridge)
        for d in range(n_draws):
            of_pair = rng.standard_normal(len(weight)) * np.sqrt(weight)
            noise[:, d] += net_sums(left, right, of_pair, n)
        return self.solve(noise)


def _cholesky(matrix: Floats) -> Floats:
    """Return the Cholesky factor of a matrix of which the lower triangle is given, in its place."""
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if failed:
        raise AnnotruthError("the scores could not be computed: their information is not positive")
    cholesky: Floats = factor
    return cholesky
