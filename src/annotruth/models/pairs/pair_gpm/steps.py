r"""The equations of PairGPM over a session.

The log posterior of the scores theta, the offsets and the probabilities of the states is

.. math:: \sum_s \log \sum_k \pi_k \beta_k^{-h_s \epsilon_k} \prod_v p_k(y_v)
    - \frac{\lambda}{2} |\theta|^2 + \text{weak priors}.

Scores are fitted to the same votes as sharpness, which would therefore be overestimated: the factor
:math:`\beta^{-h \epsilon}` corrects for it, as restricted maximum likelihood does for variances.
:math:`h_s` is the annotator's part of the scores' degrees of freedom. With it, the average log
sharpness is about 0, although the ridge shrinks the scores.

Each pass computes the posterior of every annotator's states (E-step). The M-step of the scores and
offsets is one Newton step on the expected log posterior; then all scores are multiplied by the factor
that is best together with the opposite shift of everybody's log sharpness (parameter expansion).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.kernels.pairs.levels import SHARPNESS_SD, StateLevels
from annotruth.models.em import Monitor
from annotruth.models.pairs.graph import (
    MAX_DENSE_ITEMS,
    LaplacianSystem,
    center_in_parts,
    connected_parts,
)
from annotruth.models.pairs.pair_gpm.states import States
from annotruth.models.pairs.result import RankFit
from annotruth.models.squarem import Squarem, numbers, shares
from annotruth.models.warm_start import with_new_rows

OFFSET_PRECISION = 0.25
"""The precision of the prior of the side bias and of standardised coefficients."""

_GROUP_PRIOR = 1.0  # pseudo-counts of annotators
_NU_PRIOR = 2.0
_PRUNE = 1e-7  # states less likely than this are no longer considered
_PRUNE_AT = (2, 6, 20)  # the steps after which they are left out
_SCALE_ROUNDS = 20
_MAX_INFORMATION = 2e7  # squared numbers of items per annotator, added up
_MAX_MOVE = 2.0  # of a score in one step


class PairGPMParameters(NamedTuple):
    """Scores, offsets, and the probabilities of groups, tie rates and behaviors.

    Examples
    --------
    >>> PairGPMParameters._fields
    ('theta', 'offsets', 'group', 'nu', 'behavior')
    """

    theta: Floats  # groups x items
    offsets: Floats  # the side bias, then the coefficients of standardised covariates
    group: Floats
    nu: Floats
    behavior: Floats


class ScoreCovariance(NamedTuple):
    """The covariance of the scores, with mean 0 in every part, and that of the offsets.

    Examples
    --------
    >>> few = ScoreCovariance(np.ones((1, 3, 1, 3)), np.ones((1, 1)))
    >>> few.score_variances.shape
    (1, 3)
    """

    scores: Floats  # groups x items x groups x items; of many items the variances, groups x items
    offsets: Floats

    @property
    def score_variances(self) -> Floats:
        """The variances of the scores, groups x items."""
        return np.einsum("gigi->gi", self.scores) if self.scores.ndim == 4 else self.scores


class PairGPMSteps:
    """The model's equations over a session; the active states of annotators stay in it.

    Parameters
    ----------
    data, session
        The comparisons, and the session they are open in.
    states
        The levels of the latent states.
    n_groups
        The number of taste groups.
    """

    objective_name = "the log posterior"

    def __init__(
        self, data: Comparisons, session: Session, states: States, n_groups: int = 1
    ) -> None:
        self.data = data
        self.session = session
        self.states = states
        self.precision = 1.0
        self.n_determined = 0.0
        self.covariates, self.covariate_scale = standardised_covariates(data)
        self._n_groups, self._n_items = n_groups, data.n_items
        n_offsets = 1 + self.covariates.shape[1]
        self._n_offsets = n_offsets
        pair, self._left, self._right = _unordered_pairs(data)
        self.part = connected_parts(data.n_items, self._left, self._right)
        self._left_out: dict[str, Floats] = {}
        self._n_steps = 0
        scores = (Input("theta"), Input("offsets"), Input("levels"))
        n_items = data.n_items
        self._step = Pass(
            "pairs.gpm.step",
            state=("active", "favoured", "leverage", "pair", "covariates"),
            inputs=(*scores, Input("prune")),
            sums=(
                Sum("gradient", (n_groups, n_items)),
                Sum("curvature", (n_groups, len(self._left))),
                Sum("cross", (n_groups, n_items, n_offsets)),
                Sum("offset_gradient", (n_offsets,)),
                Sum("offset_curvature", (n_offsets, n_offsets)),
                Sum("group_count", (n_groups,)),
                Sum("nu_count", (len(states.nu),)),
                Sum("behavior_count", (len(states.eps),)),
                Sum("totals", (3,)),
            ),
        )
        self._prune = Pass(
            "pairs.gpm.prune_states",
            state=("active", "favoured", "leverage", "covariates"),
            inputs=(*scores, Input("prune")),
        )
        self._information = Pass(
            "pairs.gpm.information",
            state=("active", "favoured", "leverage", "sampled", "covariates"),
            inputs=scores,
            sums=(Sum("information", (n_groups * n_items + n_offsets,) * 2),),
        )
        session.put("leverage", np.zeros(data.n_annotators), per="annotators")
        session.put("pair", pair, per="comparisons")
        session.put("covariates", self.covariates, per="comparisons")
        session.put("sampled", np.ones(data.n_annotators), per="annotators")
        session.put("favoured", np.full(data.n_annotators, -1, np.int32), per="annotators")
        find = Pass("pairs.gpm.find_favoured", state=("favoured",), inputs=(Input("n_items"),))
        session.run_pass(find, n_items=n_items)
        self.consider_all_states()

    def consider_all_states(self, annotators: NDArray[np.bool_] | None = None) -> None:
        """Make all states active: of these annotators, or of all."""
        sizes = (
            *(self._n_groups, len(self.states.beta)),
            *(len(self.states.nu), len(self.states.eps)),
        )
        every = np.array([(1 << size) - 1 for size in sizes], dtype=np.int64)
        if annotators is not None:
            self.session.collect("active")[annotators] = every
            return
        self.session.put("active", np.tile(every, (self.data.n_annotators, 1)), per="annotators")
        self._n_steps = 0

    def start_at(self, theta: Floats, offsets: Floats) -> PairGPMParameters:
        """Return the parameters with these scores and offsets, and the prior's probabilities."""
        states, n_groups = self.states, self._n_groups
        return PairGPMParameters(
            theta=theta,
            offsets=offsets,
            group=np.full(n_groups, 1.0 / n_groups),
            nu=np.full(len(states.nu), 1.0 / len(states.nu)),
            behavior=states.start,
        )

    def start(self) -> PairGPMParameters:
        """Return equal scores."""
        theta = np.zeros((self._n_groups, self._n_items))
        return self.start_at(theta, np.zeros(self._n_offsets))

    def resume(self, previous: RankFit) -> PairGPMParameters:
        """Return the parameters of a previous fit, whose items come first."""
        start, old = self.start(), previous.parameters
        theta = with_new_rows(old["theta"].T, start.theta.T).T
        parameters = self.start_at(np.ascontiguousarray(theta), old["offsets"])
        if len(old["nu"]) == len(start.nu) and len(old["behavior"]) == len(start.behavior):
            parameters = parameters._replace(
                group=old["group"], nu=old["nu"], behavior=old["behavior"]
            )
        return parameters

    def step(self, old: PairGPMParameters) -> tuple[PairGPMParameters, Monitor]:
        """Pass over the comparisons once, then update the scores, offsets and probabilities."""
        self._n_steps += 1
        sums = self.sums(old, prune=_PRUNE if self._n_steps in _PRUNE_AT else 0.0)
        theta, offsets = self._newton_step(old, sums)
        theta = theta * np.exp(self._best_scale(theta, *sums["totals"][1:]))
        n_nu = len(old.nu)
        new = PairGPMParameters(
            theta,
            offsets,
            group=_shares(sums["group_count"] + _GROUP_PRIOR),
            nu=_shares(sums["nu_count"] + _NU_PRIOR / n_nu),
            behavior=_shares(sums["behavior_count"] + self.states.prior),
        )
        log_likelihood = float(sums["totals"][0])
        return new, Monitor(log_likelihood, self._log_posterior(old, log_likelihood))

    def sums(self, parameters: PairGPMParameters, *, prune: float = 0.0) -> dict[str, Floats]:
        """Return the sums of a pass, with the expected counts of annotators who are left out."""
        sums = self.session.run_pass(self._step, **self.inputs(parameters), prune=prune)
        for name, counts in self._left_out.items():
            sums[name] = sums[name] + counts
        return sums

    def inputs(self, parameters: PairGPMParameters) -> dict[str, Any]:
        """Return the inputs of all passes."""
        return {
            "theta": parameters.theta,
            "offsets": parameters.offsets,
            "levels": make_levels(self.states, parameters),
        }

    def leave_out(self, parameters: PairGPMParameters, annotators: NDArray[np.bool_]) -> None:
        """Estimate from now on without these annotators; their states still count.

        Everybody's states are considered anew.
        """
        self._left_out = {}
        self.consider_all_states()
        everybody = self.sums(parameters)
        self.session.collect("active")[annotators, 0] = 0
        others = self.sums(parameters)
        names = ("group_count", "nu_count", "behavior_count")
        self._left_out = {name: everybody[name] - others[name] for name in names}

    def finalize(self, parameters: PairGPMParameters) -> float:
        """Return the log-likelihood of the final parameters."""
        return float(self.sums(parameters)["totals"][0])

    def acceleration(self) -> Squarem[PairGPMParameters]:
        """Extrapolate all parameters."""
        return Squarem(PairGPMParameters, numbers, numbers, shares(0), shares(0), shares(0))

    def information(self, parameters: PairGPMParameters) -> Floats:
        """Return the observed information of scores and offsets, without that of their priors."""
        return self.session.run_pass(self._information, **self.inputs(parameters))["information"]

    def prune(self, parameters: PairGPMParameters) -> None:
        """Make states inactive that are very unlikely at these parameters."""
        self.session.run_pass(self._prune, **self.inputs(parameters), prune=_PRUNE)

    def covariance(self, parameters: PairGPMParameters) -> ScoreCovariance:
        """Return the inverse of the information and that of the priors.

        Where the observed information would take long, it is the expected curvature; if there are
        also too many items for a matrix, without covariances.
        """
        shown = np.minimum(2 * self.data.comparisons_per_annotator, self._n_items).astype(
            np.float64
        )
        if parameters.theta.size > MAX_DENSE_ITEMS or inner(shown, shown) > _MAX_INFORMATION:
            sums = self.sums(parameters)
            inverses = np.stack([system.centered_inverse for system in self._systems(sums)])
            offsets = _inverse(self._offset_curvature(sums))
            if inverses.ndim == 2:
                return ScoreCovariance(inverses, offsets)
            blocks = np.zeros(parameters.theta.shape * 2)
            for g, inverse in enumerate(inverses):
                blocks[g, :, g] = inverse
            return ScoreCovariance(blocks, offsets)
        information = self.information(parameters)
        size = parameters.theta.size
        information[np.diag_indices(size)] += self.precision
        information[size:, size:] += OFFSET_PRECISION * np.eye(self._n_offsets)
        if not self.data.sides_known:
            information[size], information[:, size] = 0.0, 0.0
            information[size, size] = 1.0
        covariance = _inverse(information)
        # The prior's precision is estimated, too: the variance of its log is about 2 / n.
        move = self.precision * covariance[:, :size] @ parameters.theta.ravel()
        covariance += np.outer(move, move) * 2.0 / max(self.n_determined, 2.0)
        return ScoreCovariance(
            self._centred(covariance[:size, :size].reshape(*parameters.theta.shape, -1)),
            covariance[size:, size:],
        )

    def _centred(self, covariance: Floats) -> Floats:
        """Return the covariance of scores with mean 0 in every part; items alone have the prior's."""
        n_groups, n_items, _ = covariance.shape
        blocks = covariance.reshape(n_groups, n_items, n_groups, n_items).copy()
        for g, h in np.ndindex(n_groups, n_groups):
            block = center_in_parts(blocks[g, :, h], self.part)
            blocks[g, :, h] = center_in_parts(block.T, self.part).T
        return blocks

    def update_prior(self, parameters: PairGPMParameters) -> float:
        """Set the precision of the scores' prior by the marginal likelihood (MacKay, 1992).

        Returns the absolute change of its logarithm. Sets the annotators' leverages, too.
        """
        size = parameters.theta.size
        n_free = size - self._n_groups * (int(self.part.max()) + 1)
        trace = self.covariance(parameters).score_variances.sum()
        self.n_determined = float(np.clip(n_free - self.precision * trace, 0.0, n_free))
        sums = self.sums(parameters)
        log_sharpness = sums["totals"][1] / self.data.n_annotators
        square = inner(parameters.theta, parameters.theta) * np.exp(2.0 * log_sharpness)
        new = (1.0 + self.n_determined) / (1.0 + square)
        change = abs(np.log(new / self.precision))
        self.precision = float(new)
        n_votes = self.data.comparisons_per_annotator
        reliability = inner(sums["behavior_count"], self.states.eps) / sums["behavior_count"].sum()
        leverage = self.n_determined * n_votes / (reliability * n_votes.sum())
        self.session.put("leverage", leverage, per="annotators")
        return float(change)

    def _log_posterior(self, at: PairGPMParameters, log_likelihood: float) -> float:
        prior = -0.5 * self.precision * inner(at.theta, at.theta)
        prior -= 0.5 * OFFSET_PRECISION * inner(at.offsets, at.offsets)
        prior += inner(self.states.prior, np.log(at.behavior))
        prior += _NU_PRIOR * np.log(at.nu).mean() + _GROUP_PRIOR * np.log(at.group).sum()
        return float(log_likelihood + prior)

    def _newton_step(
        self, old: PairGPMParameters, sums: dict[str, Floats]
    ) -> tuple[Floats, Floats]:
        """Return scores and offsets after a Newton step on the expected log posterior."""
        gradient = sums["gradient"] - self.precision * old.theta
        offset_gradient = sums["offset_gradient"] - OFFSET_PRECISION * old.offsets
        cross = sums["cross"]
        if not self.data.sides_known:
            cross[:, :, 0], offset_gradient[0] = 0.0, 0.0
        moves, offset_moves = _solve(
            *(self._systems(sums), cross, self._offset_curvature(sums), gradient, offset_gradient)
        )
        # Far from the optimum the expected log posterior is not quadratic.
        damping = min(1.0, _MAX_MOVE / max(np.abs(moves).max(), 1e-300))
        return old.theta + damping * moves, old.offsets + damping * offset_moves

    def _systems(self, sums: dict[str, Floats]) -> list[LaplacianSystem]:
        return [
            LaplacianSystem(self._left, self._right, weight, self.precision, self.part)
            for weight in sums["curvature"]
        ]

    def _offset_curvature(self, sums: dict[str, Floats]) -> Floats:
        curvature: Floats = sums["offset_curvature"] + OFFSET_PRECISION * np.eye(self._n_offsets)
        if not self.data.sides_known:
            curvature[0], curvature[:, 0] = 0.0, 0.0
            curvature[0, 0] = 1.0
        return curvature

    def _best_scale(self, theta: Floats, log_sharpness: float, leverage: float) -> float:
        """Return the log of the best factor of all scores, given everybody's log sharpness."""
        n = self.data.n_annotators / SHARPNESS_SD**2
        square = self.precision * inner(theta, theta)
        log_scale = 0.0
        for _ in range(_SCALE_ROUNDS):
            ridge = square * np.exp(2.0 * log_scale)
            slope = log_sharpness / SHARPNESS_SD**2 - n * log_scale - ridge + leverage
            log_scale += slope / (n + 2.0 * ridge)
        return float(log_scale)


