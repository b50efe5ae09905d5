"""NumPy twins of `annotruth.kernels.dawid_skene`, in logarithms throughout.

They write ``rows`` as the kernels do, but do not read it.
"""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Arrays, Block
from annotruth.kernels.reference.rows import cell_shares, class_posteriors, label_rows


def start(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the rows, and add up with the observed shares or known truths as posteriors."""
    labels = label_rows(block, lo, hi)
    row = np.ravel_multi_index((labels.category, labels.annotator), a.counts.shape[:2])
    a.rows.view(np.uint64)[labels.place] = row * len(a.classes)

    item, category, cell_share = cell_shares(block, lo, hi)
    known = block.known[item]
    is_truth = (known >= 0) & (known < len(a.classes))
    shares = np.zeros((hi - lo, len(a.classes)))
    np.add.at(shares, (item - lo, np.where(is_truth, known, category)), cell_share)
    np.add.at(a.counts, (labels.category, labels.annotator), shares[labels.item - lo])
    a.classes += shares.sum(axis=0)


def step(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Take one E-step and add up what the M-step needs."""
    labels = label_rows(block, lo, hi)
    row = labels.category, labels.annotator
    posteriors, logs = class_posteriors(block, lo, hi, labels.item, a.confusion[row], a)
    np.add.at(a.counts, row, posteriors[labels.item - lo])
    a.classes += posteriors.sum(axis=0)
    a.log_likelihood[0] += logs.sum()


def posterior(block: Block, lo: int, hi: int, a: Arrays) -> None:
    """Write the posterior of every item, and add up the log-likelihood."""
    labels = label_rows(block, lo, hi)
    p = a.confusion[labels.category, labels.annotator]
    a.posterior[lo:hi], logs = class_posteriors(block, lo, hi, labels.item, p, a)
    a.log_likelihood[0] += logs.sum()
