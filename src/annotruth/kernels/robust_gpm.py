r"""Passes over the labels of models whose items are of one of K kinds, summed out.

An item is of kind k with probability :math:`p_k`; a label n of annotator s then has the weight
:math:`a_{s,n,k}`, and

.. math:: w_{e,k} \propto p_k \prod_{s \in l_e} a_{s,r_{e,s},k}.

``rates`` and ``counts`` are annotators x labels x kinds: what a label says of all kinds is one row
in memory. ``gate`` is categories x kinds: what a known truth says of the kinds. Each kernel works
on items ``lo:hi`` of a block. Plain twins: `annotruth.kernels.reference.robust_gpm`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.block import Block
from annotruth.kernels.compiled import compiled

# Rates are 1e-12 or more, so that the product of this many does not underflow.
_LABELS_A_LOG = 20


@compiled
def start(block: Block, lo: int, hi: int, counts: Floats, classes: Floats) -> None:
    """Add up the counts of `step` with the observed shares, or known truths, as posteriors."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        known = block.known[e]
        total = block.cell_ptr[last] - block.cell_ptr[first]
        for d in range(first, last):
            k = block.cell_category[d] if known < 0 else known
            share = (block.cell_ptr[d + 1] - block.cell_ptr[d]) / total
            classes[k] += share
            for c in range(first, last):
                n = block.cell_category[c]
                for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                    counts[block.annotator[j], n, k] += share


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    counts: Floats,
    classes: Floats,
    totals: Floats,
) -> None:
    """Add up posteriors by annotator and label, by kind, and the log of the items' sums."""
    n_kinds = prior.shape[0]
    posterior = np.empty(n_kinds)
    rows = _room_for_rows(block, lo, hi)
    flat, flat_counts = rates.reshape(-1), counts.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, rates.shape[1], n_kinds, rows)
        totals[0] += _posterior(block, e, prior, gate, flat, rows, n_rows, posterior)
        for k in range(n_kinds):
            classes[k] += posterior[k]
        for j in range(n_rows):
            row = flat_counts[rows[j] : rows[j] + n_kinds]
            for k in range(n_kinds):
                row[k] += posterior[k]


@compiled
def support(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    ways: Floats,
    repeating: Floats,
    repeated: Codes,
    log_likelihood: Floats,
) -> None:
    """Add up each annotator's log-likelihood in every way of answering, from the others' labels.

    An item's kind is judged without the annotator's own label: the posterior over the label's
    rates. ``ways`` and ``repeating`` are labels x kinds x ways; the second is for the label that
    the annotator would repeat.
    """
    n_kinds, n_ways = prior.shape[0], ways.shape[2]
    posterior = np.empty(n_kinds)
    mix = np.empty(n_ways)
    rows = _room_for_rows(block, lo, hi)
    flat = rates.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, rates.shape[1], n_kinds, rows)
        _posterior(block, e, prior, gate, flat, rows, n_rows, posterior)
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                table = repeating[n] if repeated[s] == n else ways[n]
                total = 0.0
                mix[:] = 0.0
                for k in range(n_kinds):
                    without = posterior[k] / rates[s, n, k]
                    total += without
                    for g in range(n_ways):
                        mix[g] += without * table[k, g]
                for g in range(n_ways):
                    log_likelihood[s, g] += math.log(mix[g] / total)


@compiled
def judge(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    gate: Floats,
    rates: Floats,
) -> None:
    """Write each item's posterior over the kinds, items x kinds."""
    rows = _room_for_rows(block, lo, hi)
    flat = rates.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, rates.shape[1], prior.shape[0], rows)
        _posterior(block, e, prior, gate, flat, rows, n_rows, posterior[e])


