r"""Passes of models whose items are in one of S latent states: a class, and a subtype of it.

States are ordered by class: state z is of class z // M, with M subtypes per class. Item e has the
posterior :math:`w_{e,z}` that `annotruth.kernels.robust_gpm` computes. Counts of labels contain the
item's own labels; they are taken out again where an item is read out or predicted from. With n the
counts, :math:`\alpha` pseudo-counts and dots for sums over labels, label r of annotator s has

.. math:: \log p_{e,s}(r \mid z) = \log \frac{n_{s,r,z} - w_{e,z} + \alpha_{s,r,z}}
                                             {n_{s,\cdot,z} - w_{e,z} + \alpha_{s,\cdot,z}},

and the labels of an item are correlated, so that m labels count as :math:`m / (1 + (m - 1) \rho)`:

.. math:: q_{e,z} \propto p_z \exp \frac{\sum_s \log p_{e,s}(r_{e,s} \mid z)}{1 + (m - 1) \rho}.

Some labels may be held out. ``fold`` has one entry per label: the number of the fold in which the
label is held out, `NEVER`, or `NOT_SAMPLED` for labels of items that are left out of all folds. A
kernel leaves out the labels of the fold ``held``. ``counts`` and ``pseudo_counts`` are annotators x
labels x states, with an annotator's totals after the last label. Each kernel processes items ``lo:hi`` of a block.
NumPy twins: `annotruth.kernels.reference.item_states`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.robust_gpm import _empty_rows, _find_rows, _posterior
from annotruth.kernels.shared import AGREEMENT_BINS, NEVER, NOT_SAMPLED
from annotruth.kernels.simd.robust_gpm import LABELS_PER_LOG


@compiled
def agreement(block: Block, lo: int, hi: int, fold: Floats, held: int, items: Floats) -> None:
    """Count the items by the share of their most frequent label, in equal bins from 1 to 0."""
    for e in range(lo, hi):
        n_kept, most = _count_kept(block, e, fold, held)
        if n_kept > 0:
            items[_agreement_bin(most, n_kept)] += 1.0


@compiled
def start(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    subtypes: Floats,
    counts: Floats,
    states: Floats,
) -> None:
    """Add up what `step` does, with observed shares or known truths as the posteriors of classes.

    ``subtypes``, agreement bins x subtypes, divides each class by how much the item's labels agree.
    """
    n_subtypes = subtypes.shape[1]
    for e in range(lo, hi):
        n_kept, most = _count_kept(block, e, fold, held)
        if n_kept == 0:
            continue
        weights = subtypes[_agreement_bin(most, n_kept)]
        for d in range(block.item_ptr[e], block.item_ptr[e + 1]):
            k = block.cell_category[d] if block.known[e] < 0 else block.known[e]
            share = _count_cell(block, d, fold, held) / n_kept
            for g in range(n_subtypes):
                posterior = share * weights[g]
                states[k * n_subtypes + g] += posterior
                for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
                    n = block.cell_category[c]
                    for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                        if _is_kept(fold[j], held):
                            counts[block.annotator[j], n, k * n_subtypes + g] += posterior


@compiled
def step(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    prior: Floats,
    truth_likelihood: Floats,
    confusion: Floats,
    counts: Floats,
    states: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by state, and the log-likelihood, of labels kept."""
    n_states = prior.shape[0]
    posterior = np.empty(n_states)
    rows = _empty_rows(block, lo, hi)
    flat, flat_counts = confusion.reshape(-1), counts.reshape(-1)
    for e in range(lo, hi):
        n_rows = _find_kept(block, e, fold, held, confusion.shape[1], n_states, rows)
        if n_rows == 0:
            continue
        log_likelihood[0] += _posterior(
            block, e, prior, truth_likelihood, flat, rows, n_rows, posterior
        )
        for z in range(n_states):
            states[z] += posterior[z]
        for j in range(n_rows):
            row = flat_counts[rows[j] : rows[j] + n_states]
            for z in range(n_states):
                row[z] += posterior[z]


@compiled
def summarize(
    block: Block,
    lo: int,
    hi: int,
    right: Floats,
    opinion: Floats,
    p_serious: Floats,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
    right_labels: Floats,
    opinions: Floats,
    serious: Floats,
) -> None:
    """Write each item's probabilities of the right label and shares of opinion, and p_serious.

    ``right_labels`` and ``opinions`` are states x categories: the distribution of the right label
    and of serious opinion in each state. ``serious`` is annotators x labels x states: how likely a
    label is serious. A label that nobody gave the item is never more probable than the most
    probable one that somebody gave.
    """
    n_states = prior.shape[0]
    n_categories = right.shape[1]
    rows = _empty_rows(block, lo, hi)
    logs, weights = np.empty(n_states), np.empty(n_states)
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, counts.shape[1] - 1, 1, rows)
        _leave_item_out(
            block,
            e,
            prior,
            truth_likelihood,
            counts,
            pseudo_counts,
            rows,
            n_rows,
            logs,
        )
        tempering = 1.0 / (1.0 + (n_rows - 1) * correlation)
        _temper(block.known[e], prior, truth_likelihood, logs, tempering, weights)
        right[e] = 0.0
        opinion[e] = 0.0
        for z in range(n_states):
            for n in range(n_categories):
                right[e, n] += weights[z] * right_labels[z, n]
                opinion[e, n] += weights[z] * opinions[z, n]
        if block.known[e] >= 0:
            right[e] = 0.0
            right[e, block.known[e]] = 1.0
        else:
            _cap_labels_not_given(block, e, right[e])
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                p = 0.0
                for z in range(n_states):
                    p += weights[z] * serious[block.annotator[j], n, z]
                p_serious[j] = p


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
) -> None:
    """Write each item's posterior over the states, items x states."""
    rows = _empty_rows(block, lo, hi)
    logs = np.empty(prior.shape[0])
    for e in range(lo, hi):
        n_rows = _find_rows(block, e, counts.shape[1] - 1, 1, rows)
        _leave_item_out(
            block,
            e,
            prior,
            truth_likelihood,
            counts,
            pseudo_counts,
            rows,
            n_rows,
            logs,
        )
        tempering = 1.0 / (1.0 + (n_rows - 1) * correlation)
        _temper(block.known[e], prior, truth_likelihood, logs, tempering, posterior[e])


