"""Variational equations of models with Dirichlet priors: iBCC, and EBCC with subtypes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.models.base_fit import BaseFit
from annotruth.models.confusion.equations import (
    MIN_PROBABILITY,
    ClassEquations,
    EStepTables,
)
from annotruth.models.latent_classes import ExpectedCounts
from annotruth.models.squarem import Squarem, numbers_above
from annotruth.models.warm_start import with_new_rows

_AXES = (0, 1, 1)  # along which the fields of the parameters are Dirichlet distributions


class DirichletParameters(NamedTuple):
    """Parameters of the posterior Dirichlet distributions: pseudo-counts plus expected counts.

    Attributes
    ----------
    classes
        Of the share of each category.
    subtypes
        Of the share of each subtype in its category, categories x subtypes.
    labels
        Of the confusion matrices, annotators x labels x classes.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.confusion.dirichlet import DirichletParameters
    >>> DirichletParameters(np.ones(2), np.ones((2, 3)), np.ones((4, 2, 6))).labels.shape
    (4, 2, 6)
    """

    classes: Floats
    subtypes: Floats
    labels: Floats


DIRICHLET_AXES = {
    "classes": "category",
    "subtypes": "category subtype",
    "labels": "annotator category state",
}
"""The axes of the parameters."""


class DirichletEquations(ClassEquations[DirichletParameters]):
    """The equations of `IBCC` and `EBCC`.

    Parameters
    ----------
    labels
        The summary of the labels.
    class_prior
        Pseudo-counts of items per category.
    diagonal, off_diagonal
        Pseudo-counts of right labels, and of each wrong label, per annotator and class.
    n_subtypes, subtype_prior
        The number of subtypes per category, and their pseudo-counts of items in all.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.confusion.dirichlet import DirichletEquations
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 2)])
    >>> DirichletEquations(labels, diagonal=4.0).prior.labels.tolist()
    [[[4.0, 1.0], [1.0, 4.0]]]
    """

    objective_name = "the evidence lower bound per label"

    def __init__(
        self,
        labels: LabelSummary,
        *,
        class_prior: float | Floats = 1.0,
        diagonal: float = 4.0,
        off_diagonal: float = 1.0,
        n_subtypes: int = 1,
        subtype_prior: float = 1.0,
    ) -> None:
        super().__init__(labels, n_subtypes=n_subtypes)
        n = self.n_categories
        self.prior = DirichletParameters(
            np.broadcast_to(np.asarray(class_prior, dtype=np.float64), (n,)),
            np.full((n, n_subtypes), subtype_prior / n_subtypes),
            off_diagonal + (diagonal - off_diagonal) * self.known_truth[np.newaxis],
        )
        # Parameters and their expected logs, kept from `log_prior` to `tables`.
        self._kept_logs: tuple[DirichletParameters, DirichletParameters] | None = None

    def resume(self, old: DirichletParameters, start: DirichletParameters) -> DirichletParameters:
        """Return the parameters of a previous fit; new annotators start as in a first fit."""
        return old._replace(labels=with_new_rows(old.labels, start.labels))

    def m_step(
        self, counts: ExpectedCounts, old: DirichletParameters | None
    ) -> DirichletParameters:
        """Return the pseudo-counts plus the expected counts."""
        by_subtype = counts.classes.reshape(self.prior.subtypes.shape)
        return DirichletParameters(
            self.prior.classes + by_subtype.sum(axis=1),
            self.prior.subtypes + by_subtype,
            self.prior.labels + counts.labels,
        )

    def tables(self, parameters: DirichletParameters) -> EStepTables:
        """Return the geometric means of prior and confusion matrices: exp of expected logs."""
        kept, self._kept_logs = self._kept_logs, None
        logs = kept[1] if kept and kept[0] is parameters else expected_logs(parameters)
        likelihood = np.exp(logs.labels)
        return EStepTables(
            np.exp(logs.classes[:, np.newaxis] + logs.subtypes).ravel(),
            np.maximum(likelihood, MIN_PROBABILITY, out=likelihood),
        )

    def log_prior(self, parameters: DirichletParameters) -> float:
        """Return minus the divergence of the posterior Dirichlet distributions from the prior."""
        logs = expected_logs(parameters)
        self._kept_logs = parameters, logs
        return -sum(map(divergence, parameters, self.prior, _AXES, logs))

    def acceleration(self) -> Squarem[DirichletParameters]:
        """Extrapolate the expected counts."""
        return Squarem(DirichletParameters, *map(numbers_above, self.prior, _AXES))

    def parameters_of(self, fit: BaseFit) -> DirichletParameters:
        """Return the parameters of a fit."""
        n = self.n_categories
        return DirichletParameters(
            fit.parameter("classes", n),
            fit.parameter("subtypes", n, self.n_subtypes),
            fit.parameter("labels", fit.data.n_annotators, n, self.n_classes),
        )

    def confusion(self, parameters: DirichletParameters) -> Floats:
        """Return the posterior means of the confusion matrices."""
        mean: Floats = parameters.labels / parameters.labels.sum(axis=1, keepdims=True)
        return mean

    def class_prior(self, parameters: DirichletParameters) -> Floats:
        """Return the posterior means of the shares of the classes."""
        of_classes = parameters.classes / parameters.classes.sum()
        of_subtypes = parameters.subtypes / parameters.subtypes.sum(axis=1, keepdims=True)
        share: Floats = (of_classes[:, np.newaxis] * of_subtypes).ravel()
        return share


def expected_logs(parameters: DirichletParameters) -> DirichletParameters:
    """Return the expected logs of the shares, in the place of their parameters."""
    return DirichletParameters(*map(expected_log, parameters, _AXES))


def expected_log(counts: Floats, axis: int) -> Floats:
    """Return the expected logs of shares that have Dirichlet distributions along an axis."""
    expected: Floats = digamma(counts)
    expected -= digamma(counts.sum(axis=axis, keepdims=True))
    return expected


def divergence(counts: Floats, prior: Floats, axis: int, logs: Floats) -> float:
    """Return the sum of the Kullback-Leibler divergences of Dirichlet distributions.

    ``logs`` are the expected logs of the shares.
    """

    def log_normaliser(counts: Floats) -> Floats:
        total: Floats = gammaln(counts).sum(axis=axis) - gammaln(counts.sum(axis=axis))
        return total

    gain = ((counts - prior) * logs).sum()
    return float(gain + (log_normaliser(prior) - log_normaliser(counts)).sum())
