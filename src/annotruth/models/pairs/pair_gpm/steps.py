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
that is best together with the opposite shift of everybody's log sharpness (parameter expansion). The
next pass shows whether the log posterior has risen; if not, it repeats with a smaller step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats, inner
from annotruth.kernels.pairs.levels import SHARPNESS_SD
from annotruth.models.em import Monitor
from annotruth.models.pairs.pair_gpm.equations import OFFSET_PRECISION, make_equations
from annotruth.models.pairs.pair_gpm.parameters import (
    PairGPMParameters,
    make_model,
    n_levels,
    saved_parameters,
    standardised_covariates,
)
from annotruth.models.pairs.pair_gpm.states import States
from annotruth.models.pairs.result import RankFit
from annotruth.models.squarem import Squarem, numbers, shares
from annotruth.models.warm_start import with_new_rows

_GROUP_PRIOR = 1.0  # pseudo-counts of annotators
_NU_PRIOR = 2.0
_PRUNE = 1e-7  # states less likely than this are no longer considered
_PRUNE_AT = (2, 6, 20)  # the steps after which they are left out
_SCALE_ROUNDS = 20
_ROUNDING = 1e-12  # of the log posterior
_STEP_SIZES = (*(0.5**k for k in range(1, 11)), 0.0)  # of steps that end lower than they began


