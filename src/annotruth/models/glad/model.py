"""GLAD: abilities of annotators and difficulties of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from annotruth.engines import Session
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.em_estimator import IterativeEstimator
from annotruth.models.fits.tables import MOST_COLUMNS
from annotruth.models.glad.steps import GLADParameters, GLADSteps
from annotruth.models.result import Fit

if TYPE_CHECKING:
    import pandas as pd


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
    log-posterior of all labels by less than ``tol``. Each step is a generalised EM step in three
    parts, none of which can lower the objective:

    - Abilities. The E-step computes p, the probability that the label is correct. The expected
      log-posterior is then concave in each alpha, with slope and curvature

      .. math::
          g = \sum_e \beta_e (p_{e,s} - \sigma(x)) - (\alpha_s - 1), \qquad
          h = 1 + \sum_e \beta_e^2 \sigma(x) (1 - \sigma(x)), \qquad x = \alpha_s \beta_e.

      A Newton step g/h may overshoot, so alpha moves by the longer of two steps that cannot. One
      is Newton's, at most as far as the maximum of the parabola of curvature
      :math:`1 + \sum \beta^2 \tanh(x/2)/2x`, a lower bound of the objective (Jaakkola and Jordan,
      2000). The other is :math:`\log(1 + M|g|/h)/M` with M the largest beta: over a distance t the
      curvature grows at most by the factor :math:`e^{M|t|}` (Bach, 2010). The paper's gradient
      ascent needs a line search over all labels instead.
    - Scale. :math:`(c\alpha, \beta/c)` has the same likelihood as :math:`(\alpha, \beta)`; c is set
      to the maximum of the priors.
    - Difficulties. Given the abilities, items are independent: each b takes a Newton step on the
      log-posterior itself, halved until that does not fall.

    An item's distribution is :math:`p(z_e \mid r)`, including classes that no annotator chose; with
    more than 100 categories those are not stored, to save memory, and the stored probabilities sum
    to less than 1. A known truth fixes the distribution. An annotator's reliability is the mean of
    :math:`\sigma(\alpha_s \beta_e)` over their labels, the expected share of correct ones; it is
    below one half if and only if the ability is negative. Further columns: ``difficulty`` of items,
    ``ability`` of annotators. With a single category every label is correct, and abilities and
    difficulties stay at the priors' modes. `predict_proba` returns
    :math:`p_n \sigma + (1 - p_n)(1 - \sigma)/(K - 1)` for label n, with p the item's distribution
    and :math:`\sigma = \sigma(\alpha_s \beta_e)`.

    Parameters
    ----------
    tol, max_iter
        The stopping rule and the maximum number of iterations; reaching it warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels. Abilities then take a Newton step on the log-posterior itself where that is longer,
        which is replaced by the proven step if the log-posterior falls; each b takes two steps per
        pass.
    engine
        Where the passes over the labels run.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat") for item in range(4) for name in ("ann", "bob")]
    >>> labels += [(item, "eve", "dog") for item in range(4)]
    >>> model = at.GLAD().fit(labels)
    >>> dict(model.labels_)
    {0: 'cat', 1: 'cat', 2: 'cat', 3: 'cat'}
    >>> model.skills_.round(2).to_dict()
    {'ann': 0.99, 'bob': 0.99, 'eve': 0.1}
    """

    name: ClassVar[str] = "glad"
    parameter_axes: ClassVar[Mapping[str, str] | None] = {}

    def _steps(self, labels: Labels, session: Session) -> GLADSteps:
        return GLADSteps(labels, session, newton=self.acceleration)

    def _make_fit(
        self,
        labels: Labels,
        session: Session,
        steps: GLADSteps,
        parameters: GLADParameters,
        history: History,
    ) -> Fit:
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=history,
            distribution=_distribution(
                labels, session.collect("posterior"), session.collect("other")
            ),
            reliability=steps.reliability(parameters.alpha),
            item_columns={"difficulty": np.exp(-session.collect("b"))},
            annotator_columns={"ability": parameters.alpha},
        )

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

    @property
    def alphas_(self) -> pd.Series[Any]:
        """The ability of each annotator (crowd-kit's name and form)."""
        table = self._local_result().annotator_table()
        return self._column(table, "ability", index="worker", name_as="alpha")

    @property
    def betas_(self) -> pd.Series[Any]:
        """Minus the log of each item's difficulty (crowd-kit's name and form)."""
        table = self._local_result().item_table()
        difficulty = self._column(table, "difficulty", index="task", name_as="beta")
        b: pd.Series[Any] = -np.log(difficulty)
        return b


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
