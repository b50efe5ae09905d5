"""Latent classes of RobustGPM's items: what both kinds share, and the shapes of opinion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import POSTERIOR_INPUTS
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    ResponseStrategies,
    tabulate_strategies,
)
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

_MAX_NEWTON_STEPS = 50
# Twice the rise of the log-posterior in a Newton step, per item: near the solution, and there.
_NEWTON_NEAR, _NEWTON_TOL = 1e-6, 1e-14

STRATEGY_INPUTS = (Input("other"), Input("repeated"), Input("repeated_label", annotator_axis=0))
"""Further inputs of passes that compute leave-one-out log-likelihoods."""


class ItemModel:
    """The latent classes of items, and the likelihood of a known truth, categories x classes."""

    def __init__(self, labels: LabelSummary, known_truth: Floats) -> None:
        self.labels = labels
        self.known_truth = known_truth

    @property
    def n_classes(self) -> int:
        """How many latent classes there are."""
        return len(self.known_truth[0])


def leave_one_out(
    session: Session,
    items: ItemModel,
    strategies: ResponseStrategies,
    repeated_label: Codes,
    *,
    prior: Floats,
    confusion: Floats,
) -> Floats:
    """Return each annotator's log-likelihood in every strategy, annotators x strategies.

    The posterior of an item is computed from the labels of the other annotators. Annotators whose labels
    count less than others' depend on one another: they are left out together.
    """
    shape = (items.labels.n_annotators, strategies.n_strategies)
    one = Pass(
        "robust_gpm.leave_one_out",
        inputs=(*POSTERIOR_INPUTS, *STRATEGY_INPUTS),
        sums=(Sum("log_likelihood", shape, annotator_axis=0),),
    )
    other, repeated = (
        np.ascontiguousarray(table.transpose(1, 2, 0)) for table in strategies.probability
    )

    def run(confusion: Floats) -> Floats:
        return session.run_pass(
            one,
            prior=prior,
            known_truth=items.known_truth,
            confusion=confusion,
            other=other,
            repeated=repeated,
            repeated_label=repeated_label,
        )["log_likelihood"]

    weight = items.labels.annotator_weight
    log_likelihood = run(confusion)
    if weight is not None and (weight < 1.0).any():
        dependent = (weight < 1.0)[:, np.newaxis]
        without = np.where(dependent[:, :, np.newaxis], 1.0, confusion)
        log_likelihood = np.where(dependent, run(without), log_likelihood)
    return log_likelihood


def weighted_confusion(labels: LabelSummary, confusion: Floats) -> Floats:
    """Return probabilities of labels, annotators x categories x classes, to the power of their weight."""
    if labels.annotator_weight is None:
        return confusion
    powers: Floats = confusion ** labels.annotator_weight[:, np.newaxis, np.newaxis]
    return powers


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

    def score_shifts(self, class_prior: Floats) -> Floats:
        """Return by how much each shift moves the mean score of serious labels, over all items."""
        scores = self.labels.scale.values @ self.serious @ class_prior
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
