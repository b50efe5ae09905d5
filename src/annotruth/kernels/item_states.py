r"""Items in one of several latent states: their posteriors, and what these say about labels.

Item e has the posterior :math:`w_{e,z}` that `annotruth.kernels.robust_gpm` computes. Counts of labels
contain the item's own labels; they are taken out again where an item is read out or predicted from.
With n the counts, :math:`\alpha` pseudo-counts and dots for sums over labels, label r of annotator s
has

.. math:: \log p_{e,s}(r \mid z) = \log \frac{n_{s,r,z} - w_{e,z} + \alpha_{s,r,z}}
                                             {n_{s,\cdot,z} - w_{e,z} + \alpha_{s,\cdot,z}},

and the labels of an item are correlated, so that m labels count as :math:`m / (1 + (m - 1) \rho)`:

.. math:: q_{e,z} \propto p_z \exp \frac{\sum_s \log p_{e,s}(r_{e,s} \mid z)}{1 + (m - 1) \rho}.

``counts`` and ``pseudo_counts`` are annotators x labels x states, with an annotator's totals after
the last label. ``fold`` is as in `annotruth.kernels.held_out`. Each kernel processes items ``lo:hi``
of a block. NumPy twins: `annotruth.kernels.reference.item_states`.
"""

from __future__ import annotations

import math

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats
from annotruth.kernels.compiled import compiled
from annotruth.kernels.robust_gpm import LABELS_PER_LOG, _empty_rows, _find_rows
from annotruth.kernels.shared import NEVER, NOT_SAMPLED


