"""NumPy twins of the kernels ``sets.presence``."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Arrays, Block, Codes, Floats
from annotruth.kernels.reference.rows import LabelRows, label_rows


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the share of each item's answers that give each label, and add up what `step` does."""
    rows = label_rows(block, lo, hi)
    counts = np.zeros((hi - lo, a.members.shape[1]))
    np.add.at(counts, rows.item - lo, a.members[rows.category])
    a.posterior[lo:hi] = counts / np.bincount(rows.item - lo)[:, np.newaxis]
    known = block.known[lo:hi]
    a.posterior[lo:hi][known >= 0] = a.members[known[known >= 0]]
    _add_counts(rows, a)


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Take one E-step and add up what the M-step needs."""
    rows = label_rows(block, lo, hi)
    given = a.members[rows.category] > 0.0
    ratios = np.where(given, a.present[rows.annotator], a.absent[rows.annotator])
    a.evidence[lo:hi] = 0.0
    np.add.at(a.evidence, rows.item, ratios)
    weight, within, log_total = type_posterior(
        a.evidence[lo:hi], a.members, block.known[lo:hi].astype(np.int64), a.theta, a.types
    )
    a.log_likelihood[0] += log_total.sum()
    a.posterior[lo:hi] = np.einsum("ek,ekl->el", weight, within)
    a.type_items += weight.sum(axis=0)
    a.type_labels += np.einsum("ek,ekl->kl", weight, within)
    _add_counts(rows, a)


def type_posterior(
    evidence: Floats, members: Floats, known: Codes, theta: Floats, types: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the posterior of the type, items x types, that of labels within it, and log totals."""
    log_one = np.log(theta) + evidence[:, np.newaxis]
    log_none = np.broadcast_to(np.log1p(-theta), log_one.shape)
    log_sum = np.logaddexp(log_one, log_none)
    within = np.exp(log_one - log_sum)
    truth = members[np.maximum(known, 0)][:, np.newaxis]
    is_known = (known >= 0)[:, np.newaxis, np.newaxis]
    within = np.where(is_known, truth, within)
    log_sum = np.where(is_known, np.where(truth > 0.0, log_one, log_none), log_sum)
    log_weight = np.log(types) + log_sum.sum(axis=2)
    log_total = np.logaddexp.reduce(log_weight, axis=1)
    return np.exp(log_weight - log_total[:, np.newaxis]), within, log_total


def _add_counts(rows: LabelRows, a: Arrays) -> None:
    """Add the items' posteriors to the counts of the annotators who answered."""
    np.add.at(a.positives, rows.annotator, a.posterior[rows.item])
    np.add.at(a.hits, rows.annotator, a.posterior[rows.item] * a.members[rows.category])
