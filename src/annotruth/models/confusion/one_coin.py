"""The one-coin model: every annotator has one accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.models.confusion.estimator import (
    MIN_PROBABILITY,
    MIN_SHARE,
    ClassEquations,
    EStepTables,
    LatentClassEstimator,
)
from annotruth.models.latent_classes import ExpectedCounts, one_coin_confusion
from annotruth.models.squarem import Squarem, probabilities, shares
from annotruth.models.warm_start import OFF_BOUND, off_bounds, with_new_rows
from annotruth.observations import LabelSummary

_OFF_BOUND = 1e-10  # the distance of an accuracy from 0 and 1, so that no label is impossible


class OneCoinParameters(NamedTuple):
    """The class prior p[k] and the annotators' accuracies a[s]."""

    prior: Floats
    accuracy: Floats


class OneCoinEquations(ClassEquations[OneCoinParameters]):
    """The equations of `OneCoin`."""

    make = OneCoinParameters
    axes: ClassVar[Mapping[str, str]] = {"prior": "category", "accuracy": "annotator"}

    def resume(self, old: OneCoinParameters, start: OneCoinParameters) -> OneCoinParameters:
        """Return the parameters of a previous fit; new annotators start as in a first fit."""
        # Off the bounds: EM would keep a class of share 0 whatever the new labels are.
        prior = (1.0 - OFF_BOUND) * old.prior + OFF_BOUND / self.n_categories
        return OneCoinParameters(prior, off_bounds(with_new_rows(old.accuracy, start.accuracy)))

    def m_step(self, expected: ExpectedCounts, old: OneCoinParameters | None) -> OneCoinParameters:
        """Return the shares of the classes and of right labels."""
        right = np.einsum("snn->s", expected.counts) / self.labels_per_annotator
        return OneCoinParameters(
            np.maximum(expected.classes / expected.classes.sum(), MIN_SHARE),
            np.minimum(right, 1.0),  # rounding
        )

    def tables(self, parameters: OneCoinParameters) -> EStepTables:
        """Return the class prior and the confusion matrices."""
        confusion = self.confusion(parameters)
        return EStepTables(parameters.prior, np.maximum(confusion, MIN_PROBABILITY))

    def acceleration(self) -> Squarem[OneCoinParameters]:
        """Extrapolate the prior and the accuracies."""
        return Squarem(OneCoinParameters, shares(axis=0), probabilities)

    def confusion(self, parameters: OneCoinParameters) -> Floats:
        """Return the confusion matrices, annotators x labels x classes."""
        accuracy = np.clip(parameters.accuracy, _OFF_BOUND, 1.0 - _OFF_BOUND)
        return one_coin_confusion(accuracy, self.n_categories)

    def class_prior(self, parameters: OneCoinParameters) -> Floats:
        """Return the class prior."""
        return parameters.prior

    def reliability(self, parameters: OneCoinParameters, expected: ExpectedCounts) -> Floats:
        """Return the accuracies."""
        return parameters.accuracy


@dataclass(kw_only=True)
class OneCoin(LatentClassEstimator):
    r"""The one-coin model: one accuracy per annotator, errors uniform over the other categories.

    Dawid and Skene's model with a single parameter per annotator, also called homogeneous
    Dawid-Skene: Zhang, Chen, Zhou and Jordan, "Spectral Methods Meet EM: A Provably Optimal
    Algorithm for Crowdsourcing", Journal of Machine Learning Research 17 (2016), section 3. An item
    is of class k with probability :math:`p_k`. Annotator s gives the right label with probability
    :math:`a_s`, and each of the N - 1 others with probability :math:`(1 - a_s) / (N - 1)`.

    Maximum likelihood by EM over E items:

    .. math::
        \text{E:}\quad T_{e,k} &\propto p_k \prod_{s \in l_e}
        a_s^{[r_{e,s} = k]} \left(\frac{1 - a_s}{N - 1}\right)^{[r_{e,s} \neq k]} \\
        \text{M:}\quad p_k &= \frac{1}{E} \sum_e T_{e,k}, \quad
        a_s = \frac{1}{|l_s|} \sum_{e \in l_s} T_{e,r_{e,s}}.

    The start is the observed shares for T. The log-likelihood increases with every step, and
    ``tol`` is compared with its change per label. Accuracies stay 1e-10 away from 0 and 1, so that
    no label is impossible.

    An item's distribution is the final :math:`T_e`; its label is the class of highest probability,
    and an exact tie goes to the category that comes first on the scale. A known truth fixes T. An
    annotator's reliability is :math:`a_s`.

    With one number per annotator the model needs few labels, but it does not know biases: where
    annotators confuse particular classes, or one class is labelled better than another, it is
    overconfident and may be worse than the majority vote.

    Parameters
    ----------
    tol, max_iter, acceleration, engine
        As in `annotruth.models.em_estimator.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(6) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(6)]
    >>> at.OneCoin().fit(labels).result_.reliability.round(2).tolist()
    [1.0, 1.0, 1.0, 0.5]
    """

    name: ClassVar[str] = "one-coin"
    parameter_axes: ClassVar[Mapping[str, str] | None] = OneCoinEquations.axes

    def _equations(self, labels: LabelSummary) -> OneCoinEquations:
        return OneCoinEquations(labels)
