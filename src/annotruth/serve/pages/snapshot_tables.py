"""Tables of a snapshot, made once per version: what pages sort, search and show one screen of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.pairs.advice import PairAdvice
from annotruth.kernels.arrays import Codes
from annotruth.models.base_fit import ACCURACY_COLUMNS
from annotruth.models.result import Fit, RankFit
from annotruth.observations.encode import to_text
from annotruth.observations.frames import as_arrow
from annotruth.report.charts.chart import color_indices
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.charts.rank_charts import RankCharts, outcome_counts
from annotruth.report.consensus import Consensus

CODE = "code"
"""The column with the code of each item or annotator in the fit."""


@dataclass(frozen=True, eq=False)
class LabelTables:
    """The tables of a fit of labels and of the advice drawn from it."""

    fit: Fit
    advice: Advice

    @cached_property
    def names(self) -> list[str]:
        """The names of the categories."""
        return self.fit.data.scale.names

    @cached_property
    def colors(self) -> list[int]:
        """The index of each category's color."""
        return color_indices(self.fit.data.scale)

    @cached_property
    def consensus(self) -> Consensus:
        """The labels beside the recovered ones."""
        return Consensus(self.fit)

    @cached_property
    def charts(self) -> FitCharts:
        """The charts of the fit."""
        return FitCharts(self.fit)

    @cached_property
    def items(self) -> pa.Table:
        """One row per item: its results and whether it needs labels."""
        fit, advice = self.fit, self.advice
        columns = {
            "item": to_text(fit.data.items),
            "n_labels": fit.data.labels_per_item,
            "status": advice.of_items.status.tolist(),
            "add": advice.add,
            "why": advice.of_items.why,
            "gain": advice.of_items.gain,
            "entropy": self.consensus.difficulty,
        }
        if fit.label is not None:
            columns["label"] = fit.label
            columns["disputed"] = fit.disputed
        if fit.distribution is not None:
            columns["confidence"] = fit.distribution.confidence()
        if fit.expectation is not None:
            columns["expectation"] = fit.expectation
        return _table(columns, fit.data.n_items)

    @cached_property
    def annotators(self) -> pa.Table:
        """One row per annotator: reliability, behavior and verdict."""
        table = _annotators(self.fit, self.advice, self.fit.data.labels_per_annotator)
        return table.append_column("matches", as_arrow(self.consensus.match_rate))

    def item_code(self, item: str) -> int | None:
        """Return the code of an item; None if it is not in the snapshot."""
        return _place(self.items["item"], item)

    def annotator_code(self, annotator: str) -> int | None:
        """Return the code of an annotator; None if they are not in the snapshot."""
        return _place(self.annotators["annotator"], annotator)

    def labels_of_item(self, code: int) -> Codes:
        """Return the places of an item's labels in the fit."""
        ends = self.fit.data.cell_ptr[self.fit.data.item_ptr[code : code + 2]]
        return np.arange(ends[0], ends[1])


@dataclass(frozen=True, eq=False)
class RankTables:
    """The tables of a ranking and of the advice drawn from it."""

    fit: RankFit
    advice: PairAdvice

    @cached_property
    def charts(self) -> RankCharts:
        """The charts of the ranking."""
        return RankCharts(self.fit)

    @cached_property
    def items(self) -> pa.Table:
        """One row per item: score, rank, wins and losses."""
        fit = self.fit
        low, high = fit.scores.interval.T
        won, lost, tied = outcome_counts(fit)
        columns = {
            "item": to_text(fit.data.items),
            "n_comparisons": fit.data.comparisons_per_item,
            "score": fit.scores.mean,
            "low": low,
            "high": high,
            "rank": fit.ranking.rank,
            "rank_low": fit.ranking.low,
            "rank_high": fit.ranking.high,
            "p_best": fit.ranking.p_best,
            "part": fit.part + 1,
            "won": won,
            "lost": lost,
            "tied": tied,
        }
        return _table(columns, fit.data.n_items)

    @cached_property
    def annotators(self) -> pa.Table:
        """One row per annotator: reliability, behavior and verdict."""
        return _annotators(self.fit, self.advice, self.fit.data.comparisons_per_annotator)

    def item_code(self, item: str) -> int | None:
        """Return the code of an item; None if it is not in the snapshot."""
        return _place(self.items["item"], item)

    def annotator_code(self, annotator: str) -> int | None:
        """Return the code of an annotator; None if they are not in the snapshot."""
        return _place(self.annotators["annotator"], annotator)


SnapshotTables = LabelTables | RankTables


def _annotators(fit: Fit | RankFit, advice: Advice | PairAdvice, n_given: Codes) -> pa.Table:
    people = advice.of_annotators
    columns = {
        "annotator": to_text(fit.data.annotators),
        "n_labels": n_given,
        "verdict": people.verdict.tolist(),
        "ask": people.ask,
        "reason": list(people.reason),
        "information": people.information,
    }
    known = fit.annotator_values()
    for name in (*ACCURACY_COLUMNS, "reliability", "low", "high"):
        if name in known:
            columns[name] = known[name]
    if fit.behavior is not None:
        columns["behavior"] = list(fit.behavior)
    return _table(columns, fit.data.n_annotators)


def _table(columns: dict[str, object], n_rows: int) -> pa.Table:
    arrays = {
        name: as_arrow(values) if isinstance(values, np.ndarray) else values
        for name, values in columns.items()
    }
    return pa.table({**arrays, CODE: as_arrow(np.arange(n_rows))})


def _place(ids: pa.ChunkedArray, wanted: str) -> int | None:
    place = pc.index(ids, pa.scalar(wanted, ids.type)).as_py()
    return None if place < 0 else int(place)
