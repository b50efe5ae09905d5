"""Ord-dis-mix: serious labels are rounded Gaussians, irregular ones have a distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from annotruth.engines import Session, get_engine
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import IterativeEstimator
from annotruth.models.distribution import Distribution
from annotruth.models.fits.make_fit import BuildItemResults, ItemResults
from annotruth.models.gpm import (
    BehaviorOption,
    behavior_distribution,
    behavior_names,
    learned_behaviors,
)
from annotruth.models.options import check_positive
from annotruth.models.registry import Capabilities
from annotruth.models.scales.ordinal_steps import (
    Lattice,
    OrdinalMixtureParameters,
    OrdinalMixtureSteps,
    make_lattice,
    table_shape,
)
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.validate import check_choice, check_ordinal

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

    An item's score is the mean of its posterior, so it lies within the scale; ``score_low`` and
    ``score_high`` contain 95% of the posterior (94 to 98% of the true scores in simulated crowds).
    ``difficulty`` is the factor by which the item increases the noise, :math:`\gamma_e^{-1/2}`. The
    distribution is that of a serious label by a typical annotator, whose log-precision is the mean
    over all serious labels.

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
        5 labels per category, which detects annotators who repeat a label; but a preference for some
        categories then counts as irregular.
    expertise_shape, difficulty_shape
        Shapes of the Gamma priors of :math:`\lambda_s` and :math:`\gamma_e`: the higher, the more
        similar annotators and items are.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`. With acceleration, :math:`\lambda_s`
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
    item_arrays: ClassVar[tuple[str, ...]] = ("theta", "p_serious", "score", "difficulty")

    behavior: BehaviorOption = "uniform"
    expertise_shape: float = 3.0
    difficulty_shape: float = 3.0

    def _steps(self, labels: Labels, session: Session) -> OrdinalMixtureSteps:
        learned = self.behavior == "learned"
        return OrdinalMixtureSteps(
            labels, session, self._lattice(labels), learned=learned, long_moves=self.acceleration
        )

    def _estimates(
        self, steps: OrdinalMixtureSteps, parameters: OrdinalMixtureParameters
    ) -> dict[str, Any]:
        eps, pi, level, *_ = parameters
        low, high = steps.interval(parameters)
        return {
            "reliability": eps,
            "low": low,
            "high": high,
            "behavior": behavior_names(steps.labels.scale.names, eps, pi),
            "annotator_columns": {"noise": steps.lattice.noise[level]},
            "parameters": {"level": level, **({"pi": pi} if len(pi) else {})},
            "readout": "opinion",
        }

    def _item_results(self, steps: OrdinalMixtureSteps) -> BuildItemResults:
        return _item_results

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
        check_choice("behavior", self.behavior, get_args(BehaviorOption))
        check_positive(expertise_shape=self.expertise_shape, difficulty_shape=self.difficulty_shape)
        check_ordinal(labels.scale, self.name)
        table = 4 * math.prod(table_shape(labels.scale.values))  # two tables, and temporary copies
        if max(table, labels.n_items * labels.n_categories) > _MAX_NUMBERS:
            raise InputError(
                f"{self.name} would need more than {_MAX_NUMBERS * 8 / 1e9:.1f} GB for "
                f"{labels.n_categories:,} categories and {labels.n_items:,} items: merge "
                "categories, or choose the model gpm"
            )


def _item_results(labels: Labels, arrays: Mapping[str, Floats]) -> ItemResults:
    theta, p_serious, scores, difficulty = arrays.values()
    values, known = labels.scale.values, labels.known >= 0
    scores = np.clip(scores, values[0], values[-1])  # rounding
    scores[known] = values[labels.known[known], np.newaxis]
    score, low, high = scores.T
    return {
        "distribution": Distribution.of_dense(theta),
        "p_serious": p_serious,
        "score": score,
        "item_columns": {"score_low": low, "score_high": high, "difficulty": difficulty},
    }
