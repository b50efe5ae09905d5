"""RobustGPM where opinions differ: the latent classes of items are shapes of opinion."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, Singles, aligned_empty
from annotruth.kernels.shared import LOG_ZERO, pad
from annotruth.labels import LabelSummary
from annotruth.models.robust_gpm.steps import (
    STRATEGY_INPUTS,
    EStepResult,
    ExpectedCounts,
    ItemModel,
    RobustGPMParameters,
    RobustGPMSteps,
)
from annotruth.models.robust_gpm.strategies import (
    MIN_PROBABILITY,
    ResponseStrategies,
    normalise_log_weights,
    tabulate_strategies,
)

N_MEANS = 16
"""How many means the broad shapes of opinion have."""

CONCENTRATIONS = (5.0, 15.0, 45.0, 135.0, 405.0)
"""The concentrations (sums of both parameters) of the Beta distributions behind the shapes.

The first two are those of every scale. A further one is used where its shapes are not narrower than
categories are: a scale from 0 to 100 shows more than one from 1 to 5.
"""

_N_BROAD = 2  # of the concentrations, used on every scale
_MIN_WIDTH = 0.6  # of other shapes: their standard deviation in the middle, in categories
_MAX_SHIFT = 1.0

# On long scales annotators differ in how closely they follow opinion: factors of the concentration,
# one step of the concentrations down and up, and their prior weights.
_SHARPNESS, _SHARPNESS_WEIGHTS = (1 / 3, 1.0, 3.0), (1.0, 2.0, 1.0)

_LOG_POSTERIOR_INPUTS = (Input("log_prior"), Input("log_likelihood", annotator_axis=0))

_SHIFT_DEVIATION = 0.5  # standard deviation of the Gaussian prior of shifts
_SHAPE_PSEUDO_COUNT = 0.2  # items per shape
_ALWAYS_START = 0.65  # the share of annotators who are always serious, before the first step

# Variances are multiplied by the first, plus the second times the relative variance of inverted
# shares. Chosen on simulated crowds.
_INFLATION, _INFLATION_BY_INVERSION = 1.1, 29.0


class OpinionShapes(ItemModel):
    """Latent classes where opinions differ: Beta distributions over the scale, in equal bins.

    Their means and concentrations are fixed. Annotators may shift the mean. On longer scales there
    are narrower shapes, with means as much closer to one another, and shifts in finer steps.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes
    >>> items = OpinionShapes(at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels)
    >>> items.serious.shape  # shifts x categories x classes
    (5, 5, 32)
    """

    one_truth = False
    class_pseudo_count = _SHAPE_PSEUDO_COUNT

    def __init__(self, labels: LabelSummary) -> None:
        concentrations = scale_concentrations(labels.n_categories)
        shifts = _scale_shifts(concentrations)
        is_long = len(concentrations) > _N_BROAD
        sharpness = np.array(_SHARPNESS if is_long else (1.0,))
        self.serious = np.concatenate(
            [_discretised_betas(labels.n_categories, concentrations, shifts, f) for f in sharpness]
        )
        self.shifts = np.tile(shifts, len(sharpness))
        weights = np.exp(-0.5 * (self.shifts / _SHIFT_DEVIATION) ** 2)
        weights *= np.repeat(_SHARPNESS_WEIGHTS if is_long else (1.0,), len(shifts))
        self._strategies = tabulate_strategies(
            self.serious,
            weights / weights.sum(),
            ordinal=True,
            always_only=np.repeat(sharpness != 1.0, len(shifts)),
        )
        # A known truth counts as one more serious label.
        super().__init__(labels, known_truth=self.serious[len(self.shifts) // 2])

    @property
    def serious_shape(self) -> tuple[int, int, int]:
        """Shifts x categories x shapes."""
        n_shifts, n_categories, n_shapes = self.serious.shape
        return n_shifts, n_categories, n_shapes

    def strategies(self, serious: Floats) -> ResponseStrategies:
        """Return all response strategies, which are fixed."""
        return self._strategies

    def update_serious(
        self,
        old: Floats,
        strategies: ResponseStrategies,
        weights: Floats | Singles,
        counts: Floats,
        repeated_label: Codes,
    ) -> Floats:
        """Return the shapes as they are: nothing is learned."""
        return old

    def log_prior(self, serious: Floats) -> float:
        """Return 0: nothing is learned."""
        return 0.0

    def opinions(self, strategies: ResponseStrategies, weights: Floats) -> Floats:
        """Return the shapes, shifted as the crowd shifts them on average."""
        crowd = self.crowd_shifts(strategies, weights)
        opinions: Floats = np.tensordot(crowd, self.serious, axes=1).T
        return opinions

    def crowd_shifts(self, strategies: ResponseStrategies, weights: Floats | Singles) -> Floats:
        """Return the share of each shift in all serious labels."""
        serious = self.labels.labels_per_annotator @ (weights * strategies.reliability)
        by_shift = np.bincount(strategies.shift, serious, minlength=len(self.shifts))
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
        n_means = count_means(scale_concentrations(len(values))[-1])
        return float(((values[-1] - values[0]) / n_means) ** 2 / 12.0)

    def variance_inflation(self, strategies: ResponseStrategies, weights: Floats) -> float:
        r"""Return the factor by which the variances of scores and confidences are multiplied.

        Annotators are compared with one another: who is taken as serious decides who is taken as
        inverting the scale. Where that is uncertain, errors of all items are correlated, which no
        item's posterior shows. With :math:`i_g` the share of inverted labels in strategy g, and means
        over labels, the factor is

        .. math:: 1.1 + 29 \, \overline{\mathrm{var}_{q_s}(i)} \, / \, \bar\epsilon^2.

        The form and its figures were chosen on simulated crowds.
        """
        share = self.labels.labels_per_annotator / self.labels.n_labels
        inverted = strategies.inverted_share
        variance = weights @ inverted**2 - (weights @ inverted) ** 2
        reliability = share @ (weights @ strategies.reliability)
        return float(_INFLATION + _INFLATION_BY_INVERSION * (share @ variance) / reliability**2)


class OpinionSteps(RobustGPMSteps[OpinionShapes]):
    """The steps where opinions differ.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes, OpinionSteps
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = OpinionSteps(OpinionShapes(labels), session)
    ...     first, before = steps.step(steps.start())
    ...     second, after = steps.step(first)
    >>> after.objective > before.objective
    True
    """

    def start(self) -> RobustGPMParameters:
        """Return the prior of the strategies, and all classes alike."""
        n_annotators, _, n_classes = self.counts_shape
        strategies = self.items.strategies(self.items.serious)
        always = _ALWAYS_START
        prior = normalise_log_weights(self._log_prior(always, strategies))
        weights = np.broadcast_to(prior, (n_annotators, prior.shape[1]))
        uniform = np.full(n_classes, 1.0 / n_classes)
        return RobustGPMParameters(weights, uniform, always, self.items.serious)


class SinglePrecisionOpinionSteps(OpinionSteps):
    """`OpinionSteps` with tables, counts and strategies' weights in single precision.

    The log-likelihood and the parameters that all annotators share are in double precision. The
    steps agree with those in double precision to six digits. Work on annotators is divided in a way
    that depends on their number only, so results are the same on any number of threads.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.robust_gpm.opinions import OpinionShapes, SinglePrecisionOpinionSteps
    >>> labels = at.simulate.crowd(n_items=20, n_annotators=6, seed=0).labels
    >>> with closing(get_engine("memory").open(labels)) as session:
    ...     steps = SinglePrecisionOpinionSteps(OpinionShapes(labels), session)
    ...     parameters, monitor = steps.step(steps.start())
    >>> str(parameters.strategy_weights.dtype)
    'float32'
    """

    def __init__(self, items: OpinionShapes, session: Session) -> None:
        super().__init__(items, session)
        strategies = items.strategies(items.serious)
        table = strategies.log_probability
        self._count_singles = Pass(
            "robust_gpm_single.step",
            inputs=_LOG_POSTERIOR_INPUTS,
            sums=(
                Sum("labels", self.counts_shape, annotator_axis=0, single_precision=True),
                Sum("classes", (items.n_classes,)),
                Sum("log_likelihood", (1,)),
            ),
        )
        self._log_other, self._log_repeated = _singles(table.other), _singles(table.repeated)
        # Relative to the first always-serious strategy all others are near 0, which loses fewer
        # digits; the difference cancels when weights are normalised.
        relative = table.other - table.other[strategies.reliability.argmax()]
        self._relative = pad(relative.reshape(len(relative), -1).T)
        self._repeated_excess = pad((table.repeated - table.other).transpose(1, 2, 0))
        self._log_likelihood = aligned_empty(self.counts_shape, np.float32)
        self._divergence = np.empty(self.labels.n_annotators)

    def e_step(
        self, parameters: RobustGPMParameters, strategies: ResponseStrategies
    ) -> EStepResult:
        """Compute the items' posteriors and return their sums."""
        self._average_strategies(parameters, strategies)
        sums = self.session.run_pass(
            self._count_singles,
            log_prior=self._log_class_prior(parameters.class_prior),
            log_likelihood=self._log_likelihood,
        )
        counts = ExpectedCounts(sums["labels"], sums["classes"])
        divergence = float(self._divergence.sum())
        return EStepResult(counts, float(sums["log_likelihood"][0]), divergence)

    def leave_one_out(self, parameters: RobustGPMParameters) -> Floats:
        """Return the leave-one-out log-likelihood, annotators x strategies."""
        strategies = self.items.strategies(parameters.serious)
        self._average_strategies(parameters, strategies)
        leave_one_out = Pass(
            "robust_gpm_single.leave_one_out",
            inputs=(*_LOG_POSTERIOR_INPUTS, *STRATEGY_INPUTS),
            sums=(Sum("log_likelihood", parameters.strategy_weights.shape, annotator_axis=0),),
        )
        other, repeated = (pad(table.transpose(1, 2, 0)) for table in strategies.probability)
        sums = self.session.run_pass(
            leave_one_out,
            log_prior=self._log_class_prior(parameters.class_prior),
            log_likelihood=self._log_likelihood,
            other=other,
            repeated=repeated,
            repeated_label=self.repeated_label,
        )
        return sums["log_likelihood"]

    def _average_strategies(
        self, parameters: RobustGPMParameters, strategies: ResponseStrategies
    ) -> None:
        """Compute the labels' log-likelihood, and the weights' divergence from their prior."""
        weights = np.ascontiguousarray(parameters.strategy_weights, dtype=np.float32)
        log_prior = pad(self._log_prior(parameters.always_share, strategies), LOG_ZERO)
        self.session.run_over_annotators(
            "robust_gpm_single.mix",
            len(weights),
            weights,
            log_prior,
            self._log_other,
            self._log_repeated,
            self.repeated_label,
            self._log_likelihood,
            self._divergence,
        )

    def _strategy_weights(
        self, counts: Floats, strategies: ResponseStrategies, log_prior: Floats
    ) -> Singles:
        """Return the posterior of each annotator's strategies, given the expected counts."""
        singles = np.ascontiguousarray(counts, dtype=np.float32)
        weights = np.empty((len(singles), strategies.n_strategies), dtype=np.float32)
        self.session.run_over_annotators(
            "robust_gpm_single.strategy_weights",
            len(singles),
            singles.reshape(len(singles), -1),
            self._relative,
            singles,
            pad(log_prior, LOG_ZERO),
            self._repeated_excess,
            self.repeated_label,
            weights,
        )
        return weights

    def _log_class_prior(self, class_prior: Floats) -> Singles:
        """Return the classes' log-prior given each known truth, and in the last row given none."""
        log_prior = np.log(class_prior)
        return _singles(np.vstack([log_prior + np.log(self.items.known_truth), log_prior]))