def make_levels(states: States, parameters: PairGPMParameters) -> StateLevels:
    """Return the levels of the states with their prior probabilities."""
    with np.errstate(divide="ignore"):
        return StateLevels(
            beta=states.beta,
            nu=states.nu,
            eps=states.eps,
            flip=states.flip,
            chance=states.chance,
            log_group=np.log(parameters.group),
            log_beta=states.log_beta,
            log_nu=np.log(parameters.nu),
            log_behavior=np.log(parameters.behavior) + states.log_choice,
        )


def standardised_covariates(data: Comparisons) -> tuple[Floats, Floats]:
    """Return the covariates divided by their root mean squares, one column each, and these.

    They are not centred: a difference of 0 has no influence.
    """
    columns = [np.asarray(values, dtype=np.float64) for values in data.covariates.values()]
    if not columns:
        return np.empty((data.n_comparisons, 0)), np.empty(0)
    raw = np.stack(columns, axis=1)
    scale = np.sqrt((raw**2).mean(axis=0))
    scale[scale == 0.0] = 1.0
    return raw / scale, scale


def _unordered_pairs(data: Comparisons) -> tuple[NDArray[np.int32], Codes, Codes]:
    """Return the code of each comparison's pair, and the two items of each pair."""
    low, high = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    pairs, code = np.unique(low.astype(np.int64) * data.n_items + high, return_inverse=True)
    first, second = np.divmod(pairs, data.n_items)
    return code.astype(np.int32), first, second


def _shares(counts: Floats) -> Floats:
    shares: Floats = counts / counts.sum()
    return shares


def _solve(
    systems: Sequence[LaplacianSystem],
    cross: Floats,
    corner: Floats,
    gradient: Floats,
    extra: Floats,
) -> tuple[Floats, Floats]:
    """Return the solution of equations in which groups are linked by few further unknowns."""
    solved = [system.solve(rows) for system, rows in zip(systems, cross, strict=True)]
    moves = [system.solve(row) for system, row in zip(systems, gradient, strict=True)]
    for rows, columns, move in zip(cross, solved, moves, strict=True):
        corner = corner - rows.T @ columns
        extra = extra - rows.T @ move
    further: Floats = np.linalg.solve(corner, extra).astype(np.float64)
    found = [move - columns @ further for move, columns in zip(moves, solved, strict=True)]
    return np.stack(found), further


def _inverse(information: Floats) -> Floats:
    """Return the inverse; components with next to no information have that of the least ridge."""
    values, vectors = np.linalg.eigh(information)
    least = 1e-3 * np.median(np.abs(values))
    inverse: Floats = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse
