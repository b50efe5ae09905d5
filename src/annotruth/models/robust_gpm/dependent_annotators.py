r"""Pairs of annotators whose labels depend on one another, as copies do, where opinions differ.

Labels of independent annotators are equal as often as their items explain. If s and t give equal
labels to x of m common items, where y are expected, a share :math:`\rho = (x - y) / (m - y)` of their
labels is taken to depend on one another. Neither of them then says anything about the other's
reliability, and their labels of an item say less than those of two annotators. Intervals take both
into account; estimates do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, ndtri

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.models.latent_classes import POSTERIOR_INPUTS, LatentClasses
from annotruth.models.robust_gpm.opinion_steps import OpinionParameters, OpinionSteps
from annotruth.models.robust_gpm.opinions import leave_one_out

MIN_COMMON = 10
"""How many items two annotators must have in common for anything to be said about their dependence."""

SIGNIFICANCE = 0.05
"""The level of the tests of dependence, over all pairs of annotators or machines together."""

_MAX_ANNOTATORS = 400
_LEAST_P_VALUE = 1e-300
_MAX_COMMON = 10_000_000  # labels of the same item that are compared, about
_NORMAL_MAD = 1.4826  # standard deviations of a normal distribution per median absolute deviation


class DependentPairs(NamedTuple):
    """Which annotators depend on one another, and how much.

    Attributes
    ----------
    share
        The share of labels that depend on one another, annotators x annotators; 0 for others.
    design_effect
        By how much the variance of an item's mean label is larger than that of independent labels.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.dependent_annotators import DependentPairs
    >>> share = np.array([[0.0, 0.6, 0.0], [0.6, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> [group.tolist() for group in DependentPairs(share, 1.4).independent_groups()]
    [[True, False, False], [False, True, False]]
    """

    share: Floats
    design_effect: float

    def independent_groups(self) -> Iterator[NDArray[np.bool_]]:
        """Divide those who depend on others into groups within which nobody depends on another."""
        depends = self.share > 0.0
        left = depends.any(axis=0)
        while left.any():
            group = np.zeros_like(left)
            for annotator in np.flatnonzero(left):
                group[annotator] = not depends[annotator][group].any()
            yield group
            left = left & ~group


def find_dependent_pairs(
    session: Session, labels: LabelSummary, classes: LatentClasses
) -> DependentPairs | None:
    """Return the pairs of annotators who depend on one another; None if there are none.

    They have at least `MIN_COMMON` items in common, and more equal labels than expected at a
    significance of 0.05 over all such pairs (Bonferroni). Standard scores are relative to their median
    over all pairs and, where they vary more than by chance, to their median absolute deviation: what the
    model does not explain about anybody is no dependence of two annotators.

    Nothing is compared where annotators or common items are very many, or where annotators have
    weights: those already depend on one another.
    """
    n_annotators = labels.n_annotators
    n_common = labels.n_labels**2 / labels.n_items
    too_many = n_annotators > _MAX_ANNOTATORS or n_common > _MAX_COMMON
    if too_many or n_annotators < 2 or labels.annotator_weight is not None:
        return None
    shape = (n_annotators, n_annotators)
    sums = session.run_pass(
        Pass(
            "robust_gpm.count_agreements",
            inputs=(*POSTERIOR_INPUTS, Input("place", annotator_axis=0)),
            sums=(Sum("same", shape), Sum("expected", shape), Sum("common", shape)),
        ),
        prior=classes.prior,
        known_truth=classes.known_truth,
        likelihood=classes.confusion,
        place=np.arange(n_annotators),
    )
    same, expected, common = sums["same"], sums["expected"], sums["common"]
    dependent = _more_than_expected(same, expected, common)
    if not dependent.any():
        return None
    share = np.zeros(shape)
    share[dependent] = (same - expected)[dependent] / (common - expected)[dependent]
    design_effect = 1.0 + 2.0 * (share * common).sum() / labels.n_labels
    return DependentPairs(share + share.T, design_effect)


def _more_than_expected(same: Floats, expected: Floats, common: Floats) -> NDArray[np.bool_]:
    """Return which pairs have significantly more equal labels than expected."""
    enough = np.triu(common >= MIN_COMMON, 1)
    if not enough.any():
        return enough
    p_equal = expected[enough] / common[enough]
    p_value = bdtrc(same[enough] - 1.0, common[enough].astype(np.int64), p_equal)
    score = np.full(same.shape, -np.inf)
    score[enough] = -ndtri(np.clip(p_value, _LEAST_P_VALUE, 1.0 - 1e-15))
    middle = np.median(score[enough])
    spread = _NORMAL_MAD * np.median(np.abs(score[enough] - middle))
    limit = middle - ndtri(SIGNIFICANCE / enough.sum()) * max(1.0, spread)
    dependent: NDArray[np.bool_] = enough & (score > limit) & (same > expected)
    return dependent


def leave_out_together(
    steps: OpinionSteps,
    parameters: OpinionParameters,
    loo_log_likelihood: Floats,
    pairs: DependentPairs,
) -> Floats:
    """Return leave-one-out log-likelihoods in which annotators who depend on one another are left out.

    For each group of independent annotators, all those that any of them depends on are left out.
    """
    session, items = steps.session, steps.items
    likelihood = steps.likelihood(parameters)
    depends = pairs.share > 0.0
    for group in pairs.independent_groups():
        others = session.to_engine(np.any(depends[group], axis=0))[:, np.newaxis, np.newaxis]
        without = leave_one_out(
            session,
            items,
            items.strategies,
            session.to_engine(steps.repeated_label),
            prior=parameters.class_prior,
            likelihood=np.where(others, 1.0, likelihood),
        )
        in_group = session.to_engine(group)[:, np.newaxis]
        loo_log_likelihood = np.where(in_group, without, loo_log_likelihood)
    return loo_log_likelihood
