"""Labels beside the recovered labels: matches, confusion counts, difficulty and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from annotruth.advice.annotators import match_rate, recovered_labels, verdicts
from annotruth.agreement import fleiss_kappa, krippendorff_alpha, suitable_metrics
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.models.result import Fit


@dataclass(frozen=True, eq=False)
class CategoryBins:
    """Categories in few enough bins to draw: neighbours, or rare ones, share a bin.

    Attributes
    ----------
    names
        What each bin holds.
    of
        The bin of each category.
    first
        One category of each bin, whose color it has.

    Examples
    --------
    >>> from annotruth.labels import Labels
    >>> labels = Labels.of([(n, "x", n) for n in range(1, 101)])
    >>> category_bins(labels, 4).names
    ['1 to 25', '26 to 50', '51 to 75', '76 to 100']
    """

    names: list[str]
    of: Codes
    first: Codes

    def __len__(self) -> int:
        return len(self.names)


def category_bins(labels: Labels, max_bins: int) -> CategoryBins:
    """Put categories into bins: neighbours if ordinal, else the rare ones together."""
    n, names = labels.n_categories, labels.scale.names
    if n <= max_bins:
        return CategoryBins(names, np.arange(n), np.arange(n))
    if labels.scale.is_ordinal:
        of = np.arange(n) * max_bins // n
        first = np.searchsorted(of, np.arange(max_bins))
        last = np.append(first[1:], n) - 1
        spans = [f"{names[a]} to {names[b]}" for a, b in zip(first, last, strict=True)]
        return CategoryBins(spans, of, first)
    counts = np.bincount(labels.cell_category, np.diff(labels.cell_ptr), n)
    common = np.sort(np.argsort(-counts, kind="stable")[: max_bins - 1])
    of = np.full(n, max_bins - 1)
    of[common] = np.arange(max_bins - 1)
    rare = int(np.flatnonzero(of == max_bins - 1)[0])
    named = [names[k] for k in common] + [f"{n - max_bins + 1:,} others"]
    return CategoryBins(named, of, np.append(common, rare))


@dataclass(frozen=True, eq=False)
class Consensus:
    """A fit's labels beside the recovered labels of their items.

    Examples
    --------
    >>> import annotruth as at
    >>> fit = at.fit([("a", "x", 1), ("a", "y", 1), ("a", "z", 2)], "majority")
    >>> Consensus(fit).match_rate.tolist()
    [1.0, 1.0, 0.0]
    """

    fit: Fit

    @cached_property
    def recovered(self) -> Codes:
        """The code of each item's recovered label; of a score, the category nearest to it."""
        return recovered_labels(self.fit)

    @cached_property
    def item(self) -> Codes:
        """The item of each label."""
        return self.fit.data.item_of_label().astype(np.int64)

    @cached_property
    def category(self) -> NDArray[np.int32]:
        """The category of each label."""
        return self.fit.data.cell_category[self.fit.data.cell_of_label()]

    @cached_property
    def match_rate(self) -> Floats:
        """The share of each annotator's labels that are the recovered ones."""
        return match_rate(self.fit)

    def confusion(self, bins: CategoryBins) -> Codes:
        """Return counts of each annotator's labels: annotators x recovered bin x given bin."""
        data, n = self.fit.data, len(bins)
        recovered, given = bins.of[self.recovered[self.item]], bins.of[self.category]
        place = (data.annotator.astype(np.int64) * n + recovered) * n + given
        counts = np.bincount(place, minlength=data.n_annotators * n * n)
        return counts.reshape(data.n_annotators, n, n)

    @cached_property
    def difficulty(self) -> Floats:
        """Each item's entropy in nats: of its distribution, or of its labels where it has none."""
        data, theta = self.fit.data, self.fit.distribution
        if theta is not None:
            return theta.entropy()
        item = data.item_of_cell()
        share = np.diff(data.cell_ptr) / data.labels_per_item[item]
        # + 0.0 turns -0.0 into 0.0.
        return np.asarray(np.bincount(item, -share * np.log(share), data.n_items) + 0.0, float)


@dataclass(frozen=True)
class AgreementRow:
    """The agreement of some of the labels.

    Attributes
    ----------
    name, n_labels
        Which labels, and how many.
    values
        The coefficients by name; nan where one is not defined.

    Examples
    --------
    >>> AgreementRow("all labels", 3, {"alpha (nominal)": 0.5}).n_labels
    3
    """

    name: str
    n_labels: int
    values: dict[str, float]


def agreement_rows(fit: Fit) -> list[AgreementRow]:
    """Return the agreement of all labels, without annotators to drop, and weighted by p serious."""
    data, dropped = fit.data, verdicts(fit)[0] == "drop"
    everything = np.ones(data.n_labels)
    rows = [_agreement(fit, "all labels", everything)]
    if dropped.any():
        kept = ~dropped[data.annotator]
        rows.append(_agreement(fit, "without annotators to drop", kept.astype(float)))
    if fit.p_serious is not None:
        rows.append(_agreement(fit, "weighted by p serious", fit.p_serious, weighted=True))
    return rows


def _agreement(fit: Fit, name: str, weight: Floats, *, weighted: bool = False) -> AgreementRow:
    values = {
        f"alpha ({metric})": krippendorff_alpha(fit.data, metric, weight)
        for metric in suitable_metrics(fit.data.scale)
    }
    # Fleiss' kappa counts labels; it takes no weights.
    values["Fleiss' kappa"] = float("nan") if weighted else fleiss_kappa(fit.data, weight)
    return AgreementRow(name, int(np.count_nonzero(weight)), values)