@compiled
def _leave_item_out(
    block: Block,
    e: int,
    prior: Floats,
    truth_likelihood: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    rows: Codes,
    n_rows: int,
    logs: Floats,
) -> None:
    """Write the log-likelihood of an item's labels in each state, the item taken out of the counts.

    ``rows`` are annotator * labels + label.
    """
    n_labels, n_states = counts.shape[1] - 1, prior.shape[0]
    posterior, product = np.empty(n_states), np.ones(n_states)
    logs[:] = 0.0
    for i in range(n_rows):
        s, n = rows[i] // n_labels, rows[i] % n_labels
        for z in range(n_states):
            total = counts[s, n_labels, z] + pseudo_counts[s, n_labels, z]
            product[z] *= (counts[s, n, z] + pseudo_counts[s, n, z]) / total
        _add_logs(i, n_rows, product, logs)
    _temper(block.known[e], prior, truth_likelihood, logs, 1.0, posterior)
    logs[:] = 0.0
    for i in range(n_rows):
        s, n = rows[i] // n_labels, rows[i] % n_labels
        for z in range(n_states):
            label = max(counts[s, n, z] - posterior[z], 0.0) + pseudo_counts[s, n, z]
            every = max(counts[s, n_labels, z] - posterior[z], 0.0) + pseudo_counts[s, n_labels, z]
            product[z] *= label / every
        _add_logs(i, n_rows, product, logs)


@compiled
def _add_logs(i: int, n_rows: int, product: Floats, logs: Floats) -> None:
    """Add the logarithms of products that have enough factors, and begin new products."""
    if i + 1 == n_rows or (i + 1) % LABELS_PER_LOG == 0:
        for z in range(len(product)):
            logs[z] += math.log(product[z])
            product[z] = 1.0


@compiled
def _confusion_row(counts: Floats, pseudo_counts: Floats, s: int, n: int, row: Floats) -> None:
    """Write P(label n | state) of annotator s."""
    every = counts.shape[1] - 1
    for z in range(len(row)):
        total = counts[s, every, z] + pseudo_counts[s, every, z]
        row[z] = (counts[s, n, z] + pseudo_counts[s, n, z]) / total


@compiled
def _temper(
    known: int,
    prior: Floats,
    truth_likelihood: Floats,
    logs: Floats,
    tempering: float,
    weights: Floats,
) -> None:
    """Write the posterior with the log-likelihood times ``tempering``; known truths count fully."""
    top = -np.inf
    for z in range(len(logs)):
        if known >= 0 and truth_likelihood[known, z] == 0.0:
            continue
        top = max(top, tempering * logs[z])
    total = 0.0
    for z in range(len(logs)):
        weights[z] = prior[z] * math.exp(tempering * logs[z] - top)
        if known >= 0:
            weights[z] *= truth_likelihood[known, z]
        total += weights[z]
    for z in range(len(logs)):
        weights[z] /= total


@compiled
def _cap_labels_not_given(block: Block, e: int, right: Floats) -> None:
    """Lower the probabilities of labels that nobody gave to just below the top label given."""
    first, last = block.item_ptr[e], block.item_ptr[e + 1]
    top = 0.0
    for c in range(first, last):
        top = max(top, right[block.cell_category[c]])
    total = 0.0
    for n in range(len(right)):
        given = False
        for c in range(first, last):
            given = given or block.cell_category[c] == n
        if not given:
            right[n] = min(right[n], top * (1.0 - 1e-9))
        total += right[n]
    for n in range(len(right)):
        right[n] /= total


@compiled
def _is_kept(fold: float, held: int) -> bool:
    """Whether a label is kept while the fold ``held`` is held out; all are if it is NEVER."""
    return held == NEVER or (fold != held and fold != NOT_SAMPLED)


@compiled
def _count_cell(block: Block, c: int, fold: Floats, held: int) -> int:
    """Return the number of labels kept in a cell."""
    n = 0
    for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
        n += _is_kept(fold[j], held)
    return n


@compiled
def _count_kept(block: Block, e: int, fold: Floats, held: int) -> tuple[int, int]:
    """Return the number of labels kept of an item, and of those that name its most frequent one."""
    n_kept, most = 0, 0
    if held != NEVER and fold[block.cell_ptr[block.item_ptr[e]]] == NOT_SAMPLED:
        return n_kept, most
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = _count_cell(block, c, fold, held)
        n_kept += n
        most = max(most, n)
    return n_kept, most


@compiled
def _find_kept(
    block: Block, e: int, fold: Floats, held: int, n_labels: int, width: int, rows: Codes
) -> int:
    """Write where the row of each kept label begins, in rows of a width; return their number."""
    n_rows = 0
    if held != NEVER and fold[block.cell_ptr[block.item_ptr[e]]] == NOT_SAMPLED:
        return n_rows
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            if _is_kept(fold[j], held):
                rows[n_rows] = (np.int64(block.annotator[j]) * n_labels + n) * width
                n_rows += 1
    return n_rows


@compiled
def _agreement_bin(most: int, n_labels: int) -> int:
    """Return the bin of a share, from 0 for unanimous labels."""
    return round((1.0 - most / n_labels) * (AGREEMENT_BINS - 1))
