r"""What the labels of other people say about the labels of each annotator.

A label of annotator s on item e is assessed by the posterior of the item's latent state without that label,
the *cavity*. With :math:`\log p_{e,s}(r \mid z)` as in `annotruth.kernels.item_states`, where the item is
taken out of the counts, and m labels of the item,

.. math:: w_{e,s}(z) \propto p_z \exp \frac{\sum_{t \neq s} \log p_{e,t}(r_{e,t} \mid z)}
                                         {1 + (m - 2) \rho}.

Items with one label say nothing about the annotator. ``counts`` and ``pseudo_counts`` are annotators x
labels x states, with an annotator's totals after the last label; ``log_share`` is the logarithm of the share of
each label, before the item is taken out; ``weight`` is how much an annotator's labels count. Each kernel processes items ``lo:hi`` of a block. NumPy twins:
`annotruth.kernels.reference.people`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled, compiled_in_any_order
from annotruth.kernels.item_states import _temper
from annotruth.kernels.robust_gpm import _empty_rows, _find_rows
from annotruth.kernels.shared import LEAST_LABEL_PROBABILITY

_LABELS_PER_LOG = 16  # products of so many probabilities are far from underflow


@compiled
def moments(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    log_share: Floats,
    correlation: float,
    weight: Floats,
    agreement: Floats,
    right_labels: Floats,
    shares: Floats,
    states: Floats,
    moments: Floats,
) -> None:
    r"""Add up each annotator's cavities, and how far their labels agree with them.

    ``agreement`` and ``right_labels`` are states x categories, ``shares`` are the annotators' own shares
    of labels. With :math:`c(n) = \sum_z w(z)` ``agreement[z, n]``, r the label and p the shares, the columns
    of ``moments`` are sums over labels of: 1, c(r), :math:`\sum_n p_n c(n)^2` and
    :math:`(\sum_n p_n c(n))^2`; over all labels, those of items with one label included, of the probability
    a that the label is right given all labels of the item, and of a (1 - a); and over labels with a
    cavity, of the probability that the label is right given the others.
    """
    n_states, n_categories = len(prior), agreement.shape[1]
    rows = _empty_rows(block, lo, hi)
    logs, work = np.empty((len(rows), n_states)), np.empty((3, n_states))
    cavity = np.empty(n_categories)
    for e in range(lo, hi):
        n_rows = _label_logs(
            *(block, e, prior, known_truth, counts, pseudo_counts, log_share, weight),
            *(rows, logs, work),
        )
        total, weights = work[0], work[1]
        tempering = 1.0 / (1.0 + (n_rows - 1) * correlation)
        _temper(block.known[e], prior, known_truth, total, tempering, 0, n_states, weights)
        for i in range(n_rows):
            s, n = _annotator_and_label(rows[i], n_states, counts.shape[1])
            p_right = 0.0
            for z in range(n_states):
                p_right += weights[z] * right_labels[z, n]
            moments[s, 4] += p_right
            moments[s, 5] += p_right * (1.0 - p_right)
        if n_rows < 2:
            continue
        for i in range(n_rows):
            s, n = _annotator_and_label(rows[i], n_states, counts.shape[1])
            _leave_out(block.known[e], prior, known_truth, correlation, n_rows, logs[i], work)
            for k in range(n_categories):
                cavity[k] = 0.0
            p_right = 0.0
            for z in range(n_states):
                states[s, z] += weights[z]
                p_right += weights[z] * right_labels[z, n]
                for k in range(n_categories):
                    cavity[k] += weights[z] * agreement[z, k]
            mean, square = 0.0, 0.0
            for k in range(n_categories):
                mean += shares[s, k] * cavity[k]
                square += shares[s, k] * cavity[k] * cavity[k]
            moments[s, 0] += 1.0
            moments[s, 1] += cavity[n]
            moments[s, 2] += square
            moments[s, 3] += mean * mean
            moments[s, 6] += p_right


@compiled
def log_likelihood(
    block: Block,
    lo: int,
    hi: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    log_share: Floats,
    correlation: float,
    weight: Floats,
    serious: Floats,
    factor: Floats,
    normaliser: Floats,
    confused: Codes,
    careless: Floats,
    variant: Codes,
    behavior: Codes,
    reliability: Floats,
    log_likelihood: Floats,
) -> None:
    r"""Add up each annotator's log-likelihood in every response strategy, given the cavities.

    Variant v of serious labels has the distribution ``serious[v, n, z] * factor[s, v, n] *
    normaliser[s, v, z]``; the last variant is ``serious[0]`` with the labels exchanged as ``confused``
    says, annotators x categories. ``careless`` is annotators x behaviors x categories. Strategy g has the
    variant ``variant[g]``, the behavior ``behavior[g]`` and the reliability ``reliability[g]``.
    """
    n_states, n_variants, n_strategies = len(prior), len(serious), len(variant)
    rows = _empty_rows(block, lo, hi)
    logs, work = np.empty((len(rows), n_states)), np.empty((3, n_states))
    p_serious, ones = np.empty(n_variants + 1), np.ones(n_states)
    products = np.ones(log_likelihood.shape)
    pending = np.zeros(len(log_likelihood), dtype=np.int64)
    for e in range(lo, hi):
        n_rows = _label_logs(
            *(block, e, prior, known_truth, counts, pseudo_counts, log_share, weight),
            *(rows, logs, work),
        )
        weights = work[1]
        if n_rows < 2:
            continue
        for i in range(n_rows):
            s, n = _annotator_and_label(rows[i], n_states, counts.shape[1])
            _leave_out(block.known[e], prior, known_truth, correlation, n_rows, logs[i], work)
            for v in range(n_variants):
                p = _weighted_sum(weights, serious[v, n], normaliser[s, v])
                p_serious[v] = p * factor[s, v, n]
            p_serious[n_variants] = _weighted_sum(weights, serious[0, confused[s, n]], ones)
            for g in range(n_strategies):
                p = reliability[g] * p_serious[variant[g]]
                p += (1.0 - reliability[g]) * careless[s, behavior[g], n]
                products[s, g] *= max(p, LEAST_LABEL_PROBABILITY)
            pending[s] += 1
            if pending[s] == _LABELS_PER_LOG:
                _take_logs(products[s], log_likelihood[s])
                pending[s] = 0
    for s in range(len(pending)):
        if pending[s]:
            _take_logs(products[s], log_likelihood[s])


@compiled
def count_compared(block: Block, lo: int, hi: int, counts: Floats) -> None:
    """Count annotators' labels of items with two or more labels, annotators x categories."""
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        if block.cell_ptr[last] - block.cell_ptr[first] < 2:
            continue
        for c in range(first, last):
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                counts[block.annotator[j], block.cell_category[c]] += 1.0


