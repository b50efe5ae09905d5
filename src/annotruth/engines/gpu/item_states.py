"""Passes on the card over items in one of several latent states."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.blocks import all_labels, sampled_labels
from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels.arrays import Codes, Floats


def summarize(
    session: GPUSession,
    right: str,
    opinion: str,
    p_serious: str,
    prior: Floats,
    known_truth: Floats,
    counts: Any,
    pseudo_counts: Any,
    correlation: float,
    right_labels: Floats,
    opinions: Floats,
    serious: Any,
) -> dict[str, Any]:
    """Write each item's probabilities of the right label and shares of opinion, and p_serious."""
    session.run(
        "item_states.summarize",
        *all_labels(session).arguments(),
        session.array(right, np.float64),
        session.array(opinion, np.float64),
        session.array(p_serious),
        *_tables(session, prior, known_truth, counts, pseudo_counts),
        np.float64(correlation),
        session.table(right_labels),
        session.table(opinions),
        session.by_annotator(serious),
        defines=(f"N_STATES={len(prior)}",),
    )
    return {}


def posterior(
    session: GPUSession,
    posterior: str,
    prior: Floats,
    known_truth: Floats,
    counts: Any,
    pseudo_counts: Any,
    correlation: float,
) -> dict[str, Any]:
    """Write each item's posterior over the states."""
    session.run(
        "item_states.posterior",
        *all_labels(session).arguments(),
        session.array(posterior, np.float64),
        *_tables(session, prior, known_truth, counts, pseudo_counts),
        np.float64(correlation),
        defines=(f"N_STATES={len(prior)}",),
    )
    return {}


def score(
    session: GPUSession,
    fold: str,
    held: int,
    prior: Floats,
    known_truth: Floats,
    counts: Any,
    pseudo_counts: Any,
    first_state: Codes,
    correlations: Floats,
) -> dict[str, Any]:
    """Add up the log-probabilities of held-out labels by several predictors, and their products."""
    block, xp = sampled_labels(session, fold), session.device.xp
    is_held = block.fold == np.int8(held)
    place, item = xp.flatnonzero(is_held), block.item_of_label()
    # Labels are predicted from the others of their item.
    n_kept = xp.bincount(item[~is_held], minlength=block.n_items)
    item = item[place].astype(np.int64)
    has_others = n_kept[item] > 0
    place, item = place[has_others], item[has_others]
    n_models = len(first_state) - 1
    values = xp.zeros((len(place), n_models * len(correlations)), np.float64)
    session.run(
        "item_states.score",
        *(block.begin, block.label, block.known, block.fold, np.int64(held)),
        *(place.astype(np.int64), item, np.int64(len(place))),
        *_tables(session, prior, known_truth, counts, pseudo_counts),
        session.table(first_state, np.int32),
        np.int64(n_models),
        session.table(correlations),
        np.int64(len(correlations)),
        values,
        defines=(f"N_STATES={len(prior)}",),
    )
    values = session.device.to_host(values)
    total = np.append(float(len(values)), values.sum(axis=0))
    return {"total": total, "products": values.T @ values}


def _tables(
    session: GPUSession, prior: Floats, known_truth: Floats, counts: Any, pseudo_counts: Any
) -> tuple[Any, ...]:
    """Return the tables of states as kernels take them."""
    by_annotator = (
        session.by_annotator(table, dtype=np.float64) for table in (counts, pseudo_counts)
    )
    return session.table(prior), session.table(known_truth), *by_annotator
