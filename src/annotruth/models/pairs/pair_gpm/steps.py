r"""The equations of PairGPM over a session.

The log posterior of the scores theta, the offsets and the probabilities of the states is

.. math:: \sum_s \log \sum_k \pi_k \prod_v p_k(y_v)
    - \frac{\lambda}{2} |\theta|^2 + \text{weak priors}.

At its maximum the ridge has shrunk the scores, and everybody's sharpness makes up for it. The results
therefore have all scores multiplied by the average sharpness of those who are serious.

Each pass computes the posterior of every annotator's states (E-step). The M-step of the scores and
offsets is one Newton step on the expected log posterior; that of the probabilities of groups, tie rates
and behaviors is repeated, as it needs no further pass over the comparisons. The next pass shows whether
the log posterior has risen; if not, it repeats with a smaller step. At the end, all scores are
multiplied by the factor that is best together with the opposite shift of everybody's log sharpness.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.comparisons.table import Comparisons
from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.kernels.pairs.levels import DROPPED, N_FIRST, SHARPNESS_SD
from annotruth.models.em import Monitor
from annotruth.models.pairs.anderson import Anderson, Coordinates
from annotruth.models.pairs.pair_gpm.equations import OFFSET_PRECISION, make_equations
from annotruth.models.pairs.pair_gpm.parameters import (
    PairGPMParameters,
    make_model,
    n_levels,
    saved_parameters,
    standardised_covariates,
)
from annotruth.models.pairs.pair_gpm.shares import LevelShares
from annotruth.models.pairs.pair_gpm.states import States
from annotruth.models.pairs.result import RankFit
from annotruth.models.warm_start import with_new_rows

_PRUNE = 1e-7  # states less likely than this are no longer considered
_PRUNE_AT = (2, 6, 20)  # the steps after which they are left out
# Likewise, with so many comparisons that passes take long.
_PRUNE_MANY, _PRUNE_MANY_AT = 1e-5, (1, 2, 6, 20)
_N_FIRST = 64  # votes of an annotator by which states are left out at first
_EVERY_OTHER = 0x5555_5555_5555_5555  # the bits of levels 0, 2, 4, ...
_MAX_LOG_SCALE = 0.2  # of a step after which these states are considered again
_RESCALED_STEPS = 2  # the first steps that also rescale the scores, if passes take long
_SCALE_ROUNDS = 20
_ROUNDING = 1e-12  # of the log posterior
_LEFT_OUT_IN_A_PASS = 100 * DROPPED  # the probability of states that a pass leaves out
_STEP_SIZES = (*(0.5**k for k in range(1, 11)), 0.0)  # of steps that end lower than they began

_FIND_FAVOURED = Pass("pairs.gpm.find_favoured", state=("favoured",), inputs=(Input("n_items"),))
_PRUNE_STATES = Pass(
    "pairs.gpm.prune_states",
    state=("active", "favoured", "covariates"),
    inputs=(Input("model"), Input("prune"), Input("n_votes")),
)


class _Update(NamedTuple):
    """A step, and the least log posterior that its end must have."""

    old: PairGPMParameters
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

    Attributes
    ----------
    few_passes
        Whether passes take long: then the first steps multiply all scores by their best common
        factor, the objective of a step has the rise expected of it, so that the loop ends without a
        pass that confirms it, and the last sums are those of the result.

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
        self.few_passes = False
        self.covariates, self.covariate_scale = standardised_covariates(data)
        self.equations, pair = make_equations(data)
        self.part = self.equations.part
        self._n_groups, self._n_items = n_groups, data.n_items
        self._n_offsets = 1 + self.covariates.shape[1]
        self._n_frequent = int((data.comparisons_per_annotator >= 2 * N_FIRST).sum())
        self._n_steps = 0
        self._last: tuple[PairGPMParameters, dict[str, Floats]] | None = None
        self._updates: list[_Update] = []  # the last ones; extrapolations return to earlier points
        self._step = self._step_pass()
        self._information = self._information_pass()
        self.shares = LevelShares(session, states, n_groups, data.annotator_weight)
        session.put("pair", pair, per="comparisons")
        session.put("covariates", self.covariates, per="comparisons")
        session.put("sampled", np.ones(data.n_annotators), per="annotators")
        session.put("favoured", np.full(data.n_annotators, -1, np.int32), per="annotators")
        session.run_pass(_FIND_FAVOURED, n_items=data.n_items)
        self.consider_all_states()

    def _step_pass(self) -> Pass:
        n_groups, n_items, n_offsets = self._n_groups, self._n_items, self._n_offsets
        return Pass(
            "pairs.gpm.step",
            state=("active", "favoured", "pair", "covariates", "by_level"),
            inputs=(Input("model"), Input("prune")),
            sums=(
                Sum("gradient", (n_groups, n_items)),
                Sum("curvature", (n_groups, len(self.equations.left))),
                Sum("cross", (n_groups, n_items, n_offsets)),
                Sum("offset_gradient", (n_offsets,)),
                Sum("offset_curvature", (n_offsets, n_offsets)),
                Sum("group_count", (n_groups,)),
                Sum("nu_count", (len(self.states.nu),)),
                Sum("behavior_count", (len(self.states.eps),)),
                Sum("totals", (2,)),
            ),
        )

    def _information_pass(self) -> Pass:
        n_parameters = self._n_groups * self._n_items + self._n_offsets
        return Pass(
            "pairs.gpm_information.information",
            state=("active", "favoured", "sampled", "covariates"),
            inputs=(Input("model"),),
            sums=(Sum("information", (n_parameters, n_parameters)),),
        )

    def _every_level(self) -> Codes:
        """Return the bits of all groups, and of all levels of sharpness, tie rate and behavior."""
        sizes = n_levels(self._n_groups, self.states)
        return np.array([(1 << size) - 1 for size in sizes], dtype=np.int64)

    def _forget_passes(self) -> None:
        """Forget the last sums and steps, which were those of other states or another prior."""
        self._updates, self._last = [], None

    def consider_all_states(self, annotators: NDArray[np.bool_] | None = None) -> None:
        """Make all states active: of these annotators, or of all."""
        every = self._every_level()
        if annotators is not None:
            active = self.session.collect("active")
            active[annotators] = every
            self.session.put("active", active, per="annotators")
            self._last = None
            return
        self.session.put("active", np.tile(every, (self.data.n_annotators, 1)), per="annotators")
        self._n_steps = 0
        self._forget_passes()

    def consider_likely_states(self, parameters: PairGPMParameters) -> None:
        """Make all states active but those that are very unlikely at these parameters."""
        self.consider_all_states()
        self.sums(parameters, prune=_PRUNE)

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
        return self.start_near(saved_parameters(previous))

    def start_near(self, old: PairGPMParameters) -> PairGPMParameters:
        """Return parameters of other comparisons, as far as they fit these; their items come first."""
        start = self.start()
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
        least, prune_at = (_PRUNE_MANY, _PRUNE_MANY_AT) if self.few_passes else (_PRUNE, _PRUNE_AT)
        prune = least if self._n_steps in prune_at else 0.0
        old, sums = self._risen(old, prune=prune)
        moves, offset_moves, rise = self.equations.moves(old, sums, self.precision)
        theta, offsets = old.theta + moves, old.offsets + offset_moves
        new = PairGPMParameters(theta, offsets, *self.shares.best(old))
        if self.few_passes and self._n_steps <= _RESCALED_STEPS:
            log_scale = self._best_scale(theta, sums["totals"][1])
            new = new._replace(theta=theta * np.exp(log_scale))
            if abs(log_scale) > _MAX_LOG_SCALE:  # states were left out at another scale
                self.prune(new)
                self._n_steps = 0
        objective = self._log_posterior(old, sums)
        slack = _ROUNDING * abs(objective) + 4 * prune * self.data.n_annotators
        slack += _LEFT_OUT_IN_A_PASS * self._n_frequent
        self._updates = [*self._updates[-3:], _Update(old, new, objective - slack)]
        return new, Monitor(float(sums["totals"][0]), objective + self.few_passes * rise)

    def _risen(
        self, parameters: PairGPMParameters, *, prune: float
    ) -> tuple[PairGPMParameters, dict[str, Floats]]:
        """Return the parameters and their sums; those of a smaller step if the posterior has fallen.

        A small step raises the log posterior: Newton's matrix is positive definite, and shares move
        towards what is best for them.
        """
        sums = self.sums(parameters, prune=prune)
        for update in self._updates:
            if update.new is parameters:
                for size in _STEP_SIZES:
                    # Written so that NaN counts as a fall.
                    if self._log_posterior(parameters, sums) >= update.least:
                        break
                    parameters = _between(update.old, update.new, size)
                    sums = self.sums(parameters)
                break
        return parameters, sums

    def sums(self, parameters: PairGPMParameters, *, prune: float = 0.0) -> dict[str, Floats]:
        """Return the sums of a pass, with the expected counts of annotators who are left out."""
        if self._last is not None and self._last[0] is parameters and prune == 0.0:
            return self._last[1]
        model = make_model(self.states, parameters)
        sums = self.session.run_pass(self._step, model=model, prune=prune)
        self._last = parameters, self.shares.add_left_out(sums)
        return self._last[1]

    def leave_out(self, annotators: NDArray[np.bool_]) -> None:
        """Estimate from now on without these annotators; their states in the last pass still count."""
        self.shares.leave_out(annotators)
        active = self.session.collect("active")
        active[annotators, 0] = 0
        self.session.put("active", active, per="annotators")
        self._forget_passes()

    def set_prior(self, precision: float, n_determined: float) -> None:
        """Set the precision of the scores' prior, and the number of scores that votes determine."""
        self.precision, self.n_determined = precision, n_determined
        self._forget_passes()

    def finalize(self, parameters: PairGPMParameters) -> float:
        """Return the log-likelihood of the final parameters."""
        if self.few_passes and self._last is not None:
            self._last = parameters, self._last[1]
        return float(self.sums(parameters)["totals"][0])

    def acceleration(self) -> Anderson[PairGPMParameters]:
        """Extrapolate all parameters, in coordinates of about equal information."""
        n_votes, n_annotators = self.data.counted_comparisons(), self.data.counted_annotators()
        score = Coordinates(is_shares=False, scale=np.sqrt(n_votes / (2.0 * self._n_items)))
        offset = Coordinates(is_shares=False, scale=np.sqrt(n_votes / 4.0))
        share = Coordinates(is_shares=True, scale=2.0 * np.sqrt(n_annotators))
        return Anderson(PairGPMParameters, score, offset, share, share, share)

    def information(self, parameters: PairGPMParameters) -> Floats:
        """Return the observed information of scores and offsets, without that of their priors."""
        return self.session.run_pass(self._information, model=make_model(self.states, parameters))[
            "information"
        ]

    def prune(self, parameters: PairGPMParameters) -> None:
        """Make levels inactive that are very unlikely after some votes of each annotator.

        Of sharpness and tie rates, every other level is considered first; then those near the likely.
        """
        every = self._every_level()
        other = np.array([-1, _EVERY_OTHER, _EVERY_OTHER, -1], dtype=np.int64)
        n_annotators = self.data.n_annotators
        self.session.put("active", np.tile(every & other, (n_annotators, 1)), per="annotators")
        model = make_model(self.states, parameters)
        self.session.run_pass(_PRUNE_STATES, model=model, prune=_PRUNE_MANY, n_votes=_N_FIRST)
        active = self.session.collect("active")
        for _ in range(2):
            active[:, 1:3] |= (active[:, 1:3] << 1) | (active[:, 1:3] >> 1)
        self.session.put("active", active & every, per="annotators")
        self._forget_passes()

    def _log_posterior(self, at: PairGPMParameters, sums: dict[str, Floats]) -> float:
        """Return the log posterior up to a constant; those who are left out still have states."""
        prior = -0.5 * self.precision * inner(at.theta, at.theta)
        prior -= 0.5 * OFFSET_PRECISION * inner(at.offsets, at.offsets)
        return float(sums["totals"][0] + prior) + self.shares.log_prior(at)

    def rescaled(self, parameters: PairGPMParameters) -> PairGPMParameters:
        """Return parameters whose scores are multiplied by their best common factor."""
        sums = self.sums(parameters)
        log_scale = self._best_scale(parameters.theta, sums["totals"][1])
        rescaled = parameters._replace(theta=parameters.theta * np.exp(log_scale))
        if self.few_passes:
            self._last = rescaled, sums
        return rescaled

    def _best_scale(self, theta: Floats, log_sharpness: float) -> float:
        """Return the log of the best factor of all scores, given everybody's log sharpness."""
        n = self.data.counted_annotators() / SHARPNESS_SD**2
        square = self.precision * inner(theta, theta)
        log_scale = 0.0
        for _ in range(_SCALE_ROUNDS):
            ridge = square * np.exp(2.0 * log_scale)
            slope = log_sharpness / SHARPNESS_SD**2 - n * log_scale - ridge
            log_scale += slope / (n + 2.0 * ridge)
        return float(log_scale)


def _between(old: PairGPMParameters, new: PairGPMParameters, size: float) -> PairGPMParameters:
    """Return the parameters after a part of a step."""
    return PairGPMParameters(*(a + size * (b - a) for a, b in zip(old, new, strict=True)))
