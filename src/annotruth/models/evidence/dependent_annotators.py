r"""Pairs of annotators whose labels depend on one another, as copies do.

Labels of independent annotators are equal as often as their items explain. If s and t give equal
labels to x of m common items, where y are expected, a share :math:`\rho = (x - y) / (m - y)` of their
labels is taken to depend on one another. Where opinions differ, neither of them then says anything
about the other's reliability, and their labels of an item say less than those of two annotators:
intervals take both into account. Estimates do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import bdtrc, ndtr, ndtri

from annotruth.engines import DistributedLabels, Input, Pass, Session, Sum
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import table_of
from annotruth.models.fits.further import FurtherResults
from annotruth.models.latent_classes import POSTERIOR_INPUTS
from annotruth.observations import Labels, LabelSummary
from annotruth.observations.encode import id_ranks, to_text

MIN_COMMON = 10
"""How many items two annotators must have in common for anything to be said about their dependence."""

SIGNIFICANCE = 0.05
"""The level of the tests of dependence, over all pairs of annotators or machines together."""

MAX_ANNOTATORS = 400
"""How many annotators are compared at most."""

_LEAST_P_VALUE = 1e-300
_MAX_COMMON = 10_000_000  # labels of the same item that are compared, about
_MAX_NAMED = 3  # pairs in the summary
_NORMAL_MAD = 1.4826  # standard deviations of a normal distribution per median absolute deviation


@dataclass(frozen=True, eq=False)
class DependentPairs:
    """Which annotators depend on one another, and how much: one entry per such pair."""

    labels: LabelSummary
    n_tested: int  # how many pairs were tested
    annotator: Codes
    other: Codes
    n_items: Floats  # that they have in common
    n_same: Floats  # to which they gave equal labels
    n_expected: Floats  # to which independent annotators would
    p_value: Floats  # adjusted for the number of pairs

    @property
    def correlation(self) -> Floats:
        """The share of a pair's labels that depend on one another."""
        return (self.n_same - self.n_expected) / (self.n_items - self.n_expected)

    @property
    def design_effect(self) -> float:
        """By how much the variance of an item's mean label is larger than that of independent labels."""
        return 1.0 + 2.0 * float(self.correlation @ self.n_items) / self.labels.n_labels

    def depends(self) -> NDArray[np.bool_]:
        """Return whether two annotators depend on one another, annotators x annotators."""
        depends = np.zeros((self.labels.n_annotators,) * 2, dtype=np.bool_)
        depends[self.annotator, self.other] = depends[self.other, self.annotator] = True
        return depends

    def independent_groups(self) -> Iterator[NDArray[np.bool_]]:
        """Divide those who depend on others into groups within which nobody depends on another."""
        depends = self.depends()
        left = depends.any(axis=0)
        while left.any():
            group = np.zeros_like(left)
            for annotator in np.flatnonzero(left):
                group[annotator] = not depends[annotator][group].any()
            yield group
            left = left & ~group


def find_dependent_pairs(
    session: Session,
    labels: LabelSummary,
    *,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
    min_correlation: float = 0.0,
) -> DependentPairs | None:
    """Return the pairs of annotators who depend on one another; None if no pair can be tested.

    They have at least `MIN_COMMON` items in common, and more equal labels than expected at a
    significance of 0.05 over all such pairs (Bonferroni). Standard scores are relative to their median
    over all pairs and, where they vary more than by chance, to their median absolute deviation: what the
    model does not explain about anybody is no dependence of two annotators.

    Nothing is compared where annotators or common items are very many, or where annotators have
    weights: those already depend on one another.
    ``min_correlation`` is the least share of a pair's labels that depend on one another.
    """
    n_annotators = labels.n_annotators
    too_many = n_annotators > MAX_ANNOTATORS or n_common_labels(labels) > _MAX_COMMON
    if too_many or n_annotators < 2 or labels.annotator_weight is not None:
        return None
    shape = (n_annotators, n_annotators)
    sums = session.run_pass(
        Pass(
            "robust_gpm.count_agreements",
            inputs=(*POSTERIOR_INPUTS, Input("place", annotator_axis=0)),
            sums=(Sum("same", shape), Sum("expected", shape), Sum("common", shape)),
        ),
        prior=prior,
        known_truth=known_truth,
        confusion=confusion,
        place=np.arange(n_annotators),
    )
    tested = np.nonzero(np.triu(sums["common"] >= MIN_COMMON, 1))
    if not len(tested[0]):
        return None
    same, expected, common = (sums[name][tested] for name in ("same", "expected", "common"))
    p_value = adjusted_p_values(same, expected, common)
    enough = same - expected > min_correlation * (common - expected)
    found = (p_value < SIGNIFICANCE) & enough
    one, other = (codes[found] for codes in tested)
    values = (each[found] for each in (common, same, expected, p_value))
    return DependentPairs(labels, len(found), one, other, *values)


