"""EBCC: iBCC with subtypes of items, which model correlated errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from annotruth.engines import Session
from annotruth.errors import InputError
from annotruth.labels import Labels, LabelSummary
from annotruth.models.confusion.dirichlet import (
    DIRICHLET_AXES,
    DirichletEquations,
    DirichletParameters,
)
from annotruth.models.confusion.equations import draws_of_annotators
from annotruth.models.confusion.estimator import RestartedEstimator
from annotruth.models.confusion.steps import LatentClassSteps, count_votes
from annotruth.models.latent_classes import ExpectedCounts
from annotruth.models.options import check_positive

_MAX_SUBTYPES = 1000


class EBCCEquations(DirichletEquations):
    """The equations of `EBCC`: those of iBCC, with a random division of items among subtypes.

    Its parameters are those of `annotruth.models.confusion.dirichlet.DirichletEquations`.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.confusion.ebcc import EBCCEquations
    >>> labels = at.Labels.of([("a", "ann", 1), ("a", "bob", 2)])
    >>> EBCCEquations(labels, n_subtypes=3).n_classes
    6
    """

    def start(self, votes: ExpectedCounts, rng: np.random.Generator) -> DirichletParameters:
        """Return the parameters after dividing the votes of each class among its subtypes.

        Dividing c items at random, each with Dirichlet(1, ..., 1) shares, gives every subtype c / M
        of them with a relative standard deviation of sqrt((M - 1) / ((M + 1) c)). Each annotator's
        counts are divided so. The draws do not depend on the category, only on whether a label is
        right, so that renaming categories changes nothing.
        """
        n, m = self.n_categories, self.n_subtypes
        draws = draws_of_annotators(
            rng.standard_normal((self.labels.n_annotators, 2, m)), self.labels
        )
        right = np.eye(n, dtype=bool)[np.newaxis, :, :, np.newaxis]
        draws = np.where(
            right, draws[:, 0, np.newaxis, np.newaxis], draws[:, 1, np.newaxis, np.newaxis]
        )
        counts = votes.labels[..., np.newaxis]
        shares = np.exp(np.sqrt((m - 1) / (m + 1) / np.maximum(counts, 1.0)) * draws)
        shares /= shares.sum(axis=3, keepdims=True)
        divided = (counts * shares).reshape(*votes.labels.shape[:2], self.n_classes)
        return self.m_step(ExpectedCounts(divided, np.repeat(votes.classes / m, m)), None)


@dataclass(kw_only=True)
class EBCC(RestartedEstimator):
    r"""EBCC, enhanced Bayesian classifier combination: subtypes of items within each class.

    Li, Rubinstein and Cohn, "Exploiting Worker Correlation for Label Aggregation in Crowdsourcing",
    ICML 2019. Annotators make the same errors on the same items: an item that looks like another
    class is labelled wrongly by many. In EBCC an item of class k has one of M subtypes, and every
    annotator has a distribution of labels for each subtype:

    .. math::
        z_e \sim \tau, \quad g_e \mid z_e = k \sim \pi_k, \quad
        r_{e,s} \mid z_e = k, g_e = m \sim v_{s,k,m}, \\
        \tau \sim \text{Dirichlet}(\alpha), \quad
        \pi_k \sim \text{Dirichlet}(a_\pi / M, \ldots, a_\pi / M), \quad
        v_{s,k,m} \sim \text{Dirichlet}(\beta_k).

    With :math:`q(z_e = k, g_e = m) = T_{e,k,m}` and Dirichlet posteriors of parameters
    :math:`\nu`, :math:`\eta_k` and :math:`\mu_{s,k,m}`, mean-field variational inference repeats

    .. math::
        T_{e,k,m} &\propto \exp\Bigl(\text{E} \log \tau_k + \text{E} \log \pi_{k,m}
        + \sum_{s \in l_e} \text{E} \log v_{s,k,m,r_{e,s}}\Bigr) \\
        \nu_k &= \alpha_k + \sum_{e,m} T_{e,k,m}, \quad
        \eta_{k,m} = \frac{a_\pi}{M} + \sum_e T_{e,k,m}, \quad
        \mu_{s,k,m,l} = \beta_{k,l} + \sum_{e \in l_{s,l}} T_{e,k,m},

    where the expected log of a share is :math:`\psi` of its parameter minus :math:`\psi` of their
    sum. The evidence lower bound increases with every step, and ``tol`` is compared with its change
    per label. The log-likelihood of the history is that of the geometric means of the shares, with
    classes and subtypes summed out.

    The settings are those of the authors' experiments: M = 10, :math:`a_\pi = 0.1`,
    :math:`\beta_{k,k} = 4`, other :math:`\beta_{k,l} = 1`, and :math:`\alpha_k` the number of items
    of class k by observed shares (here at least 1). They divide each item at random among the
    subtypes at first, and take the best of 40 runs by the evidence lower bound. Here the start
    divides each annotator's counts, which needs no random numbers per item and is as random; of
    ``n_init`` starts the one with the highest bound after 20 steps is continued. Optima are many,
    and accuracies of runs differ by some hundredths, so figures of the paper are met only to within
    that.

    An item's distribution is :math:`\sum_m T_{e,k,m}`; its label is the class of highest
    probability, and an exact tie goes to the category that comes first on the scale. A known truth
    fixes the class but not the subtype. An annotator's reliability is the expected share of their
    labels that are the item's class; ``confusion_`` is averaged over subtypes.

    A fit takes about M times as long as one of iBCC, for each of the starts.

    Parameters
    ----------
    n_subtypes
        M, the number of subtypes per class.
    subtype_prior
        :math:`a_\pi`, pseudo-count of items per class that is divided among its subtypes.
    diagonal, off_diagonal
        :math:`\beta_{k,k}` and :math:`\beta_{k,l}`, pseudo-counts of labels per annotator and
        subtype.
    n_init, seed
        The number of random starts, of which the best is continued, and their seed.
    tol, max_iter
        The stopping rule and the maximum number of iterations; reaching it warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels.
    engine
        Where the passes over the labels run.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(6) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(6)]
    >>> at.EBCC().fit(labels).result_.reliability.round(2).tolist()
    [1.0, 1.0, 1.0, 0.5]
    """

    name: ClassVar[str] = "ebcc"
    parameter_axes: ClassVar[Mapping[str, str] | None] = DIRICHLET_AXES

    n_subtypes: int = 10
    subtype_prior: float = 0.1
    diagonal: float = 4.0
    off_diagonal: float = 1.0

    def _check(self, labels: LabelSummary) -> None:
        if not 1 <= self.n_subtypes <= _MAX_SUBTYPES:
            raise InputError(
                f"n_subtypes must be from 1 to {_MAX_SUBTYPES:,}, not {self.n_subtypes:,}"
            )
        check_positive(
            subtype_prior=self.subtype_prior,
            diagonal=self.diagonal,
            off_diagonal=self.off_diagonal,
        )
        super()._check(labels)

    def _equations(self, labels: LabelSummary, class_prior: Any = 1.0) -> EBCCEquations:
        return EBCCEquations(
            labels,
            class_prior=class_prior,
            diagonal=self.diagonal,
            off_diagonal=self.off_diagonal,
            n_subtypes=self.n_subtypes,
            subtype_prior=self.subtype_prior,
        )

    def _steps(self, labels: Labels, session: Session) -> LatentClassSteps[Any]:
        by_votes = np.maximum(count_votes(labels, session).classes, 1.0)
        equations = self._equations(labels, by_votes)
        return LatentClassSteps(equations, session, n_init=self.n_init, seed=self.seed)
