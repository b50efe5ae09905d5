"""RobustGPM's passes where opinions differ, on the card, with ``kernels/cuda/opinions.cu``.

Tables of annotators x categories x shapes of opinion are logarithms in single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.blocks import all_labels
from annotruth.engines.gpu.device import UNIT
from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels.arrays import Codes, Floats, Singles

LEAST_CLASSES = 32
"""From so many latent classes on, they are divided among the threads of a warp."""


def step(session: GPUSession, log_prior: Singles, log_likelihood: Any) -> dict[str, Any]:
    """Add up posteriors by annotator and label, by class, and the items' log-likelihood.

    ``log_prior`` is (categories + 1) x classes, ``log_likelihood`` annotators x labels x classes.
    """
    table = session.by_annotator(log_likelihood)
    posterior, sums = _posterior(session, log_prior, table)
    counts = session.sums(*table.shape)
    session.run(
        "opinions.count", *all_labels(session).by_row, posterior, counts, defines=_defines(table)
    )
    return {"counts": session.floats(counts, UNIT), **sums}


def leave_one_out(
    session: GPUSession,
    log_prior: Singles,
    log_likelihood: Any,
    other: Floats,
    repeated: Floats,
    repeated_label: Codes,
) -> dict[str, Any]:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy.

    ``other`` and ``repeated`` are labels x classes x strategies.
    """
    table = session.by_annotator(log_likelihood)
    posterior, _ = _posterior(session, log_prior, table)
    n_strategies = other.shape[2]
    sums = session.sums(session.n_annotators, n_strategies)
    session.run(
        "opinions.leave_one_out",
        *all_labels(session).by_row,
        posterior,
        table,
        *(session.table(one, np.float32) for one in (other, repeated)),
        session.by_annotator(repeated_label, dtype=np.int32),
        session.log_unit,
        sums,
        defines=_defines(table, n_strategies),
    )
    return {"log_likelihood": session.floats(sums, session.log_unit) * np.log(2.0)}


def write_posterior(
    session: GPUSession, posterior: str, log_prior: Singles, log_likelihood: Any
) -> dict[str, Any]:
    """Write each item's posterior over the classes."""
    table = session.by_annotator(log_likelihood)
    return _run_posterior(session, session.array(posterior), log_prior, table)


def summarize(
    session: GPUSession,
    arrays: tuple[str, ...],
    log_prior: Singles,
    log_likelihood: Any,
    opinions: Floats,
    modes: Codes,
    scores: Floats,
    p_serious: Any,
) -> dict[str, Any]:
    """Summarize each item's posterior, and write how likely each label was serious."""
    table, totals = session.by_annotator(log_likelihood), session.sums(1)
    session.run(
        "opinions.summarize",
        *all_labels(session).arguments(),
        session.table(log_prior, np.float32),
        table,
        session.table(opinions, np.float32),
        session.table(modes, np.int32),
        session.table(scores, np.float32),
        session.by_annotator(p_serious),
        session.log_unit,
        *(session.array(name) for name in arrays),
        totals,
        defines=_defines(table),
    )
    return {"log_likelihood": session.small_floats(totals, session.log_unit)}


def take_logs(
    session: GPUSession, prior: Floats, known_truth: Floats, likelihood: Any
) -> tuple[Singles, Any]:
    """Return the logs of the prior and of the labels' likelihood.

    The first has a row for each known truth, and the last row for items without one.
    """
    log_prior = np.log(prior)
    rows = np.vstack([log_prior + np.log(known_truth), log_prior])
    return rows.astype(np.float32), np.log(session.by_annotator(likelihood))


def _posterior(session: GPUSession, log_prior: Singles, table: Any) -> tuple[Any, dict[str, Any]]:
    """Return the items' posteriors, their sums by class and the log-likelihood."""
    posterior = session.empty(session.n_items, table.shape[2])
    return posterior, _run_posterior(session, posterior, log_prior, table)


def _run_posterior(
    session: GPUSession, posterior: Any, log_prior: Singles, table: Any
) -> dict[str, Any]:
    """Write the posteriors; return their sums by class and the log-likelihood."""
    classes, totals = session.sums(table.shape[2]), session.sums(1)
    session.run(
        "opinions.posterior",
        *all_labels(session).arguments(),
        session.table(log_prior, np.float32),
        table,
        session.log_unit,
        posterior,
        classes,
        totals,
        defines=_defines(table),
    )
    return {
        "classes": session.small_floats(classes, UNIT),
        "log_likelihood": session.small_floats(totals, session.log_unit),
    }


def _defines(table: Any, n_strategies: int | None = None) -> tuple[str, ...]:
    """Return the macros for a table, annotators x categories x classes."""
    classes = f"N_CLASSES={table.shape[2]}"
    return (classes,) if n_strategies is None else (classes, f"N_STRATEGIES={n_strategies}")
