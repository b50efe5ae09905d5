"""Passes over labels some of which are held out, and over labels that are drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotruth.engines.gpu.blocks import LabelBlock, all_labels, kept_labels, sampled_labels
from annotruth.engines.gpu.device import UNIT
from annotruth.engines.gpu.robust_gpm import count, step_of
from annotruth.engines.gpu.session import GPUSession
from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.shared import AGREEMENT_BINS

_BINS = np.int64(AGREEMENT_BINS)


def agreement(session: GPUSession, fold: str, held: int) -> dict[str, Any]:
    """Count the items by the share of their most frequent label."""
    block, items = kept_labels(session, fold, held), session.sums(AGREEMENT_BINS)
    session.run(
        "robust_gpm.agreement",
        *(block.begin, block.label, np.int64(block.n_items), _BINS, items),
        defines=(f"N_STATES={session.n_categories}",),
    )
    return {"items": session.small_floats(items, 1.0)}


def start(session: GPUSession, fold: str, held: int, subtypes: Floats) -> dict[str, Any]:
    """Add up what `step` does, with observed shares or known truths as the posteriors of classes."""
    block = kept_labels(session, fold, held)
    n_states = session.n_categories * subtypes.shape[1]
    posterior, states = session.empty(block.n_items, n_states), session.sums(n_states)
    session.run(
        "robust_gpm.observed",
        *block.arguments(),
        _BINS,
        session.table(subtypes),
        posterior,
        states,
        defines=(f"N_STATES={n_states}",),
    )
    return {"counts": count(block, posterior), "classes": session.small_floats(states, UNIT)}


def step(
    session: GPUSession,
    fold: str,
    held: int,
    prior: Floats,
    known_truth: Floats,
    likelihood: Any,
) -> dict[str, Any]:
    """Compute the posteriors from the labels kept; add up what the M-step needs."""
    return step_of(kept_labels(session, fold, held), prior, known_truth, likelihood)


def hash_annotators(session: GPUSession, *hashes: Any) -> dict[str, Any]:
    """Add up the hashes of the items that each annotator labelled."""
    sums = session.sums(session.n_annotators)
    session.run("held_out.hash_annotators", *_items(session), *_hashes(session, *hashes), sums)
    return {"hash": session.floats(sums, 1.0)}


def hash_items(session: GPUSession, item_hash: str, *hashes: Any) -> dict[str, Any]:
    """Write a hash of each item's labels."""
    array = session.array(item_hash, np.float64)
    session.run("held_out.hash_items", *_items(session), *_hashes(session, *hashes), array)
    return {}


def assign_folds(
    session: GPUSession,
    fold: str,
    item_hash: str,
    annotator_hash: Any,
    category_hash: Any,
    held_share: float,
    n_folds: int,
    sampled_share: float,
) -> dict[str, Any]:
    """Write the fold of each label, by hashes of the label and its item."""
    session.run(
        "held_out.assign_folds",
        *_items(session),
        session.array(item_hash, np.float64),
        *_hashes(session, annotator_hash, category_hash),
        np.float64(held_share),
        np.int64(n_folds),
        np.float64(sampled_share),
        session.array(fold, np.int8),
    )
    return {}


def count_drawn(session: GPUSession, fold: str, item_hash: str, *draws: Any) -> dict[str, Any]:
    """Count the labels of each draw by annotator and group."""
    block = sampled_labels(session, fold)
    n_draws = session.sum_shape("counts")[2]
    counts = session.sums(*session.sum_shape("counts"))
    _run_draws("count_drawn", block, (), item_hash, n_draws, draws, counts)
    return {"counts": session.floats(counts, 1.0)}


def agree(
    session: GPUSession, fold: str, item_hash: str, *draws_shares_and_eps: Any
) -> dict[str, Any]:
    """Add up expected serious labels by annotator, and the log-likelihood ratio to chance, by draw."""
    *draws, shares, eps = draws_shares_and_eps
    block = sampled_labels(session, fold)
    serious, log_ratio = session.sums(*eps.shape), session.sums(eps.shape[1])
    _run_draws(
        "agree",
        block,
        (block.known,),
        item_hash,
        eps.shape[1],
        tuple(draws),
        *(session.by_annotator(table, dtype=np.float64) for table in (shares, eps)),
        session.log_unit,
        serious,
        log_ratio,
    )
    return {
        "serious": session.floats(serious, UNIT),
        "log_ratio": session.small_floats(log_ratio, session.log_unit),
    }


def _run_draws(
    kernel: str,
    block: LabelBlock,
    known: tuple[Any, ...],
    item_hash: str,
    n_draws: int,
    draws: tuple[Any, ...],
    *arguments: Any,
) -> None:
    """Run a kernel over the draws of a block's labels."""
    annotator_hash, category_hash, first_draw, reliability, group, prior, chance = draws
    session = block.session
    session.run(
        f"held_out.{kernel}",
        *(block.begin, block.label, *known, np.int64(block.n_items)),
        block.of_items(session.array(item_hash, np.float64)),
        *_hashes(session, annotator_hash, category_hash),
        np.int64(first_draw),
        np.int64(n_draws),
        np.float64(reliability),
        session.table(group, np.int32),
        session.table(prior),
        session.by_annotator(chance, dtype=np.float64),
        *arguments,
        defines=(f"N_GROUPS={len(prior)}",),
    )


def _items(session: GPUSession) -> tuple[Any, ...]:
    block = all_labels(session)
    return block.begin, block.label, np.int64(block.n_items)


def _hashes(session: GPUSession, annotator_hash: Any, category_hash: Codes) -> tuple[Any, Any]:
    """Return the hashes as kernels take them."""
    annotators = session.by_annotator(annotator_hash, dtype=np.uint64)
    return annotators, session.table(category_hash, np.uint64)
