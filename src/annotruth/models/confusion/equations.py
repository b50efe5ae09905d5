"""What the models of this package supply: equations on annotator-sized arrays.

Items belong to one of K latent classes: the categories, or several subtypes of each category. The
passes over the labels are the same for all models (`annotruth.models.confusion.steps`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.labels.layout import hash_counts
from annotruth.models.base_fit import BaseFit
from annotruth.models.latent_classes import ExpectedCounts
from annotruth.models.squarem import Squarem

P = TypeVar("P", bound=tuple[Floats, ...])

MIN_PROBABILITY = 1e-12
"""The least likelihood of a label, so that products of many of them do not underflow."""

MIN_SHARE = 1e-30
"""The least prior probability of a class."""


class EStepTables(NamedTuple):
    """What the posterior of an item is computed from.

    Attributes
    ----------
    prior
        One number per class. Variational models have geometric means, which sum to less than 1.
    likelihood
        Of each label given the class: annotators x categories x classes.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.confusion.equations import EStepTables
    >>> EStepTables(np.full(2, 0.5), np.full((3, 2, 2), 0.5)).likelihood.shape
    (3, 2, 2)
    """

    prior: Floats
    likelihood: Floats


class ClassEquations(ABC, Generic[P]):
    """A model's equations; the latent classes are ``n_subtypes`` per category, in their order.

    Parameters
    ----------
    labels
        The summary of the labels.
    n_subtypes
        The number of latent classes per category.

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.models.confusion.one_coin import OneCoinEquations
    >>> equations = OneCoinEquations(at.Labels.of([("a", "ann", 1), ("a", "bob", 2)]))
    >>> equations.n_classes, equations.known_truth.tolist()
    (2, [[1.0, 0.0], [0.0, 1.0]])
    """

    objective_name = "the log-likelihood per label"

    def __init__(self, labels: LabelSummary, *, n_subtypes: int = 1) -> None:
        self.labels = labels
        self.labels_per_annotator = labels.labels_per_annotator  # a file, on some engines
        self.n_categories = labels.n_categories
        self.n_subtypes = n_subtypes

    @property
    def n_classes(self) -> int:
        """The number of latent classes."""
        return self.n_categories * self.n_subtypes

    @property
    def known_truth(self) -> Floats:
        """The likelihood of a known truth, categories x classes."""
        return np.repeat(np.eye(self.n_categories), self.n_subtypes, axis=1)

    def start(self, votes: ExpectedCounts, rng: np.random.Generator) -> P:
        """Return the first parameters, given the counts with observed shares as posteriors.

        Models with random starts use ``rng``; `draws_of_annotators` assigns its draws to annotators.
        """
        return self.m_step(votes, None)

    @abstractmethod
    def resume(self, old: P, start: P) -> P:
        """Return the parameters of a previous fit, extended to new annotators by a first start."""

    @abstractmethod
    def m_step(self, counts: ExpectedCounts, old: P | None) -> P:
        """Return the parameters that maximise the objective, given the posteriors' sums.

        ``old`` are the parameters of the posteriors; None if these are the observed shares.
        """

    @abstractmethod
    def tables(self, parameters: P) -> EStepTables:
        """Return the prior of the classes and the likelihood of labels for the E-step."""

    def log_prior(self, parameters: P) -> float:
        """Return what the objective adds to the log-likelihood."""
        return 0.0

    @abstractmethod
    def acceleration(self) -> Squarem[P]:
        """Return how to extrapolate the steps."""

    @abstractmethod
    def parameters_of(self, fit: BaseFit) -> P:
        """Return the parameters of a fit."""

    @abstractmethod
    def confusion(self, parameters: P) -> Floats:
        """Return the expected confusion matrices, annotators x categories x classes."""

    @abstractmethod
    def class_prior(self, parameters: P) -> Floats:
        """Return the expected share of each class; they sum to 1."""

    def reliability(self, parameters: P, counts: ExpectedCounts) -> Floats:
        """Return the expected share of each annotator's labels that are the item's class."""
        correct: Floats = np.einsum("snk,nk->s", counts.labels, self.known_truth)
        return np.minimum(correct / self.labels_per_annotator, 1.0)  # rounding


def draws_of_annotators(draws: Floats, labels: LabelSummary) -> Floats:
    """Return random draws, one row per annotator, that depend on no name and on no order.

    Annotators who gave each label equally often have the same draws.
    """
    _, place = np.unique(hash_counts(labels.labels_per_category)[0], return_inverse=True)
    return draws[place]
