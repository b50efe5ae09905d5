"""The ordinal-discrete mixture's equations over a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.behaviors import enough_labels
from annotruth.models.distribution import Profile, likelihood_interval
from annotruth.models.em import Monitor
from annotruth.models.ordinal_mixture.lattice import Lattice
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem, newest, probabilities, shares
from annotruth.models.warm_start import off_bounds, with_new_rows

# Pseudo-counts of every annotator: serious and irregular labels, and irregular ones per category.
_SERIOUS, _IRREGULAR = 1.0, 1.0
_PER_CATEGORY = 10.0

# Level differences for which the interval is profiled: noise up to 4 times smaller or larger.
_PROFILE_SHIFTS = (0, 3, -3, 9, -9, 27, -27)

# With acceleration: distance of the two levels that a step tries from the current one.
_FIRST_REACH, _MAX_REACH = 8, 16
_EQUAL = 1e-9  # gains that differ by less are equal up to rounding

_NO_LEVELS: Codes = np.empty(0, dtype=np.int64)


class OrdinalMixtureParameters(NamedTuple):
    """Annotators' parameters: reliability, irregular behavior, and level of precision.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.ordinal_mixture.steps import OrdinalMixtureParameters
    >>> OrdinalMixtureParameters(np.array([0.5]), np.empty((0, 0)), np.array([40])).level
    array([40])
    """

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform
    level: Codes
    reach: Codes = _NO_LEVELS  # distance of the levels that the next step tries
    proven: Codes = _NO_LEVELS  # the level before the last step: the other updates are proven there


class OrdinalMixtureSteps:
    """The EM over a session; only `finalize` leaves item-side arrays.

    Parameters
    ----------
    labels, session
        The labels, and the session they are open in.
    lattice
        The scores, precisions and difficulties.
    learned
        Whether irregular behaviors are estimated.
    long_moves
        Whether levels may change by more than one per step, which is not proven to raise the
        objective. Only with acceleration, which restores them if it falls.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.ordinal_mixture.lattice import make_lattice
    >>> from annotruth.models.ordinal_mixture.steps import OrdinalMixtureSteps
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 2)])
    >>> lattice = make_lattice(labels.scale.values, 3.0, 3.0)
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = OrdinalMixtureSteps(labels, session, lattice, learned=False)
    ...     first, before = steps.step(steps.start())
    ...     second, after = steps.step(first)
    >>> after.objective > before.objective
    True
    """

    objective_name = "the log-posterior"

    def __init__(
        self,
        labels: Labels,
        session: Session,
        lattice: Lattice,
        *,
        learned: bool,
        long_moves: bool = False,
    ) -> None:
        n_annotators, n_categories = labels.n_annotators, labels.n_categories
        self._session = session
        self._lattice = lattice
        self._tables = {
            "prior": lattice.prior,
            "shift": lattice.shift,
            "anchor": lattice.anchor,
            "probability": lattice.probability,
        }
        self._n_labels = labels.labels_per_annotator
        self._n_categories = n_categories
        self._chance = 1.0 / n_categories
        self._pi_shape = (n_annotators, n_categories) if learned else (0, 0)
        self._learns = enough_labels(labels.labels_per_annotator, n_categories)[:, np.newaxis]
        self._first_reach, self._max_reach = (_FIRST_REACH, _MAX_REACH) if long_moves else (1, 1)
        self._log_probability = lattice.log_probability[: 0 if long_moves else None]

        tables = tuple(map(Input, self._tables))
        annotator_inputs = tuple(map(Input, ("levels", "eps", "pi", "chance")))
        log_likelihood = Sum("log_likelihood", (1,))
        self._step = Pass(
            "ordinal_mixture.step",
            inputs=(*tables, Input("log_probability"), *annotator_inputs),
            sums=(
                Sum("serious", (n_annotators,)),
                Sum("gain", (n_annotators, 3)),
                Sum("irregular", self._pi_shape),
                log_likelihood,
            ),
        )
        self._posterior = Pass(
            "ordinal_mixture.summarize",
            state=("score", "difficulty", "theta", "p_serious"),
            inputs=(
                *tables,
                *annotator_inputs,
                *map(Input, ("nodes", "edges", "difficulty", "typical_level")),
            ),
            sums=(log_likelihood,),
        )
        self._weights = Pass(
            "ordinal_mixture.posterior", state=("weight",), inputs=(*tables, *annotator_inputs)
        )
        self._predict = Pass(
            "ordinal_mixture.leave_one_out",
            state=("predicted",),
            inputs=(*tables, *annotator_inputs, Input("tried_level")),
        )
        self._profile = Pass(
            "ordinal_mixture.log_likelihood_by_annotator",
            state=("predicted",),
            inputs=tuple(map(Input, ("eps", "pi", "chance"))),
            sums=(Sum("log_likelihood", (n_annotators,)), Sum("slope", (n_annotators,))),
        )

    def start(self) -> OrdinalMixtureParameters:
        """Return eps = 0.5, pi = 1/N, and the level of the prior's noise."""
        n_annotators = len(self._n_labels)
        usual = np.full(n_annotators, self._lattice.usual)
        return OrdinalMixtureParameters(
            eps=np.full(n_annotators, 0.5),
            pi=np.full(self._pi_shape, self._chance),
            level=usual,
            reach=np.full(n_annotators, self._first_reach),
            proven=usual,
        )

    def resume(self, previous: Fit) -> OrdinalMixtureParameters:
        """Return the parameters of a previous fit; new annotators start as in a first fit."""
        start = self.start()
        assert previous.reliability is not None
        old_level = previous.parameter("level", previous.data.n_annotators)
        # A level is an index into tables: one from a file is not trusted.
        old_level = np.clip(old_level, 0, len(self._lattice.noise) - 1)
        level = with_new_rows(old_level, start.level)
        old_pi = previous.parameters.get("pi")
        return OrdinalMixtureParameters(
            eps=with_new_rows(off_bounds(previous.reliability), start.eps),
            pi=start.pi if old_pi is None else with_new_rows(old_pi, start.pi),
            level=level,
            reach=np.ones_like(start.reach),
            proven=level,
        )

    def step(self, old: OrdinalMixtureParameters) -> tuple[OrdinalMixtureParameters, Monitor]:
        """Pass over the labels once, then update the annotators' parameters."""
        levels = self._around(old.level, old.reach)
        sums = self._session.run_pass(
            self._step,
            **self._tables,
            log_probability=self._log_probability,
            **self._annotator_inputs(old, levels),
        )
        (log_likelihood,) = sums["log_likelihood"]
        objective = log_likelihood + self._log_prior(old)

        eps = (sums["serious"] + _SERIOUS) / (self._n_labels + _SERIOUS + _IRREGULAR)
        pi = old.pi
        if len(pi):
            counts = sums["irregular"] + _PER_CATEGORY
            pi = np.where(self._learns, counts / counts.sum(axis=1, keepdims=True), pi)
        gain = sums["gain"] + self._lattice.log_prior[levels]
        # The level changes only if one of the other two is better.
        best = np.where(gain[:, 1] >= gain.max(axis=1) - _EQUAL, 1, gain.argmax(axis=1))
        level = np.take_along_axis(levels, best[:, np.newaxis], axis=1)[:, 0]
        reach = np.minimum(_next_reach(old, level, gain), self._max_reach)
        monitor = Monitor(float(log_likelihood), float(objective))
        return OrdinalMixtureParameters(eps, pi, level, reach, old.level), monitor

    def acceleration(self) -> Squarem[OrdinalMixtureParameters]:
        """Extrapolate eps and pi; restore the levels if their long moves lowered the objective."""
        return Squarem(
            OrdinalMixtureParameters,
            *(probabilities, shares(axis=1), newest, newest, newest),
            safeguarded=lambda unproven: unproven._replace(level=unproven.proven),
        )

    def finalize(self, parameters: OrdinalMixtureParameters) -> float:
        """Compute the results of items and labels; return the log-likelihood."""
        eps, level = parameters.eps, parameters.level
        self._session.allocate("score", per="items", shape=(3,))
        self._session.allocate("difficulty", per="items")
        self._session.allocate("theta", per="items", shape=(self._n_categories,))
        self._session.allocate("p_serious", per="labels")
        sums = self._session.run_pass(
            self._posterior,
            **self._tables,
            **self._annotator_inputs(parameters, self._around(level)),
            nodes=self._lattice.nodes,
            edges=self._lattice.edges,
            difficulty=self._lattice.difficulty,
            typical_level=round(np.average(level, weights=eps * self._n_labels)),
        )
        return float(sums["log_likelihood"][0])

    def noise(self, parameters: OrdinalMixtureParameters) -> Floats:
        """Return the standard deviation of every annotator's serious opinions."""
        return self._lattice.noise[parameters.level]

    def weights(self, parameters: OrdinalMixtureParameters) -> Floats:
        """Return the items' posteriors on the lattice, items x difficulties x nodes."""
        self._session.allocate("weight", per="items", shape=self._lattice.prior.shape)
        levels = self._around(parameters.level)
        self._session.run_pass(
            self._weights, **self._tables, **self._annotator_inputs(parameters, levels)
        )
        weight: Floats = self._session.collect("weight")
        return weight

    def interval(self, parameters: OrdinalMixtureParameters) -> tuple[Floats, Floats]:
        """Return the 95% profile likelihood interval of every reliability, over noise levels."""
        self._session.allocate("predicted", per="labels")
        return likelihood_interval(self._profiles(parameters), parameters.eps)

    def _profiles(self, parameters: OrdinalMixtureParameters) -> Iterator[Profile]:
        top = len(self._lattice.noise) - 1

        def profile(eps: Floats) -> tuple[Floats, Floats]:
            sums = self._session.run_pass(
                self._profile, eps=eps, pi=parameters.pi, chance=self._chance
            )
            return sums["log_likelihood"], sums["slope"]

        for shift in _PROFILE_SHIFTS:
            self._session.run_pass(
                self._predict,
                **self._tables,
                **self._annotator_inputs(parameters, self._around(parameters.level)),
                tried_level=np.clip(parameters.level + shift, 0, top),
            )
            yield profile

    def _annotator_inputs(
        self, parameters: OrdinalMixtureParameters, levels: Codes
    ) -> dict[str, Any]:
        eps, pi = parameters.eps, parameters.pi
        return {"levels": levels, "eps": eps, "pi": pi, "chance": self._chance}

    def _around(self, level: Codes, reach: Codes | int = 1) -> Codes:
        """Return three levels per annotator: the current one between two others, on the lattice."""
        top = len(self._lattice.noise) - 1
        return np.stack(
            [np.maximum(level - reach, 0), level, np.minimum(level + reach, top)], axis=1
        )

    def _log_prior(self, parameters: OrdinalMixtureParameters) -> float:
        eps, pi, level, *_ = parameters
        eps_prior = _SERIOUS * np.log(eps) + _IRREGULAR * np.log1p(-eps)
        pi_prior = _PER_CATEGORY * np.log(pi).sum()
        return float((eps_prior + self._lattice.log_prior[level]).sum() + pi_prior)


def _next_reach(old: OrdinalMixtureParameters, level: Codes, gain: Floats) -> Codes:
    """Return the next distance: to the maximum of the parabola through the gains, at most doubled."""
    below, same, above = gain.T
    bend = 2.0 * same - below - above
    tilt = above - below
    peak = np.divide(0.5 * tilt, bend, out=2.0 * np.sign(tilt), where=bend > 0)
    far = np.abs(old.level + peak * old.reach - level)
    # Where the level was kept, the maximum lies between the two levels that were tried.
    most = np.where(level != old.level, 2 * old.reach, old.reach - 1)
    reach: Codes = np.rint(np.clip(far, 1, np.maximum(most, 1))).astype(np.int64)
    return reach
