"""`RankFit`: the results of a model of pair comparisons, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError
from annotruth.io.writers import LazyTable
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import (
    FORMAT,
    SPAMMER_BELOW,
    AnnotatorResults,
    Column,
    FitMethods,
    Verdict,
    table_of,
)
from annotruth.models.distribution import Z_95
from annotruth.models.em import History
from annotruth.models.fits.further import FurtherResults
from annotruth.models.pairs.beside import win_table
from annotruth.models.pairs.posterior import (
    Ranking,
    ScorePosterior,
    ranking_by_part,
    tied_ranking,
)
from annotruth.models.pairs.summary import NOT_SHARED, TOO_FEW_VOTES, summary_lines
from annotruth.observations.frames import as_arrow, from_arrow
from annotruth.observations.pairs.table import LEFT, TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.report.charts.rank_charts import RankCharts

__all__ = ["RANKING", "TOO_FEW_VOTES", "RankFit"]

RANKING = "ranking"
"""The entry ``kind`` of saved fits of comparisons."""

GROUP_SCORES, GROUP_SD = "group_scores", "group_sd"
"""The parameters with the scores of taste groups and their standard deviations: groups x items."""

# What completion offers.
_PUBLIC = (
    "annotator_columns",
    "annotators",
    "behavior",
    "boards",
    "chosen",
    "coefficients",
    "comparisons",
    "converged",
    "data",
    "dependence",
    "groups",
    "high",
    "history",
    "items",
    "keep",
    "log_likelihood",
    "low",
    "machines",
    "model",
    "n_groups",
    "n_iter",
    "n_parts",
    "n_spammers",
    "p_serious",
    "part",
    "plot",
    "preferences",
    "ranking",
    "reliability",
    "report",
    "save",
    "scores",
    "settings",
    "side_bias",
    "spammer",
    "stop_reason",
    "summary",
    "to_dict",
    "verdict",
)


@dataclass(frozen=True, eq=False, repr=False)
class RankFit(FitMethods, AnnotatorResults):
    """The results of a model of pair comparisons. Frozen.

    `items`, `annotators` and `comparisons` return tables in the caller's frame library. What a
    model does not estimate is None, and absent from the tables.

    Attributes
    ----------
    model, settings
        The model's name and the options it was fitted with.
    data
        The comparisons.
    history
        The objective after every iteration, and why the iterations ended.
    scores
        The posterior of the items' scores. A difference of 1 between two items is odds of e to 1
        that an annotator of average sharpness prefers the one to the other, ties apart. Scores have
        mean 0 within each connected part of the graph of comparisons. Those of `Thurstone` are in
        standard deviations of a perceived difference.
    part
        The connected part of the graph of comparisons that each item is in: scores of different
        parts cannot be compared.
    reliability, low, high
        Each annotator's probability of a serious comparison with its 95% interval.
    behavior
        What each annotator does: "serious", "random", "always left", "inverted", ..., or
        `TOO_FEW_VOTES`.
    annotator_columns
        Further estimates per annotator, such as ``sharpness``, ``side_bias`` or ``evidence``:
        additional columns of the table.
    p_serious
        The probability that each comparison was serious, in the order of ``data``.
    side_bias
        The crowd's side bias, in the unit of scores, with the ends of its 95% interval: three numbers, above 0
        in favor of the left item. None where sides are not known.
    coefficients
        The coefficient of each covariate with the ends of its 95% interval: three numbers by name.
    parameters
        Arrays by name that `PairEstimator.predict_proba`, warm starts and further tables need.
    verdict
        "chance" if the comparisons agree no better than chance, "informative" if they agree better;
        None for models that do not test it, or if there are too few comparisons to tell. By chance,
        all scores are equal and all ranks tied.
    chosen
        How the number of taste groups was chosen, one sentence; empty if it was given.
    fitted_at
        When it was fitted, in UTC; None if that is not known.
    further
        Results on machines among the annotators, by kind; empty where they were not asked for.

    Examples
    --------
    >>> from annotruth.observations import Comparisons
    >>> from annotruth.models.em import direct_history
    >>> votes = Comparisons.from_codes([0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    >>> posterior = ScorePosterior(np.array([0.5, -0.5]), np.eye(2))
    >>> fit = RankFit("bradley-terry", {}, votes, direct_history(), posterior, np.zeros(2, np.int64))
    >>> fit.item_table().column_names
    ['item', 'n_comparisons', 'score', 'low', 'high', 'rank', 'rank_low', 'rank_high', 'p_best']
    """

    unit: ClassVar[str] = "comparison"
    too_few: ClassVar[tuple[str, str]] = ("too few votes", TOO_FEW_VOTES)

    model: str
    settings: Mapping[str, Any]
    data: Comparisons
    history: History
    scores: ScorePosterior
    part: NDArray[np.int64]
    reliability: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    behavior: Sequence[str] | None = None
    annotator_columns: Mapping[str, Column] = field(default_factory=dict)
    p_serious: Floats | None = None
    side_bias: Floats | None = None
    coefficients: Mapping[str, Floats] = field(default_factory=dict)
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    verdict: Verdict | None = None
    chosen: str = ""
    fitted_at: datetime | None = None
    further: Mapping[str, FurtherResults] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"RankFit({self.model} on {self.data.describe()}: {self.stop_reason})"

    def __dir__(self) -> tuple[str, ...]:
        return _PUBLIC

    def _repr_html_(self) -> str:
        return str(self._bound("notebook")(self))

    @cached_property
    def ranking(self) -> Ranking:
        """The rank of each item within its part of the graph, with its 95% interval, and p_best."""
        if self.verdict == "chance":
            return tied_ranking(self.part)
        return ranking_by_part(self.scores, self.part)

    @property
    def n_parts(self) -> int:
        """How many connected parts the graph of comparisons has."""
        return int(self.part.max(initial=-1)) + 1

    @property
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: serious less than half of the time.

        Annotators of whom it is unknown are not.
        """
        if self.reliability is None:
            return None
        spammer: NDArray[np.bool_] = self.reliability < SPAMMER_BELOW
        if self.behavior is not None:
            spammer &= ~np.isin(self.behavior, [TOO_FEW_VOTES, NOT_SHARED, "serious"])
        return spammer

    def items(self) -> Any:
        """Return one row per item, best first: score and rank with 95% intervals, and p_best."""
        return from_arrow(self.item_table(), self.data.frame)

    def annotators(self) -> Any:
        """Return one row per annotator: reliability with its 95% interval, and behavior."""
        return from_arrow(self.annotator_table(), self.data.frame)

    def comparisons(self) -> Any:
        """Return one row per comparison, in the order of the input, with its p_serious."""
        return from_arrow(self.comparison_table(), self.data.frame)

    def item_table(self) -> pa.Table:
        """Return the table of items in Arrow, best first."""
        scores = self.scores
        low, high = scores.interval.T
        ranking = self.ranking
        columns: dict[str, Any] = {
            "item": self.data.items,
            "n_comparisons": self.data.comparisons_per_item,
            "score": scores.mean,
            "low": low,
            "high": high,
            "rank": ranking.rank,
            "rank_low": ranking.low,
            "rank_high": ranking.high,
            "p_best": ranking.p_best,
        }
        if self.n_parts > 1:
            columns["part"] = self.part + 1
        best_first = np.lexsort((-scores.mean, self.part))
        return table_of(columns).take(pa.array(best_first))

    def annotator_table(self) -> pa.Table:
        """Return the table of annotators in Arrow."""
        columns = {
            "annotator": self.data.annotators,
            "n_comparisons": self.data.comparisons_per_annotator,
            **self.annotator_values(),
        }
        return table_of(columns)

    def comparison_table(self) -> pa.Table:
        """Return the table of comparisons in Arrow, in the order of the input."""
        return self._comparison_rows()(slice(0, self.data.n_comparisons))

    def _comparison_rows(self) -> Callable[[slice], pa.Table]:
        """Return a function that makes rows of the table of comparisons."""
        data = self.data
        p_serious = None if self.p_serious is None else data.in_row_order(self.p_serious)

        def make(rows: slice) -> pa.Table:
            table = data.to_arrow(rows).rename_columns({"winner": "outcome"})
            if p_serious is None:
                return table
            return table.append_column("p_serious", as_arrow(np.array(p_serious[rows])))

        return make

    def preferences(self) -> Any:
        """Return one row per decided comparison: prompt, chosen, rejected and weight, for training.

        The weight is the probability that the vote was serious. Without contexts there is no prompt.
        """
        return from_arrow(self.preference_table(), self.data.frame)

    def preference_table(self) -> pa.Table:
        """Return the table of preferences in Arrow, in the order of the input."""
        data = self.data
        order = np.argsort(data.row)
        order = order[data.outcome[order] != TIE]
        left_won = data.outcome[order] == LEFT
        chosen = np.where(left_won, data.left[order], data.right[order])
        rejected = np.where(left_won, data.right[order], data.left[order])
        weight = np.ones(len(order)) if self.p_serious is None else self.p_serious[order]
        columns: dict[str, Any] = {}
        if data.contexts is not None and data.context is not None:
            columns["prompt"] = data.contexts.take(as_arrow(data.context[order]))
        columns["chosen"] = data.items.take(as_arrow(chosen))
        columns["rejected"] = data.items.take(as_arrow(rejected))
        return table_of({**columns, "weight": weight})

    @property
    def n_groups(self) -> int:
        """The number of taste groups; 1 is one consensus."""
        sd = self.parameters.get(GROUP_SD)
        return 1 if sd is None else len(np.atleast_1d(sd))

    def group_scores(self) -> tuple[Floats, Floats, Floats]:
        """Return the scores and their standard deviations, groups x items, and shares of groups."""
        shape = self.n_groups, self.data.n_items
        return (
            self.parameter(GROUP_SCORES, *shape),
            self.parameter(GROUP_SD, *shape),
            self.parameter("group", self.n_groups),
        )

    def groups(self) -> Any:
        """Return one row per taste group and item: group, share, item, score, low, high.

        The share is that of the annotators in the group. Of one consensus, there are no rows.
        """
        return from_arrow(self.group_table(), self.data.frame)

    def group_table(self) -> pa.Table:
        """Return the table of taste groups in Arrow, the best item of each group first."""
        names = ("group", "share", "item", "score", "low", "high")
        if self.n_groups == 1:
            return pa.table({name: pa.array([], pa.float64()) for name in names})
        scores, sd, share = self.group_scores()
        n = self.data.n_items
        group = np.repeat(np.arange(self.n_groups), n)
        item = np.argsort(-scores, axis=1, kind="stable").ravel()
        score, margin = scores[group, item], Z_95 * sd[group, item]
        columns = (
            *(group + 1, share[group], self.data.items.take(pa.array(item))),
            *(score, score - margin, score + margin),
        )
        return table_of(dict(zip(names, columns, strict=True)))

    def boards(self) -> Any:
        """Return one row per board and item, by the column that `annotruth.rank` was given as ``by``.

        ``score`` has its 95% interval; ``difference`` is that from the score over all boards, and
        ``compared`` whether the item was compared on the board at all.
        """
        return from_arrow(self.further_table("boards", "boards"), self.data.frame)

    def tables(self) -> dict[str, pa.Table | LazyTable]:
        """Return all tables by name, to be written to files.

        Where the comparisons are on disk, their table is made in partitions.
        """
        n, on_disk = self.data.n_comparisons, self.data.on_disk
        tables: dict[str, pa.Table | LazyTable] = {
            "items": self.item_table(),
            "wins": win_table(self),
            "annotators": self.annotator_table(),
            "comparisons": LazyTable(n, self._comparison_rows())
            if on_disk
            else self.comparison_table(),
        }
        if self.n_groups > 1:
            tables["groups"] = self.group_table()
        return {**tables, **self.further_tables()}

    def verdict_table(self) -> pa.Table:
        """Return the table of verdicts in Arrow."""
        if self.reliability is None:
            raise AnnotruthError(
                f"{self.model} says nothing about annotators: rank with pair-gpm (`--model pair-gpm`)"
            )
        return super().verdict_table()

    def summary(self) -> str:
        """Return a few lines: notices, the data, convergence, who leads, sides and annotators."""
        return "\n".join([*summary_lines(self), *self.further_lines()])

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, counts, history, stop reason and versions, as JSON types."""
        data = self.data
        return {
            "format": FORMAT,
            "kind": RANKING,
            "model": self.model,
            "settings": dict(self.settings),
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_comparisons": data.n_comparisons,
            "n_dropped": data.n_dropped,
            "n_repeated": data.n_repeated,
            "read_as": data.read_as or None,
            "left_out": data.left_out or None,
            "sides_known": data.sides_known,
            "frame": data.frame,
            "parts": self.n_parts,
            "side_bias": None if self.side_bias is None else self.side_bias.tolist(),
            "coefficients": {name: each.tolist() for name, each in self.coefficients.items()},
            "verdict": self.verdict,
            "chosen": self.chosen or None,
            **self.history_entries(),
            **self.further_entries(),
        }

    @property
    def is_thurstone(self) -> bool:
        """Whether scores are in standard deviations of perceived differences, instead of log odds."""
        return self.model == "thurstone"

    @property
    def plot(self) -> RankCharts:
        """Charts of this fit, such as ``fit.plot.ranking()``, which notebooks display."""
        charts: RankCharts = self._bound("plot")(self)
        return charts

    def report(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        truth: Any = None,
        command: str | None = None,
        arguments: str | None = None,
    ) -> None:
        """Write a report with tables and charts, one HTML file.

        Parameters
        ----------
        path
            The file to write.
        source
            The name of the comparisons in the report's heading.
        truth
            Known grades of some or all items, as `annotruth.evaluate` takes them.
        command
            The command line that makes the report, for its heading.
        arguments
            What to type after ``annotruth next`` for advice on this fit, for the first screen.
        """
        self._bound("report")(
            self, path, source=source, truth=truth, command=command, arguments=arguments
        )