@compiled
def summarize(
    block: Block,
    lo: int,
    hi: int,
    right: Floats,
    opinion: Floats,
    p_serious: Floats,
    prior: Floats,
    known_truth: Floats,
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
    probable one that somebody gave, unless something else than labels is known about the item.
    """
    n_states = prior.shape[0]
    n_categories = right.shape[1]
    flat, flat_pseudo = counts.reshape(-1), pseudo_counts.reshape(-1)
    flat_serious = serious.reshape(-1)
    rows = _empty_rows(block, lo, hi)
    weights, work = np.empty(n_states), np.empty((4, n_states))
    for e in range(lo, hi):
        _item_posterior(
            block,
            e,
            prior,
            known_truth,
            flat,
            flat_pseudo,
            correlation,
            counts[0].size,
            rows,
            work,
            weights,
        )
        right[e] = 0.0
        opinion[e] = 0.0
        for z in range(n_states):
            for n in range(n_categories):
                right[e, n] += weights[z] * right_labels[z, n]
                opinion[e, n] += weights[z] * opinions[z, n]
        if block.known[e] < 0:
            _cap_labels_not_given(block, e, right[e])
        elif block.known[e] < n_categories:
            right[e] = 0.0
            right[e, block.known[e]] = 1.0
        first = block.cell_ptr[block.item_ptr[e]]
        for i in range(block.cell_ptr[block.item_ptr[e + 1]] - first):
            # The counts have one row more per annotator.
            row = np.uint64(rows[i] - np.int64(block.annotator[first + i]) * n_states)
            p = 0.0
            for z in range(np.uint64(n_states)):
                p += weights[z] * flat_serious[row + z]
            p_serious[first + i] = p


@compiled
def posterior(
    block: Block,
    lo: int,
    hi: int,
    posterior: Floats,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
) -> None:
    """Write each item's posterior over the states, items x states."""
    rows, work = _empty_rows(block, lo, hi), np.empty((4, len(prior)))
    flat, flat_pseudo = counts.reshape(-1), pseudo_counts.reshape(-1)
    for e in range(lo, hi):
        _item_posterior(
            block,
            e,
            prior,
            known_truth,
            flat,
            flat_pseudo,
            correlation,
            counts[0].size,
            rows,
            work,
            posterior[e],
        )


@compiled
def score(
    block: Block,
    lo: int,
    hi: int,
    fold: Floats,
    held: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    first_state: Codes,
    correlations: Floats,
    total: Floats,
    products: Floats,
) -> None:
    """Add up the log-probabilities of held-out labels by several predictors, and their products.

    The tables hold the states of several models side by side, those of model m from
    ``first_state[m]`` on. The predictors are every model with each of the ``correlations``, model by
    model. ``total[0]`` is the number of labels.
    """
    n_models, n_correlations = len(first_state) - 1, len(correlations)
    n_predictors = products.shape[0]
    rows = _empty_rows(block, lo, hi)
    n_states = prior.shape[0]
    flat, flat_pseudo = counts.reshape(-1), pseudo_counts.reshape(-1)
    work, weights = np.empty((4, n_states)), np.empty((n_correlations, n_states))
    values, row = np.empty(n_predictors), np.empty(n_states)
    for e in range(lo, hi):
        n_rows = _find_kept(block, e, fold, held, counts.shape[1], n_states, rows)
        if n_rows == 0 or n_rows == _count_sampled(block, e, fold):
            continue
        for m in range(n_models):
            first, last = first_state[m], first_state[m + 1]
            logs = _leave_item_out(
                block.known[e],
                prior,
                known_truth,
                flat,
                flat_pseudo,
                rows,
                n_rows,
                counts[0].size,
                first,
                last,
                work,
            )
            for r in range(n_correlations):
                _temper(
                    block.known[e],
                    prior,
                    known_truth,
                    logs,
                    1.0 / (1.0 + (n_rows - 1) * correlations[r]),
                    first,
                    last,
                    weights[r],
                )
        for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
            n = block.cell_category[c]
            for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
                if fold[j] != held:
                    continue
                _confusion_row(counts, pseudo_counts, block.annotator[j], n, row)
                for m in range(n_models):
                    for r in range(n_correlations):
                        p = 0.0
                        for z in range(first_state[m], first_state[m + 1]):
                            p += weights[r, z] * row[z]
                        values[m * n_correlations + r] = math.log(p)
                total[0] += 1.0
                for a in range(n_predictors):
                    total[a + 1] += values[a]
                    for b in range(n_predictors):
                        products[a, b] += values[a] * values[b]


@compiled
def _item_posterior(
    block: Block,
    e: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    correlation: float,
    size: int,
    rows: Codes,
    work: Floats,
    weights: Floats,
) -> None:
    """Write an item's posterior over the states, the item taken out of the counts.

    The counts are flattened, of ``size`` per annotator.
    """
    known, n_states, n_labels = block.known[e], len(prior), size // len(prior)
    n_rows = _find_rows(block, e, n_labels, n_states, rows)
    logs = _leave_item_out(
        known,
        prior,
        known_truth,
        counts,
        pseudo_counts,
        rows,
        n_rows,
        size,
        0,
        n_states,
        work,
    )
    tempering = 1.0 / (1.0 + (n_rows - 1) * correlation)
    _temper(known, prior, known_truth, logs, tempering, 0, n_states, weights)


@compiled
def _leave_item_out(
    known: int,
    prior: Floats,
    known_truth: Floats,
    counts: Floats,
    pseudo_counts: Floats,
    rows: Codes,
    n_rows: int,
    size: int,
    first: int,
    last: int,
    work: Floats,
) -> Floats:
    """Return the log-likelihood of an item's labels in states ``first:last``, the item taken out.

    The counts are flattened, of ``size`` per annotator; ``rows`` are where those of the labels
    begin. ``work`` is of shape 4 x states.
    """
    own = work[0]
    logs: Floats = work[1]
    for z in range(first, last):
        own[z] = 0.0
    _label_logs(counts, pseudo_counts, rows, n_rows, size, first, last, own, work)
    _temper(known, prior, known_truth, logs, 1.0, first, last, own)
    _label_logs(counts, pseudo_counts, rows, n_rows, size, first, last, own, work)
    return logs


@compiled
def _label_logs(
    counts: Floats,
    pseudo_counts: Floats,
    rows: Codes,
    n_rows: int,
    size: int,
    first: int,
    last: int,
    own: Floats,
    work: Floats,
) -> None:
    """Write the log-likelihood of labels, with ``own`` taken out of their counts."""
    logs, label, every = work[1], work[2], work[3]
    for z in range(first, last):
        logs[z], label[z], every[z] = 0.0, 1.0, 1.0
    for i in range(n_rows):
        total = rows[i] - rows[i] % size + size - len(own)
        _multiply_mass(counts, pseudo_counts, rows[i], first, last, own, label)
        _multiply_mass(counts, pseudo_counts, total, first, last, own, every)
        if i + 1 == n_rows or (i + 1) % LABELS_PER_LOG == 0:
            for z in range(first, last):
                logs[z] += math.log(label[z] / every[z])
                label[z], every[z] = 1.0, 1.0


@compiled
def _multiply_mass(
    counts: Floats,
    pseudo_counts: Floats,
    row: int,
    first: int,
    last: int,
    own: Floats,
    product: Floats,
) -> None:
    """Multiply by a row of counts, with ``own`` taken out, and pseudo-counts."""
    begin = np.uint64(row)  # unsigned indices are never negative, which saves tests
    for z in range(np.uint64(first), np.uint64(last)):
        product[z] *= max(counts[begin + z] - own[z], 0.0) + pseudo_counts[begin + z]


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
    known_truth: Floats,
    logs: Floats,
    tempering: float,
    first: int,
    last: int,
    weights: Floats,
) -> None:
    """Write the posterior of states ``first:last``, with the log-likelihood times ``tempering``.

    Known truths count fully.
    """
    top = -np.inf
    for z in range(first, last):
        if known >= 0 and known_truth[known, z] == 0.0:
            continue
        top = max(top, tempering * logs[z])
    total = 0.0
    for z in range(first, last):
        # States that a known truth excludes may be above the top, where exp would overflow.
        weights[z] = prior[z] * math.exp(min(tempering * logs[z] - top, 0.0))
        if known >= 0:
            weights[z] *= known_truth[known, z]
        total += weights[z]
    for z in range(first, last):
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
def _find_kept(
    block: Block, e: int, fold: Floats, held: int, n_labels: int, width: int, rows: Codes
) -> int:
    """Write where the row of each kept label begins, in rows of a width; return their number."""
    n_rows = 0
    for c in range(block.item_ptr[e], block.item_ptr[e + 1]):
        n = block.cell_category[c]
        for j in range(block.cell_ptr[c], block.cell_ptr[c + 1]):
            if held == NEVER or (fold[j] != held and fold[j] != NOT_SAMPLED):
                rows[n_rows] = (np.int64(block.annotator[j]) * n_labels + n) * width
                n_rows += 1
    return n_rows


@compiled
def _count_sampled(block: Block, e: int, fold: Floats) -> int:
    """Return the number of labels of an item, or 0 if it is left out of all folds."""
    first = block.cell_ptr[block.item_ptr[e]]
    last = block.cell_ptr[block.item_ptr[e + 1]]
    return 0 if fold[first] == NOT_SAMPLED else last - first
