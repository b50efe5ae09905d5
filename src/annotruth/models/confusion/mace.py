"""MACE: an annotator knows the right label, or spams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.models.confusion.bcc import divergence, expected_log
from annotruth.models.confusion.estimator import (
    MIN_PROBABILITY,
    ClassEquations,
    EStepTables,
    RestartedEstimator,
    draws_of_annotators,
)
from annotruth.models.latent_classes import ExpectedCounts
from annotruth.models.options import check_positive
from annotruth.models.squarem import Squarem, numbers_above
from annotruth.observations import LabelSummary

_COMPETENCE = (0.3, 0.7)  # the range of competences at random starts


class MACEParameters(NamedTuple):
    """Parameters of the posterior Beta and Dirichlet distributions."""

    competence: Floats  # of knowing the right label and of spamming, annotators x 2
    spam: Floats  # of the labels given when spamming, annotators x categories


class MACEEquations(ClassEquations[MACEParameters]):
    """The equations of `MACE`."""

    objective_name = "the evidence lower bound per label"
    make = MACEParameters
    axes: ClassVar[Mapping[str, str]] = {
        "competence": "annotator outcome",
        "spam": "annotator category",
    }

    def __init__(
        self, labels: LabelSummary, *, alpha: float, beta: float, spam_prior: float
    ) -> None:
        super().__init__(labels)
        self.prior = MACEParameters(
            np.array([[alpha, beta]]), np.full((1, self.n_categories), spam_prior)
        )

    def start(self, votes: ExpectedCounts, rng: np.random.Generator) -> MACEParameters:
        """Return random competences, as sure as the annotators' labels; spam is uniform."""
        low, high = _COMPETENCE
        draws = draws_of_annotators(rng.uniform(low, high, self.labels.n_annotators), self.labels)
        n_labels = self.labels_per_annotator[:, np.newaxis]
        return MACEParameters(
            self.prior.competence + n_labels * np.stack([draws, 1.0 - draws], axis=1),
            self.prior.spam + n_labels / self.n_categories,
        )

    def m_step(self, expected: ExpectedCounts, old: MACEParameters | None) -> MACEParameters:
        """Return the pseudo-counts plus the expected counts of known labels and of spam."""
        assert old is not None  # every start has parameters
        knows, spams, spam = self._geometric_means(old)
        right = np.einsum("snn->sn", expected.counts)
        known = right * knows / (knows + spams * spam)
        spam_counts = expected.counts.sum(axis=2) - known
        totals = np.stack([known.sum(axis=1), spam_counts.sum(axis=1)], axis=1)
        return MACEParameters(self.prior.competence + totals, self.prior.spam + spam_counts)

    def tables(self, parameters: MACEParameters) -> EStepTables:
        """Return equal class priors, and the geometric means of knowing and of spam."""
        knows, spams, spam = self._geometric_means(parameters)
        confusion = self._mixture(knows, spams, spam)
        return EStepTables(self.class_prior(parameters), np.maximum(confusion, MIN_PROBABILITY))

    def log_prior(self, parameters: MACEParameters) -> float:
        """Return minus the divergence of the posterior distributions from the prior."""
        return -sum(
            divergence(counts, prior, 1, expected_log(counts, 1))
            for counts, prior in zip(parameters, self.prior, strict=True)
        )

    def acceleration(self) -> Squarem[MACEParameters]:
        """Extrapolate the expected counts."""
        rules = (numbers_above(least, axis=1) for least in self.prior)
        return Squarem(MACEParameters, *rules)

    def confusion(self, parameters: MACEParameters) -> Floats:
        """Return the posterior means of the confusion matrices."""
        competence = parameters.competence / parameters.competence.sum(axis=1, keepdims=True)
        spam = parameters.spam / parameters.spam.sum(axis=1, keepdims=True)
        return self._mixture(competence[:, :1], competence[:, 1:], spam)

    def class_prior(self, parameters: MACEParameters) -> Floats:
        """Return equal shares."""
        return np.full(self.n_categories, 1.0 / self.n_categories)

    def reliability(self, parameters: MACEParameters, expected: ExpectedCounts) -> Floats:
        """Return the posterior means of the competences."""
        competence: Floats = parameters.competence[:, 0] / parameters.competence.sum(axis=1)
        return competence

    def _mixture(self, knows: Floats, spams: Floats, spam: Floats) -> Floats:
        """Return the probability of labels given classes, annotators x labels x classes."""
        right = np.eye(self.n_categories)
        mixture: Floats = knows[..., np.newaxis] * right + (spams * spam)[..., np.newaxis]
        return mixture

    def _geometric_means(self, parameters: MACEParameters) -> tuple[Floats, Floats, Floats]:
        """Return those of knowing and of spamming, annotators x 1, and of each label among spam."""
        competence, spam = (np.exp(expected_log(counts, axis=1)) for counts in parameters)
        return competence[:, :1], competence[:, 1:], spam


