"""The passes of Dawid and Skene's model on the card, with ``kernels/cuda/dawid_skene.cu``.

The array ``rows`` of the other engines is not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.label_arrays import SORTED
from annotruth.engines.gpu.limits import UNIT
from annotruth.engines.gpu.partitions import LABELS, n_labels, reads, writes
from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels.arrays import Floats

_POSTERIOR = "posterior of a step"
_READ_AT_ONCE = 4  # classes, where there are few


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
    classes, log_likelihood = _run_posterior(
        session, _posteriors(session), _width(session), prior, confusion
    )
    return _counted(session, classes) | {"log_likelihood": log_likelihood}


def posterior(
    session: GPUSession,
    rows: str,
    posterior: str,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
) -> dict[str, Any]:
    """Compute the posterior of every item, and the log-likelihood."""
    _, log_likelihood = _run_posterior(session, posterior, session.n_categories, prior, confusion)
    return {"log_likelihood": log_likelihood}


def _posteriors(session: GPUSession) -> str:
    """Return the name of the array for the posteriors of a step, which is made if it is not there."""
    if not session.has(_POSTERIOR):
        session.allocate(_POSTERIOR, per="items", shape=(_width(session),))
    return _POSTERIOR


def _width(session: GPUSession) -> int:
    """Return the length of a row of classes, with the numbers that pad it."""
    n = session.n_categories
    return n + -n % _READ_AT_ONCE if session.is_dense else n


def _padded(session: GPUSession, confusion: Floats) -> Any:
    """Return the confusion matrices with rows of padded width."""
    table = session.by_annotator(confusion, axis=1)
    if _width(session) == session.n_categories:
        return table
    padded = session.device.xp.zeros((*table.shape[:-1], _width(session)), np.float32)
    padded[..., : session.n_categories] = table
    return padded


def _run_posterior(
    session: GPUSession, posterior: str, width: int, prior: Floats, confusion: Floats
) -> tuple[Any, Floats]:
    """Write the posteriors, in rows of ``width``; return their sums and the log-likelihood."""
    classes, totals = session.sums(session.n_categories), session.sums(1)
    session.run_over_items(
        "dawid_skene.posterior",
        *LABELS,
        writes(posterior),
        np.uint32(width),
        np.uint32(session.n_annotators),
        session.device.xp.asarray(prior.astype(np.float32)),
        _padded(session, confusion),
        session.log_unit,
        sums=(classes, totals),
    )
    return classes, session.small_floats(totals, session.log_unit) * np.log(2.0)


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
        "counts": session.floats(counts, UNIT),
        "classes": session.small_floats(classes, UNIT),
    }
