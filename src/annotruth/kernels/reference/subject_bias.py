"""NumPy twins of `annotruth.kernels.subject_bias`."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows


def log_density(r: Floats, variance: Floats) -> Floats:
    """Return the log-density of residuals."""
    return -0.5 * (np.log(2.0 * np.pi * variance) + r**2 / variance)


def sum_columns(by: Codes, n: int, *columns: Floats) -> Floats:
    """Return the sums of columns by code, n x columns."""
    return np.stack([np.bincount(by, column, minlength=n) for column in columns], axis=-1)


def start(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    share: float,
    moments: Floats,
) -> None:
    """Set psi to the mean vote, or the known truth, and a2 to a share of the votes' variance."""
    rows = label_rows(block, lo, hi)
    x, item = values[rows.category], rows.item - lo
    count, total = np.bincount(item), np.bincount(item, x)
    psi[lo:hi] = np.where(block.known[lo:hi] >= 0, values[block.known[lo:hi]], total / count)
    r = x - psi[rows.item]
    a2[lo:hi] = share * np.bincount(item, r**2) / count
    moments += sum_columns(rows.annotator, len(moments), r, r**2)


def _best_score(
    rows: LabelRows, lo: int, hi: int, a2: Floats, x: Floats, b: Floats, v2: Floats
) -> tuple[Floats, Floats]:
    w = 1.0 / (v2[rows.annotator] + a2[rows.item])
    precision, total = sum_columns(rows.item - lo, hi - lo, w, w * (x - b[rows.annotator])).T
    return total / precision, precision


def _better_ambiguity(
    rows: LabelRows, lo: int, hi: int, a2: Floats, x: Floats, psi: Floats, b: Floats, v2: Floats
) -> Floats:
    item, old = rows.item - lo, a2[lo:hi]
    r = x - psi[rows.item] - b[rows.annotator]
    w = 1.0 / (v2[rows.annotator] + a2[rows.item])
    n, w1, w2, w2r2 = sum_columns(item, hi - lo, np.ones_like(w), w, w**2, (w * r) ** 2).T
    em = old + old**2 * (w2r2 - w1) / n
    mm = old * np.sqrt(w2r2 / w1)
    safe = np.maximum(np.where(w2r2 > w1, np.maximum(em, mm), np.minimum(em, mm)), 0.0)
    scoring = np.maximum(old + (w2r2 - w1) / w2, 0.0)
    at_safe, at_scoring = (
        np.bincount(item, log_density(r, v2[rows.annotator] + a[item])) for a in (safe, scoring)
    )
    # At the optimum they are equal up to rounding: choose scoring.
    is_better = at_scoring >= at_safe - 1e-12 * (1.0 + np.abs(at_safe))
    better: Floats = np.where(is_better, scoring, safe)
    return better


def step(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    precision: Floats,
    values: Floats,
    b: Floats,
    v2: Floats,
    rounds: int,
    moments: Floats,
    totals: Floats,
) -> None:
    """Update the items, then add up what the update of the annotators needs."""
    rows = label_rows(block, lo, hi)
    x, known = values[rows.category], block.known[lo:hi]
    r = x - psi[rows.item] - b[rows.annotator]
    totals[0] += log_density(r, v2[rows.annotator] + a2[rows.item]).sum()
    for round_ in range(rounds + 1):
        if round_ > 0:
            a2[lo:hi] = _better_ambiguity(rows, lo, hi, a2, x, psi, b, v2)
        best, precision[lo:hi] = _best_score(rows, lo, hi, a2, x, b, v2)
        psi[lo:hi] = np.where(known >= 0, values[known], best)
    r = x - psi[rows.item] - b[rows.annotator]
    w = 1.0 / (v2[rows.annotator] + a2[rows.item])
    totals[1] += log_density(r, 1.0 / w).sum()
    moments += sum_columns(rows.annotator, len(moments), w, w * r, w**2, w**2 * r, (w * r) ** 2)


def log_likelihood_by_annotator(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    b: Floats,
    proposed: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up, by annotator, the log-likelihood at each row of ``proposed`` variances."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    for k, v2 in enumerate(proposed):
        density = log_density(r, v2[rows.annotator] + a2[rows.item])
        np.add.at(log_likelihood[k], rows.annotator, density)


def shift_level(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    values: Floats,
    b: Floats,
    v2: Floats,
    move: float,
    totals: Floats,
) -> None:
    """Subtract ``move`` from the scores that are not known truths; add up wr and w over the others."""
    rows = label_rows(block, lo, hi)
    psi[lo:hi] -= np.where(block.known[lo:hi] < 0, move, 0.0)
    known = block.known[rows.item] >= 0
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    w = known / (v2[rows.annotator] + a2[rows.item])
    totals += [(w * r).sum(), w.sum()]


def set_ambiguity(
    block: Block, lo: int, hi: int, a2: Floats, group: Codes, group_a2: Floats
) -> None:
    """Set the squared ambiguity of each item to that of its group."""
    a2[lo:hi] = group_a2[group[lo:hi]]


def moments_by_group(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    a2: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    moments: Floats,
) -> None:
    """Add to ``moments[g]`` the sums of 1, w, w^2 and (wr)^2 over the votes of group g."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    w = 1.0 / (v2[rows.annotator] + a2[rows.item])
    moments += sum_columns(group[rows.item], len(moments), np.ones_like(w), w, w**2, (w * r) ** 2)


def log_likelihood_by_group(
    block: Block,
    lo: int,
    hi: int,
    psi: Floats,
    group: Codes,
    values: Floats,
    b: Floats,
    v2: Floats,
    proposed: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up, by group, the log-likelihood at each row of ``proposed`` ambiguities."""
    rows = label_rows(block, lo, hi)
    r = values[rows.category] - psi[rows.item] - b[rows.annotator]
    groups = group[rows.item]
    for k, group_a2 in enumerate(proposed):
        density = log_density(r, v2[rows.annotator] + group_a2[groups])
        np.add.at(log_likelihood[k], groups, density)
