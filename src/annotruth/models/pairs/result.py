"""`RankFit`: the results of a model of pair comparisons, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.comparisons.table import OUTCOMES, Comparisons
from annotruth.kernels.arrays import Floats
from annotruth.labels.encode import decode_table
from annotruth.labels.frames import from_arrow
from annotruth.models.base_fit import SPAMMER_BELOW, Column, table_of
from annotruth.models.em import History
from annotruth.models.pairs.posterior import ScorePosterior

TOO_FEW_VOTES = "too few votes to tell"
"""The behavior of annotators with too few comparisons to estimate it."""


@dataclass(frozen=True, eq=False, repr=False)
class RankFit:
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
        mean 0 within each connected part of the graph of comparisons.
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
        The crowd's side bias in log odds with the ends of its 95% interval: three numbers, above 0
        in favor of the left item. None where sides are not known.
    coefficients
        The coefficient of each covariate with the ends of its 95% interval: three numbers by name.
    parameters
        Arrays by name that `PairEstimator.predict_proba`, warm starts and further tables need.
    fitted_at
        When it was fitted, in UTC; None if that is not known.

    Examples
    --------
    >>> from annotruth.comparisons import Comparisons
    >>> from annotruth.models.em import direct_history
    >>> votes = Comparisons.from_codes([0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    >>> posterior = ScorePosterior(np.array([0.5, -0.5]), np.eye(2))
    >>> fit = RankFit("bradley-terry", {}, votes, direct_history(), posterior, np.zeros(2, np.int64))
    >>> fit.item_table().column_names
    ['item', 'n_comparisons', 'score', 'low', 'high', 'rank', 'rank_low', 'rank_high', 'p_best']
    """

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
    fitted_at: datetime | None = None

    def __repr__(self) -> str:
        return f"RankFit({self.model} on {self.data.describe()}: {self.history.stop_reason})"

    @property
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: serious less than half of the time."""
        return None if self.reliability is None else self.reliability < SPAMMER_BELOW

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
        rank_low, rank_high = scores.rank_interval.T
        columns: dict[str, Any] = {
            "item": self.data.items,
            "n_comparisons": self.data.comparisons_per_item,
            "score": scores.mean,
            "low": low,
            "high": high,
            "rank": scores.rank,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "p_best": scores.p_best,
        }
        if self.part.max(initial=0) > 0:
            columns["part"] = self.part + 1
        best_first = np.lexsort((-scores.mean, self.part))
        return table_of(columns).take(pa.array(best_first))

    def annotator_table(self) -> pa.Table:
        """Return the table of annotators in Arrow."""
        columns: dict[str, Any] = {
            "annotator": self.data.annotators,
            "n_comparisons": self.data.comparisons_per_annotator,
            "reliability": self.reliability,
            "low": self.low,
            "high": self.high,
            "spammer": self.spammer,
            "behavior": self.behavior,
            **self.annotator_columns,
        }
        return table_of({name: each for name, each in columns.items() if each is not None})

    def comparison_table(self) -> pa.Table:
        """Return the table of comparisons in Arrow, in the order of the input."""
        data = self.data
        columns: dict[str, Any] = {
            "left": data.items.take(pa.array(data.left)),
            "right": data.items.take(pa.array(data.right)),
            "annotator": data.annotators.take(pa.array(data.annotator_of_comparison())),
            "outcome": pa.array(OUTCOMES).take(pa.array(data.outcome)),
        }
        if self.p_serious is not None:
            columns["p_serious"] = self.p_serious
        return decode_table(table_of(columns)).take(pa.array(np.argsort(data.row)))
