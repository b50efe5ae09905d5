"""RobustGPM where opinions differ: shapes of opinion, and variational EM over them.

The equations are in the docstring of `annotruth.models.robust_gpm.opinion_model.OpinionModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import betainc

from annotruth.engines import Pass, Session
from annotruth.kernels.arrays import Floats
from annotruth.models.em import Monitor
from annotruth.models.latent_classes import (
    POSTERIOR_INPUTS,
    ExpectedCounts,
    normalise_log_weights,
)
from annotruth.models.robust_gpm.states import ItemModel, StrategySteps
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    tabulate_strategies,
)
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.observations import LabelSummary

if TYPE_CHECKING:
    from annotruth.models.robust_gpm.annotators import AnnotatorPosterior

N_MEANS = 16
"""How many means the broad shapes of opinion have."""

CONCENTRATIONS = (5.0, 15.0, 45.0, 135.0, 405.0)
"""The concentrations (sums of both parameters) of the Beta distributions behind the shapes.

The first two are those of every scale. A further one is used where its shapes are not narrower than
categories are: a scale from 0 to 100 shows more than one from 1 to 5.
"""

N_BROAD = 2
"""How many of the concentrations are used on every scale."""

_MIN_WIDTH = 0.6  # of narrower shapes: their standard deviation in the middle, in categories

_MAX_SHIFT = 1.0  # of the logit of the mean
_SHIFT_DEVIATION = 0.5  # standard deviation of the Gaussian prior of shifts

# On long scales annotators differ in how closely they follow opinion: factors of the concentration,
# one step of the concentrations down and up, and their prior weights.
_SHARPNESS, _SHARPNESS_WEIGHTS = (1 / 3, 1.0, 3.0), (1.0, 2.0, 1.0)

# Factors of variances: of scores (`OpinionShapes.variance_inflation`), and of labels' shares
# (`OpinionShapes.share_inflation`). Chosen on simulated crowds.
_INFLATION, _INFLATION_BY_INVERSION = 1.0, 40.0
_SHARE_INFLATION, _SHARE_INFLATION_BY_INVERSION = 1.1, 29.0

_SHAPE_PSEUDO_COUNT = 0.2  # items per shape

# Of the second differences of log-shares, along the means of the broad shapes.
_SHARE_DEVIATION = 0.5

_ALWAYS_START = 0.65  # the share of annotators who are always serious, before the first step

# Pseudo-counts of annotators who are always serious, and of others.
_ALWAYS_PSEUDO_COUNT, _NOT_ALWAYS_PSEUDO_COUNT = 2.0, 1.0

_MAX_NEWTON_STEPS = 50
# Twice the rise of the log-posterior in a Newton step, per item: near the solution, and there.
_NEWTON_NEAR, _NEWTON_TOL = 1e-6, 1e-14


class ShapeShares:
    r"""The prior of the shares p of items in each shape, and their estimate from expected counts.

    Without a prior, the most likely shares are a few peaks, also where the truth is spread: an item's
    posterior is then too certain. So the second differences of :math:`\log p` along the n means of a
    concentration are Gaussian, with mean 0 and the standard deviation :math:`0.5 \, (16 / n)^{3/2}`,
    which is the same curvature for any n. This prior leaves the mean of the shares free, and that of
    a concentration; 0.2 pseudo-items per shape keep shares away from 0.
    ``n_means`` is how many means the shapes of each concentration have, in the order of the shapes.
    """

    def __init__(self, n_means: Sequence[int]) -> None:
        n_shapes = sum(n_means)
        self._precision = np.zeros((n_shapes, n_shapes))
        first = 0
        for n in n_means:
            difference = np.diff(np.eye(n), 2, axis=0)
            deviation = _SHARE_DEVIATION * (N_MEANS / n) ** 1.5
            block = slice(first, first + n)
            self._precision[block, block] = difference.T @ difference / deviation**2
            first += n

    def log_prior(self, shares: Floats) -> float:
        """Return the log-prior, up to a constant."""
        logs = np.log(shares)
        return float(_SHAPE_PSEUDO_COUNT * logs.sum() - 0.5 * logs @ self._precision @ logs)

    def estimate(self, counts: Floats, start: Floats) -> Floats:
        """Return the shares of the highest posterior, given how many items have each shape.

        Newton's method, which starts at some shares; far from the solution, steps are halved until
        they raise the posterior.
        """
        counts = counts + _SHAPE_PSEUDO_COUNT
        total = counts.sum()

        def log_posterior(logs: Floats) -> float:
            return float(counts @ logs - 0.5 * logs @ self._precision @ logs)

        logs = np.log(start)
        for _ in range(_MAX_NEWTON_STEPS):
            shares = np.exp(logs)
            gradient = counts - total * shares - self._precision @ logs
            # Without the term of normalisation, which only adds a constant to the direction.
            curvature = self._precision + np.diag(total * shares)
            direction = np.linalg.solve(curvature, gradient)
            rise = gradient @ direction / total
            new = _normalised_logs(logs + direction)
            if rise > _NEWTON_NEAR:
                before = log_posterior(logs)
                while log_posterior(new) < before and np.abs(direction).max() > _NEWTON_TOL:
                    direction /= 2.0
                    new = _normalised_logs(logs + direction)
            logs = new
            if rise <= _NEWTON_TOL:
                break
        estimate: Floats = np.exp(logs)
        return estimate


def _normalised_logs(logs: Floats) -> Floats:
    """Return logarithms of shares that sum to 1."""
    normalised: Floats = logs - np.logaddexp.reduce(logs)
    return normalised


class OpinionShapes(ItemModel):
    """Latent classes where opinions differ: Beta distributions over the scale, in equal bins.

    Their means and concentrations are fixed: 16 means and the concentrations 5 and 15. Annotators may
    shift the logit of the mean, by -1, -0.5, 0, 0.5 or 1, with a Gaussian prior of standard deviation 0.5.

    On scales of more than 8 categories there are also the concentrations 45, 135 and 405, as long as a
    shape's standard deviation is at least 0.6 categories, with means as much closer to one another. Steps
    of shifts are then as much finer, and annotators who are always serious have a sharpness of their own:
    the concentration of their labels is that of the shape times 1/3, 1 or 3 (prior weights 1, 2, 1).
    A shift with a sharpness is one entry of ``shifts``; the middle one is no shift, and sharpness 1.
    """

    def __init__(self, labels: LabelSummary) -> None:
        concentrations = scale_concentrations(labels.n_categories)
        shifts = _scale_shifts(concentrations)
        is_long = len(concentrations) > N_BROAD
        sharpness = np.array(_SHARPNESS if is_long else (1.0,))
        self.serious = np.concatenate(
            [_discretised_betas(labels.n_categories, concentrations, shifts, f) for f in sharpness]
        )
        self.shifts = np.tile(shifts, len(sharpness))
        weights = np.exp(-0.5 * (self.shifts / _SHIFT_DEVIATION) ** 2)
        weights *= np.repeat(_SHARPNESS_WEIGHTS if is_long else (1.0,), len(shifts))
        self.strategies = tabulate_strategies(
            self.serious,
            weights / weights.sum(),
            ordinal=True,
            always_only=np.repeat(sharpness != 1.0, len(shifts)),
        )
        self.n_means = [count_means(c) for c in concentrations]
        self.shares = ShapeShares(self.n_means)
        # A known truth counts as one more serious label.
        # Contiguous, as for items with one right label: kernels are compiled once for both.
        known_truth = np.ascontiguousarray(self.serious[len(self.shifts) // 2])
        super().__init__(labels, known_truth=known_truth)

    @property
    def positions(self) -> Floats:
        """The logit of the mean of each shape."""
        mean = _means(self.n_means)
        logits: Floats = np.log(mean / (1.0 - mean))
        return logits

    def opinions(self, posterior: AnnotatorPosterior) -> Floats:
        """Return the shapes, shifted as the crowd shifts them on average."""
        crowd = self.crowd_shifts(posterior)
        opinions: Floats = np.tensordot(crowd, self.serious, axes=1).T
        return opinions

    def crowd_shifts(self, posterior: AnnotatorPosterior, *, tempered: bool = False) -> Floats:
        """Return the share of each shift in all serious labels."""
        strategies = posterior.strategies
        n_labels = self.labels.weighted(self.labels.labels_per_annotator)
        is_shift = np.eye(len(self.shifts))[strategies.shift]
        serious = is_shift * strategies.reliability[:, np.newaxis]
        by_shift = n_labels @ posterior.mean(serious, tempered=tempered)
        shares: Floats = by_shift / by_shift.sum()
        return shares

    def score_shifts(self, prior: Floats) -> Floats:
        """Return by how much each shift moves the mean score of serious labels, over all items."""
        scores = self.labels.scale.values @ self.serious @ prior
        moves: Floats = scores - scores[len(self.shifts) // 2]
        return moves

    def score_variance(self) -> float:
        """Return the variance within the bin between two means."""
        values = self.labels.scale.values
        return float(((values[-1] - values[0]) / self.n_means[-1]) ** 2 / 12.0)

    def variance_inflation(self, posterior: AnnotatorPosterior) -> float:
        r"""Return the factor by which the variances of scores are multiplied.

        Annotators are compared with one another: who is taken as serious decides who is taken as
        inverting the scale. Where that is uncertain, errors of all items are correlated, which no
        item's posterior shows. With :math:`i_g` the share of inverted labels in strategy g, and the
        mean over labels, the factor is

        .. math:: 1 + 40 \, \overline{\mathrm{var}_{q_s}(i)}.

        The form and its figures were chosen on simulated crowds.
        """
        return _INFLATION + _INFLATION_BY_INVERSION * posterior.inversion_variance

    def share_inflation(self, posterior: AnnotatorPosterior) -> float:
        r"""Return the factor by which the variances of labels' shares are multiplied.

        It is :math:`1.1 + 29 \, \overline{\mathrm{var}_{q_s}(i)} \, / \, \bar\epsilon^2`.
        """
        relative = posterior.inversion_variance / posterior.label_mean(posterior.reliability) ** 2
        return _SHARE_INFLATION + _SHARE_INFLATION_BY_INVERSION * relative


def scale_concentrations(n_categories: int) -> Floats:
    """Return the concentrations of the shapes on a scale, in ascending order."""
    all_of_them = np.array(CONCENTRATIONS)
    deviation = 0.5 / np.sqrt(all_of_them + 1.0)
    n = max(N_BROAD, int((deviation * n_categories >= _MIN_WIDTH).sum()))
    concentrations: Floats = all_of_them[:n]
    return concentrations


def count_means(concentration: float) -> int:
    """Return how many means shapes have: the narrower they are, the more."""
    return round(N_MEANS * max(1.0, float(np.sqrt(concentration / CONCENTRATIONS[N_BROAD - 1]))))


def count_shapes(n_categories: int) -> int:
    """Return how many shapes of opinion there are on a scale."""
    return sum(count_means(c) for c in scale_concentrations(n_categories))


def adjacent_ratio(n_categories: int) -> float:
    """Return how many labels are next to the most likely one per label on it, over all shapes."""
    shapes = _discretised_betas(
        n_categories, scale_concentrations(n_categories), shifts=np.zeros(1), sharpness=1.0
    )[0]
    mode, shape = shapes.argmax(axis=0), np.arange(shapes.shape[1])
    beside = np.pad(shapes, ((1, 1), (0, 0)))
    adjacent = beside[mode, shape] + beside[mode + 2, shape]
    return float(adjacent.sum() / shapes[mode, shape].sum())


def _scale_shifts(concentrations: Floats) -> Floats:
    """Return how far annotators may shift the logit of the mean of serious opinion.

    A step is the standard deviation of the narrowest shape in the middle of the scale, as a logit.
    """
    deviation = 4.0 * 0.5 / np.sqrt(concentrations[-1] + 1.0)  # 0.5 with broad shapes only
    n = round(_MAX_SHIFT / deviation)
    return np.linspace(-_MAX_SHIFT, _MAX_SHIFT, 2 * n + 1)


def _discretised_betas(
    n_categories: int, concentrations: Floats, shifts: Floats, sharpness: float
) -> Floats:
    """Return the shapes of opinion, shifts x categories x shapes."""
    n_means = [count_means(c) for c in concentrations]
    mean = _means(n_means)
    concentration = sharpness * np.repeat(concentrations, n_means)
    logit = np.log(mean / (1.0 - mean))
    shifted = 1.0 / (1.0 + np.exp(-(logit + shifts[:, np.newaxis])))  # shifts x shapes
    alpha = (concentration * shifted)[:, :, np.newaxis]
    beta = (concentration * (1.0 - shifted))[:, :, np.newaxis]
    edges = np.arange(n_categories + 1) / n_categories
    mass = np.maximum(np.diff(betainc(alpha, beta, edges), axis=2), MIN_PROBABILITY)
    mass = mass.transpose(0, 2, 1)
    shapes: Floats = mass / mass.sum(axis=1, keepdims=True)
    return shapes


def _means(n_means: list[int]) -> Floats:
    """Return the means of all shapes, given how many there are of each concentration."""
    return np.concatenate([(np.arange(n) + 0.5) / n for n in n_means])


class OpinionParameters(NamedTuple):
    """The parameters where opinions differ."""

    strategy_weights: Floats  # q[s, g]: the posterior of each annotator's response strategies
    prior: Floats  # p[z]: the share of items in each latent class
    always_share: float  # the share of annotators who are always serious


class OpinionSteps(StrategySteps):
    """Variational EM over a session: shapes of opinion of items, response strategies of annotators."""

    objective_name = "the bound per label"

    def __init__(self, items: OpinionShapes, session: Session) -> None:
        super().__init__(items, session, break_ties=True)
        self.items = items
        self._n_annotators = self.labels.weighted(np.ones(self.labels.n_annotators)).sum()
        self._count = Pass("robust_gpm.step", inputs=POSTERIOR_INPUTS, sums=self.count_sums)

    def start(self) -> OpinionParameters:
        """Return the prior of the strategies, and all classes alike."""
        n_annotators, _, n_classes = self.counts_shape
        prior = normalise_log_weights(self._log_prior(_ALWAYS_START))
        weights = np.broadcast_to(self._to_engine(prior), (n_annotators, prior.shape[1]))
        return OpinionParameters(weights, np.full(n_classes, 1.0 / n_classes), _ALWAYS_START)

    def start_beside(self, people: OpinionParameters) -> OpinionParameters:
        """Return the parameters of a fit of some annotators; the others have the weights of a start."""
        weights = np.array(self.session.to_host(self.start().strategy_weights))
        weights[: len(people.strategy_weights)] = people.strategy_weights
        return people._replace(strategy_weights=self.session.to_engine(weights))

    def step(self, old: OpinionParameters) -> tuple[OpinionParameters, Monitor]:
        """Pass over the labels once and update all parameters."""
        expected, log_likelihood = self.e_step(old)
        bound = self.lower_bound(old, log_likelihood, self.divergence(old))
        return self.m_step(old, expected), Monitor(log_likelihood, bound / self._n_labels)

    def e_step(self, parameters: OpinionParameters) -> tuple[ExpectedCounts, float]:
        """Compute the items' posteriors; return their sums and the log-likelihood."""
        return self.expected_counts(
            self._count, prior=parameters.prior, confusion=self.confusion(parameters)
        )

    def divergence(self, parameters: OpinionParameters) -> float:
        """Return the divergence of the strategies' weights from their prior, over all annotators."""
        weights = parameters.strategy_weights
        log_prior = self._to_engine(self._log_prior(parameters.always_share))
        log_ratio = np.log(np.maximum(weights, 1e-300)) - log_prior
        return float(self.labels.weighted(weights * log_ratio).sum())

    def m_step(self, old: OpinionParameters, expected: ExpectedCounts) -> OpinionParameters:
        """Update the strategies' weights, the share of the always serious, and the classes."""
        strategies = self.items.strategies
        total = strategies.log_probability.total(expected.counts, self._repeated_label)
        weights = normalise_log_weights(total + self._to_engine(self._log_prior(old.always_share)))
        is_always = np.asarray(strategies.always_serious, like=weights)
        always = self.session.to_host(self.labels.weighted(weights[:, is_always]))
        # Added up in memory: the order of the sum must not depend on the engine's hardware.
        n_always = float(always.sum(dtype=np.float64))
        n_annotators = self._n_annotators + _ALWAYS_PSEUDO_COUNT + _NOT_ALWAYS_PSEUDO_COUNT
        always_share = (n_always + _ALWAYS_PSEUDO_COUNT) / n_annotators
        prior = self.items.shares.estimate(expected.classes, old.prior)
        return OpinionParameters(weights, prior, float(always_share))

    def confusion(self, parameters: OpinionParameters) -> Floats:
        """Return P(label | class) of each annotator: the geometric mean over strategies."""
        table = self.items.strategies.log_probability
        mean = table.average(parameters.strategy_weights, self._repeated_label)
        confusion: Floats = np.exp(self.labels.weighted(mean))
        return confusion

    def finalize(self, parameters: OpinionParameters) -> float:
        """Return the log-likelihood: latent classes summed out, strategies averaged."""
        return self.e_step(parameters)[1]

    def acceleration(self) -> Squarem[OpinionParameters]:
        """Return how to extrapolate the steps."""
        return Squarem(OpinionParameters, shares(axis=1), shares(axis=0), extrapolate_probability)

    def leave_one_out(self, parameters: OpinionParameters) -> Floats:
        """Return each annotator's leave-one-out log-likelihood in every strategy."""
        return self.left_out(
            self.items.strategies,
            prior=parameters.prior,
            confusion=self.confusion(parameters),
        )

    def _to_engine(self, prior: Floats) -> Floats:
        """Return one row for all annotators, or one each, where the engine computes."""
        rows: Floats = prior if len(prior) == 1 else self.session.to_engine(prior)
        return np.asarray(rows, like=self._repeated_label)

    def _log_prior(self, always_share: float) -> Floats:
        """Return the log-prior of strategies: one row per annotator, or one for all of them."""
        strategies = self.items.strategies
        return strategies.annotator_log_prior(
            strategies.log_prior(always_share), self.labels.annotator_prior
        )

    def lower_bound(
        self, parameters: OpinionParameters, log_likelihood: float, divergence: float
    ) -> float:
        """Return the lower bound of the log-posterior."""
        always = parameters.always_share
        of_classes = self.items.shares.log_prior(parameters.prior)
        of_always = _ALWAYS_PSEUDO_COUNT * np.log(always)
        of_always += _NOT_ALWAYS_PSEUDO_COUNT * np.log1p(-always)
        return float(log_likelihood - divergence + of_classes + of_always)


def extrapolate_probability(x0: float, x1: float, x2: float, limit: float) -> float:
    """Extrapolate a probability."""
    return float(probabilities(np.array(x0), np.array(x1), np.array(x2), limit))
