"""Fits of comparisons: their tables and their entries of ``fit.json``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from annotruth.io.writers import LazyTable
from annotruth.models.base_fit import table_of
from annotruth.models.fits.accessors import Kind
from annotruth.models.fits.tables import annotator_rows
from annotruth.models.pairs.beside import win_table
from annotruth.models.pairs.summary import NOT_SHARED, TOO_FEW_VOTES, summary_lines
from annotruth.models.result import RankFit
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, TIE


def _items(fit: RankFit) -> pa.Table:
    """Return the table of items, best first."""
    low, high = fit.scores.interval.T
    ranking = fit.ranking
    columns: dict[str, Any] = {
        "item": fit.data.items,
        "n_comparisons": fit.data.comparisons_per_item,
        "score": fit.scores.mean,
        "low": low,
        "high": high,
        "rank": ranking.rank,
        "rank_low": ranking.low,
        "rank_high": ranking.high,
        "p_best": ranking.p_best,
    }
    if fit.n_parts > 1:
        columns["part"] = fit.part + 1
    best_first = np.lexsort((-fit.scores.mean, fit.part))
    return table_of(columns).take(pa.array(best_first))


def _comparisons(fit: RankFit) -> pa.Table:
    """Return the table of comparisons, in the order of the input."""
    table = fit.data.to_arrow().rename_columns({"winner": "outcome"})
    if fit.p_serious is None:
        return table
    return table.append_column("p_serious", as_arrow(fit.data.in_row_order(fit.p_serious)))


def _preferences(fit: RankFit) -> pa.Table:
    """Return the table of preferences, in the order of the input."""
    data = fit.data
    order = np.argsort(data.row)
    order = order[data.outcome[order] != TIE]
    left_won = data.outcome[order] == LEFT
    chosen = np.where(left_won, data.left[order], data.right[order])
    rejected = np.where(left_won, data.right[order], data.left[order])
    weight = np.ones(len(order)) if fit.p_serious is None else fit.p_serious[order]
    columns: dict[str, Any] = {}
    if data.contexts is not None and data.context is not None:
        columns["prompt"] = data.contexts.take(as_arrow(data.context[order]))
    columns["chosen"] = data.items.take(as_arrow(chosen))
    columns["rejected"] = data.items.take(as_arrow(rejected))
    return table_of({**columns, "weight": weight})


def _written(fit: RankFit) -> dict[str, LazyTable | pa.Table]:
    """Return the tables that are written to files."""
    return {
        "items": _items(fit),
        "wins": win_table(fit),
        "annotators": annotator_rows(fit),
        "comparisons": _comparisons(fit),
    }


def _entries(fit: RankFit) -> dict[str, Any]:
    return {
        "sides_known": fit.data.sides_known,
        "frame": fit.data.frame,
        "parts": fit.n_parts,
        "side_bias": None if fit.side_bias is None else fit.side_bias.tolist(),
        "coefficients": {name: each.tolist() for name, each in fit.coefficients.items()},
        "verdict": fit.verdict,
        "chosen": None if fit.chosen is None else fit.chosen["why"],
    }


COMPARISONS = Kind(
    unit="comparison",
    too_few=("too few votes", TOO_FEW_VOTES),
    no_spammers=(TOO_FEW_VOTES, NOT_SHARED, "serious"),
    tables={
        "items": _items,
        "wins": win_table,
        "annotators": annotator_rows,
        "comparisons": _comparisons,
        "preferences": _preferences,
    },
    written=_written,
    summary=summary_lines,
    notes=lambda _: [],
    counts=lambda fit: {"n_comparisons": fit.data.n_comparisons},
    entries=_entries,
    saved_as="ranking",
)
"""What is different for comparisons."""
