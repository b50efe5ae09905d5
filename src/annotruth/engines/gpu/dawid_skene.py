"""The passes of Dawid and Skene's model on the card, with ``kernels/cuda/dawid_skene.cu``.

The array ``rows`` of the other engines is not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.label_arrays import SORTED
from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.gpu.streaming import LABELS, n_labels, reads, writes
from annotruth.kernels.arrays import Floats

_POSTERIOR = "posterior of a step"
_READ_AT_ONCE = 4  # classes, where there are few
_UNIT = 2.0**31  # of sums of posteriors


def start(session: GPUSession, rows: str) -> dict[str, Any]:
    """Add up with the observed shares or known truths as posteriors."""
    classes = session.sums(session.n_categories)
    session.run_over_items(
        "dawid_skene.observed", *LABELS, writes(_posteriors(session)), sums=(classes,)
    )
    return _counted(session, classes)


def step(
    session: GPUSession, rows: str, prior: Floats, known_truth: Floats, confusion: Floats
) -> dict[str, Any]:
    """Take one E-step and add up what the M-step needs.

    ``known_truth`` is not used: a known truth has its own class only.
    """
    kernel = "e_step" if session.is_dense else "posterior"
    classes, totals = _run_posterior(session, kernel, _posteriors(session), prior, confusion)
    # The sums are read when all kernels have been started.
    return _counted(session, classes) | {"log_likelihood": _log_likelihood(session, totals)}


def posterior(
    session: GPUSession,
    rows: str,
    posterior: str,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
) -> dict[str, Any]:
    """Compute the posterior of every item, and the log-likelihood."""
    _, totals = _run_posterior(session, "posterior", posterior, prior, confusion)
    return {"log_likelihood": _log_likelihood(session, totals)}


def _posteriors(session: GPUSession) -> str:
    """Return the name of the array for the posteriors of a step, which is made if it is not there."""
    if not session.has(_POSTERIOR):
        session.allocate(_POSTERIOR, per="items", shape=(_width(session),))
    return _POSTERIOR


def _width(session: GPUSession) -> int:
    """Return the length of rows of classes; if classes are few, without the first, and padded."""
    n = session.n_categories
    return max(n - 1 + (1 - n) % _READ_AT_ONCE, _READ_AT_ONCE) if session.is_dense else n


def _run_posterior(
    session: GPUSession, kernel: str, posterior: str, prior: Floats, confusion: Floats
) -> tuple[Any, Any]:
    """Write the posteriors; return their sums by class and that of log-likelihoods, on the card."""
    classes, totals = session.sums(session.n_categories), session.sums(1)
    if session.is_dense:
        table = _ratios(session, confusion, totals)
    else:
        table = session.by_annotator(confusion, axis=1, dtype=session.real)
    session.run_over_items(
        f"dawid_skene.{kernel}",
        *LABELS,
        writes(posterior),
        np.uint32(session.n_annotators),
        session.device.xp.asarray(prior.astype(session.real)),
        table,
        session.log_unit,
        sums=(classes, totals),
    )
    return classes, totals


def _log_likelihood(session: GPUSession, totals: Any) -> Floats:
    log_likelihood: Floats = session.small_floats(totals, session.log_unit) * np.log(2.0)
    return log_likelihood


def _ratios(session: GPUSession, confusion: Floats, totals: Any) -> Any:
    """Return probabilities of labels divided by those in the first class, in padded rows.

    What the first class contributes to the log-likelihood is added to ``totals``.
    """
    table = session.by_annotator(confusion, axis=1, dtype=np.float64)
    ratios = session.device.xp.empty((*table.shape[:-1], _width(session)), session.real)
    n_rows = np.int64(table.shape[0] * table.shape[1])
    session.run(
        "dawid_skene.divide",
        *(table, _labels_per_row(session), n_rows, session.log_unit, ratios, totals),
    )
    return ratios


def _labels_per_row(session: GPUSession) -> Any:
    """Return how many labels each row has, labels x annotators."""

    def make() -> Any:
        counts = session.to_engine(session.labels.labels_per_category)
        return session.device.xp.ascontiguousarray(counts.T.astype(np.uint32))

    return session.cached("labels per row", make)


def _counted(session: GPUSession, classes: Any) -> dict[str, Any]:
    """Add up the posteriors of the last E-step by label and annotator."""
    counts = session.sums(session.n_categories, session.n_annotators, session.n_categories)
    session.sort_labels()
    session.run_over_items(
        "dawid_skene.count",
        *map(reads, SORTED),
        n_labels,
        reads(_posteriors(session)),
        sums=(counts,),
    )
    return {
        "counts": session.floats(counts, _UNIT),
        "classes": session.small_floats(classes, _UNIT),
    }
