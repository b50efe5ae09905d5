"""GLAD's generalised EM over a session."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats, inner
from annotruth.labels import Labels
from annotruth.models.em import Monitor
from annotruth.models.result import Fit
from annotruth.models.squarem import BURN_IN, Squarem, newest, numbers
from annotruth.models.warm_start import with_new_rows

# With acceleration: Newton steps on each b per pass; the least curvature of an ability's
# log-posterior, as a share of its curvature given the truths; and the longest step.
_NEWTON_STEPS = 2
_MIN_CURVATURE, _MAX_STEP = 0.2, 1.0


class GLADParameters(NamedTuple):
    """The abilities, the objective of the last pass, and the abilities that the next pass uses.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.glad.steps import GLADParameters
    >>> one = np.ones(2)
    >>> GLADParameters(one, -3.0, -5.0, one, 0.0, one, 0.0, n_passes=1).alpha
    array([1., 1.])
    """

    alpha: Floats
    log_likelihood: float
    log_posterior: float
    next_alpha: Floats
    shift: float  # added to every b before the next pass
    proven_alpha: Floats  # the update that is proven to raise the log-posterior
    proven_shift: float
    n_passes: int


class GLADSums(NamedTuple):
    """The sums of a pass: derivatives per annotator, and totals.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.glad.steps import GLADSums
    >>> zero = np.zeros(2)
    >>> GLADSums(*(zero,) * 5, log_likelihood=-3.0, b_sum=0.0, b_squares=0.0).log_likelihood
    -3.0
    """

    slope: Floats
    curvature: Floats
    bound: Floats
    steepest: Floats
    missing: Floats
    log_likelihood: float
    b_sum: float  # of b - 1
    b_squares: float  # of (b - 1) squared


class GLADSteps:
    """GLAD's equations over a session; b and the posteriors stay in the session.

    Parameters
    ----------
    labels, session
        The labels, and the session they are open in.
    newton
        Whether abilities take Newton steps on the log-posterior itself, which are not proven to
        raise it. Only with acceleration, which rolls them back if it falls.

    Examples
    --------
    >>> from contextlib import closing
    >>> import annotruth as at
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.glad.steps import GLADSteps
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 1)])
    >>> with closing(get_engine("reference").open(labels)) as session:
    ...     steps = GLADSteps(labels, session, newton=False)
    ...     start = steps.start()
    ...     parameters, monitor = steps.step(start)
    >>> parameters.log_posterior > start.log_posterior
    True
    """

    objective_name = "the log-posterior"

    def __init__(self, labels: Labels, session: Session, *, newton: bool) -> None:
        by_annotator = (labels.n_annotators,)
        self._newton = newton
        self._session = session
        self._n_items = labels.n_items
        self._n_labels = labels.labels_per_annotator
        self._n_categories = labels.n_categories
        names = ("slope", "curvature", "bound", "steepest", "missing")
        self._step = Pass(
            "glad.step",
            state=("b", "total", "posterior", "other"),
            inputs=tuple(map(Input, ("alpha", "shift", "n_steps", "n_categories"))),
            sums=(*(Sum(name, by_annotator) for name in names), Sum("totals", (3,))),
        )
        self._correct = Pass(
            "glad.sum_correct",
            state=("b",),
            inputs=(Input("alpha"), Input("n_categories")),
            sums=(Sum("correct", by_annotator),),
        )

    def start(self) -> GLADParameters:
        """Return the mode of the priors, alpha = b = 1."""
        self._allocate()
        return self._pass(np.ones(len(self._n_labels)), shift=0.0, n_steps=0, n_before=0)

    def resume(self, previous: Fit) -> GLADParameters:
        """Return the abilities of a previous fit; b continues from its difficulties."""
        self._allocate()
        b = -np.log(previous.item_columns["difficulty"])
        self._session.put("b", with_new_rows(b, self._session.collect("b")), per="items")
        ability = previous.annotator_columns["ability"]
        alpha = with_new_rows(ability, np.ones(len(self._n_labels)))
        return self._pass(alpha, shift=0.0, n_steps=0, n_before=0)

    def _allocate(self) -> None:
        self._session.allocate("b", per="items")
        self._session.allocate("other", per="items")
        self._session.allocate("total", per="cells")
        self._session.allocate("posterior", per="cells")
        self._session.run_pass(Pass("glad.start", ("b",)))

    def step(self, old: GLADParameters) -> tuple[GLADParameters, Monitor]:
        """Update the abilities and the scale, then pass over the labels to update the items."""
        n_steps = _NEWTON_STEPS if self._newton else 1
        new = self._pass(old.next_alpha, old.shift, n_steps=n_steps, n_before=old.n_passes)
        return new, Monitor(old.log_likelihood, new.log_posterior)

    def acceleration(self) -> Squarem[GLADParameters]:
        """Extrapolate the abilities and difficulties that the next pass uses."""
        return Squarem(
            GLADParameters,
            *(newest, newest, newest, numbers, newest, newest, newest, newest),
            session=self._session,
            items={"b": "numbers"},
            safeguarded=lambda unproven: unproven._replace(
                next_alpha=unproven.proven_alpha, shift=unproven.proven_shift
            ),
        )

    def finalize(self, parameters: GLADParameters) -> float:
        """Compute the posteriors of the final abilities; return the log-likelihood."""
        return self._pass(parameters.alpha, shift=0.0, n_steps=0, n_before=0).log_likelihood

    def reliability(self, alpha: Floats) -> Floats:
        """Return the expected share of each annotator's labels that are correct."""
        sums = self._session.run_pass(self._correct, alpha=alpha, n_categories=self._n_categories)
        return sums["correct"] / self._n_labels

    def _pass(self, alpha: Floats, shift: float, *, n_steps: int, n_before: int) -> GLADParameters:
        result = self._session.run_pass(
            self._step, alpha=alpha, shift=shift, n_steps=n_steps, n_categories=self._n_categories
        )
        log_likelihood, b_sum, b_squares = result.pop("totals").tolist()
        sums = GLADSums(**result, log_likelihood=log_likelihood, b_sum=b_sum, b_squares=b_squares)
        proven_alpha = _proven_abilities(alpha, sums)
        proven = following = self._rescale(proven_alpha, sums)
        if self._newton and n_before >= BURN_IN:
            following = self._rescale(_newton_abilities(alpha, proven_alpha, sums), sums)
        log_posterior = self._log_posterior(alpha, sums)
        return GLADParameters(
            alpha, sums.log_likelihood, log_posterior, *following, *proven, n_passes=n_before + 1
        )

    def _rescale(self, alpha: Floats, sums: GLADSums) -> tuple[Floats, float]:
        """Return the abilities on the best scale, and what to add to every b for it."""
        log_scale = _best_log_scale(alpha, sums.b_sum, self._n_items)
        return math.exp(log_scale) * alpha, -log_scale

    def _log_posterior(self, alpha: Floats, sums: GLADSums) -> float:
        squares = sums.b_squares + float(np.square(alpha - 1.0).sum())
        constant = (self._n_items + len(alpha)) * math.log(2.0 * math.pi)
        return sums.log_likelihood - 0.5 * (squares + constant)


