"""`Fit`: what a model found, frozen, and the tables a person reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.labels import Labels
from annotruth.labels.frames import from_arrow
from annotruth.models.distribution import Distribution
from annotruth.models.em import Trace

Floats = NDArray[np.float64]

SPAMMER_BELOW = 0.5
"""Reliability under which the paper calls an annotator a spammer."""

MOST_COLUMNS = 100
"""With more categories than this, items have no column for each; see `Fit.distributions`."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model.

    What a model cannot give is None, and absent from the tables.

    Attributes
    ----------
    model, settings
        The model's name and the options it was fitted with.
    data
        The labels.
    trace
        The history of the iterations and why they ended.
    distribution
        Each item's distribution of serious opinion.
    reliability, low, high
        Each annotator's reliability with its 95% interval.
    behavior
        What each annotator does, in a word.
    p_serious
        How likely each label was serious, in the order of ``data``.
    """

    model: str
    settings: dict[str, Any]
    data: Labels
    trace: Trace
    distribution: Distribution
    reliability: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    behavior: Sequence[str] | None = None
    p_serious: Floats | None = None

    def __repr__(self) -> str:
        return f"Fit({self.model} of {self.data!r}: {self.stop_reason})"

    @property
    def n_iter(self) -> int:
        """How many iterations were made."""
        return self.trace.n_iter

    @property
    def converged(self) -> bool:
        """Whether the stopping rule was met."""
        return self.trace.converged

    @property
    def stop_reason(self) -> str:
        """Why the iterations ended."""
        return self.trace.stop_reason

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of all labels at the end."""
        return float(self.trace.log_likelihood[-1])

    @property
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: reliability below one half."""
        return None if self.reliability is None else self.reliability < SPAMMER_BELOW

    @property
    def n_spammers(self) -> int | None:
        """How many annotators are spammers."""
        return None if self.spammer is None else int(self.spammer.sum())

    def items(self) -> Any:
        """Return one row an item: its label, how sure, and its whole distribution."""
        return from_arrow(self.item_table(), self.data.frame)

    def annotators(self) -> Any:
        """Return one row an annotator: reliability with its interval, and behavior."""
        return from_arrow(self.annotator_table(), self.data.frame)

    def labels(self) -> Any:
        """Return one row a label, in the order they came, with how likely it was serious."""
        return from_arrow(self.label_table(), self.data.frame)

    def distributions(self) -> Any:
        """Return one row an item and category of probability above zero: item, label, p."""
        return from_arrow(self.distribution_table(), self.data.frame)

    def item_table(self) -> pa.Table:
        """Make the items table in Arrow."""
        scale, theta = self.data.scale, self.distribution
        columns: dict[str, Any] = {
            "item": self.data.items,
            "n_labels": self.data.labels_per_item,
            "label": scale.categories.take(pa.array(theta.mode())),
        }
        if scale.is_ordinal:
            columns["expectation"] = theta.expectation(scale.values)
        columns["confidence"] = theta.confidence()
        columns["entropy"] = theta.entropy()
        if len(scale) <= MOST_COLUMNS:
            shares = theta.dense(len(scale))
            columns |= {f"p_{name}": shares[:, n] for n, name in enumerate(scale.names)}
        return pa.table(columns)

    def annotator_table(self) -> pa.Table:
        """Make the annotators table in Arrow."""
        columns = {
            "annotator": self.data.annotators,
            "n_labels": self.data.labels_per_annotator,
            "reliability": self.reliability,
            "low": self.low,
            "high": self.high,
            "spammer": self.spammer,
            "behavior": self.behavior,
        }
        return pa.table({name: column for name, column in columns.items() if column is not None})

    def label_table(self) -> pa.Table:
        """Make the labels table in Arrow, in the order the labels came."""
        data = self.data
        cell = data.cell_of_label()
        columns = {
            "item": data.items.take(pa.array(data.item_of_cell()[cell])),
            "annotator": data.annotators.take(pa.array(data.annotator)),
            "label": data.scale.categories.take(pa.array(data.cell_category[cell])),
        }
        if self.p_serious is not None:
            columns["p_serious"] = pa.array(self.p_serious)
        place = np.empty(data.n_labels, dtype=np.int64)
        place[data.row] = np.arange(data.n_labels)
        return pa.table(columns).take(pa.array(place))

    def distribution_table(self) -> pa.Table:
        """Make the table of distributions in Arrow, without the zeros."""
        theta = self.distribution
        some = np.flatnonzero(theta.probability > 0)
        return pa.table(
            {
                "item": self.data.items.take(pa.array(theta.item()[some])),
                "label": self.data.scale.categories.take(pa.array(theta.category[some])),
                "p": theta.probability[some],
            }
        )

    def summary(self) -> str:
        """Tell the fit in a few lines."""
        data = self.data
        lines = [
            f"{self.model}: {data.n_labels:,} labels of {data.n_items:,} items by "
            f"{data.n_annotators:,} annotators, {len(data.scale)} {data.scale.kind} categories",
            f"{'settled' if self.converged else 'NOT settled'} after {self.n_iter:,} iterations "
            f"({self.stop_reason}); log-likelihood {self.log_likelihood:,.2f}, "
            f"{self.log_likelihood / data.n_labels:.6f} a label",
        ]
        if data.n_dropped:
            lines.append(f"{data.n_dropped:,} rows had no label and were dropped")
        if self.reliability is not None:
            lines.append(
                f"annotators: {self.n_spammers:,} of {data.n_annotators:,} are spammers "
                f"(reliability below {SPAMMER_BELOW}); median reliability "
                f"{np.median(self.reliability):.2f}"
            )
        agreed = self.distribution.confidence()
        entropy = self.distribution.entropy()
        lines.append(
            f"items: {np.count_nonzero(agreed > 0.9):,} of {data.n_items:,} have a label with more "
            f"than 90% of serious opinion; mean difficulty (entropy) {entropy.mean():.2f} "
            f"of at most {math.log(len(data.scale)):.2f}"
        )
        if self.p_serious is not None:
            doubtful = np.count_nonzero(self.p_serious < SPAMMER_BELOW)
            lines.append(f"labels: {doubtful:,} of {data.n_labels:,} are probably not serious")
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write the fit to a folder of JSON and Arrow files that `annotruth.load` reads."""
        from annotruth.models.storage import save

        save(self, Path(path))
