r"""How far annotators agree beyond chance, with intervals.

All coefficients but the intraclass correlations are functions of sums over items. With :math:`n_{uk}` labels k
of item u, :math:`n_u` labels in all, and items with two labels or more,

.. math::
    G = \sum_u \frac{n_{uk} (n_{ul} - \delta_{kl})}{n_u (n_u - 1)}, \qquad
    O = \sum_u \frac{n_{uk} (n_{ul} - \delta_{kl})}{n_u - 1}, \qquad
    \pi_k = \frac{1}{n} \sum_u \frac{n_{uk}}{n_u},

where the last sum is over all n items. With weights :math:`w_{kl}` of pairs of labels (1 if they are equal, less
the farther apart they are) the agreement is :math:`p_a = \sum w G / \sum G`, and a coefficient is
:math:`(p_a - p_e) / (1 - p_e)` with the agreement by chance

- of Fleiss (1971), with weights and missing labels as Gwet (2014): :math:`p_e = \sum w_{kl} \pi_k \pi_l`;
- of Gwet's AC1, with weights AC2 (2008):
  :math:`p_e = \sum w_{kl} \sum_k \pi_k (1 - \pi_k) / (q (q - 1))` with q categories;
- of Cohen (1960, 1968), of two annotators: :math:`p_e = \sum w_{kl} p_{1k} p_{2l}`.

Krippendorff's alpha (2011) is that of `annotruth.coefficients`, from the table O.

Intervals are for other items and other people of the same kind: see `annotruth.analyses.agreement.jackknife`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from annotruth.analyses.agreement.jackknife import Variances, jackknife_variance
from annotruth.coefficients import suitable_metrics
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels
from annotruth.observations.scale import parse_numbers

_CHUNK_ENTRIES = 4_000_000  # of sums computed at a time
_TINY = 1e-12


class Units(NamedTuple):
    """Labels of units, such as items: pairs of labels of a unit are compared."""

    item: Codes  # of each label
    unit: Codes
    person: Codes
    category: Codes
    n_repeated: int = 0

    @property
    def has_pairs(self) -> bool:
        """Whether any unit has two labels."""
        return bool((np.bincount(self.unit) > 1).any())

    def size(self) -> dict[str, int]:
        """Return the numbers of labels in pairs, of their items and annotators."""
        counted = np.bincount(self.unit)[self.unit] > 1
        return {
            "n_labels": int(counted.sum()),
            "n_items": len(np.unique(self.item[counted])),
            "n_annotators": len(np.unique(self.person[counted])),
        }


Weights: TypeAlias = tuple[str, Floats]
"""A name and a table of weights of pairs of labels, 1 for equal ones."""


def pair_weights(data: Labels) -> list[Weights]:
    """Return the weights of pairs of labels that suit a scale."""
    n = data.n_categories
    weights = [("identity", np.eye(n))]
    if data.scale.is_ordinal and n > 1:
        values = parse_numbers(data.scale.categories)
        values = np.arange(n, dtype=float) if values is None else values
        gap = np.abs(values[:, np.newaxis] - values) / np.ptp(values)
        weights += [("linear", 1.0 - gap), ("quadratic", 1.0 - gap**2)]
    return weights


class _Sums(NamedTuple):
    """Sums over units, with any leading axes: those of `_sums`."""

    given: Floats  # G, categories x categories
    pairs: Floats  # O
    shares: Floats  # categories
    n_pairable: Floats
    n_units: Floats


def _sums(counts: Floats) -> Floats:
    """Return G, O and the other sums of each unit as one row, given its labels by category."""
    n_units, q = counts.shape
    n = counts.sum(axis=1)
    pairs = counts[:, :, np.newaxis] * counts[:, np.newaxis]
    place = np.arange(q)
    pairs[:, place, place] -= counts
    pairs /= np.maximum(n - 1.0, 1.0)[:, np.newaxis, np.newaxis]
    share = np.maximum(n, 1.0)
    rows = np.empty((n_units, 2 * q * q + q + 2))
    rows[:, : q * q] = (pairs / share[:, np.newaxis, np.newaxis]).reshape(n_units, -1)
    rows[:, q * q : 2 * q * q] = pairs.reshape(n_units, -1)
    rows[:, 2 * q * q : -2] = counts / share[:, np.newaxis]
    rows[:, -2], rows[:, -1] = n > 1, n > 0
    return rows


def _as_sums(rows: Floats, q: int) -> _Sums:
    table = (*rows.shape[:-1], q, q)
    return _Sums(
        rows[..., : q * q].reshape(table),
        rows[..., q * q : 2 * q * q].reshape(table),
        rows[..., 2 * q * q : -2],
        rows[..., -2],
        rows[..., -1],
    )


Coefficient: TypeAlias = Callable[[_Sums], Floats]


def coefficients(data: Labels) -> dict[tuple[str, str], Coefficient]:
    """Return the functions of sums by the name of the coefficient and of the weights."""
    found: dict[tuple[str, str], Coefficient] = {}
    weights = pair_weights(data)
    found["percent agreement", "identity"] = lambda sums: _agreeing(sums, weights[0][1])
    for metric in suitable_metrics(data.scale):
        found["Krippendorff's alpha", metric] = _alpha(metric, data)
    for name, w in weights:
        found["Fleiss' kappa", name] = _beyond_chance(w, _chance_of_fleiss)
    for name, w in weights:
        found["Gwet's AC1" if name == "identity" else "Gwet's AC2", name] = _beyond_chance(
            w, _chance_of_gwet
        )
    return found


def _agreeing(sums: _Sums, w: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        agreeing: Floats = (sums.given * w).sum(axis=(-2, -1)) / sums.n_pairable
    return agreeing


def _beyond_chance(w: Floats, chance: Callable[[Floats, Floats], Floats]) -> Coefficient:
    def coefficient(sums: _Sums) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = chance(sums.shares / sums.n_units[..., np.newaxis], w)
            found: Floats = (_agreeing(sums, w) - expected) / (1.0 - expected)
        return np.where(expected < 1.0 - _TINY, found, np.nan)

    return coefficient


def _chance_of_fleiss(shares: Floats, w: Floats) -> Floats:
    by_chance: Floats = np.einsum("...k,kl,...l->...", shares, w, shares)
    return by_chance


def _chance_of_gwet(shares: Floats, w: Floats) -> Floats:
    q = len(w)
    by_chance: Floats = w.sum() * (shares * (1.0 - shares)).sum(axis=-1) / max(q * (q - 1), 1)
    return by_chance


def _alpha(metric: str, data: Labels) -> Coefficient:
    values = data.scale.values if data.scale.is_ordinal else np.zeros(data.n_categories)

    def coefficient(sums: _Sums) -> Floats:
        t = sums.pairs.sum(axis=-1)
        n = t.sum(axis=-1)
        place = np.cumsum(t, axis=-1) - t / 2.0 if metric == "ordinal" else values
        gap: Any = (place[..., :, np.newaxis] - place[..., np.newaxis, :]) ** 2
        if metric == "nominal":
            gap = 1.0 - np.eye(data.n_categories)
        observed = (sums.pairs * gap).sum(axis=(-2, -1))
        expected = (t[..., :, np.newaxis] * t[..., np.newaxis, :] * gap).sum(axis=(-2, -1))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = 1.0 - observed / expected * (n - 1.0)
        return np.where(expected > _TINY * n**2 * np.max(gap), found, np.nan)

    return coefficient


class Jackknife:
    """Coefficients with items, people and single labels left out in turn; units are in the order of items."""

    def __init__(self, units: Units, q: int) -> None:
        self.q, self.width = q, 2 * q**2 + q + 2
        self.person = np.unique(units.person, return_inverse=True)[1]
        cell, self.cell_of_label = np.unique(units.unit * q + units.category, return_inverse=True)
        self.cell_unit, self.cell_category = np.divmod(cell, q)
        self.counts = np.bincount(self.cell_of_label)
        first = np.unique(units.unit, return_index=True)[1]
        self.item_of_unit = np.unique(units.item[first], return_inverse=True)[1]

    def run(self, functions: list[Coefficient]) -> list[tuple[float, Variances]]:
        """Return each coefficient and its variances."""
        n_people, n_cells = int(self.person.max()) + 1, len(self.counts)
        n_labels = csr_array(
            (np.ones(len(self.person)), (self.person, self.cell_of_label)), (n_people, n_cells)
        )
        total, by_person = np.zeros(self.width), np.zeros((n_people, self.width))
        for units in self._chunks():
            rows, cells, change = self._without_each(units)
            total += rows.sum(axis=0)
            by_person += n_labels[:, cells] @ change
        of_items: list[list[Floats]] = [[] for _ in functions]
        of_labels: list[list[Floats]] = [[] for _ in functions]
        for units in self._chunks():
            rows, _, change = self._without_each(units)
            first = np.unique(self.item_of_unit[units], return_index=True)[1]
            self._add(of_items, functions, total - np.add.reduceat(rows, first))
            self._add(of_labels, functions, total + change)
        whole: list[list[Floats]] = [[] for _ in functions]
        without: list[list[Floats]] = [[] for _ in functions]
        self._add(whole, functions, total[np.newaxis])
        self._add(without, functions, total + by_person)
        found = []
        for value, *left_out in zip(whole, of_items, without, of_labels, strict=True):
            items, people, labels = map(np.concatenate, left_out)
            variances = (
                jackknife_variance(items),
                jackknife_variance(people),
                jackknife_variance(labels, self.counts),
            )
            found.append((float(value[0][0]), Variances(*variances, len(items), len(people))))
        return found

    def _chunks(self) -> Iterator[slice]:
        """Return slices of the units, of whole items, so that their sums are in memory."""
        n_units = np.bincount(self.item_of_unit)
        size = max(1, _CHUNK_ENTRIES // self.width // int(n_units.max()))
        ends = np.append(0, np.cumsum(n_units))[::size]
        for first, last in pairwise([*ends.tolist(), len(self.item_of_unit)]):
            if first < last:
                yield slice(first, last)

    def _without_each(self, units: slice) -> tuple[Floats, slice, Floats]:
        """Return the sums of units, their cells, and how leaving one label of a cell out changes them."""
        cells = slice(*np.searchsorted(self.cell_unit, [units.start, units.stop]))
        unit, category = self.cell_unit[cells] - units.start, self.cell_category[cells]
        counts = np.zeros((units.stop - units.start, self.q))
        counts[unit, category] = self.counts[cells]
        rows = _sums(counts)
        left = counts[unit]
        left[np.arange(len(unit)), category] -= 1.0
        return rows, cells, _sums(left) - rows[unit]

    def _add(self, found: list[list[Floats]], functions: list[Coefficient], rows: Floats) -> None:
        sums = _as_sums(rows, self.q)
        for values, function in zip(found, functions, strict=True):
            values.append(function(sums))


def cohens_kappa(data: Labels, units: Units, w: Floats) -> tuple[float, Variances]:
    """Return Cohen's kappa of two annotators, over the items that both labelled."""
    order = np.lexsort((units.person, units.item))
    item, category = units.item[order], units.category[order]
    both, q = np.flatnonzero(item[1:] == item[:-1]), data.n_categories
    cell, counts = np.unique(category[both] * q + category[both + 1], return_counts=True)
    table = np.zeros(q * q)
    table[cell] = counts
    without = np.empty(len(cell))
    for place, each in enumerate(cell.tolist()):
        table[each] -= 1.0
        without[place] = _kappa(table.reshape(q, q), w)
        table[each] += 1.0
    variance = jackknife_variance(without, counts)
    return _kappa(table.reshape(q, q), w), Variances(variance, np.nan, np.nan, len(both), 2)


def _kappa(table: Floats, w: Floats) -> float:
    p = table / max(table.sum(), 1.0)
    expected = float(p.sum(axis=1) @ w @ p.sum(axis=0))
    return float((p * w).sum() - expected) / (1.0 - expected) if expected < 1.0 - _TINY else np.nan