class _Update(NamedTuple):
    """A step, and the least log posterior that its end must have."""

    old: PairGPMParameters
    plain: PairGPMParameters  # its end before all scores are multiplied
    new: PairGPMParameters
    least: float


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

    Examples
    --------
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.pairs.pair_gpm.parameters import states_for
    >>> votes = Comparisons.from_codes([0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    >>> steps = PairGPMSteps(votes, get_engine("memory").open(votes), states_for(votes))
    >>> after, monitor = steps.step(steps.start())
    >>> bool(after.theta[0, 0] > after.theta[0, 1])
    True
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
        self.equations, pair = make_equations(data)
        self.part = self.equations.part
        self._left_out: dict[str, Floats] = {}
        self._n_steps = 0
        self._updates: list[_Update] = []  # the last ones; extrapolations return to earlier points
        model = Input("model")
        n_items = data.n_items
        self._step = Pass(
            "pairs.gpm.step",
            state=("active", "favoured", "leverage", "pair", "covariates"),
            inputs=(model, Input("prune")),
            sums=(
                Sum("gradient", (n_groups, n_items)),
                Sum("curvature", (n_groups, len(self.equations.left))),
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
            inputs=(model, Input("prune")),
        )
        self._information = Pass(
            "pairs.gpm_information.information",
            state=("active", "favoured", "leverage", "sampled", "covariates"),
            inputs=(model,),
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
        sizes = n_levels(self._n_groups, self.states)
        every = np.array([(1 << size) - 1 for size in sizes], dtype=np.int64)
        if annotators is not None:
            self.session.collect("active")[annotators] = every
            return
        self.session.put("active", np.tile(every, (self.data.n_annotators, 1)), per="annotators")
        self._n_steps = 0
        self._updates = []

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
        start, old = self.start(), saved_parameters(previous)
        theta = with_new_rows(old.theta.T, start.theta.T).T
        same_offsets = len(old.offsets) == self._n_offsets  # else there are other covariates
        offsets = old.offsets if same_offsets else start.offsets
        parameters = self.start_at(np.ascontiguousarray(theta), offsets)
        if len(old.nu) == len(start.nu) and len(old.behavior) == len(start.behavior):
            parameters = parameters._replace(group=old.group, nu=old.nu, behavior=old.behavior)
        return parameters

    def step(self, old: PairGPMParameters) -> tuple[PairGPMParameters, Monitor]:
        """Pass over the comparisons once, then update the scores, offsets and probabilities."""
        self._n_steps += 1
        is_pruned = self._n_steps in _PRUNE_AT
        old, sums = self._risen(old, prune=_PRUNE if is_pruned else 0.0)
        moves, offset_moves = self.equations.moves(old, sums, self.precision)
        plain = PairGPMParameters(
            theta=old.theta + moves,
            offsets=old.offsets + offset_moves,
            group=_shares(sums["group_count"] + _GROUP_PRIOR),
            nu=_shares(sums["nu_count"] + _NU_PRIOR / len(old.nu)),
            behavior=_shares(sums["behavior_count"] + self.states.prior),
        )
        log_scale = self._best_scale(plain.theta, *sums["totals"][1:])
        new = plain._replace(theta=plain.theta * np.exp(log_scale))
        objective = self._log_posterior(old, sums)
        slack = _ROUNDING * abs(objective) + 4 * _PRUNE * self.data.n_annotators * is_pruned
        self._updates = [*self._updates[-3:], _Update(old, plain, new, objective - slack)]
        return new, Monitor(float(sums["totals"][0]), objective)

    def _risen(
        self, parameters: PairGPMParameters, *, prune: float
    ) -> tuple[PairGPMParameters, dict[str, Floats]]:
        """Return the parameters and their sums; those of a smaller step if the posterior has fallen.

        A small step without the common factor of all scores raises the log posterior: Newton's
        matrix is positive definite, and shares move as in EM.
        """
        sums = self.sums(parameters, prune=prune)
        for update in self._updates:
            if update.new is parameters:
                for size in _STEP_SIZES:
                    # Written so that NaN counts as a fall.
                    if self._log_posterior(parameters, sums) >= update.least:
                        break
                    parameters = _between(update.old, update.plain, size)
                    sums = self.sums(parameters)
                break
        return parameters, sums

    def sums(self, parameters: PairGPMParameters, *, prune: float = 0.0) -> dict[str, Floats]:
        """Return the sums of a pass, with the expected counts of annotators who are left out."""
        sums = self.session.run_pass(
            self._step, model=make_model(self.states, parameters), prune=prune
        )
        for name, counts in self._left_out.items():
            sums[name] = sums[name] + counts
        return sums

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

    def set_prior(self, precision: float, n_determined: float, leverage: Floats) -> None:
        """Set the precision of the scores' prior, and the annotators' leverages."""
        self.precision, self.n_determined = precision, n_determined
        self.session.put("leverage", leverage, per="annotators")
        self._updates = []  # their log posteriors are those of another prior

    def finalize(self, parameters: PairGPMParameters) -> float:
        """Return the log-likelihood of the final parameters."""
        return float(self.sums(parameters)["totals"][0])

    def acceleration(self) -> Squarem[PairGPMParameters]:
        """Extrapolate all parameters."""
        return Squarem(PairGPMParameters, numbers, numbers, shares(0), shares(0), shares(0))

    def information(self, parameters: PairGPMParameters) -> Floats:
        """Return the observed information of scores and offsets, without that of their priors."""
        return self.session.run_pass(self._information, model=make_model(self.states, parameters))[
            "information"
        ]

    def prune(self, parameters: PairGPMParameters) -> None:
        """Make states inactive that are very unlikely at these parameters."""
        self.session.run_pass(self._prune, model=make_model(self.states, parameters), prune=_PRUNE)

    def _log_posterior(self, at: PairGPMParameters, sums: dict[str, Floats]) -> float:
        """Return the log posterior up to a constant; those who are left out still have states."""
        prior = -0.5 * self.precision * inner(at.theta, at.theta)
        prior -= 0.5 * OFFSET_PRECISION * inner(at.offsets, at.offsets)
        prior += inner(self.states.prior, np.log(at.behavior))
        prior += _NU_PRIOR * np.log(at.nu).mean() + _GROUP_PRIOR * np.log(at.group).sum()
        shares = {"group_count": at.group, "nu_count": at.nu, "behavior_count": at.behavior}
        for name, counts in self._left_out.items():
            prior += inner(counts, np.log(shares[name]))
        return float(sums["totals"][0] + prior)

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


def _between(old: PairGPMParameters, new: PairGPMParameters, size: float) -> PairGPMParameters:
    """Return the parameters after a part of a step."""
    return PairGPMParameters(*(a + size * (b - a) for a, b in zip(old, new, strict=True)))


def _shares(counts: Floats) -> Floats:
    shares: Floats = counts / counts.sum()
    return shares