@compiled
def read_out(
    block: Block,
    lo: int,
    hi: int,
    theta: Floats,
    leading: Floats,
    spread: Floats,
    p_serious: Floats,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    opinions: Floats,
    modes: Codes,
    values: Floats,
    serious: Floats,
    totals: Floats,
) -> None:
    """Write what is known of each item, and how likely each label was serious.

    ``opinions`` is kinds x categories, ``modes`` the leading category of each kind and ``values``
    its score; ``serious`` is how likely an annotator's label n of an item of kind k is serious.
    ``theta`` gets the mean distribution, ``leading`` the probability of each category to lead,
    ``spread`` the mean and variance of the score and the variance of theta's largest entry.
    """
    posterior = np.empty(prior.shape[0])
    rows = _room_for_rows(block, lo, hi)
    flat = rates.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, rates.shape[1], prior.shape[0], rows)
        totals[0] += _posterior(block, e, prior, gate, flat, rows, n_rows, posterior)
        known = block.known[e]
        mean = posterior @ values
        variance = 0.0
        theta[e] = 0.0
        leading[e] = 0.0
        for k in range(prior.shape[0]):
            variance += posterior[k] * (values[k] - mean) ** 2
            leading[e, modes[k]] += posterior[k]
            for n in range(theta.shape[1]):
                theta[e, n] += posterior[k] * opinions[k, n]
        if known >= 0:
            theta[e] = 0.0
            leading[e] = 0.0
            theta[e, known] = leading[e, known] = 1.0
        top = theta[e].argmax()
        of_top = 0.0
        for k in range(prior.shape[0]):
            of_top += posterior[k] * (opinions[k, top] - theta[e, top]) ** 2
        spread[e, 0], spread[e, 1], spread[e, 2] = mean, variance, of_top
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                p_serious[j] = posterior @ serious[block.annotator[j], n]


@compiled
def _room_for_rows(block: Block, lo: int, hi: int) -> Codes:
    """Make room for the rows of the item with the most labels."""
    most = 0
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        most = max(most, block.cell_ptr[last] - block.cell_ptr[first])
    return np.empty(most, dtype=np.int64)


@compiled
def _find_rows(block: Block, e: int, n_labels: int, n_kinds: int, rows: Codes) -> int:
    """Write where the rates of each label of an item begin, and return how many there are.

    BaseFit once an item, and then read in one loop: short loops over cells cost more than the work.
    """
    found = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            rows[found] = (np.int64(block.annotator[j]) * n_labels + n) * n_kinds
            found += 1
    return found


@compiled
def _posterior(
    block: Block,
    e: int,
    prior: Floats,
    gate: Floats,
    rates: Floats,
    rows: Codes,
    n_rows: int,
    posterior: Floats,
) -> float:
    """Write the posterior of one item and return the log of the sum before it was normalised."""
    n_kinds = prior.shape[0]
    known = block.known[e]
    for k in range(n_kinds):
        posterior[k] = prior[k] if known < 0 else prior[k] * gate[known, k]
    if n_rows <= _LABELS_A_LOG:
        _multiply(rates, rows, 0, n_rows, posterior)
        return _scaled(posterior)
    logs = np.zeros(n_kinds)
    for first in range(0, n_rows, _LABELS_A_LOG):
        _multiply(rates, rows, first, min(first + _LABELS_A_LOG, n_rows), posterior)
        for k in range(n_kinds):
            logs[k] += np.log(posterior[k])
            posterior[k] = 1.0
    top = float(logs.max())
    for k in range(n_kinds):
        posterior[k] = math.exp(logs[k] - top)
    return top + _scaled(posterior)


@compiled
def _multiply(rates: Floats, rows: Codes, first: int, last: int, product: Floats) -> None:
    """Multiply the rates of the labels first:last into the product, kind by kind."""
    n_kinds = len(product)
    j = first
    # Four labels at once: the product is read and written a quarter as often.
    while j + 4 <= last:
        a = rates[rows[j] : rows[j] + n_kinds]
        b = rates[rows[j + 1] : rows[j + 1] + n_kinds]
        c = rates[rows[j + 2] : rows[j + 2] + n_kinds]
        d = rates[rows[j + 3] : rows[j + 3] + n_kinds]
        for k in range(n_kinds):
            product[k] *= (a[k] * b[k]) * (c[k] * d[k])
        j += 4
    while j < last:
        a = rates[rows[j] : rows[j] + n_kinds]
        for k in range(n_kinds):
            product[k] *= a[k]
        j += 1


@compiled
def _scaled(values: Floats) -> float:
    """Make the values sum to 1 and return the log of what they summed to."""
    # Four sums side by side, which need not wait for one another.
    a = b = c = d = 0.0
    whole = len(values) // 4 * 4
    for k in range(0, whole, 4):
        a += values[k]
        b += values[k + 1]
        c += values[k + 2]
        d += values[k + 3]
    for k in range(whole, len(values)):
        a += values[k]
    total = (a + b) + (c + d)
    over = 1.0 / total
    for k in range(len(values)):
        values[k] *= over
    return math.log(total)
