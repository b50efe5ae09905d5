"""NumPy twins of `annotruth.kernels.robust_gpm_single`, in doubles, with no strategy skipped."""

from __future__ import annotations

import numpy as np

from annotruth.kernels.arrays import Block, Codes, Floats, Singles
from annotruth.kernels.reference.rows import label_rows


def step(
    block: Block,
    lo: int,
    hi: int,
    log_prior: Singles,
    log_confusion: Singles,
    counts: Floats | Singles,
    classes: Floats,
    log_likelihood: Floats,
) -> None:
    """Add up posteriors by annotator and label, by class, and the items' log-likelihood."""
    labels = label_rows(block, lo, hi)
    log_joint = _log_joint(block, lo, hi, log_prior, log_confusion)
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    posteriors = joint / total
    np.add.at(counts, (labels.annotator, labels.category), posteriors[labels.item - lo])
    classes += posteriors.sum(axis=0)
    log_likelihood[0] += float((top + np.log(total)).sum())


def leave_one_out(
    block: Block,
    lo: int,
    hi: int,
    log_prior: Singles,
    log_confusion: Singles,
    strategies: Singles,
    repeating: Singles,
    repeated: Codes,
    log_likelihood: Floats,
) -> None:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy."""
    labels = label_rows(block, lo, hi)
    without = _log_joint(block, lo, hi, log_prior, log_confusion)[labels.item - lo]
    without -= log_confusion[labels.annotator, labels.category]
    without = np.exp(without - without.max(axis=1, keepdims=True))
    without /= without.sum(axis=1, keepdims=True)
    n_strategies = log_likelihood.shape[1]
    for posterior, s, n in zip(without, labels.annotator, labels.category, strict=True):
        table = repeating[n] if repeated[s] == n else strategies[n]
        log_likelihood[s] += np.log(posterior @ table[:, :n_strategies])


def _log_joint(
    block: Block, lo: int, hi: int, log_prior: Singles, log_confusion: Singles
) -> Floats:
    labels = label_rows(block, lo, hi)
    # The code of an unknown truth, -1, is the index of the last row.
    log_joint = log_prior.astype(np.float64)[block.known[lo:hi]]
    np.add.at(log_joint, labels.item - lo, log_confusion[labels.annotator, labels.category])
    return log_joint


def mix(
    lo: int,
    hi: int,
    weights: Singles,
    log_prior: Singles,
    plain: Singles,
    repeating: Singles,
    repeated: Codes,
    mixed: Singles,
    divergence: Floats,
) -> None:
    """Average tables by each annotator's weights, and compare the weights with their prior."""
    n_strategies = len(plain)
    for s in range(lo, hi):
        w = weights[s].astype(np.float64)
        prior = log_prior[s % len(log_prior), :n_strategies]
        divergence[s] = (w * (np.log(np.maximum(w, 1e-300)) - prior)).sum()
        mixed[s] = np.tensordot(w, plain, axes=1)
        mixed[s, repeated[s]] = w @ repeating[:, repeated[s]]


def strategy_weights(
    lo: int,
    hi: int,
    flat_counts: Singles,
    plain: Singles,
    counts: Singles,
    log_prior: Singles,
    extra: Singles,
    repeated: Codes,
    weights: Singles,
) -> None:
    """Compute each annotator's weights of the strategies from the counts."""
    log_likelihood = flat_counts[lo:hi].astype(np.float64) @ plain
    for s in range(lo, hi):
        more = counts[s, repeated[s]].astype(np.float64) @ extra[repeated[s]]
        logs = log_likelihood[s - lo] + log_prior[s % len(log_prior)] + more
        shares = np.exp(logs - logs.max())
        weights[s] = (shares / shares.sum())[: weights.shape[1]]
