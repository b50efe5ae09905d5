"""Passes over pair comparisons on the card: what each kernel of ``kernels/cuda/pair*.cu`` is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.engines.protocol import Pass
from annotruth.kernels.arrays import Codes, Floats
from annotruth.kernels.pairs.levels import PairModel

if TYPE_CHECKING:
    from annotruth.engines.gpu.pairs import PairSession

Sums = tuple[Floats, ...]


def _add_votes(session: PairSession, one: Pass) -> Sums:
    """Count the outcomes of pairs."""
    data, (table,) = session.data, one.sums
    counts = session.device.xp.zeros(table.shape, np.uint32)
    arrays = (session.on_card(each) for each in (data.left, data.right, data.outcome))
    sizes = np.int64(data.n_labels), np.int64(data.n_items)
    session.run("pair_counts.add_votes", *arrays, *sizes, counts, threads=256)
    dtype = np.float32 if table.single_precision else np.float64
    return (session.device.to_host(counts.astype(dtype)),)


def _add_counts(
    session: PairSession, one: Pass, by_level: Any, ratio: Floats, n_levels: Codes
) -> Sums:
    """Add up the expected counts of levels if their prior probabilities change."""
    sums = session.sums(one)
    n_groups, n_nus, _ = n_levels.tolist()
    sizes = (np.int64(n) for n in (len(by_level), n_groups, n_nus, len(ratio)))
    arrays = by_level, session.on_card(ratio)
    session.run("pair_counts.add_counts", *sizes, *arrays, session.unit, *sums)
    return session.floats(sums)


def _step(
    session: PairSession,
    one: Pass,
    active: Any,
    favoured: Any,
    pair: Any,
    covariates: Any,
    by_level: Any,
    model: PairModel,
    prune: float,
) -> Sums:
    """Add up derivatives of the log-likelihood and expected counts."""
    sums = session.sums(one)
    *derivatives, _, _, _, totals = sums
    counts = session.device.xp.zeros(by_level.shape[1], np.uint64)
    n_pairs = np.int64(one.sums[1].shape[1])
    session.run_by_annotator(
        "step",
        model,
        *(active, favoured, pair, by_level, n_pairs, np.float64(prune), session.unit, None),
        *(*derivatives, counts, totals),
    )
    n_groups, n_nus = (each.shape[0] for each in one.sums[5:7])
    last_nu = n_groups + n_nus
    of_levels = counts[:n_groups], counts[n_groups:last_nu], counts[last_nu:]
    return session.floats([*derivatives, *of_levels, totals])


def _prune_states(
    session: PairSession,
    one: Pass,
    active: Any,
    favoured: Any,
    covariates: Any,
    model: PairModel,
    prune: float,
    n_votes: int,
) -> Sums:
    """Make levels inactive that are unlikely after some votes."""
    limits = np.float64(prune), np.int64(n_votes)
    session.run_by_annotator("prune_states", model, active, favoured, *limits, None)
    return ()


def _posteriors(session: PairSession, one: Pass, *arguments: Any) -> Sums:
    """Set each annotator's posterior of levels, the evidence, and ``p_serious``."""
    active, favoured, _, *results, model, beta_ratio, behavior_ratio = arguments
    ratios = session.on_card(beta_ratio), session.on_card(behavior_ratio)
    totals = session.sums(one)
    session.run_by_annotator(
        "posteriors", model, active, favoured, *results, *ratios, session.unit, None, *totals
    )
    return session.floats(totals)


def _side_bias(
    session: PairSession,
    one: Pass,
    bias: Any,
    sharpness: Any,
    tie: Any,
    group: Any,
    covariates: Any,
    model: PairModel,
    precision: float,
) -> Sums:
    """Set each annotator's side bias and the precision of it."""
    arrays = bias, sharpness, tie, group
    session.run_by_annotator("side_bias", model, *arrays, np.float64(precision), session.unit)
    return ()


LAUNCHES: dict[str, Callable[..., Sums]] = {
    "pairs.counts.add_votes": _add_votes,
    "pairs.gpm.add_counts": _add_counts,
    "pairs.gpm.step": _step,
    "pairs.gpm.prune_states": _prune_states,
    "pairs.gpm_results.posteriors": _posteriors,
    "pairs.gpm_results.side_bias": _side_bias,
}
"""The passes that run on the card."""