@compiled
def agreement(
    block: Block,
    lo: int,
    hi: int,
    member: Floats,
    table: Floats,
    shares: Floats,
    sums: Floats,
    moments: Floats,
) -> None:
    r"""Add up how far annotators' labels agree with those of other members, without a model.

    With k over the other members' labels of an item, :math:`c(n)` is the mean of ``table[k, n]``. ``sums``
    are annotators x categories, of c(n); the columns of ``moments`` are the first four of `moments`.
    """
    n_categories = len(table)
    counts, cavity = np.empty(n_categories), np.empty(n_categories)
    for e in range(lo, hi):
        first, last = block.item_ptr[e], block.item_ptr[e + 1]
        counts[:] = 0.0
        total = 0.0
        for c in range(first, last):
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                counts[block.cell_category[c]] += member[block.annotator[j]]
                total += member[block.annotator[j]]
        for c in range(first, last):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                s = block.annotator[j]
                others = total - member[s]
                if others <= 0.0:
                    continue
                counts[n] -= member[s]
                for k in range(n_categories):
                    cavity[k] = 0.0
                for d in range(first, last):
                    m = block.cell_category[d]
                    for k in range(n_categories):
                        cavity[k] += counts[m] * table[m, k]
                counts[n] += member[s]
                mean, square = 0.0, 0.0
                for k in range(n_categories):
                    cavity[k] /= others
                    sums[s, k] += cavity[k]
                    mean += shares[s, k] * cavity[k]
                    square += shares[s, k] * cavity[k] * cavity[k]
                moments[s, 0] += 1.0
                moments[s, 1] += cavity[n]
                moments[s, 2] += square
                moments[s, 3] += mean * mean


@compiled
def _label_logs(
    block: Block,
    e: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    log_share: Floats,
    weight: Floats,
    rows: Codes,
    logs: Floats,
    work: Floats,
) -> int:
    """Write the log-likelihood of each label of an item in each state, and their total.

    The item is taken out of the counts. Returns how many labels there are; ``work[0]`` is the total.
    """
    n_states, n_labels = len(prior), counts.shape[1]
    n_rows: int = _find_rows(block, e, n_labels, n_states, rows)
    total, own = work[0], work[1]
    total[:] = 0.0
    for i in range(n_rows):
        s, n = _annotator_and_label(rows[i], n_states, n_labels)
        for z in range(n_states):
            total[z] += weight[s] * log_share[s, n, z]
    _temper(block.known[e], prior, known_truth, total, 1.0, 0, n_states, own)
    total[:] = 0.0
    for i in range(n_rows):
        s, n = _annotator_and_label(rows[i], n_states, n_labels)
        for z in range(n_states):
            log = log_share[s, n, z]
            if counts[s, n_labels - 1, z] > 0.0:  # else there is nothing to take out
                mass = max(counts[s, n, z] - own[z], 0.0) + pseudo_counts[s, n, z]
                every = max(counts[s, n_labels - 1, z] - own[z], 0.0)
                every += pseudo_counts[s, n_labels - 1, z]
                log = math.log(max(mass / every, LEAST_LABEL_PROBABILITY))
            logs[i, z] = weight[s] * log
            total[z] += logs[i, z]
    return n_rows


@compiled_in_any_order
def _weighted_sum(weights: Floats, values: Floats, factors: Floats) -> float:
    total = 0.0
    for z in range(len(weights)):
        total += weights[z] * values[z] * factors[z]
    return total


@compiled
def _leave_out(
    known: int,
    prior: Floats,
    known_truth: Floats,
    correlation: float,
    n_rows: int,
    logs: Floats,
    work: Floats,
) -> None:
    """Write the cavity of a label into ``work[1]``, given its logs and the total in ``work[0]``."""
    without = work[2]
    for z in range(len(prior)):
        without[z] = work[0, z] - logs[z]
    tempering = 1.0 / (1.0 + (n_rows - 2) * correlation)
    _temper(known, prior, known_truth, without, tempering, 0, len(prior), work[1])


@compiled
def _annotator_and_label(row: int, n_states: int, n_labels: int) -> tuple[int, int]:
    """Return the annotator and the label whose counts begin at ``row``."""
    place = row // n_states
    return place // n_labels, place % n_labels


@compiled
def _take_logs(products: Floats, log_likelihood: Floats) -> None:
    """Add the logarithms of products of probabilities, and begin new products."""
    for g in range(len(products)):
        log_likelihood[g] += math.log(products[g])
        products[g] = 1.0