def opinion_steps(items: OpinionShapes, session: Session, tol: float) -> OpinionSteps:
    """Return the steps in the precision that the engine chooses."""
    # The kernels in single precision hold the shapes of scales that are not long.
    single = session.single_precision(tol) and items.n_classes == N_MEANS * _N_BROAD
    return (SinglePrecisionOpinionSteps if single else OpinionSteps)(items, session)


def scale_concentrations(n_categories: int) -> Floats:
    """Return the concentrations of the shapes on a scale, in ascending order."""
    all_of_them = np.array(CONCENTRATIONS)
    deviation = 0.5 / np.sqrt(all_of_them + 1.0)
    n = max(_N_BROAD, int((deviation * n_categories >= _MIN_WIDTH).sum()))
    concentrations: Floats = all_of_them[:n]
    return concentrations


def count_means(concentration: float) -> int:
    """Return how many means shapes have: the narrower they are, the more."""
    return round(N_MEANS * max(1.0, float(np.sqrt(concentration / CONCENTRATIONS[_N_BROAD - 1]))))


def count_shapes(n_categories: int) -> int:
    """Return how many shapes of opinion there are on a scale."""
    return sum(count_means(c) for c in scale_concentrations(n_categories))


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
    mean = np.concatenate([(np.arange(n) + 0.5) / n for n in n_means])
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


def _singles(values: Floats) -> Singles:
    """Return values in single precision, aligned with cache lines."""
    out = aligned_empty(values.shape, np.float32)
    out[:] = values
    return out