@dataclass(kw_only=True)
class MACE(RestartedEstimator):
    r"""MACE, multi-annotator competence estimation: an annotator knows the right label, or spams.

    Hovy, Berg-Kirkpatrick, Vaswani and Hovy, "Learning Whom to Trust with MACE", NAACL-HLT 2013. All
    N classes are equally likely. With probability :math:`\theta_s`, their competence, annotator s
    gives the right label; otherwise a label of their own distribution :math:`\xi_s`, whatever the
    item is:

    .. math:: p(r_{e,s} = n \mid z_e = k) = \theta_s [n = k] + (1 - \theta_s) \xi_{s,n},
        \qquad \theta_s \sim \text{Beta}(\alpha, \beta), \quad
        \xi_s \sim \text{Dirichlet}(\gamma, \ldots, \gamma).

    Variational inference, as the authors recommend. With the geometric means
    :math:`\tilde\theta_s = \exp \text{E} \log \theta_s`,
    :math:`\tilde\theta'_s = \exp \text{E} \log (1 - \theta_s)` and
    :math:`\tilde\xi_{s,n} = \exp \text{E} \log \xi_{s,n}`, each step computes

    .. math::
        T_{e,k} &\propto \prod_{s \in l_e} \bigl(\tilde\theta_s [r_{e,s} = k]
        + \tilde\theta'_s \tilde\xi_{s,r_{e,s}}\bigr), \qquad
        c_{e,s} = T_{e,r_{e,s}} \frac{\tilde\theta_s}
        {\tilde\theta_s + \tilde\theta'_s \tilde\xi_{s,r_{e,s}}} \\
        q(\theta_s) &= \text{Beta}\Bigl(\alpha + \sum_{e \in l_s} c_{e,s},\;
        \beta + \sum_{e \in l_s} (1 - c_{e,s})\Bigr), \quad
        q(\xi_s) = \text{Dirichlet}\Bigl(\gamma + \sum_{e \in l_{s,n}} (1 - c_{e,s})\Bigr)_n,

    where c is the probability that a label was known. The evidence lower bound increases with every
    step, and ``tol`` is compared with its change per label. The log-likelihood of the history is
    that of the geometric means, with classes summed out.

    The priors are the authors': :math:`\alpha = \beta = 0.5`, :math:`\gamma = 10`. They keep the best
    of ten random starts of 50 steps. Here the one with the highest bound after 20 steps is
    continued. Competences start between 0.3 and 0.7, and :math:`\xi` is uniform, so that renaming
    categories changes nothing.

    An item's distribution is the final :math:`T_e`. An annotator's reliability is the posterior mean of :math:`\theta_s`: a spammer who is right by
    chance gets none for it.

    Errors do not depend on the item. Where classes are of very different frequency, annotators
    who often give the frequent label look like spammers, and the equal class priors favour the rare
    classes: on the product set, where one item in eight is a match, the optimum is worse than
    the majority vote.

    Parameters
    ----------
    alpha, beta
        The pseudo-counts of known labels and of spam per annotator.
    spam_prior
        :math:`\gamma`, pseudo-count of each label among an annotator's spam.
    n_init, seed
        The number of random starts, of which the best is continued, and their seed.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(20) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(20)]
    >>> at.MACE().fit(labels).result_.reliability.round(1).tolist()
    [1.0, 1.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "mace"
    parameter_axes: ClassVar[Mapping[str, str] | None] = MACEEquations.axes

    alpha: float = 0.5
    beta: float = 0.5
    spam_prior: float = 10.0

    def _check(self, labels: LabelSummary) -> None:
        check_positive(alpha=self.alpha, beta=self.beta, spam_prior=self.spam_prior)
        super()._check(labels)

    def _equations(self, labels: LabelSummary) -> MACEEquations:
        return MACEEquations(labels, alpha=self.alpha, beta=self.beta, spam_prior=self.spam_prior)
