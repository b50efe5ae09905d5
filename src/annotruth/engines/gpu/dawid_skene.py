"""The passes of Dawid and Skene's model on the card, with ``kernels/cuda/dawid_skene.cu``.

The array ``rows`` of the other engines is not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels.arrays import Floats

_UNIT = 2.0**32
_POSTERIOR = "posterior of a step"


def start(session: GPUSession, rows: str) -> dict[str, Any]:
    """Add up with the observed shares or known truths as posteriors."""
    classes = session.sums(session.n_categories)
    session.run(
        "dawid_skene.observed",
        session.begin,
        session.label,
        session.known,
        np.int64(session.n_items),
        _posteriors(session),
        classes,
    )
    return _counted(session, classes)


def step(
    session: GPUSession, rows: str, prior: Floats, known_truth: Floats, confusion: Floats
) -> dict[str, Any]:
    """Take one E-step and add up what the M-step needs.

    ``known_truth`` is not used: a known truth has its own class only.
    """
    classes, log_likelihood = _run_posterior(session, _posteriors(session), prior, confusion)
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
    _, log_likelihood = _run_posterior(session, session.array(posterior), prior, confusion)
    return {"log_likelihood": log_likelihood}


def _posteriors(session: GPUSession) -> Any:
    if not session.has(_POSTERIOR):
        session.allocate(_POSTERIOR, per="items", shape=(session.n_categories,))
    return session.array(_POSTERIOR)


def _run_posterior(
    session: GPUSession, posterior: Any, prior: Floats, confusion: Floats
) -> tuple[Any, Floats]:
    """Write the posteriors; return their sums on the card and the log-likelihood."""
    classes, totals = session.sums(session.n_categories), session.sums(1)
    session.run(
        "dawid_skene.posterior",
        session.begin,
        session.label,
        session.known,
        np.int64(session.n_items),
        np.uint32(session.n_annotators),
        posterior,
        session.device.xp.asarray(prior.astype(np.float32)),
        session.by_annotator(confusion, axis=1),
        session.log_unit,
        classes,
        totals,
    )
    return classes, session.floats(totals, session.log_unit) * np.log(2.0)


def _counted(session: GPUSession, classes: Any) -> dict[str, Any]:
    """Add up the posteriors of the last E-step by label and annotator."""
    counts = session.sums(session.n_categories, session.n_annotators, session.n_categories)
    row, item = session.sorted_labels()
    session.run(
        "dawid_skene.count", row, item, np.int64(session.n_labels), _posteriors(session), counts
    )
    return {
        "counts": session.floats(counts, _UNIT, axis=1),
        "classes": session.floats(classes, _UNIT),
    }
