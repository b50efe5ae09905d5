"""GLAD: abilities of annotators and difficulties of items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.models.base import IterativeEstimator
from annotruth.models.distribution import Distribution
from annotruth.models.em import Monitor
from annotruth.models.fits.make_fit import BuildItemResults, ItemResults
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.models.squarem import BURN_IN, Squarem, newest, numbers
from annotruth.observations import Labels

# With acceleration: Newton steps on each b per pass; the least curvature of an ability's
# log-posterior, as a share of its curvature given the truths; and the longest step.
_NEWTON_STEPS = 2
_MIN_CURVATURE, _MAX_STEP = 0.2, 1.0


class GLADParameters(NamedTuple):
    """The abilities, the objective of the last pass, and the abilities that the next pass uses."""

    alpha: Floats
    log_likelihood: float
    log_posterior: float
    next_alpha: Floats
    shift: float  # added to every b before the next pass
    proven_alpha: Floats  # the update that is proven to raise the log-posterior
    proven_shift: float
    n_passes: int


class GLADSums(NamedTuple):
    """The sums of a pass: derivatives per annotator, and totals."""

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

    With ``newton``, abilities take Newton steps on the log-posterior itself, which are not proven to
    raise it: acceleration rolls them back if it falls.
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


@dataclass(kw_only=True)
class GLAD(IterativeEstimator[GLADSteps]):
    r"""GLAD (Generative model of Labels, Abilities, and Difficulties).

    Whitehill, Ruvolo, Wu, Bergsma and Movellan, "Whose Vote Should Count More: Optimal
    Integration of Labels from Labelers of Unknown Expertise" (2009). Annotator s has an ability
    :math:`\alpha_s`, item e a difficulty :math:`1/\beta_e > 0` and a true class :math:`z_e`. The
    probabilities of the correct label, and of each of the K - 1 wrong ones, are

    .. math::
        p(r_{e,s} = z_e) = \sigma(\alpha_s \beta_e), \qquad
        p(r_{e,s} = n) = \frac{1 - \sigma(\alpha_s \beta_e)}{K - 1}, \qquad
        \sigma(x) = \frac{1}{1 + e^{-x}}.

    The paper gives the equations for K = 2, and the priors N(1, 1) of :math:`\alpha_s` and of
    :math:`b_e = \log \beta_e`. It leaves the prior of the classes to the user. Here it is uniform:
    a prior learned from few items would draw uncertain items to frequent classes.

    The objective is the **log-posterior** of alpha and b with the true classes summed out: the
    log-likelihood of the labels plus the log-priors. It may have several maxima; the result is
    the one reached from :math:`\alpha = b = 1`. The loop stops when a step changes the
    log-posterior of all labels by less than ``tol``. Each step is a generalised EM step that updates
    abilities, the scale and difficulties in turn, none of which can lower the objective.

    An item's distribution is :math:`p(z_e \mid r)`, including classes that no annotator chose; with
    more than 100 categories those are not stored, to save memory, and the stored probabilities sum
    to less than 1. An annotator's reliability is the mean of
    :math:`\sigma(\alpha_s \beta_e)` over their labels, the expected share of correct ones; it is
    below one half if and only if the ability is negative. Further columns: ``difficulty`` of items,
    ``ability`` of annotators. With a single category every label is correct, and abilities and
    difficulties stay at the priors' modes. `predict_proba` returns
    :math:`p_n \sigma + (1 - p_n)(1 - \sigma)/(K - 1)` for label n, with p the item's distribution
    and :math:`\sigma = \sigma(\alpha_s \beta_e)`.

    Parameters
    ----------
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`. With acceleration, abilities take a
        Newton step on the log-posterior itself where that is longer, which is replaced by the
        proven step if the log-posterior falls; each b takes two steps per pass.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat") for item in range(4) for name in ("ann", "bob")]
    >>> labels += [(item, "eve", "dog") for item in range(4)]
    >>> fit = at.GLAD().fit(labels).result_
    >>> fit.item_table()["label"].to_pylist()
    ['cat', 'cat', 'cat', 'cat']
    >>> fit.reliability.round(2).tolist()
    [0.99, 0.99, 0.1]
    """

    name: ClassVar[str] = "glad"
    parameter_axes: ClassVar[Mapping[str, str] | None] = {}
    item_arrays: ClassVar[tuple[str, ...]] = ("posterior", "other", "b")

    def _steps(self, labels: Labels, session: Session) -> GLADSteps:
        return GLADSteps(labels, session, newton=self.acceleration)

    def _estimates(self, steps: GLADSteps, parameters: GLADParameters) -> dict[str, Any]:
        return {
            "reliability": steps.reliability(parameters.alpha),
            "annotator_columns": {"ability": parameters.alpha},
        }

    def _item_results(self, steps: GLADSteps) -> BuildItemResults:
        return _item_results

    def label_log_odds(self, first: Codes, second: Codes) -> Floats:
        """Return what each label adds to the log-odds of one category of its item over another."""
        fit, data = self.result_, self.result_.data
        item, label = data.item_of_label(), data.category_of_label()
        ability = fit.annotator_columns["ability"][data.annotator]
        # log(sigma / ((1 - sigma) / (K - 1))), with sigma the probability of the right label
        right = ability / fit.item_columns["difficulty"][item] + np.log(
            max(data.n_categories - 1, 1)
        )
        sign = (label == first[item]).astype(float) - (label == second[item])
        odds: Floats = sign * right
        return odds

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit, n = self.result_, self.result_.data.n_categories
        assert fit.distribution is not None
        p = fit.distribution.rows(item, n)
        if n == 1:
            return p
        # With many categories, classes that no annotator chose are not stored and share the rest.
        unchosen = p == 0.0
        rest = np.maximum(1.0 - p.sum(axis=1), 0.0) / np.maximum(unchosen.sum(axis=1), 1)
        p = np.where(unchosen, rest[:, np.newaxis], p)
        x = fit.annotator_columns["ability"][annotator] / fit.item_columns["difficulty"][item]
        correct = expit(x)[:, np.newaxis]
        rows: Floats = p * correct + (1.0 - p) * (1.0 - correct) / (n - 1)
        return rows


def _item_results(labels: Labels, arrays: Mapping[str, Floats]) -> ItemResults:
    posterior, other, b = arrays.values()
    distribution = _distribution(labels, posterior, other)
    return {"distribution": distribution, "item_columns": {"difficulty": np.exp(-b)}}


def _distribution(labels: Labels, posterior: Floats, other: Floats) -> Distribution:
    """Return the posteriors of all classes; with many categories, those of chosen classes only."""
    item, n = labels.item_of_cell(), labels.n_categories
    if n > MOST_COLUMNS:
        return Distribution.of_cells(labels, posterior)
    full = np.repeat(other[:, np.newaxis], n, axis=1)
    full[item, labels.cell_category] = posterior
    known = np.flatnonzero(labels.known >= 0)
    full[known, labels.known[known]] = 1.0
    return Distribution.of_dense(full)
