"""The ordinal-discrete mixture's steps over a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from annotruth.engines import Pass, Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.behaviors import enough_labels
from annotruth.models.em import Monitor
from annotruth.models.intervals import Support, likelihood_interval
from annotruth.models.ordinal_mixture.lattice import Lattice
from annotruth.models.squarem import Squarem, newest, probabilities, shares

# What everybody has shown before the first label.
_SERIOUS, _IRREGULAR = 1.0, 1.0
_EACH_CATEGORY = 10.0

# Levels up or down at which an annotator's reliability is asked for: noise up to 4 times as large.
_MOVES = (0, 3, -3, 9, -9, 27, -27)

# Levels between an annotator's own and those that a bold step tries, at first and at most.
_REACH_AT_FIRST, _LONGEST_REACH = 8, 16
_EQUAL = 1e-9  # gains that differ by less are the same but for rounding

_NOBODY: Codes = np.empty(0, dtype=np.int64)


class Parameters(NamedTuple):
    """What the annotators share: reliability, irregular behavior, and level of precision."""

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform
    level: Codes
    reach: Codes = _NOBODY  # how far from it the levels are that the next step tries
    proven: Codes = _NOBODY  # the level before the last step, on which the rest is sure to rise


class Steps:
    """The equations over a session; no item quantity outlives a sweep but the read-outs."""

    def __init__(
        self,
        labels: Labels,
        session: Session,
        lattice: Lattice,
        *,
        learned: bool,
        bold: bool = False,
    ) -> None:
        people, categories = labels.n_annotators, labels.n_categories
        self._session = session
        self._lattice = lattice
        self._tables = (lattice.prior, lattice.shift, lattice.anchor, lattice.probability)
        self._n_labels = labels.labels_per_annotator
        self._n_categories = categories
        self._chance = 1.0 / categories
        self._pi_shape = (people, categories) if learned else (0, 0)
        self._learns = enough_labels(labels.labels_per_annotator, labels.n_categories)[
            :, np.newaxis
        ]

        self._reach_at_first, self._longest = (_REACH_AT_FIRST, _LONGEST_REACH) if bold else (1, 1)

        sums = ((people,), (people, 3), self._pi_shape, (1,))
        self._step = Pass("ordinal_mixture.step", (), sums)
        self._log_probability = lattice.log_probability[: 0 if bold else None]
        read = ("score", "difficulty", "theta", "p_serious")
        self._posterior = Pass("ordinal_mixture.posterior", read, ((1,),))
        self._predict = Pass("ordinal_mixture.predict", ("predicted",))
        self._support = Pass("ordinal_mixture.support", ("predicted",), ((people,), (people,)))

    def start(self) -> Parameters:
        """Begin with everybody serious half of the time, irregular at random, of usual noise."""
        people = len(self._n_labels)
        usual = np.full(people, self._lattice.usual)
        pi, reach = np.full(self._pi_shape, self._chance), np.full(people, self._reach_at_first)
        return Parameters(np.full(people, 0.5), pi, usual, reach, usual)

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Pass the labels once, then update what annotators share."""
        levels = self._around(old.level, old.reach)
        shared = (levels, old.eps, old.pi, self._chance)
        serious, gain, irregular, (log_likelihood,) = self._session.run_pass(
            self._step, *self._tables, self._log_probability, *shared
        )
        objective = log_likelihood + self._log_prior(old)

        eps = (serious + _SERIOUS) / (self._n_labels + _SERIOUS + _IRREGULAR)
        pi = old.pi
        if len(pi):
            counts = irregular + _EACH_CATEGORY
            pi = np.where(self._learns, counts / counts.sum(axis=1, keepdims=True), pi)
        gain += self._lattice.log_prior[levels]
        # An annotator stays where neither of the others is better.
        best = np.where(gain[:, 1] >= gain.max(axis=1) - _EQUAL, 1, gain.argmax(axis=1))
        level = np.take_along_axis(levels, best[:, np.newaxis], axis=1)[:, 0]
        reach = np.minimum(_next_reach(old, level, gain), self._longest)
        monitor = Monitor(float(log_likelihood), float(objective))
        return Parameters(eps, pi, level, reach, old.level), monitor

    def acceleration(self) -> Squarem[Parameters]:
        """Leap with what is continuous; levels whose bold moves led downhill stay."""
        return Squarem(
            Parameters,
            *(probabilities, shares(axis=1), newest, newest, newest),
            safeguarded=lambda bold: bold._replace(level=bold.proven),
        )

    def read_out(self, parameters: Parameters) -> float:
        """Compute the items' and the labels' quantities, and the log-likelihood."""
        eps, pi, level, *_ = parameters
        on = self._lattice
        self._session.allocate("score", per="items", shape=(3,))
        self._session.allocate("difficulty", per="items")
        self._session.allocate("theta", per="items", shape=(self._n_categories,))
        self._session.allocate("p_serious", per="labels")
        typical = round(np.average(level, weights=eps * self._n_labels))
        ((log_likelihood,),) = self._session.run_pass(
            self._posterior,
            *(*self._tables, self._around(level), eps, pi, self._chance),
            *(on.nodes, on.edges, on.difficulty, typical),
        )
        return float(log_likelihood)

    def weights(self, parameters: Parameters) -> Floats:
        """Compute the items' posteriors on the lattice, items x difficulties x nodes."""
        eps, pi, level, *_ = parameters
        self._session.allocate("weight", per="items", shape=self._lattice.prior.shape)
        judge = Pass("ordinal_mixture.judge", ("weight",))
        self._session.run_pass(judge, *self._tables, self._around(level), eps, pi, self._chance)
        weight: Floats = self._session.gather("weight")
        return weight

    def interval(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Find the reliabilities that the labels support, with any noise."""
        self._session.allocate("predicted", per="labels")
        return likelihood_interval(self._supports(parameters), parameters.eps)

    def _supports(self, parameters: Parameters) -> Iterator[Support]:
        eps, pi, level, *_ = parameters
        top = len(self._lattice.noise) - 1

        def support(eps: Floats) -> tuple[Floats, Floats]:
            value, slope = self._session.run_pass(self._support, eps, pi, self._chance)
            return value, slope

        for moved in _MOVES:
            tried = np.clip(level + moved, 0, top)
            self._session.run_pass(
                self._predict, *self._tables, self._around(level), eps, pi, self._chance, tried
            )
            yield support

    def _around(self, level: Codes, reach: Codes | int = 1) -> Codes:
        """Put each annotator's level between two others, at the ends of the lattice at most."""
        top = len(self._lattice.noise) - 1
        return np.stack(
            [np.maximum(level - reach, 0), level, np.minimum(level + reach, top)], axis=1
        )

    def _log_prior(self, parameters: Parameters) -> float:
        eps, pi, level, *_ = parameters
        of_eps = _SERIOUS * np.log(eps) + _IRREGULAR * np.log1p(-eps)
        of_pi = _EACH_CATEGORY * np.log(pi).sum()
        return float((of_eps + self._lattice.log_prior[level]).sum() + of_pi)


def _next_reach(old: Parameters, level: Codes, gain: Floats) -> Codes:
    """Look next where the parabola through the gains has its peak: twice as far at most."""
    below, same, above = gain.T
    bend = 2.0 * same - below - above
    tilt = above - below
    peak = np.divide(0.5 * tilt, bend, out=2.0 * np.sign(tilt), where=bend > 0)
    far = np.abs(old.level + peak * old.reach - level)
    # One who has stayed has the peak between the two levels that were tried.
    most = np.where(level != old.level, 2 * old.reach, old.reach - 1)
    reach: Codes = np.rint(np.clip(far, 1, np.maximum(most, 1))).astype(np.int64)
    return reach
