"""Fits in which parts of annotators' labels have reliabilities of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.arrays import Covariates
from annotruth.models.result import Fit


@dataclass(frozen=True, eq=False)
class Parts:
    """A division of annotators' labels into parts, each of which is fitted as an annotator.

    Attributes
    ----------
    of_label
        The part of each label, in the order of the layout.
    annotator
        The annotator of each part.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = at.Labels.of([("a", "ann", 1), ("b", "ann", 2), ("b", "bob", 2)])
    >>> Parts(np.array([0, 2, 1]), np.array([0, 1, 0])).labels(labels).n_annotators
    3
    """

    of_label: Codes
    annotator: Codes

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
    """A fit in which parts of annotators' labels have reliabilities of their own.

    Attributes
    ----------
    fit
        The fit, with one entry per annotator: means over parts, weighted by labels.
    reliability, low, high
        The reliability of each part with its 95% interval.

    Examples
    --------
    >>> import annotruth as at
    >>> rows = [(item, who, item % 2) for item in range(20) for who in ("ann", "bob", "eve")]
    >>> model = at.RobustGPM().fit(rows)
    >>> data = model.result_.data
    >>> late = (data.annotator == 0) & (data.item_of_label() >= 10)
    >>> parted = model.fit_parts(Parts(np.where(late, 3, data.annotator), np.array([0, 1, 2, 0])))
    >>> len(parted.reliability), parted.fit.data.n_annotators
    (4, 3)
    """

    fit: Fit
    reliability: Floats
    low: Floats
    high: Floats
