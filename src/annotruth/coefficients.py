"""Agreement of annotators beyond chance: Krippendorff's alpha and Fleiss' kappa.

Both are 1 when all labels of every item are equal and about 0 when labels do not depend on the
item. Neither needs a model: they describe the labels as given.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels
from annotruth.observations.scale import Scale, parse_numbers

__all__ = ["Metric", "fleiss_kappa", "krippendorff_alpha", "pair_agreement", "suitable_metrics"]

Metric = Literal["nominal", "ordinal", "interval"]


def suitable_metrics(scale: Scale) -> list[Metric]:
    """Return the metrics that suit a scale, the best first: an interval metric needs numbers."""
    if not scale.is_ordinal:
        return ["nominal"]
    numbers = parse_numbers(scale.categories) is not None
    return ["ordinal", "interval", "nominal"] if numbers else ["ordinal", "nominal"]


def krippendorff_alpha(
    labels: Any, metric: Metric | Floats = "nominal", weight: Any = None
) -> float:
    r"""Return Krippendorff's alpha: one minus observed over expected disagreement.

    Pairs of labels of one item are compared with pairs of any two labels. With a difference
    :math:`\delta^2` of labels, weights w of labels (1 unless given), and item u's :math:`m_u`
    labels of weight above 0, of which there must be two or more,

    .. math::
        D_o &= \frac{1}{n} \sum_u \sum_{i \ne j \in u} \frac{w_i w_j}{m_u - 1} \delta^2(i, j), \qquad
        t_i = w_i \sum_{j \ne i \in u} \frac{w_j}{m_u - 1}, \quad n = \sum_i t_i, \\
        D_e &= \frac{\sum_{i \ne j} t_i t_j \delta^2(i, j)}{n^2 - \sum_i t_i^2}, \qquad
        \alpha = 1 - D_o / D_e.

    Without weights t is 1 and this is Krippendorff's alpha (2011), which allows missing labels;
    a weight of 0 leaves a label out. Otherwise a pair counts by the product of its weights: with
    ``fit.p_serious`` as weights, by the probability that both labels are serious.

    Parameters
    ----------
    labels
        `Labels`, or anything that `Labels.of` accepts.
    metric
        "nominal": categories are equal or not. "interval": they differ by their values.
        "ordinal": by the number of labels between them, the interval metric of mid-ranks. Or a
        table of :math:`\delta^2`, categories x categories.
    weight
        One non-negative number per label, in the order of ``Labels``.

    Returns
    -------
    float
        nan where no item has two labels, or all labels have one category.
    """
    table = metric if isinstance(metric, np.ndarray) else None
    if table is None and metric not in get_args(Metric):
        raise InputError(f"unknown metric {metric!r}: choose {', '.join(get_args(Metric))}")
    data = Labels.of(labels)
    needs_order = table is None and metric != "nominal"
    if needs_order and not data.scale.with_order().is_ordinal:
        raise InputError(
            f"{metric} alpha needs an ordinal scale: list the categories from lowest to highest, "
            "or choose the metric nominal"
        )
    kept = _pairable(data, _weights(data, weight))
    if not len(kept.item):
        return float("nan")
    item, w = kept.item, kept.weight
    share = 1.0 / (np.bincount(item)[item] - 1.0)  # of one label in each of its pairs
    t = w * (np.bincount(item, w)[item] - w) * share
    n = t.sum()

    if table is not None:
        weights = np.zeros((data.n_items, data.n_categories))
        np.add.at(weights, (item, kept.category), w)
        observed = (w * (weights @ table)[item, kept.category] * share).sum()
        totals = np.bincount(kept.category, t, data.n_categories)
        expected, largest = totals @ table @ totals, table.max()
    elif metric == "nominal":
        unequal = np.bincount(item, w)[item] - np.bincount(kept.cell, w)[kept.cell]
        observed = (w * unequal * share).sum()
        expected, largest = n**2 - (np.bincount(kept.category, t) ** 2).sum(), 1.0
    else:
        value = data.scale.values[kept.category]
        if metric == "ordinal":
            counts = np.bincount(kept.category, t)
            value = (np.cumsum(counts) - counts / 2)[kept.category]
        # sum_ij w_i w_j (v_i - v_j)^2 = 2 sum_i w_i (v_i - mean)^2 sum_i w_i, per item.
        total = np.bincount(item, w)[item]
        deviation = value - np.bincount(item, w * value)[item] / total
        observed = 2.0 * (w * deviation**2 * total * share).sum()
        expected = 2.0 * n * (t * (value - t @ value / n) ** 2).sum()
        largest = n**2 if metric == "ordinal" else float(np.ptp(data.scale.values)) ** 2
    if not expected > 1e-12 * n**2 * largest:  # no more than rounding errors
        return float("nan")
    return float(1.0 - observed / n * (n**2 - (t**2).sum()) / expected)


def fleiss_kappa(labels: Any, keep: Any = None) -> float:
    r"""Return Fleiss' kappa (1971): the agreement of pairs beyond that of the categories' shares.

    .. math::
        \kappa = \frac{\bar P - P_e}{1 - P_e}, \qquad
        P_u = \frac{\sum_c n_{uc} (n_{uc} - 1)}{n_u (n_u - 1)}, \qquad
        P_e = \sum_c p_c^2

    with :math:`n_{uc}` the labels c of item u, :math:`\bar P` the mean of :math:`P_u` over items,
    and :math:`p_c` the share of c among all labels. Fleiss assumes the same number of labels for
    every item; where the numbers differ, items with fewer than two labels are left out and the
    others have equal weight.

    Parameters
    ----------
    labels
        `Labels`, or anything that `Labels.of` accepts.
    keep
        Which labels count, in the order of ``Labels``; default all.

    Returns
    -------
    float
        nan where no item has two labels, or all labels have one category.
    """
    agreeing, by_chance = pair_agreement(labels, keep)
    if by_chance == 1.0:
        return float("nan")
    return (agreeing - by_chance) / (1.0 - by_chance)


def pair_agreement(labels: Any, keep: Any = None) -> tuple[float, float]:
    r"""Return how often two labels of one item are equal, and how often they would be by chance.

    These are :math:`\bar P` and :math:`P_e` of `fleiss_kappa`; the parameters are the same. Both are
    nan where no item has two labels.
    """
    data = Labels.of(labels)
    kept = _pairable(data, _weights(data, keep))
    if not len(kept.item):
        return float("nan"), float("nan")
    n = np.bincount(kept.item)[kept.item]
    others_agreeing = np.bincount(kept.cell)[kept.cell] - 1
    agreeing = (others_agreeing / (n * (n - 1.0))).sum() / len(np.unique(kept.item))
    by_chance = ((np.bincount(kept.category) / len(kept.item)) ** 2).sum()
    return float(agreeing), float(by_chance)


class _PairableLabels(NamedTuple):
    """Labels whose item has another label, one entry per label."""

    item: Codes
    cell: Codes
    category: NDArray[np.int32]
    weight: Floats


def _pairable(data: Labels, weight: Floats) -> _PairableLabels:
    """Return the labels of weight above 0 whose item has another such label."""
    cell = data.cell_of_label()
    item = data.item_of_cell()[cell]
    counts = np.bincount(item[weight > 0], minlength=data.n_items)
    kept = np.flatnonzero((weight > 0) & (counts[item] > 1))
    return _PairableLabels(item[kept], cell[kept], data.cell_category[cell[kept]], weight[kept])


def _weights(data: Labels, weight: Any) -> Floats:
    if weight is None:
        return np.ones(data.n_labels)
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (data.n_labels,):
        raise InputError(
            f"{weights.shape} weights for {data.n_labels:,} labels: give one per label"
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError("a weight is negative or not finite: give non-negative numbers")
    return weights
