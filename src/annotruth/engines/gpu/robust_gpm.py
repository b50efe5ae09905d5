"""The passes of RobustGPM on the card where items have one right label.

Passes with as many latent classes as there are shapes of opinion are those of `opinions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu import opinions
from annotruth.engines.gpu.blocks import LabelBlock, all_labels
from annotruth.engines.gpu.device import UNIT
from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels import robust_gpm as kernels
from annotruth.kernels.arrays import Codes, Floats


def step(
    session: GPUSession, prior: Floats, known_truth: Floats, likelihood: Any
) -> dict[str, Any]:
    """Compute the items' posteriors; add up what the M-step needs."""
    if len(prior) >= opinions.LEAST_CLASSES:
        return opinions.step(session, *opinions.take_logs(session, prior, known_truth, likelihood))
    return step_of(all_labels(session), prior, known_truth, likelihood)


def step_of(
    block: LabelBlock, prior: Floats, known_truth: Floats, likelihood: Any
) -> dict[str, Any]:
    """Do what `step` does, for the labels of a block."""
    confusion = block.session.by_annotator(likelihood)
    posterior = block.session.empty(block.n_items, len(prior))
    sums = _run_posterior(block, posterior, prior, known_truth, confusion)
    return {"counts": count(block, posterior), **sums}


def posterior(
    session: GPUSession, posterior: str, prior: Floats, known_truth: Floats, likelihood: Any
) -> dict[str, Any]:
    """Write the items' posteriors."""
    if len(prior) >= opinions.LEAST_CLASSES:
        logs = opinions.take_logs(session, prior, known_truth, likelihood)
        return opinions.write_posterior(session, posterior, *logs)
    confusion = session.by_annotator(likelihood)
    array = session.array(posterior)
    _run_posterior(all_labels(session), array, prior, known_truth, confusion)
    return {}


def leave_one_out(
    session: GPUSession,
    prior: Floats,
    known_truth: Floats,
    likelihood: Any,
    other: Floats,
    repeated: Floats,
    repeated_label: Codes,
) -> dict[str, Any]:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy."""
    if len(prior) >= opinions.LEAST_CLASSES:
        logs = opinions.take_logs(session, prior, known_truth, likelihood)
        return opinions.leave_one_out(session, *logs, other, repeated, repeated_label)
    block, n_states, n_strategies = all_labels(session), len(prior), other.shape[2]
    confusion = session.by_annotator(likelihood)
    posterior = session.empty(block.n_items, n_states)
    _run_posterior(block, posterior, prior, known_truth, confusion)
    log_likelihood = session.sums(session.n_annotators, n_strategies)
    session.run(
        "robust_gpm.leave_one_out",
        *block.by_row,
        posterior,
        confusion,
        session.table(other, np.float32),
        session.table(repeated, np.float32),
        session.by_annotator(repeated_label, dtype=np.int32),
        session.log_unit,
        log_likelihood,
        defines=(f"N_STATES={n_states}", f"N_STRATEGIES={n_strategies}"),
    )
    return {"log_likelihood": session.floats(log_likelihood, session.log_unit) * np.log(2.0)}


def count_agreements(
    session: GPUSession, prior: Floats, known_truth: Floats, likelihood: Any, place: Codes
) -> dict[str, Any]:
    """Count agreements of pairs of annotators, in memory: once per fit, and of few annotators only."""
    confusion = session.to_host(session.by_annotator(likelihood, dtype=np.float64))
    places = session.to_host(session.by_annotator(place, dtype=np.int64))
    sums = [np.zeros((session.n_annotators, session.n_annotators)) for _ in range(3)]
    every_item = session.labels.block(), 0, session.n_items
    kernels.count_agreements(*every_item, prior, known_truth, confusion, places, *sums)
    return dict(zip(("same", "expected", "common"), sums, strict=True))


def summarize(
    session: GPUSession,
    theta: str,
    p_mode: str,
    moments: str,
    p_serious: str,
    prior: Floats,
    known_truth: Floats,
    likelihood: Any,
    *inputs: Any,
) -> dict[str, Any]:
    """Summarize the items' posteriors, and write how likely each label was serious."""
    logs = opinions.take_logs(session, prior, known_truth, likelihood)
    return opinions.summarize(session, (theta, p_mode, moments, p_serious), *logs, *inputs)


def count(block: LabelBlock, posterior: Any) -> Any:
    """Return the sums of posteriors over annotators' labels, annotators x categories x states."""
    session, n_states = block.session, posterior.shape[1]
    counts = session.sums(session.n_annotators, session.n_categories, n_states)
    session.run(
        "robust_gpm.count", *block.by_row, posterior, counts, defines=(f"N_STATES={n_states}",)
    )
    return session.floats(counts, UNIT)


def _run_posterior(
    block: LabelBlock, posterior: Any, prior: Floats, known_truth: Floats, confusion: Any
) -> dict[str, Any]:
    """Write the items' posteriors; return their sums by state, and the log-likelihood."""
    session = block.session
    states, totals = session.sums(len(prior)), session.sums(1)
    session.run(
        "robust_gpm.posterior",
        *block.arguments(),
        posterior,
        session.table(prior),
        session.table(known_truth),
        confusion,
        session.log_unit,
        states,
        totals,
        defines=(f"N_STATES={len(prior)}",),
    )
    return {
        "classes": session.small_floats(states, UNIT),
        "log_likelihood": session.small_floats(totals, session.log_unit) * np.log(2.0),
    }
