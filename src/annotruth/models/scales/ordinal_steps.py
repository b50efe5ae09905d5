"""EM of `OrdinalMixture` on a lattice of scores and precisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.distribution import Profile, likelihood_interval
from annotruth.models.em import Monitor
from annotruth.models.gpm import enough_labels
from annotruth.models.scales.subject_bias_posterior import bounds_of, mass_between
from annotruth.models.squarem import Squarem, newest, probabilities, shares
from annotruth.observations import Labels

STEP = 0.1
"""Distance of the log-precisions: standard deviations are 5% apart."""

_GAPS = 32  # at least, between the nodes of a scale
_MAX_GAPS = 128
_DIFFICULTIES = np.arange(-2, 3)
_SHIFT = 6  # steps of precision between one difficulty and the next
_MIN_PROBABILITY = 1e-300  # so that logarithms are finite


class Lattice(NamedTuple):
    """The possible scores, precisions and difficulties, and tables of label probabilities.

    A label of an annotator of precision ``level`` on an item of difficulty j has the log-precision
    of row ``level + shift[j]`` of the tables.
    """

    nodes: Floats  # the scores
    edges: Floats  # each node stands for the scores between two edges
    anchor: Codes  # the node of each category's value
    prior: Floats  # difficulties x nodes
    shift: Codes  # per difficulty
    difficulty: Floats  # the factor of the noise, per difficulty
    noise: Floats  # the standard deviation, per level
    log_prior: Floats  # per level
    usual: int  # the level of the prior's noise
    probability: Floats  # rows x categories x nodes
    log_probability: Floats


def table_shape(values: Floats) -> tuple[int, int, int]:
    """Return the numbers of rows, categories and nodes of the tables, without computing them."""
    largest, smallest = _deviations(values)
    levels = round(2.0 * np.log(largest / smallest) / STEP) + 1
    rows = levels + _SHIFT * (len(_DIFFICULTIES) - 1)
    return rows, len(values), len(_nodes(values))


def make_lattice(values: Floats, expertise_shape: float, difficulty_shape: float) -> Lattice:
    r"""Return the lattice of a scale, with tables of its rounded Gaussians.

    A Gaussian of mean z and precision :math:`\tau` is rounded at the midpoints
    :math:`b_1, \ldots, b_{N-1}` between the categories' values, the ends of the scale open:

    .. math:: p(n) = \Phi(\sqrt\tau (b_n - z)) - \Phi(\sqrt\tau (b_{n-1} - z)).

    Scores are uniform on the scale. Precisions have Gamma priors of the given shapes, as densities
    of their logarithms. The mean of annotators' precisions corresponds to noise of a quarter of the
    scale; the factors of items have mean 1.
    """
    nodes = _nodes(values)
    midpoints = (nodes[1:] + nodes[:-1]) / 2.0
    edges = np.concatenate([nodes[:1], midpoints, nodes[-1:]])
    widths = np.diff(edges) if len(nodes) > 1 else np.ones(1)

    rows, *_ = table_shape(values)
    largest, _ = _deviations(values)
    shift = _SHIFT * (_DIFFICULTIES - _DIFFICULTIES[0])
    log_tau = STEP * (np.arange(rows) - shift[-1] // 2) - 2.0 * np.log(largest)
    distance = bounds_of(values)[:, np.newaxis] - nodes
    z = np.exp(log_tau / 2.0)[:, np.newaxis, np.newaxis] * distance
    probability = np.maximum(np.ascontiguousarray(mass_between(z, axis=1)), _MIN_PROBABILITY)

    log_lambda = log_tau[shift[-1] // 2 : rows - shift[-1] // 2]
    # Relative to the usual precision: the largest noise is 8 times the usual one.
    log_share = log_lambda + 2.0 * np.log(largest / 8.0)
    log_gamma = STEP * _SHIFT * _DIFFICULTIES
    log_weight = difficulty_shape * (log_gamma - np.exp(log_gamma))
    weight = np.exp(log_weight - log_weight.max())
    return Lattice(
        nodes=nodes,
        edges=edges,
        anchor=np.abs(nodes - values[:, np.newaxis]).argmin(axis=1),
        prior=np.outer(weight / weight.sum(), widths / widths.sum()),
        shift=shift,
        difficulty=np.exp(-log_gamma / 2.0),
        noise=np.exp(-log_lambda / 2.0),
        log_prior=expertise_shape * (log_share - np.exp(log_share)),
        usual=int(np.abs(log_share).argmin()),
        probability=probability,
        log_probability=np.log(probability),
    )


def _nodes(values: Floats) -> Floats:
    """Return nodes at every category and evenly between them; on long scales, evenly spaced."""
    gaps = len(values) - 1
    if gaps > _MAX_GAPS:
        return np.linspace(values[0], values[-1], _MAX_GAPS + 1)
    n_between = -(-_GAPS // gaps) if gaps else 1
    position = np.arange(gaps * n_between + 1) / n_between
    return np.interp(position, np.arange(gaps + 1), values)


def _deviations(values: Floats) -> tuple[float, float]:
    """Return the largest and the smallest noise: twice the scale, and an eighth of a category."""
    if len(values) == 1:
        return 2.0, 1.0
    extent = float(values[-1] - values[0])
    return 2.0 * extent, max(float(np.diff(values).min()) / 8.0, extent / 256.0)


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

    With ``learned``, irregular behaviors are estimated. With ``long_moves``, levels may change by more
    than one per step, which is not proven to raise the objective: acceleration restores them if it falls.
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
        self.labels = labels
        self.lattice = lattice
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
        of_annotators = tuple(map(Input, ("levels", "eps", "pi", "chance")))
        log_likelihood = Sum("log_likelihood", (1,))
        self._step = Pass(
            "ordinal_mixture.step",
            inputs=(*tables, Input("log_probability"), *of_annotators),
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
                *of_annotators,
                *map(Input, ("nodes", "edges", "gamma", "typical_level")),
            ),
            sums=(log_likelihood,),
        )
        self._weights = Pass(
            "ordinal_mixture.posterior", state=("weight",), inputs=(*tables, *of_annotators)
        )
        self._predict = Pass(
            "ordinal_mixture.leave_one_out",
            state=("predicted",),
            inputs=(*tables, *of_annotators, Input("tried_level")),
        )
        self._profile = Pass(
            "ordinal_mixture.log_likelihood_by_annotator",
            state=("predicted",),
            inputs=of_annotators[1:],
            sums=(Sum("log_likelihood", (n_annotators,)), Sum("slope", (n_annotators,))),
        )

    def start(self) -> OrdinalMixtureParameters:
        """Return eps = 0.5, pi = 1/N, and the level of the prior's noise."""
        n_annotators = len(self._n_labels)
        usual = np.full(n_annotators, self.lattice.usual)
        return OrdinalMixtureParameters(
            eps=np.full(n_annotators, 0.5),
            pi=np.full(self._pi_shape, self._chance),
            level=usual,
            reach=np.full(n_annotators, self._first_reach),
            proven=usual,
        )

    def step(self, old: OrdinalMixtureParameters) -> tuple[OrdinalMixtureParameters, Monitor]:
        """Pass over the labels once, then update the annotators' parameters."""
        levels = self._around(old.level, old.reach)
        sums = self._run(self._step, old, levels, log_probability=self._log_probability)
        (log_likelihood,) = sums["log_likelihood"]
        objective = log_likelihood + self._log_prior(old)

        eps = (sums["serious"] + _SERIOUS) / (self._n_labels + _SERIOUS + _IRREGULAR)
        pi = old.pi
        if len(pi):
            counts = sums["irregular"] + _PER_CATEGORY
            pi = np.where(self._learns, counts / counts.sum(axis=1, keepdims=True), pi)
        gain = sums["gain"] + self.lattice.log_prior[levels]
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
        sums = self._run(
            self._posterior,
            parameters,
            nodes=self.lattice.nodes,
            edges=self.lattice.edges,
            gamma=self.lattice.difficulty,
            typical_level=round(np.average(level, weights=eps * self._n_labels)),
        )
        return float(sums["log_likelihood"][0])

    def weights(self, parameters: OrdinalMixtureParameters) -> Floats:
        """Return the items' posteriors on the lattice, items x difficulties x nodes."""
        self._session.allocate("weight", per="items", shape=self.lattice.prior.shape)
        self._run(self._weights, parameters)
        weight: Floats = self._session.collect("weight")
        return weight

    def interval(self, parameters: OrdinalMixtureParameters) -> tuple[Floats, Floats]:
        """Return the 95% profile likelihood interval of every reliability, over noise levels."""
        self._session.allocate("predicted", per="labels")
        return likelihood_interval(self._profiles(parameters), parameters.eps)

    def _profiles(self, parameters: OrdinalMixtureParameters) -> Iterator[Profile]:
        top = len(self.lattice.noise) - 1

        def profile(eps: Floats) -> tuple[Floats, Floats]:
            sums = self._session.run_pass(
                self._profile, eps=eps, pi=parameters.pi, chance=self._chance
            )
            return sums["log_likelihood"], sums["slope"]

        for shift in _PROFILE_SHIFTS:
            tried = np.clip(parameters.level + shift, 0, top)
            self._run(self._predict, parameters, tried_level=tried)
            yield profile

    def _run(
        self,
        one: Pass,
        parameters: OrdinalMixtureParameters,
        levels: Codes | None = None,
        **inputs: Any,
    ) -> dict[str, Floats]:
        """Run a pass with tables of some levels, by default the next ones."""
        return self._session.run_pass(
            one,
            **self._tables,
            levels=self._around(parameters.level) if levels is None else levels,
            eps=parameters.eps,
            pi=parameters.pi,
            chance=self._chance,
            **inputs,
        )

    def _around(self, level: Codes, reach: Codes | int = 1) -> Codes:
        """Return three levels per annotator: the current one between two others, on the lattice."""
        top = len(self.lattice.noise) - 1
        return np.stack(
            [np.maximum(level - reach, 0), level, np.minimum(level + reach, top)], axis=1
        )

    def _log_prior(self, parameters: OrdinalMixtureParameters) -> float:
        eps, pi, level, *_ = parameters
        eps_prior = _SERIOUS * np.log(eps) + _IRREGULAR * np.log1p(-eps)
        pi_prior = _PER_CATEGORY * np.log(pi).sum()
        return float((eps_prior + self.lattice.log_prior[level]).sum() + pi_prior)


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
