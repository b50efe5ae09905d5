r"""The posterior of the scores of one taste group, given Gaussian sites of votes.

Vote v has the site :math:`e^{z_v D_v - K_v D_v^2 / 2}`. Scores have the prior
:math:`N(0, 1 / \lambda)`, effects of contexts :math:`u_{ic} \sim N(0, \tau^2)`, coefficients of covariates
:math:`N(0, 2^2)`. The inverse of the information of the scores, from which contexts are eliminated, is
their covariance with contexts as a sample.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from annotruth.errors import AnnotruthError
from annotruth.kernels.arrays import Floats
from annotruth.kernels.pairs import (
    ContextPosterior,
    Equations,
    Outcomes,
    Sites,
    VoteDifferences,
    VoterHabits,
)
from annotruth.models.pairs.graph import (
    MAX_DENSE_ITEMS,
    LaplacianSystem,
    center_in_parts,
    net_sums,
    net_sums_of_contexts,
    sums_at,
)
from annotruth.models.pairs.pair_gpm.votes import PairVotes, Passes

_COEFFICIENT_PRECISION = 0.25  # of coefficients of standardised covariates
_MAX_EXACT = 3e10  # operations; with more, only each vote itself is left out, as others are many
_MIN_CLUSTERS = 10


class Prior(NamedTuple):
    """The precision of scores, and the spread (standard deviation) of scores over contexts."""

    precision: float
    spread: float


class GroupScores:
    """The scores of a taste group, with the sites of all votes."""

    def __init__(self, votes: PairVotes, passes: Passes) -> None:
        self.votes, self._passes = votes, passes
        n, layout = votes.data.n_comparisons, votes.layout
        self._n, self._q = votes.data.n_items, votes.covariates.shape[1]
        self._is_dense = self._n <= MAX_DENSE_ITEMS
        self.sites = Sites(np.zeros(n), np.zeros(n))
        self.differences = VoteDifferences(np.zeros(n), np.zeros(n))
        n_local = len(layout.items)
        self._context = ContextPosterior(
            np.zeros(n_local),
            np.zeros(int(layout.square_ptr[-1])),
            np.zeros(n_local),
            np.zeros((n_local, self._q)),
        )
        self.solution = np.zeros(self._n + self._q)

    @property
    def theta(self) -> Floats:
        """The score of each item, with mean 0 in each part."""
        return center_in_parts(self.solution[: self._n], self.votes.part)

    @property
    def coefficients(self) -> Floats:
        """The coefficients of standardised covariates."""
        return self.solution[self._n :]

    def start_at(self, theta: Floats, outcomes: Outcomes, who: VoterHabits) -> None:
        """Compute the sites at some scores."""
        self.solution[: self._n] = theta
        self._set_differences()
        self._update_sites(outcomes, who, 1.0)

    def copy_sites(self) -> Sites:
        """Return the sites, to be put back."""
        return Sites(*(each.copy() for each in self.sites))

    def put_sites(self, sites: Sites) -> None:
        """Put sites back."""
        for own, each in zip(self.sites, sites, strict=True):
            own[:] = each

    def rescale(self, factor: float) -> None:
        """Multiply all scores by a factor."""
        self.put_sites(Sites(self.sites.precision / factor**2, self.sites.shift / factor))

    def iterate(
        self, outcomes: Outcomes, who: VoterHabits, prior: Prior, n_times: int, step: float = 1.0
    ) -> None:
        """Solve for the scores and update the sites, some times in turns."""
        for _ in range(n_times):
            self.solve(prior)
            self._update_sites(outcomes, who, step)
        self.solve(prior)

    def _update_sites(self, outcomes: Outcomes, who: VoterHabits, step: float) -> None:
        arguments = outcomes, self.differences, who, step, self.sites
        self._passes.run("gpm_outcomes.update_sites", "annotators", *arguments)

    def solve(self, prior: Prior) -> None:
        """Solve for scores and coefficients, and set the differences of votes."""
        self.__dict__.pop("covariance", None)
        if self._is_dense:
            self._solve_dense(prior)
        else:
            self._solve_sparse(prior)
        self._set_differences()

    def _set_differences(self) -> None:
        arguments = self.votes.layout, self._context, self.solution, self.differences
        over = "contexts" if self.votes.has_contexts else "votes"
        self._passes.run("gpm_contexts.set_differences", over, *arguments)

    def _solve_dense(self, prior: Prior) -> None:
        """Solve the equations, from which contexts are eliminated, by Cholesky's factorisation."""
        n_all = self._n + self._q
        if self.votes.has_contexts:
            self._context.variance[:] = prior.spread**2 * self.votes.varies
            arguments = self.votes.layout, self.sites, self._context
            information, self.right_side = self._passes.run(
                "gpm_contexts.solve_contexts",
                "contexts",
                *arguments,
                sums=((n_all, n_all), (n_all,)),
            )
            self.information = (information + information.T) / 2.0
        else:
            self._sum_pairs()
        diagonal = np.arange(n_all)
        self.information[diagonal, diagonal] += np.append(
            np.full(self._n, prior.precision), np.full(self._q, _COEFFICIENT_PRECISION)
        )
        self._factor, failed = lapack.dpotrf(self.information, lower=1)
        if failed:
            raise AnnotruthError(
                "the scores could not be computed: their information is not positive"
            )
        self.solution = lapack.dpotrs(self._factor, self.right_side, lower=1)[0]

    def _sum_pairs(self) -> None:
        """Set the equations of scores where contexts do not matter."""
        votes, n, (precision, shift) = self.votes, self._n, self.sites
        weights, (left, right) = np.zeros((n, n)), votes.pairs
        weights[left, right] = sums_at(votes.pair, precision, len(left))
        degree = weights.sum(axis=0) + weights.sum(axis=1)
        self.information = np.zeros((n + self._q, n + self._q))
        self.information[:n, :n] = np.diag(degree) - weights - weights.T
        self.right_side = np.zeros(n + self._q)
        self.right_side[:n] = net_sums(votes.left, votes.right, shift, n)
        for x, column in enumerate(votes.covariates.T):
            self.right_side[n + x] = column @ shift
            cross = net_sums(votes.left, votes.right, precision * column, n)
            self.information[:n, n + x] = self.information[n + x, :n] = cross
            self.information[n + x, n:] = (precision * column) @ votes.covariates

    def _solve_sparse(self, prior: Prior) -> None:
        """Solve where there are too many items for a matrix."""
        votes, n, (precision, shift) = self.votes, self._n, self.sites
        by_pair = sums_at(votes.pair, precision, len(votes.pairs[0]))
        self._system = LaplacianSystem(*votes.pairs, by_pair, prior.precision, votes.part)
        theta = self._system.solve(net_sums(votes.left, votes.right, shift, n))
        if self._q == 0:
            self.solution = theta
            return
        x = votes.covariates
        cross = np.stack(
            [net_sums(votes.left, votes.right, precision * each, n) for each in x.T], axis=1
        )
        solved = self._system.solve(cross)
        corner = x.T @ (x * precision[:, np.newaxis]) - cross.T @ solved
        self._corner = corner + _COEFFICIENT_PRECISION * np.eye(self._q)
        coefficients = np.linalg.solve(self._corner, x.T @ shift - cross.T @ theta)
        self.solution = np.append(theta - solved @ coefficients, coefficients)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of scores and coefficients."""
        inverse: Floats = lapack.dpotri(self._factor, lower=1)[0]
        full: Floats = np.tril(inverse) + np.tril(inverse, -1).T
        return full

    def score_covariance(self) -> Floats:
        """Return the covariance of centred scores; variances alone where items are too many."""
        if not self._is_dense:
            return self._system.centered_inverse
        once = center_in_parts(self.covariance[: self._n, : self._n], self.votes.part)
        return center_in_parts(np.ascontiguousarray(once.T), self.votes.part)

    def scale_move(self, precision: float) -> Floats:
        r"""Return by how much scores move with one standard deviation of their prior's log variance.

        That has the variance 2 / (1 + n_determined), and moves scores by
        :math:`\lambda \Sigma \theta`.
        """
        covariance = self.score_covariance()
        solved = covariance * self.theta if covariance.ndim == 1 else covariance @ self.theta
        variance = 2.0 / (1.0 + self.n_determined(precision))
        move: Floats = precision * solved * np.sqrt(variance)
        return move

    def coefficient_sd(self) -> Floats:
        """Return the standard deviations of the coefficients."""
        if self._is_dense:
            return np.sqrt(np.diag(self.covariance)[self._n :])
        return np.sqrt(np.diag(np.linalg.inv(self._corner))) if self._q else np.empty(0)

    def n_determined(self, precision: float) -> float:
        """Return how many scores the votes determine, rather than the prior."""
        n_free = self._n - int(self.votes.part.max()) - 1
        dense = self._is_dense
        trace = np.trace(self.score_covariance()) if dense else self._system.centered_trace()
        return max(n_free - precision * float(trace), 0.0)

    def leave_out(self, *, exact: bool = True) -> VoteDifferences:
        """Return the differences of votes by the votes of everybody else.

        Where there are too many votes for that, or it need not be exact, by all votes but the one.
        """
        votes, sites = self.votes, self.sites
        found = VoteDifferences(self.differences.mean.copy(), np.zeros(len(sites.shift)))
        n_votes = votes.data.comparisons_per_annotator.astype(np.float64)
        cost = float((np.minimum(n_votes, self._n) ** 3 + n_votes * self._n).sum())
        if exact and self._is_dense and (votes.has_contexts or cost <= _MAX_EXACT):
            solved = Equations(self.information, self.right_side, self.covariance, self.solution)
            arguments = votes.layout, votes.outcomes.ptr, sites, self._context, solved, found
            self._passes.run("gpm_cavities.leave_annotators_out", "annotators", *arguments)
            return found
        if self._is_dense:
            covariance = self.covariance
        else:
            covariance = 1.0 / self._system.diagonal[:, np.newaxis]
        arguments_of_votes = votes.layout, sites, covariance, found
        self._passes.run("gpm_cavities.leave_votes_out", "votes", *arguments_of_votes)
        return found

    def context_effects(self) -> tuple[Floats, Floats]:
        """Return the mean of u per item of each context, and the matrices S, one after the other."""
        layout, posterior = self.votes.layout, self._context
        effects, covariance = posterior.mean.copy(), posterior.design.copy()
        for c in range(len(layout.item_ptr) - 1):
            local = slice(layout.item_ptr[c], layout.item_ptr[c + 1])
            at = slice(layout.square_ptr[c], layout.square_ptr[c + 1])
            k = local.stop - local.start
            b = posterior.design[at].reshape(k, k)
            effects[local] += (b - np.eye(k)) @ self.solution[layout.items[local]]
            effects[local] -= posterior.covariate[local] @ self.coefficients
            covariance[at] = (b * posterior.variance[local]).ravel()
        return effects, covariance

    def inflation(self) -> float:
        r"""Return by how much variances of scores are larger with whole contexts as the sample.

        The covariance of scores is compared with that of the slopes of contexts,
        :math:`\Sigma (\sum_c s_c s_c^T) \Sigma`: their dependence within contexts makes these larger
        where the model does not have it, as in votes that follow from rankings. It is at least 1.
        """
        votes, n = self.votes, self._n
        if votes.context is None or not self._is_dense:
            return 1.0
        n_contexts = int(votes.context.max()) + 1
        if n_contexts < _MIN_CLUSTERS or n_contexts == len(votes.context):
            return 1.0
        plain = self.solution[votes.left] - self.solution[votes.right]
        plain = plain + votes.covariates @ self.coefficients  # without effects of contexts
        residual = self.sites.shift - self.sites.precision * plain
        shape = n_contexts, n
        slopes = net_sums_of_contexts(votes.context, votes.left, votes.right, residual, shape)
        if votes.has_contexts:
            layout = votes.layout
            for c in range(n_contexts):
                items = layout.items[layout.item_ptr[c] : layout.item_ptr[c + 1]]
                b = self._context.design[layout.square_ptr[c] : layout.square_ptr[c + 1]]
                slopes[c, items] = slopes[c, items] @ b.reshape(len(items), len(items))
        covariance = self.score_covariance()
        known = self.information[:n, :n].copy()
        known[np.diag_indices(n)] = 0.0
        known[np.diag_indices(n)] = -known.sum(axis=1)  # without the prior
        by_context = float(((slopes @ covariance) ** 2).sum()) * n_contexts / (n_contexts - 1)
        by_model = float(np.einsum("ij,ji->", covariance @ known, covariance))
        return max(by_context / by_model, 1.0) if by_model > 0.0 else 1.0