def _proven_abilities(old_alpha: Floats, old: GLADSums) -> Floats:
    """Return each alpha after the longer of two steps that cannot overshoot."""
    slope = old.slope - (old_alpha - 1.0)
    curvature = 1.0 + old.curvature
    # Beyond the maximum of the bounding parabola the objective may still rise, but a step might pass
    # the maximum of the objective. Where most labels are wrong, that ended at a far lower maximum,
    # with the sign of every ability changed.
    newton = np.minimum(np.abs(slope) / curvature, np.abs(slope) / (1.0 + old.bound))
    # The eighth root of the sum of eighth powers is slightly above the largest beta. It may overflow
    # after an extrapolation; the step is then close to 0.
    max_beta = np.clip(old.steepest, np.finfo(float).tiny, np.finfo(float).max) ** 0.125
    bounded = np.log1p(max_beta * np.abs(slope) / curvature) / max_beta
    alpha: Floats = old_alpha + np.sign(slope) * np.maximum(newton, bounded)
    return alpha


def _newton_abilities(old_alpha: Floats, proven: Floats, old: GLADSums) -> Floats:
    """Return each alpha after a Newton step on the log-posterior itself, where that is longer.

    The step is proven to raise the log-posterior only if no other alpha changes.
    """
    slope = old.slope - (old_alpha - 1.0)
    complete = 1.0 + old.curvature
    move = slope / np.maximum(complete - old.missing, _MIN_CURVATURE * complete)
    move = np.clip(move, -_MAX_STEP, _MAX_STEP)
    alpha: Floats = np.where(np.abs(move) > np.abs(proven - old_alpha), old_alpha + move, proven)
    return alpha


def _best_log_scale(alpha: Floats, b_sum: float, n_items: int) -> float:
    r"""Return the u that maximises the prior of :math:`e^u \alpha` and :math:`b - u`."""
    ability, squares = float(alpha.sum()), inner(alpha, alpha)

    def log_prior(u: float) -> float:
        v = math.exp(u)
        return (b_sum - 0.5 * n_items * u) * u + (ability - 0.5 * v * squares) * v

    u = 0.0
    for _ in range(5):
        v = math.exp(u)
        slope = b_sum - n_items * u + (ability - v * squares) * v
        curvature = n_items - (ability - 2.0 * v * squares) * v
        u += min(max(slope / max(curvature, 1.0), -1.0), 1.0)
    # With many more annotators than items, Newton's method may not have converged.
    unscaled = log_prior(0.0)
    return u if log_prior(u) >= unscaled - 1e-13 * (1.0 + abs(unscaled)) else 0.0
