"""Ord-dis-mix: serious labels are rounded Gaussians, irregular ones have a distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.behaviors import (
    BehaviorOption,
    behavior_distribution,
    behavior_names,
    check_behavior_option,
    enough_labels,
    learned_behaviors,
)
from annotruth.models.capabilities import Capabilities
from annotruth.models.distribution import Distribution, Profile, likelihood_interval
from annotruth.models.em import History, Monitor
from annotruth.models.em_estimator import IterativeEstimator
from annotruth.models.options import check_positive
from annotruth.models.result import Fit
from annotruth.models.scales.ordinal_lattice import Lattice, make_lattice, table_shape
from annotruth.models.squarem import Squarem, newest, probabilities, shares
from annotruth.models.warm_start import off_bounds, with_new_rows
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.validate import check_ordinal

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
    """Annotators' parameters: reliability, irregular behavior, and level of precision."""

    eps: Floats
    pi: Floats  # annotators x categories; empty when behavior is uniform
    level: Codes
    reach: Codes = _NO_LEVELS  # distance of the levels that the next step tries
    proven: Codes = _NO_LEVELS  # the level before the last step: the other updates are proven there


class OrdinalMixtureSteps:
    """The EM over a session; only `finalize` leaves item-side arrays.

    ``labels``, ``session``: the labels, and the session they are open in.
    ``lattice``: the scores, precisions and difficulties.
    ``learned``: whether irregular behaviors are estimated.
    ``long_moves``: whether levels may change by more than one per step, which is not proven to
      raise the objective. Only with acceleration, which restores them if it falls.
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
                *map(Input, ("nodes", "edges", "gamma", "typical_level")),
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
            gamma=self._lattice.difficulty,
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


_MAX_NUMBERS = 2**28  # in one array: 2 GB


@dataclass(kw_only=True)
class OrdinalMixture(IterativeEstimator[OrdinalMixtureSteps]):
    r"""The ordinal-discrete mixture of serious and irregular labels.

    Lakshminarayanan and Teh, "Inferring ground truth from multi-annotator ordinal data: a
    probabilistic approach" (2013). Annotator s is serious with probability :math:`\epsilon_s`. A
    serious label is a Gaussian opinion around the item's score :math:`z_e`, rounded to the scale,
    with the annotator's precision :math:`\lambda_s` times a factor :math:`\gamma_e` for the item's
    difficulty. An irregular label comes from a discrete distribution :math:`\pi_s`:

    .. math::
        x_{e,s} \sim N(z_e,\; 1 / (\lambda_s \gamma_e)), \qquad
        p(n \mid z, \tau) = \Phi(\sqrt\tau (b_n - z)) - \Phi(\sqrt\tau (b_{n-1} - z)), \\
        p(r_{e,s} = n \mid z_e, \gamma_e) = \epsilon_s\, p(n \mid z_e, \lambda_s \gamma_e)
            + (1 - \epsilon_s) \pi_{s,n},

    with :math:`b_1, \ldots, b_{N-1}` the midpoints between the categories' values, the ends of
    the scale open, and Gamma priors on :math:`\lambda` and :math:`\gamma`. The parameters are
    estimated by EM with scores and difficulties integrated out; their posterior :math:`w_e` is
    computed on a lattice of scores and five difficulties:

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

    The start: :math:`\epsilon = 0.5`, :math:`\pi = 1/N` and the prior's noise. The objective, whose
    change below ``tol`` stops the loop, is the log-posterior of the parameters that the step began
    with: the log-likelihood plus :math:`\sum_s \log \epsilon_s (1 - \epsilon_s) + \log p(\lambda_s)
    + 10 \sum_n \log \pi_{s,n}`, the last term only if it is learned. As scores are integrated out,
    the log-likelihood is not comparable with that of models that estimate them.

    The paper uses variational Bayes. Different here, or left open by the paper:

    - Scores are uniform on the scale. Integrating them out, instead of maximising over them, lowered
      their error (RMSE) by 5 to 7% with 3 to 8 labels per item; with 25 it made no difference.
    - Precisions are on a lattice, too, so that a pass is a table look-up: noise in steps of 5%, from
      twice the scale down to an eighth of the smallest distance of categories (or 1/256 of the
      scale, if that is more).
    - The priors of an annotator correspond to one serious and one irregular label, and to noise of
      a quarter of the scale; the Gamma priors are densities of log-precisions. Shapes from 1 to 10
      changed the error of the scores by at most 6% on simulated crowds.

    An item's score is the mean of its posterior, so it lies within the scale; ``score_low`` and
    ``score_high`` contain 95% of the posterior (94 to 98% of the true scores in simulated crowds).
    ``difficulty`` is the factor by which the item increases the noise, :math:`\gamma_e^{-1/2}`. The
    distribution is that of a serious label by a typical annotator, whose log-precision is the mean
    over all serious labels; the item's label is its mode, and a tie goes to the first category of
    the scale. A known truth fixes the score at its category.

    An annotator's reliability is :math:`\epsilon_s`; ``noise`` is the standard deviation of their
    serious opinions on an item of usual difficulty, :math:`\lambda_s^{-1/2}`, in the units of the
    scale. The interval contains the reliabilities whose log-likelihood is within 1.92 of the
    estimate's for some noise, up to 4 times smaller or larger. `predict_proba` returns
    :math:`\sum_{z, \gamma} w_e(z, \gamma)\, p(r_{e,s} = n \mid z, \gamma)` for label n.

    With two categories, serious and noisy labels cannot be distinguished from irregular ones:
    intervals of reliability are then wide, and the estimate depends on the prior. Where most serious
    labels have the same value, such as zeros on a slider, noise is not Gaussian, and the mean is
    closer to the truth.

    Parameters
    ----------
    behavior
        "uniform": irregular labels are random. "learned" estimates :math:`\pi_s` of annotators with
        5 labels per category, with 10 pseudo-counts per category. This detects annotators who repeat
        a label, and improved scores in dense crowds (RMSE by 3% in the GPM paper's simulation, 11%
        on search grades). But a preference for some categories counts as irregular, which made
        scores useless with 3 labels per item and rare positives.
    expertise_shape, difficulty_shape
        Shapes of the Gamma priors of :math:`\lambda_s` and :math:`\gamma_e`: the higher, the more
        similar annotators and items are.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.em_estimator.EMEstimator`. With acceleration, :math:`\lambda_s`
        takes longer steps, up or down, that would raise the log-posterior if no other parameter
        changed; they are rolled back if it falls.

    Examples
    --------
    >>> import annotruth as at
    >>> votes = [(item, name, 1 + item % 5) for item in range(20) for name in ("ann", "bob", "cem")]
    >>> votes += [(item, "eve", 1 + (7 * item + item // 3) % 5) for item in range(20)]
    >>> fit = at.OrdinalMixture().fit(votes).result_
    >>> fit.annotator_table()["spammer"].to_pylist()
    [False, False, False, True]
    >>> fit.item_table()["label"].to_pylist()[:5]
    [1, 2, 3, 4, 5]
    """

    name: ClassVar[str] = "ordinal-mixture"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {
        "level": "annotator",
        "pi": "annotator category",
    }

    behavior: BehaviorOption = "uniform"
    expertise_shape: float = 3.0
    difficulty_shape: float = 3.0

    def _steps(self, labels: Labels, session: Session) -> OrdinalMixtureSteps:
        learned = self.behavior == "learned"
        return OrdinalMixtureSteps(
            labels, session, self._lattice(labels), learned=learned, long_moves=self.acceleration
        )

    def _make_fit(
        self,
        labels: Labels,
        session: Session,
        steps: OrdinalMixtureSteps,
        parameters: OrdinalMixtureParameters,
        history: History,
    ) -> Fit:
        low, high = steps.interval(parameters)
        values, known = labels.scale.values, labels.known >= 0
        score = np.clip(session.collect("score"), values[0], values[-1])  # rounding
        score[known] = values[labels.known[known], np.newaxis]
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=history,
            distribution=Distribution.of_dense(session.collect("theta")),
            score=score[:, 0],
            reliability=parameters.eps,
            low=low,
            high=high,
            behavior=behavior_names(labels.scale.names, parameters.eps, parameters.pi),
            p_serious=session.collect("p_serious"),
            item_columns={
                "score_low": score[:, 1],
                "score_high": score[:, 2],
                "difficulty": session.collect("difficulty"),
            },
            annotator_columns={"noise": steps.noise(parameters)},
            parameters={
                "level": parameters.level,
                **({"pi": parameters.pi} if len(parameters.pi) else {}),
            },
            readout="opinion",
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit, data = self.result_, self.result_.data
        lattice = self._lattice(data)
        assert fit.reliability is not None
        eps, pi = fit.reliability, learned_behaviors(fit, self.behavior)
        # A level is an index into tables: one from a file is not trusted.
        level = np.clip(fit.parameter("level", data.n_annotators), 0, len(lattice.noise) - 1)
        labels, position, annotators = data.subset_items(item)
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = OrdinalMixtureSteps(labels, session, lattice, learned=len(pi) > 0)
            weight = steps.weights(
                OrdinalMixtureParameters(
                    eps[annotators], pi[annotators] if len(pi) else pi, level[annotators]
                )
            )
        serious = np.empty((len(item), labels.n_categories))
        levels = level[annotator]
        for one in np.unique(levels):
            rows = np.flatnonzero(levels == one)
            table = lattice.probability[one + lattice.shift]
            serious[rows] = np.tensordot(weight[position[rows]], table, axes=([1, 2], [0, 2]))
        share = eps[annotator][:, np.newaxis]
        behavior = behavior_distribution(pi, annotator, labels.n_categories)
        return share * serious + (1.0 - share) * behavior

    def _lattice(self, labels: LabelSummary) -> Lattice:
        return make_lattice(labels.scale.values, self.expertise_shape, self.difficulty_shape)

    def _check(self, labels: LabelSummary) -> None:
        """Refuse options and labels that the model cannot be fitted with."""
        check_behavior_option(self.behavior)
        check_positive(expertise_shape=self.expertise_shape, difficulty_shape=self.difficulty_shape)
        check_ordinal(labels.scale, self.name)
        table = 4 * math.prod(table_shape(labels.scale.values))  # two tables, and temporary copies
        if max(table, labels.n_items * labels.n_categories) > _MAX_NUMBERS:
            raise InputError(
                f"{self.name} would need more than {_MAX_NUMBERS * 8 / 1e9:.1f} GB for "
                f"{labels.n_categories:,} categories and {labels.n_items:,} items: merge "
                "categories, or choose the model gpm"
            )
