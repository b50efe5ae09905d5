r"""Ord-dis-mix: serious labels are rounded Gaussians, the others a distribution of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from annotruth.arrays import Codes, Floats
from annotruth.engines import Engine, Session, Sweep, engine_named
from annotruth.errors import InputError
from annotruth.labels import Labels
from annotruth.labels.shards import of_items
from annotruth.labels.validate import check_ordinal
from annotruth.models.acceleration import Acceleration, newest, probabilities, shares
from annotruth.models.base import Estimator
from annotruth.models.behaviors import (
    Behavior,
    behavior_names,
    behaviors_of,
    check_behavior,
    enough_labels,
    pi_of,
)
from annotruth.models.distribution import Distribution
from annotruth.models.em import Monitor, ProgressCallback, climb
from annotruth.models.intervals import Support, likelihood_interval
from annotruth.models.lattice import Lattice, lattice_of, shape_of
from annotruth.models.result import Fit

# What everybody has shown before the first label.
_SERIOUS, _IRREGULAR = 1.0, 1.0
_EACH_CATEGORY = 10.0

# Levels up or down at which an annotator's reliability is asked for: noise up to 4 times as large.
_MOVES = (0, 3, -3, 9, -9, 27, -27)

# Levels between an annotator's own and those that a bold step tries, at first and at most.
_REACH_AT_FIRST, _LONGEST_REACH = 8, 16
_EQUAL = 1e-9  # gains that differ by less are the same but for rounding

_MOST_NUMBERS = 2**28  # 2 GB


_NOBODY: Codes = np.empty(0, dtype=np.int64)


class Parameters(NamedTuple):
    """What the annotators share: reliability, irregular behavior, and level of precision."""

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform
    level: Codes
    reach: Codes = _NOBODY  # how far from it the levels are that the next step tries
    proven: Codes = _NOBODY  # the level before the last step, on which the rest is sure to rise


@dataclass(kw_only=True)
class OrdinalMixture(Estimator):
    r"""Inferring ground truth from multi-annotator ordinal data: a probabilistic approach.

    The ordinal-discrete mixture: annotator s is serious with probability :math:`\epsilon_s`. A
    serious label is a Gaussian opinion around the item's score :math:`z_e`, rounded to the scale;
    its precision is the annotator's expertise times what the item's difficulty leaves of it. Any
    other label comes from a discrete distribution :math:`\pi_s`:

    .. math::
        x_{e,s} \sim N(z_e,\; 1 / (\lambda_s \gamma_e)), \qquad
        p(n \mid z, \tau) = \Phi(\sqrt\tau (b_n - z)) - \Phi(\sqrt\tau (b_{n-1} - z)), \\
        p(r_{e,s} = n \mid z_e, \gamma_e) = \epsilon_s\, p(n \mid z_e, \lambda_s \gamma_e)
            + (1 - \epsilon_s) \pi_{s,n},

    with :math:`b_1, \ldots, b_{N-1}` the midpoints between the categories' values, the ends of
    the scale open, and Gamma priors on :math:`\lambda` and :math:`\gamma` (Lakshminarayanan and
    Teh, 2013). EM, with scores and difficulties integrated out: their posterior :math:`w_e`
    lives on a lattice of scores on the scale and of five difficulties,

    .. math::
        \text{E:}\quad w_e(z, \gamma) &\propto p(\gamma) \prod_{s \in l_e}
            p(r_{e,s} \mid z, \gamma), \quad
        \mu_{e,s}(z, \gamma) = \frac{\epsilon_s\, p(r_{e,s} \mid z, \lambda_s \gamma)}
            {p(r_{e,s} \mid z, \gamma)}, \quad
        \mu_{e,s} = \sum_{z, \gamma} w_e \mu_{e,s}(z, \gamma) \\
        \text{M:}\quad \epsilon_s &= \frac{1 + \sum_e \mu_{e,s}}{2 + |l_s|}, \quad
        \pi_{s,n} \propto 10 + \sum_{e \in l_{s,n}} (1 - \mu_{e,s}), \\
        \lambda_s &: \text{one step up or down, if it raises} \quad
        \sum_e \sum_{z, \gamma} w_e\, \mu_{e,s}(z, \gamma)
            \log p(r_{e,s} \mid z, \lambda_s \gamma) + \log p(\lambda_s).

    It starts at :math:`\epsilon = 0.5`, :math:`\pi = 1/N` and the prior's noise. What rises at
    every step, and stops the loop when it changes by less than ``tol``, is the log-posterior of
    the parameters that the step began with: the log-likelihood plus
    :math:`\sum_s \log \epsilon_s (1 - \epsilon_s) + \log p(\lambda_s)
    + 10 \sum_n \log \pi_{s,n}`, the last only where it is learned. The log-likelihood has no item's
    score in it and is not comparable with that of models which fit one.

    The paper infers by variational Bayes. Chosen here instead, and for what is open:

    - Scores are uniform on the scale. Integrating them out rather than taking the likeliest
      lowered their error (RMSE) by 5 to 7% at 3 to 8 labels an item; at 25 it made no difference.
    - Precisions are on a lattice too, so that a pass is a table look-up: noise in steps of 5%, from
      twice the scale down to an eighth of the distance of the closest categories (or 1/256 of the
      scale, if that is more).
    - Before any label, an annotator has given one serious and one irregular label and has noise of
      a quarter of the scale; the Gamma priors are densities of log-precisions. Shapes from 1 to
      10 moved the error of the scores by at most 6% on simulated crowds.

    An item's score is the mean of its posterior, so it lies on the scale and never quite at its
    end; ``score_low`` and ``score_high`` hold 95% of the posterior (94 to 98% of the true scores
    in simulated crowds). ``difficulty`` is the factor by which the item widens everybody's noise,
    :math:`\gamma_e^{-1/2}`. The distribution is that of a serious label by a typical annotator,
    whose log-precision is the mean over all serious labels; the item's label is its mode, and a
    tie goes to the first category of the scale. A known truth puts the score on its category.

    An annotator's reliability is :math:`\epsilon_s`; ``noise`` is the standard deviation of their
    serious opinions on an item of usual difficulty, :math:`\lambda_s^{-1/2}`, in the units of the
    scale. The interval holds the reliabilities whose log-likelihood is within 1.92 of the
    estimate's for some noise, up to 4 times smaller or larger. `answers` predicts the label n with
    :math:`\sum_{z, \gamma} w_e(z, \gamma)\, p(r_{e,s} = n \mid z, \gamma)`.

    With two categories, being serious and noisy looks like not being serious: intervals of
    reliability are then wide, and the estimate follows the prior. Where most serious labels are
    one and the same value, as zeros on a slider, noise is no Gaussian and the mean is closer to
    the truth.

    Parameters
    ----------
    behavior
        "uniform": irregular labels are random. "learned" estimates :math:`\pi_s` of those with 5
        labels a category, as if they had given 10 of each before. It finds who repeats a label,
        and improved scores in dense crowds (RMSE by 3% in the GPM paper's simulation, 11% on
        search grades); but a taste for some categories counts as irregular, which on 3 labels an
        item and rare positives ruined the scores.
    expertise_shape, difficulty_shape
        Shapes of the Gamma priors of :math:`\lambda_s` and :math:`\gamma_e`: the higher, the more
        alike annotators and items are.
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.acceleration`) for fewer passes
        over the labels. :math:`\lambda_s` then takes longer steps, up or down if the log-posterior
        would rise were it alone to move; they are taken back should it fall as all move together.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "ordinal-mixture"
    needs_order: ClassVar[bool] = True

    behavior: Behavior = "uniform"
    expertise_shape: float = 3.0
    difficulty_shape: float = 3.0
    tol: float = 1e-4
    max_iter: int = 1000
    acceleration: bool = True
    engine: str | Engine = "memory"

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        self._check(labels)
        lattice = self._lattice(labels)
        with closing(engine_named(self.engine).open(labels)) as session:
            steps = _Steps(
                labels,
                session,
                lattice,
                learned=self.behavior == "learned",
                bold=self.acceleration,
            )
            parameters, trace = climb(
                steps.step,
                steps.start(),
                log_likelihood=steps.read_out,
                tol=self.tol,
                max_iter=self.max_iter,
                watched="the log-posterior",
                progress=progress,
                acceleration=_acceleration() if self.acceleration else None,
            )
            low, high = steps.interval(parameters)
            values, known = labels.scale.values, labels.known >= 0
            score = np.clip(session.gather("score"), values[0], values[-1])  # but for rounding
            score[known] = values[labels.known[known], np.newaxis]
            return Fit(
                model=self.name,
                settings=self.settings(),
                data=labels,
                trace=trace,
                distribution=Distribution.of_dense(session.gather("theta")),
                score=score[:, 0],
                reliability=parameters.eps,
                low=low,
                high=high,
                behavior=behavior_names(labels.scale.names, parameters.eps, parameters.pi),
                p_serious=session.gather("p_serious"),
                item_columns={
                    "score_low": score[:, 1],
                    "score_high": score[:, 2],
                    "difficulty": session.gather("difficulty"),
                },
                annotator_columns={"noise": lattice.noise[parameters.level]},
                parameters={
                    "level": parameters.level,
                    **({"pi": parameters.pi} if len(parameters.pi) else {}),
                },
            )

    def _answers(self, item: Codes, annotator: Codes) -> Floats:
        fit, data = self.result_, self.result_.data
        lattice = self._lattice(data)
        assert fit.reliability is not None
        eps, pi = fit.reliability, pi_of(fit, self.behavior)
        # A level is a place in tables: one from disk is not trusted.
        level = np.clip(fit.parameter("level", data.n_annotators), 0, len(lattice.noise) - 1)
        labels, place, people = of_items(data, item)
        with closing(engine_named(self.engine).open(labels)) as session:
            steps = _Steps(labels, session, lattice, learned=len(pi) > 0)
            of_some = Parameters(eps[people], pi[people] if len(pi) else pi, level[people])
            weight = steps.weights(of_some)
        serious = np.empty((len(item), labels.n_categories))
        levels = level[annotator]
        for own in np.unique(levels):
            who = np.flatnonzero(levels == own)
            table = lattice.probability[own + lattice.shift]
            serious[who] = np.tensordot(weight[place[who]], table, axes=([1, 2], [0, 2]))
        share = eps[annotator][:, np.newaxis]
        behavior = behaviors_of(pi, annotator, labels.n_categories)
        return share * serious + (1.0 - share) * behavior

    def _lattice(self, labels: Labels) -> Lattice:
        return lattice_of(labels.scale.values, self.expertise_shape, self.difficulty_shape)

    def _check(self, labels: Labels) -> None:
        """Refuse options and labels that the model cannot be fitted with."""
        check_behavior(self.behavior)
        for option in ("expertise_shape", "difficulty_shape"):
            shape = getattr(self, option)
            if not 0 < shape < math.inf:
                raise InputError(f"{option} must be above 0, and finite, not {shape}")
        check_ordinal(labels.scale, self.name)
        table = 4 * math.prod(shape_of(labels.scale.values))  # two, and as much while they are made
        if max(table, labels.n_items * labels.n_categories) > _MOST_NUMBERS:
            raise InputError(
                f"{self.name} would need more than {_MOST_NUMBERS * 8 / 1e9:.1f} GB for "
                f"{labels.n_categories:,} categories and {labels.n_items:,} items: merge "
                "categories, or choose the model gpm"
            )


class _Steps:
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
        self._step = Sweep(f"ordinal_mixture.{'bold_step' if bold else 'step'}", (), sums)
        self._step_tables = self._tables if bold else (*self._tables, lattice.log_probability)
        read = ("score", "difficulty", "theta", "p_serious")
        self._posterior = Sweep("ordinal_mixture.posterior", read, ((1,),))
        self._predict = Sweep("ordinal_mixture.predict", ("predicted",))
        self._support = Sweep("ordinal_mixture.support", ("predicted",), ((people,), (people,)))

    def start(self) -> Parameters:
        """Begin with everybody serious half of the time, irregular at random, of usual noise."""
        people = len(self._n_labels)
        usual = np.full(people, self._lattice.usual)
        pi, reach = np.full(self._pi_shape, self._chance), np.full(people, self._reach_at_first)
        return Parameters(np.full(people, 0.5), pi, usual, reach, usual)

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Sweep the labels once, then update what annotators share."""
        levels = self._around(old.level, old.reach)
        shared = (levels, old.eps, old.pi, self._chance)
        serious, gain, irregular, (log_likelihood,) = self._session.sweep(
            self._step, *self._step_tables, *shared
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

    def read_out(self, parameters: Parameters) -> float:
        """Compute the items' and the labels' quantities, and the log-likelihood."""
        eps, pi, level, *_ = parameters
        on = self._lattice
        self._session.allocate("score", per="items", shape=(3,))
        self._session.allocate("difficulty", per="items")
        self._session.allocate("theta", per="items", shape=(self._n_categories,))
        self._session.allocate("p_serious", per="labels")
        typical = round(np.average(level, weights=eps * self._n_labels))
        ((log_likelihood,),) = self._session.sweep(
            self._posterior,
            *(*self._tables, self._around(level), eps, pi, self._chance),
            *(on.nodes, on.edges, on.difficulty, typical),
        )
        return float(log_likelihood)

    def weights(self, parameters: Parameters) -> Floats:
        """Compute the items' posteriors on the lattice, items x difficulties x nodes."""
        eps, pi, level, *_ = parameters
        self._session.allocate("weight", per="items", shape=self._lattice.prior.shape)
        judge = Sweep("ordinal_mixture.judge", ("weight",))
        self._session.sweep(judge, *self._tables, self._around(level), eps, pi, self._chance)
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
            value, slope = self._session.sweep(self._support, eps, pi, self._chance)
            return value, slope

        for moved in _MOVES:
            tried = np.clip(level + moved, 0, top)
            self._session.sweep(
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


def _acceleration() -> Acceleration[Parameters]:
    return Acceleration(
        Parameters,
        *(probabilities, shares(axis=1), newest, newest, newest),
        cautious=lambda bold: bold._replace(level=bold.proven),
    )
