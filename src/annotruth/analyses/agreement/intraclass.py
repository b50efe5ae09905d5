r"""Intraclass correlations of numbers that people gave items.

With n items, all labelled by the same k people, and the mean squares of a two-way analysis of variance between
items :math:`MS_B`, within items :math:`MS_W`, between people :math:`MS_J` and of the rest :math:`MS_E` (Shrout and Fleiss
1979; McGraw and Wong 1996),

.. math::
    ICC(1) &= \frac{MS_B - MS_W}{MS_B + (k - 1) MS_W}, \qquad
    ICC(3) = \frac{MS_B - MS_E}{MS_B + (k - 1) MS_E}, \\
    ICC(2) &= \frac{MS_B - MS_E}{MS_B + (k - 1) MS_E + k (MS_J - MS_E) / n},

and of the mean of the k numbers, by each :math:`k x / (1 + (k - 1) x)`. Where items have different people, ICC(1) is that of the
one-way analysis, with :math:`k_0 = (N - \sum n_u^2 / N) / (n - 1)` in place of k.
"""

from __future__ import annotations

import numpy as np

from annotruth.analyses.agreement.jackknife import Variances, jackknife_variance
from annotruth.kernels.arrays import Codes, Floats

NAMES = ("ICC(1)", "ICC(2)", "ICC(3)", "ICC(1k)", "ICC(2k)", "ICC(3k)")


def intraclass_correlations(
    item: Codes, person: Codes, value: Floats
) -> dict[str, tuple[float, Variances]]:
    """Return the correlations and their variances, given one entry per label."""
    item, person = (np.unique(each, return_inverse=True)[1] for each in (item, person))
    n, k = int(item.max()) + 1, int(person.max()) + 1
    if len(value) == n * k and min(n, k) > 1:
        table = np.empty((n, k))
        table[item, person] = value
        return _complete(table)
    return _of_incomplete(item, person, value)


def _complete(table: Floats) -> dict[str, tuple[float, Variances]]:
    """Return the correlations of a table of items x people."""
    whole = _of_complete(table)
    without = [
        np.array([_of_complete(np.delete(table, i, axis)) for i in range(table.shape[axis])])
        for axis in (0, 1)
    ]
    found = {}
    for place, name in enumerate(NAMES):
        # That over single labels is part of both; without it, the interval is rather too wide.
        items, people = (jackknife_variance(values[:, place]) for values in without)
        found[name] = float(whole[place]), Variances(items, people, 0.0, *table.shape)
    return found


def _of_complete(table: Floats) -> Floats:
    n, k = table.shape
    if min(n, k) < 2:
        return np.full(len(NAMES), np.nan)
    items, people, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    between = k * ((items - mean) ** 2).sum() / (n - 1)
    within = ((table - items[:, np.newaxis]) ** 2).sum() / (n * (k - 1))
    of_people = n * ((people - mean) ** 2).sum() / (k - 1)
    rest = table - items[:, np.newaxis] - people + mean
    error = (rest**2).sum() / ((n - 1) * (k - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        single = np.array(
            [
                (between - within) / (between + (k - 1) * within),
                (between - error) / (between + (k - 1) * error + k * (of_people - error) / n),
                (between - error) / (between + (k - 1) * error),
            ]
        )
        return np.append(single, k * single / (1.0 + (k - 1) * single))


def _of_incomplete(item: Codes, person: Codes, value: Floats) -> dict[str, tuple[float, Variances]]:
    """Return ICC(1) of items with different numbers of labels, from sums over items."""
    value = value - value.mean()
    n, x, square = (
        np.bincount(item, each).astype(np.float64) for each in (np.ones(len(item)), value, value**2)
    )
    rows = _sums(n, x, square)
    total = rows.sum(axis=0)
    left = _sums(n[item] - 1.0, x[item] - value, square[item] - value**2) - rows[item]
    by_person = np.zeros((int(person.max()) + 1, rows.shape[1]))
    np.add.at(by_person, person, left)
    whole, items, people, labels = map(
        _of_sums, (total[np.newaxis], total - rows, total + by_person, total + left)
    )
    over_items, over_people, over_labels = map(jackknife_variance, (items, people, labels))
    variances = Variances(over_items, over_people, over_labels, len(items), len(people))
    return {"ICC(1)": (float(whole[0]), variances)}


def _sums(n: Floats, x: Floats, square: Floats) -> Floats:
    """Return the sums of each item: 1, n, n^2, x, x^2 / n and those of squares."""
    some = np.maximum(n, 1.0)
    return np.stack([n > 0, n, n**2, x, x**2 / some, square], axis=1)


def _of_sums(rows: Floats) -> Floats:
    n_items, n, n2, x, between, square = rows.T
    with np.errstate(invalid="ignore", divide="ignore"):
        ms_between = (between - x**2 / n) / (n_items - 1)
        ms_within = (square - between) / (n - n_items)
        k = (n - n2 / n) / (n_items - 1)
        correlation: Floats = (ms_between - ms_within) / (ms_between + (k - 1.0) * ms_within)
    return correlation
