r"""GLAD: ability of the annotators and difficulty of the items."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from annotruth.engines import Engine, Pass, Session, get_engine
from annotruth.kernels.arrays import Codes, Floats, inner
from annotruth.labels import Labels
from annotruth.models.base import Estimator
from annotruth.models.distribution import Distribution
from annotruth.models.em import Monitor, ProgressCallback, run_em
from annotruth.models.result import MOST_COLUMNS, Fit
from annotruth.models.squarem import BURN_IN, Squarem, newest, numbers

if TYPE_CHECKING:
    import pandas as pd


# Where steps are bold: Newton steps on each b in one of them; the flattest curve of an ability,
# as a share of the one with truths known, and the longest move.
_BOLD_MOVES = 2
_FLATTEST, _FARTHEST = 0.2, 1.0


class Parameters(NamedTuple):
    """The abilities, what the last pass said of them, and where the next one finds them."""

    alpha: Floats
    log_likelihood: float
    log_posterior: float
    next_alpha: Floats
    shift: float  # of every b, before the next pass moves them
    proven_alpha: Floats  # where the next pass is sure to rise
    proven_shift: float
    n_passes: int


class Sums(NamedTuple):
    """What a pass over the labels says of the abilities it was made with, and of the items."""

    slope: Floats
    curvature: Floats
    bound: Floats
    steepest: Floats
    missing: Floats
    log_likelihood: float
    b_sum: float  # of b - 1
    b_squares: float  # of (b - 1) squared


@dataclass(kw_only=True)
class GLAD(Estimator):
    r"""Ability of the annotators, difficulty of the items, and one true class each.

    Whitehill, Ruvolo, Wu, Bergsma and Movellan, "Whose Vote Should Count More: Optimal
    Integration of Labels from Labelers of Unknown Expertise" (2009). Annotator s has an ability
    :math:`\alpha_s`, item e a difficulty :math:`1/\beta_e > 0` and a true class :math:`z_e`. A
    label is right, or is a given one of the K - 1 wrong classes, with probability

    .. math::
        p(r_{e,s} = z_e) = \sigma(\alpha_s \beta_e), \qquad
        p(r_{e,s} = n) = \frac{1 - \sigma(\alpha_s \beta_e)}{K - 1}, \qquad
        \sigma(x) = \frac{1}{1 + e^{-x}}.

    The paper writes out K = 2 and its priors, N(1, 1) for :math:`\alpha_s` and for
    :math:`b_e = \log \beta_e`. It leaves the prior of the classes to the user; here all are
    equally likely, as one learned from few items would draw doubtful ones to common classes.

    What rises at every step is the **log-posterior** of alpha and b, the truths summed out: the
    log-likelihood of the labels plus the logs of both priors. It may have several peaks; this is
    the one reached from :math:`\alpha = b = 1`. The loop stops when a step changes it by less
    than ``tol``, counted over all labels together. Each step is a generalised EM step in three
    parts, none of which can lower it:

    - Abilities. The E-step gives p, the probability that the truth is the label given. The
      expected log-posterior is then concave in each alpha, with slope and curvature

      .. math::
          g = \sum_e \beta_e (p_{e,s} - \sigma(x)) - (\alpha_s - 1), \qquad
          h = 1 + \sum_e \beta_e^2 \sigma(x) (1 - \sigma(x)), \qquad x = \alpha_s \beta_e.

      Newton's step g/h may overshoot, so alpha moves by the longer of two steps that cannot.
      One is Newton's, up to that to the peak of the parabola of curvature
      :math:`1 + \sum \beta^2 \tanh(x/2)/2x`, which lies under the curve (Jaakkola and Jordan,
      2000). The other is :math:`\log(1 + M|g|/h)/M`, M the largest beta: on a way t the
      curvature grows at most :math:`e^{M|t|}`-fold (Bach, 2010). The paper's gradient ascent
      needs a line search over all labels instead.
    - Scale. :math:`(c\alpha, \beta/c)` explains the labels as well as :math:`(\alpha, \beta)`;
      c goes where the priors are highest.
    - Difficulties. Given the abilities, items do not depend on each other: each b takes a
      Newton step on the log-posterior itself, halved until that does not fall.

    The distribution of an item is :math:`p(z_e \mid r)`, with a share for each class that nobody
    chose; with more than 100 categories, those shares are not written out, so that memory
    follows the labels, and the rest sums to less than 1. A known truth fixes it. An annotator's reliability is the mean of
    :math:`\sigma(\alpha_s \beta_e)` over their labels: the share of right ones that the model
    expects. It is below one half just when the ability is negative. More columns:
    ``difficulty`` of items, ``ability`` of annotators. With one category every label is right,
    and abilities and difficulties stay at their priors. `predict_proba` predicts the label n with
    :math:`p_n \sigma + (1 - p_n)(1 - \sigma)/(K - 1)`, p the item's distribution and
    :math:`\sigma = \sigma(\alpha_s \beta_e)`.

    Parameters
    ----------
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.squarem`) for fewer passes
        over the labels. Abilities then take Newton's step on the log-posterior itself where that
        goes farther, and go back to the sure one should it fall; each b takes two steps a pass.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "glad"

    tol: float = 1e-4
    max_iter: int = 1000
    acceleration: bool = True
    engine: str | Engine = "memory"

    def _fit(self, labels: Labels, progress: ProgressCallback | None) -> Fit:
        with closing(get_engine(self.engine).open(labels)) as session:
            steps = _Steps(labels, session, bold=self.acceleration)
            start = steps.start()
            parameters, history = run_em(
                steps.step,
                start,
                log_likelihood=steps.read_out,
                tol=self.tol,
                max_iter=self.max_iter,
                watched="the log-posterior",
                progress=progress,
                acceleration=steps.acceleration() if self.acceleration else None,
            )
            return Fit(
                model=self.name,
                settings=self.settings(),
                data=labels,
                history=history,
                distribution=_distribution(
                    labels, session.gather("posterior"), session.gather("other")
                ),
                reliability=steps.reliability(parameters.alpha),
                item_columns={"difficulty": np.exp(-session.gather("b"))},
                annotator_columns={"ability": parameters.alpha},
            )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit, n = self.result_, self.result_.data.n_categories
        assert fit.distribution is not None
        p = fit.distribution.rows(item, n)
        if n == 1:
            return p
        # On long scales the classes that nobody chose are not written out, and share the rest.
        unchosen = p == 0.0
        rest = np.maximum(1.0 - p.sum(axis=1), 0.0) / np.maximum(unchosen.sum(axis=1), 1)
        p = np.where(unchosen, rest[:, np.newaxis], p)
        x = fit.annotator_columns["ability"][annotator] / fit.item_columns["difficulty"][item]
        right = expit(x)[:, np.newaxis]
        rows: Floats = p * right + (1.0 - p) * (1.0 - right) / (n - 1)
        return rows

    @property
    def alphas_(self) -> pd.Series[Any]:
        """The ability of each annotator (crowd-kit's name and form)."""
        table = self._fitted().annotator_table()
        return self._column(table, "ability", by="worker", called="alpha")

    @property
    def betas_(self) -> pd.Series[Any]:
        """Minus the log of each item's difficulty (crowd-kit's name and form)."""
        table = self._fitted().item_table()
        difficulty = self._column(table, "difficulty", by="task", called="beta")
        b: pd.Series[Any] = -np.log(difficulty)
        return b


class _Steps:
    """GLAD's steps over a session; b and the posteriors stay in the session."""

    def __init__(self, labels: Labels, session: Session, *, bold: bool) -> None:
        people = (labels.n_annotators,)
        self._bold = bold
        self._session = session
        self._n_items = labels.n_items
        self._n_labels = labels.labels_per_annotator
        self._n_categories = labels.n_categories
        state = ("b", "total", "posterior", "other")
        self._step = Pass("glad.step", state, (*(people,) * 5, (3,)))
        self._right = Pass("glad.right", ("b",), (people,))

    def start(self) -> Parameters:
        """Begin at the peak of the priors, alpha = b = 1."""
        self._session.allocate("b", per="items")
        self._session.allocate("other", per="items")
        self._session.allocate("total", per="cells")
        self._session.allocate("posterior", per="cells")
        self._session.run_pass(Pass("glad.start", ("b",)))
        return self._sweep(np.ones(len(self._n_labels)), shift=0.0, n_moves=0, n_before=0)

    def step(self, old: Parameters) -> tuple[Parameters, Monitor]:
        """Move the abilities and the scale, then sweep the labels to move the items."""
        n_moves = _BOLD_MOVES if self._bold else 1
        new = self._sweep(old.next_alpha, old.shift, n_moves=n_moves, n_before=old.n_passes)
        return new, Monitor(old.log_likelihood, new.log_posterior)

    def acceleration(self) -> Squarem[Parameters]:
        """Leap with the abilities and difficulties that the next pass begins with."""
        return Squarem(
            Parameters,
            *(newest, newest, newest, numbers, newest, newest, newest, newest),
            session=self._session,
            items={"b": "numbers"},
            safeguarded=lambda bold: bold._replace(
                next_alpha=bold.proven_alpha, shift=bold.proven_shift
            ),
        )

    def read_out(self, final: Parameters) -> float:
        """Compute the posteriors anew: the last pass may have been one that was taken back."""
        return self._sweep(final.alpha, shift=0.0, n_moves=0, n_before=0).log_likelihood

    def reliability(self, alpha: Floats) -> Floats:
        """Return the share of each annotator's labels that should be right."""
        (right,) = self._session.run_pass(self._right, alpha, self._n_categories)
        return right / self._n_labels

    def _sweep(self, alpha: Floats, shift: float, *, n_moves: int, n_before: int) -> Parameters:
        slope, curvature, bound, steepest, missing, totals = self._session.run_pass(
            self._step, alpha, shift, n_moves, self._n_categories
        )
        sums = Sums(slope, curvature, bound, steepest, missing, *totals.tolist())
        raised = _raise_abilities(alpha, sums)
        proven = ahead = self._scaled(raised, sums)
        if self._bold and n_before >= BURN_IN:
            ahead = self._scaled(_raise_boldly(alpha, raised, sums), sums)
        log_posterior = self._log_posterior(alpha, sums)
        return Parameters(
            alpha, sums.log_likelihood, log_posterior, *ahead, *proven, n_passes=n_before + 1
        )

    def _scaled(self, alpha: Floats, sums: Sums) -> tuple[Floats, float]:
        log_scale = _best_log_scale(alpha, sums.b_sum, self._n_items)
        return math.exp(log_scale) * alpha, -log_scale

    def _log_posterior(self, alpha: Floats, sums: Sums) -> float:
        squares = sums.b_squares + float(np.square(alpha - 1.0).sum())
        constant = (self._n_items + len(alpha)) * math.log(2.0 * math.pi)
        return sums.log_likelihood - 0.5 * (squares + constant)


def _raise_abilities(old_alpha: Floats, old: Sums) -> Floats:
    """Move each alpha by the longer of two steps that cannot overshoot."""
    slope = old.slope - (old_alpha - 1.0)
    curvature = 1.0 + old.curvature
    # Beyond the parabola's peak it would still rise, but might pass the curve's own: where most
    # labels are wrong that ended in a far lower peak, with every ability turned round.
    newton = np.minimum(np.abs(slope) / curvature, np.abs(slope) / (1.0 + old.bound))
    # The eighth root of a sum of eighth powers is a little more than the largest beta.
    # After a leap it may be too steep for a number; then hardly any move is safe.
    most = np.clip(old.steepest, np.finfo(float).tiny, np.finfo(float).max) ** 0.125
    safeguarded = np.log1p(most * np.abs(slope) / curvature) / most
    alpha: Floats = old_alpha + np.sign(slope) * np.maximum(newton, safeguarded)
    return alpha


def _raise_boldly(old_alpha: Floats, raised: Floats, old: Sums) -> Floats:
    """Move each alpha by Newton's step on the log-posterior itself, where that goes farther.

    It goes up if no other alpha moves; nothing is known of all of them together.
    """
    slope = old.slope - (old_alpha - 1.0)
    complete = 1.0 + old.curvature
    move = slope / np.maximum(complete - old.missing, _FLATTEST * complete)
    move = np.clip(move, -_FARTHEST, _FARTHEST)
    alpha: Floats = np.where(np.abs(move) > np.abs(raised - old_alpha), old_alpha + move, raised)
    return alpha


def _best_log_scale(alpha: Floats, b_sum: float, n_items: int) -> float:
    r"""Find u for which :math:`e^u \alpha` and :math:`b - u` suit their priors best."""
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
    # Newton's method has arrived, unless annotators are many times the items: then be sure.
    here = log_prior(0.0)
    return u if log_prior(u) >= here - 1e-13 * (1.0 + abs(here)) else 0.0


def _distribution(labels: Labels, posterior: Floats, other: Floats) -> Distribution:
    """Write the posteriors out, or only those of chosen classes where that would be too much."""
    item, n = labels.item_of_cell(), labels.n_categories
    if n > MOST_COLUMNS:
        return Distribution.of_cells(labels, posterior)
    full = np.repeat(other[:, np.newaxis], n, axis=1)
    full[item, labels.cell_category] = posterior
    known = np.flatnonzero(labels.known >= 0)
    full[known, labels.known[known]] = 1.0
    return Distribution.of_dense(full)
