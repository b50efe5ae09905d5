"""`fit.plot` of a fit of comparisons: its charts, the same in a notebook, a file and the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.pairs.summary import score_line
from annotruth.models.result import RankFit
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE
from annotruth.report.charts.chart import Chart
from annotruth.report.charts.fit_charts import (
    FULL_WIDTH,
    PlotMethods,
    as_text,
    interval_chart,
)
from annotruth.report.charts.matrices import win_matrix
from annotruth.report.charts.shapes import Intervals
from annotruth.report.render import as_sentence

MAX_NAMED = 60
"""How many items are drawn with their names; of more, the win matrix has the best `BEST`."""

BEST = 40


class RankCharts(PlotMethods[RankFit]):
    """The charts of one fit of comparisons; each method returns a `Chart`."""

    def __init__(self, fit: RankFit) -> None:
        super().__init__(fit)
        # Best first, part by part.
        self._order = np.lexsort((-fit.scores.mean, fit.part))

    def ranking(self) -> Chart:
        """Chart the score of each item with its interval, best first."""
        low, high = self._fit.scores.interval.T
        caption = as_sentence(score_line(self._fit))
        return self._items(
            "ranking", "Scores of items", caption, self._fit.scores.mean, low, high, "score"
        )

    def ranks(self) -> Chart:
        """Chart the rank of each item with its interval, best first."""
        rank, low, high, _ = (np.asarray(each, dtype=float) for each in self._fit.ranking)
        caption = "1 is best; an item whose line reaches 1 may be the best."
        return self._items("ranks", "Ranks of items", caption, rank, low, high, "rank")

    def wins(self) -> Chart:
        """Chart how often each item was preferred to each other one."""
        n, n_items = self._n_in_matrix, self._fit.data.n_items
        names = self._names(self._order[:n])
        wins, ties = win_counts(self._fit, self._order[:n])
        caption = (
            "Blue: the item of the row was preferred to that of the column, orange: the other, "
            "pale: about as often; empty: never compared. In a square: the share of votes for the row's "
            "item, in percent, ties half. Beside names: ranks in this list."
        )
        if n < n_items:
            caption += f" The first {n:,} of {n_items:,} items."
        return Chart(
            name="wins",
            title="Who was preferred to whom",
            caption=caption + " A small screen shows fewer.",
            data=_pair_data(names, wins, ties),
            draw=lambda width: win_matrix(names, wins, ties, width),
            width=FULL_WIDTH if n > 12 else 560.0,
        )

    @property
    def _n_in_matrix(self) -> int:
        n = self._fit.data.n_items
        return n if n <= MAX_NAMED else BEST

    def _names(self, items: Codes) -> list[str]:
        texts = as_text(self._fit.data.items)
        return [texts[k] for k in items]

    def _items(
        self, name: str, title: str, caption: str, value: Floats, low: Floats, high: Floats,
        axis: str,
    ) -> Chart:  # fmt: skip
        order = self._order
        ends = np.concatenate([low, high])
        lowest = 1.0 if axis == "rank" else float(ends.min())
        domain = (lowest, max(float(ends.max()), lowest + 1.0))
        intervals = Intervals(
            self._names(order), value[order], low[order], high[order], None,
            domain, axis, digits=0 if axis == "rank" else 2,
        )  # fmt: skip
        if self._fit.n_parts > 1:
            caption += " Items of different parts cannot be compared: part 1 comes first."
        return interval_chart(
            name, title, caption, "item", intervals, "items, best first", max_named=MAX_NAMED
        )


def win_counts(fit: RankFit, items: Codes) -> tuple[Floats, Floats]:
    """Return how often each of some items was preferred to each other, and how often neither was."""
    data, n = fit.data, len(items)
    place = np.full(data.n_items, -1)
    place[items] = np.arange(n)
    left, right = place[data.left], place[data.right]
    both = (left >= 0) & (right >= 0)
    cell = left * n + right

    def count(outcome: int) -> Floats:
        counts = np.bincount(cell[both & (data.outcome == outcome)], minlength=n * n)
        return counts.reshape(n, n).astype(float)

    wins = count(LEFT) + count(RIGHT).T
    ties = count(TIE)
    return wins, ties + ties.T


def _pair_data(names: Sequence[str], wins: Floats, ties: Floats) -> dict[str, list[object]]:
    """Return the table behind the win matrix, one row per pair that was compared."""
    above: Codes = np.argwhere(np.triu(wins + wins.T + ties, 1))
    return {
        "item": [names[k] for k, _ in above],
        "other": [names[g] for _, g in above],
        "wins": [int(wins[k, g]) for k, g in above],
        "losses": [int(wins[g, k]) for k, g in above],
        "ties": [int(ties[k, g]) for k, g in above],
        "share": [
            float((wins[k, g] + ties[k, g] / 2.0) / (wins[k, g] + wins[g, k] + ties[k, g]))
            for k, g in above
        ],
    }


def outcome_counts(fit: RankFit) -> tuple[Codes, Codes, Codes]:
    """Return how many comparisons each item won, lost and tied."""
    data, n = fit.data, fit.data.n_items

    def of(items: NDArray[np.int32], outcome: int) -> Codes:
        return np.bincount(items[data.outcome == outcome], minlength=n)

    won: Codes = of(data.left, LEFT) + of(data.right, RIGHT)
    lost: Codes = of(data.left, RIGHT) + of(data.right, LEFT)
    tied: Codes = of(data.left, TIE) + of(data.right, TIE)
    return won, lost, tied
