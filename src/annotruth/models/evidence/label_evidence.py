"""What single labels say about reliability, and fits of parts of annotators' labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.arrays import Covariates


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    r"""What labels say about reliability, one by one.

    At the reliability :math:`\epsilon` label j has the probability
    :math:`\epsilon S_j + (1 - \epsilon) I_j`. What is known of its item is inferred from the other
    labels of the item.
    """

    if_serious: Floats  # S of each label, in the order of the layout of Labels
    if_irregular: Floats  # I of each label
    levels: Floats  # the levels of reliability that are considered, rising
    weights: (
        Floats  # the posterior of each annotator's level if it is constant, annotators x levels
    )


@dataclass(frozen=True, eq=False)
class Parts:
    """A division of annotators' labels into parts, each of which is fitted as an annotator."""

    of_label: Codes  # the part of each label, in the order of the layout
    annotator: Codes  # the annotator of each part

    def labels(self, labels: Labels) -> Labels:
        """Return the labels with parts as their annotators, in the same layout."""
        prior = labels.annotator_prior
        return replace(
            labels,
            annotators=pa.array(np.arange(len(self.annotator))),
            annotator=self.of_label.astype(np.int32),
            annotator_prior=None if prior is None else prior[self.annotator],
            covariates=Covariates(),
        )

    def shares(self) -> Floats:
        """Return the share of each part in the labels of its annotator."""
        n_labels = np.bincount(self.of_label, minlength=len(self.annotator))
        shares: Floats = n_labels / np.bincount(self.annotator, n_labels)[self.annotator]
        return shares

    def mean(self, values: Floats) -> Floats:
        """Return the mean of the parts of each annotator, weighted by their labels."""
        shares = self.shares().reshape(-1, *[1] * (values.ndim - 1))
        return self.total(shares * values)

    def total(self, values: Floats) -> Floats:
        """Return the sum over the parts of each annotator."""
        total = np.zeros((self.annotator.max() + 1, *values.shape[1:]))
        np.add.at(total, self.annotator, values)
        return total


@dataclass(frozen=True, eq=False)
class PartedFit:
    """A fit in which parts of annotators' labels have reliabilities of their own."""

    fit: Fit  # with one entry per annotator: means over parts, weighted by labels
    reliability: Floats  # of each part, with its 95% interval
    low: Floats
    high: Floats
