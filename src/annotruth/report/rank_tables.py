"""The tables of the report of a fit of comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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
    columns_of,
    number_column,
    text_column,
)

MAX_ITEMS = 20_000
MAX_VOTES = 2_000
"""How many doubtful comparisons, and how many pairs with disagreement, a page has."""

_STYLE = TableStyle(
    headings=RANK_HEADINGS,
    # Which columns a small screen shows: the first of these that have room.
    first=(
        *("item", "annotator", "rank", "reliability", "score", "verdict", "other", "left", "right"),
        *("chosen", "p_serious", "behavior", "p_best", "for_item", "for_other", "n_comparisons"),
    ),
    hidden=frozenset(
        ("low", "high", "rank_low", "rank_high", "side_bias_low", "side_bias_high", "p_group")
    ),
    shares=frozenset(("p_best", "left_share", "tie_share", "share")),
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
    """Return the table of items, best first."""
    won, lost, tied = outcome_counts(fit)
    total = np.maximum(won + lost + tied, 1)
    place = _places(np.lexsort((-fit.scores.mean, fit.part)), fit.data.n_items)  # in the table
    columns = _STYLE.apply(columns_of(fit.item_table(), place[rows]))
    low, high = fit.scores.interval.T
    for column in columns:
        if column["key"] == "score":
            column |= {"kind": "range", "ends": ["low", "high"]}
            column["domain"] = [float(low.min()), float(high.max())]
        if column["key"] == "rank":
            column |= {"kind": "range", "ends": ["rank_low", "rank_high"], "digits": 0}
            column["domain"] = [1, int(fit.ranking.high.max())]
    columns += _STYLE.apply(
        [
            number_column("share", (won + tied / 2.0)[rows] / total[rows]),
            number_column("won", won[rows]),
            number_column("lost", lost[rows]),
            number_column("tied", tied[rows]),
        ]
    )
    sort_by = "part" if fit.n_parts > 1 else "rank"
    return PageTable(columns, len(rows), fit.data.n_items, sort_by)


def rank_annotator_table(fit: RankFit, rows: Codes) -> PageTable:
    """Return the table of annotators, least reliable first."""
    table = fit.annotator_table()
    if fit.spammer is not None:  # the verdict says it better: it considers the interval
        table = table.drop_columns("spammer")
    columns = _STYLE.apply(columns_of(table, rows))
    for column in columns:
        if column["key"] == "accuracy":
            column["domain"] = [0, 1]
        if column["key"] == "reliability":
            column |= {"domain": [0, 1], "limit": SPAMMER_BELOW}
        if column["key"] == "side_bias" and "side_bias_low" in table.column_names:
            ends = ["side_bias_low", "side_bias_high"]
            column |= {"kind": "range", "ends": ends, "domain": [-3, 3]}
    voter, n_voters = fit.data.annotator_of_comparison(), fit.data.n_annotators
    left, ties = (np.bincount(voter, fit.data.outcome == k, n_voters) for k in (LEFT, TIE))
    total = np.maximum(fit.data.comparisons_per_annotator, 1)
    if fit.data.sides_known:
        columns += _STYLE.apply([number_column("left_share", (left / total)[rows])])
    if fit.data.has_ties:
        columns += _STYLE.apply([number_column("tie_share", (ties / total)[rows])])
    if fit.reliability is not None:
        words, reasons = verdicts(fit)
        after = 1 + max(
            k for k, c in enumerate(columns) if c["key"] in ("n_comparisons", "reliability")
        )
        columns[after:after] = _STYLE.apply([text_column("verdict", words[rows].tolist())])
        columns += _STYLE.apply([text_column("reason", [reasons[s] for s in rows])])
    # The dialog of an annotator has the reason, and the evidence for the behavior is shorter.
    if "evidence" in table.column_names:
        columns[-1]["hidden"] = fit.reliability is not None
    sort_by = "reliability" if fit.reliability is not None else "n_comparisons"
    return PageTable(columns, len(rows), fit.data.n_annotators, sort_by)


def doubtful_votes(fit: RankFit, rows: Codes) -> PageTable | None:
    """Return the comparisons that are probably not serious, of annotators who are not dropped."""
    if fit.p_serious is None:
        return None
    data, annotator = fit.data, fit.data.annotator_of_comparison()
    dropped = verdicts(fit)[0] == "drop"
    doubtful = np.flatnonzero((fit.p_serious < SPAMMER_BELOW) & ~dropped[annotator])
    doubtful = doubtful[np.isin(annotator[doubtful], rows)]
    first = doubtful[np.argsort(fit.p_serious[doubtful], kind="stable")][:MAX_VOTES]
    place = _places(rows, data.n_annotators)
    items = as_text(data.items)
    ids = pa.table({"annotator": data.annotators.take(as_arrow(annotator[first]))})
    columns = _STYLE.apply(
        [
            *columns_of(ids, np.arange(len(first))),
            text_column("left", [items[k] for k in data.left[first]]),
            text_column("right", [items[k] for k in data.right[first]]),
            text_column("chosen", [OUTCOMES[k] for k in data.outcome[first]]),
            number_column("p_serious", fit.p_serious[first]),
        ]
    )
    opens = place[annotator[first]].tolist()
    return PageTable(columns, len(first), len(doubtful), "p_serious", opens=opens)


def disputed_pairs(fit: RankFit, rows: Codes) -> PageTable:
    """Return the pairs on which votes are divided, those with most votes for each side first."""
    data = fit.data
    first, second = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    key, pair = np.unique(first.astype(np.int64) * data.n_items + second, return_inverse=True)
    won = data.outcome == np.where(data.left == first, LEFT, RIGHT)
    tied = data.outcome == TIE
    wins, ties = (np.bincount(pair, each, len(key)).astype(int) for each in (won, tied))
    losses = np.bincount(pair, minlength=len(key)) - wins - ties
    disputed = np.flatnonzero(np.minimum(wins, losses) > 0)
    best = disputed[np.argsort(-np.minimum(wins, losses)[disputed], kind="stable")][:MAX_VOTES]
    a, b = np.divmod(key[best], data.n_items)
    place = _places(rows, data.n_items)
    known = (place[a] >= 0) & (place[b] >= 0)
    best, a, b = best[known], a[known], b[known]
    items = as_text(data.items)
    columns = _STYLE.apply(
        [
            *columns_of(pa.table({"item": data.items.take(as_arrow(a))}), np.arange(len(a))),
            text_column("other", [items[k] for k in b]),
            number_column("for_item", wins[best]),
            number_column("for_other", losses[best]),
            number_column("ties", ties[best]),
            number_column("divided", np.minimum(wins, losses)[best]),
        ]
    )
    opens = place[a].tolist()
    return PageTable(
        columns, len(best), len(disputed), "divided", descending=True, opens=opens, opens_in="items"
    )


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