def n_common_labels(labels: LabelSummary) -> float:
    """Return about how many labels of the same item are compared."""
    return labels.n_labels**2 / labels.n_items


def adjusted_p_values(same: Floats, expected: Floats, common: Floats) -> Floats:
    """Return p-values of as many equal labels of each pair, adjusted for the number of pairs."""
    p_value = bdtrc(same - 1.0, common.astype(np.int64), expected / common)
    score = -ndtri(np.clip(p_value, _LEAST_P_VALUE, 1.0 - 1e-15))
    middle = np.median(score)
    spread = _NORMAL_MAD * np.median(np.abs(score - middle))
    relative = (score - middle) / max(1.0, spread)
    adjusted: Floats = np.minimum(ndtr(-relative) * len(score), 1.0)
    return adjusted


def dependence_results(pairs: DependentPairs | None) -> dict[str, FurtherResults]:
    """Return the further results on dependent annotators by kind.

    None if nothing was tested, or if the annotators' ids are on other machines.
    """
    if pairs is None or isinstance(pairs.labels, DistributedLabels):
        return {}
    table = _table(pairs, cast("Labels", pairs.labels))
    facts = {"n_tested": pairs.n_tested, "n_dependent": len(table), "significance": SIGNIFICANCE}
    results = FurtherResults({"dependent_annotators": table}, facts, _lines(pairs, table))
    return {"dependent_annotators": results}


def _table(pairs: DependentPairs, labels: Labels) -> pa.Table:
    """Return one row per pair, the least p-value first; ids are in the order of their text."""
    rank = id_ranks(labels.annotators)
    ordered = np.sort([rank[pairs.annotator], rank[pairs.other]], axis=0)
    rows = np.lexsort((*ordered[::-1], -pairs.correlation, pairs.p_value))
    one, other = np.argsort(rank)[ordered[:, rows]]
    return table_of(
        {
            "annotator": labels.annotators.take(pa.array(one)),
            "other": labels.annotators.take(pa.array(other)),
            "n_items": pairs.n_items[rows].astype(np.int64),
            "agreement": (pairs.n_same / pairs.n_items)[rows],
            "expected": (pairs.n_expected / pairs.n_items)[rows],
            "correlation": pairs.correlation[rows],
            "p_value": pairs.p_value[rows],
        }
    )


def _lines(pairs: DependentPairs, table: pa.Table) -> list[str]:
    """Return the line of the summary; none where all annotators seem to be independent."""
    if not len(table):
        return []
    ids = (to_text(table[name]).to_pylist() for name in ("annotator", "other"))
    named = [
        f"{shorten(one)} and {shorten(other)} ({row['agreement']:.0%} of {row['n_items']:,} items, "
        f"{row['expected']:.0%} expected)"
        for one, other, row in zip(*ids, table.slice(0, _MAX_NAMED).to_pylist(), strict=False)
    ]
    if more := len(table) - len(named):
        named.append(f"{more:,} more (table dependent_annotators)")
    agree = "agrees" if len(table) == 1 else "agree"
    line = (
        f"{len(table):,} of {counted(pairs.n_tested, 'pair')} of annotators {agree} more often than their "
        f"items explain (at a significance of {SIGNIFICANCE:.0%} over all pairs): {', '.join(named)}"
    )
    return [line]
