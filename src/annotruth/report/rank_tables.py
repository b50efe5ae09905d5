"""The tables of the report of a fit of comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from annotruth.analyses.advice.annotators import verdicts
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.result import RankFit
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, OUTCOMES, RIGHT, TIE
from annotruth.report.charts.fit_charts import as_text
from annotruth.report.charts.rank_charts import outcome_counts
from annotruth.report.headings import RANK_HEADINGS
from annotruth.report.tables import (
    MAX_ANNOTATORS,
    PageTable,
    TableStyle,
    amend,
    insert_columns,
    without_spammer,
)

MAX_ITEMS = 20_000
MAX_VOTES = 2_000
"""How many doubtful comparisons, and how many pairs with disagreement, a page has."""

_STYLE = TableStyle(
    headings=RANK_HEADINGS,
    first=(
        *("item", "annotator", "rank", "reliability", "score", "verdict", "other", "left", "right"),
        *("chosen", "p_serious", "behavior", "p_best", "for_item", "for_other", "n_comparisons"),
    ),
    hidden=("low", "high", "rank_low", "rank_high", "side_bias_low", "side_bias_high"),
    shares=("p_best", "left_share", "tie_share", "share"),
    intervals={
        "score": ("low", "high"),
        "rank": ("rank_low", "rank_high"),
        "accuracy": ("accuracy_low", "accuracy_high"),
        "reliability": ("low", "high"),
        "side_bias": ("side_bias_low", "side_bias_high"),
    },
)


class PageRows(NamedTuple):
    """Which annotators and items have a row on the page: their codes, in the order of the rows."""

    annotators: Codes
    items: Codes


def rows_on_page(fit: RankFit) -> PageRows:
    """Return the rows of the page: of too many, the least reliable annotators and the best items."""
    people = np.arange(fit.data.n_annotators)
    if fit.reliability is not None:
        people = np.argsort(fit.reliability, kind="stable")
    items = np.lexsort((-fit.scores.mean, fit.part))
    return PageRows(people[:MAX_ANNOTATORS], items[:MAX_ITEMS])


def rank_item_table(fit: RankFit, rows: Codes) -> PageTable:
    """Return the table of items, best first: the first rows of that of the fit."""
    won, lost, tied = (counts[rows] for counts in outcome_counts(fit))
    share = (won + tied / 2.0) / np.maximum(won + lost + tied, 1)
    table = fit.item_table().slice(0, len(rows))
    counts = {"share": share, "won": won, "lost": lost, "tied": tied}
    columns = _STYLE.columns(insert_columns(table, counts, after=table.column_names))
    low, high = fit.scores.interval.T
    amend(columns, "score", domain=[float(low.min()), float(high.max())])
    amend(columns, "rank", domain=[1, int(fit.ranking.high.max())], digits=0)
    sort_by = "part" if fit.n_parts > 1 else "rank"
    return PageTable(columns, len(rows), fit.data.n_items, sort_by)


def rank_annotator_table(fit: RankFit, rows: Codes) -> PageTable:
    """Return the table of annotators, least reliable first."""
    table, data = without_spammer(fit), fit.data
    shares = {"left_share": LEFT} if data.sides_known else {}
    shares |= {"tie_share": TIE} if data.has_ties else {}
    voter, total = data.annotator_of_comparison(), np.maximum(data.comparisons_per_annotator, 1)
    for name, outcome in shares.items():
        counts = np.bincount(voter, data.outcome == outcome, data.n_annotators)
        table = table.append_column(name, as_arrow(counts / total))
    if fit.reliability is not None:
        words, reasons = verdicts(fit)
        verdict = {"verdict": words.tolist()}
        table = insert_columns(table, verdict, after=("n_comparisons", "reliability"))
        table = table.append_column("reason", as_arrow(reasons))
    columns = _STYLE.columns(table, rows)
    amend(columns, "accuracy", domain=[0, 1])
    amend(columns, "reliability", domain=[0, 1], limit=SPAMMER_BELOW)
    if "side_bias_low" in table.column_names:
        amend(columns, "side_bias", domain=[-3, 3])
    # The dialog of an annotator has the reason, and the evidence for the behavior is shorter.
    if "evidence" in table.column_names:
        columns[-1]["hidden"] = fit.reliability is not None
    sort_by = "reliability" if fit.reliability is not None else "n_comparisons"
    return PageTable(columns, len(rows), data.n_annotators, sort_by)


def doubtful_votes(fit: RankFit, rows: Codes) -> PageTable | None:
    """Return the comparisons that are probably not serious, of annotators who are not dropped."""
    if fit.p_serious is None:
        return None
    data, annotator = fit.data, fit.data.annotator_of_comparison()
    dropped = verdicts(fit)[0] == "drop"
    doubtful = np.flatnonzero((fit.p_serious < SPAMMER_BELOW) & ~dropped[annotator])
    doubtful = doubtful[np.isin(annotator[doubtful], rows)]
    first = doubtful[np.argsort(fit.p_serious[doubtful], kind="stable")][:MAX_VOTES]
    items = as_text(data.items)
    table = {
        "annotator": data.annotators.take(as_arrow(annotator[first])),
        "left": [items[k] for k in data.left[first]],
        "right": [items[k] for k in data.right[first]],
        "chosen": [OUTCOMES[k] for k in data.outcome[first]],
        "p_serious": fit.p_serious[first],
    }
    opens = _places(rows, data.n_annotators)[annotator[first]].tolist()
    return PageTable(_STYLE.columns(table), len(first), len(doubtful), "p_serious", opens=opens)


def disputed_pairs(fit: RankFit, rows: Codes) -> PageTable:
    """Return the pairs on which votes are divided, those with most votes for each side first."""
    data = fit.data
    first, second = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    key, pair = np.unique(first.astype(np.int64) * data.n_items + second, return_inverse=True)
    won = data.outcome == np.where(data.left == first, LEFT, RIGHT)
    tied = data.outcome == TIE
    wins, ties = (np.bincount(pair, each, len(key)).astype(int) for each in (won, tied))
    losses = np.bincount(pair, minlength=len(key)) - wins - ties
    divided = np.minimum(wins, losses)
    disputed = np.flatnonzero(divided > 0)
    best = disputed[np.argsort(-divided[disputed], kind="stable")][:MAX_VOTES]
    place = _places(rows, data.n_items)
    best = best[(place[np.stack(np.divmod(key[best], data.n_items))] >= 0).all(axis=0)]
    a, b = np.divmod(key[best], data.n_items)
    items = as_text(data.items)
    table = {
        "item": data.items.take(as_arrow(a)),
        "other": [items[k] for k in b],
        "for_item": wins[best],
        "for_other": losses[best],
        "ties": ties[best],
        "divided": divided[best],
    }
    return PageTable(
        _STYLE.columns(table), len(best), len(disputed), "divided", descending=True,
        opens=place[a].tolist(), opens_in="items",
    )  # fmt: skip


def vote_data(fit: RankFit, rows: PageRows, max_votes: int) -> dict[str, Any]:
    """Return the comparisons for the dialogs: rows of tables, outcomes, and p serious in percent.

    Of more than ``max_votes`` comparisons there are none, to keep the page small.
    """
    data = fit.data
    if data.n_comparisons > max_votes:
        return {"left": [], "right": [], "annotator": [], "outcome": [], "p_serious": None}
    item = _places(rows.items, data.n_items)
    annotator = _places(rows.annotators, data.n_annotators)
    serious = None
    if fit.p_serious is not None:
        serious = np.round(100.0 * fit.p_serious).astype(int).tolist()
    return {
        "left": item[data.left].tolist(),
        "right": item[data.right].tolist(),
        "annotator": annotator[data.annotator_of_comparison()].tolist(),
        "outcome": data.outcome.tolist(),
        "p_serious": serious,
    }


def _places(rows: Codes, n: int) -> Codes:
    """Return the row of each of n items or annotators; -1 of those that have none."""
    places = np.full(n, -1)
    places[rows] = np.arange(len(rows))
    return places
