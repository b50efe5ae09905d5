"""`Fit`: what a model found, frozen, and the tables a person reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError
from annotruth.io.lazy_table import LazyTable
from annotruth.kernels.arrays import Floats, slices
from annotruth.labels import Labels
from annotruth.labels.buffers import as_arrow
from annotruth.labels.encode import decoded
from annotruth.labels.frames import from_arrow
from annotruth.labels.on_disk.table import MappedLabels
from annotruth.models.base_fit import SPAMMER_BELOW, BaseFit, Column, table_of
from annotruth.models.distribution import Distribution

if TYPE_CHECKING:
    from annotruth.report.plots import Plots

MOST_COLUMNS = 100
"""With more categories than this, items have no column for each; see `Fit.distributions`."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(BaseFit):
    """A fitted model.

    What a model cannot give is None, and absent from the tables. What it knows of annotators, and
    how the fit went, is as in `annotruth.models.base_fit.BaseFit`.

    Attributes
    ----------
    data
        The labels.
    distribution
        Each item's distribution of serious opinion.
    score
        Each item's score, for models that have one without a distribution.
    p_serious
        How likely each label was serious, in the order of ``data``.
    item_columns
        What else the model knows of items, such as a difficulty: more columns of the table.
    """

    data: Labels
    distribution: Distribution | None = None
    score: Floats | None = None
    p_serious: Floats | None = None
    item_columns: Mapping[str, Column] = field(default_factory=dict)

    @property
    def knows_serious(self) -> bool:
        """Whether the model tells how likely each label was serious."""
        return self.p_serious is not None

    @cached_property
    def label(self) -> NDArray[np.int32] | None:
        """The code of each item's leading category."""
        return None if self.distribution is None else self.distribution.mode()

    @cached_property
    def expectation(self) -> Floats | None:
        """Each item's score: the model's own, or the mean of its distribution if ordinal."""
        if self.score is not None or self.distribution is None:
            return self.score
        scale = self.data.scale
        return self.distribution.expectation(scale.values) if scale.is_ordinal else None

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

    def soft_labels(self) -> Any:
        """Return one row an item and one column a class, p_<label>: targets to train on."""
        return from_arrow(self.soft_label_table(), self.data.frame)

    def keep(self) -> Any:
        """Return one row per annotator: annotator, verdict, ask, reason.

        The verdict is "keep", "drop", "unsure" or "too few labels"; ask says whether to give
        the annotator more items.
        """
        return from_arrow(self.verdict_table(), self.data.frame)

    def tables(self) -> dict[str, LazyTable]:
        """Tell how to make all tables, by name; distributions where items have no room for them.

        These are for files: the ids of labels, which repeat, are dictionaries. Where the labels
        are on disk, the long tables are made piece by piece.
        """
        data, n_items, room = self.data, self.data.n_items, not self.data.on_disk
        label_rows = self._label_rows(data) if isinstance(data, MappedLabels) else None
        tables = {
            "items": LazyTable(n_items, self._item_rows, room),
            "annotators": LazyTable(
                data.n_annotators, lambda _: self.annotator_table(), at_once=True
            ),
            "labels": LazyTable(
                data.n_labels, label_rows or (lambda _: self._coded_label_table()), room
            ),
        }
        if self.distribution is not None and data.n_categories > MOST_COLUMNS:
            tables["distributions"] = LazyTable(n_items, self._distribution_rows, room)
        return tables

    def item_table(self) -> pa.Table:
        """Make the items table in Arrow."""
        return self._item_rows(slice(0, self.data.n_items))

    def _item_rows(self, at: slice) -> pa.Table:
        scale = self.data.scale
        theta = None if self.distribution is None else self.distribution.part(at)
        columns: dict[str, Any] = {
            "item": self.data.items[at],
            "n_labels": self.data.labels_per_item[at],
        }
        if self.label is not None:
            columns["label"] = scale.categories.take(as_arrow(self.label[at]))
        if self.expectation is not None:
            columns["expectation"] = self.expectation[at]
        if theta is not None:
            columns["confidence"] = theta.confidence()
            columns["entropy"] = theta.entropy()
        columns |= {name: column[at] for name, column in self.item_columns.items()}
        if theta is not None and len(scale) <= MOST_COLUMNS:
            shares = theta.dense(len(scale))
            columns |= dict(zip(self.share_names(), shares.T, strict=True))
        return table_of(columns)

    def share_names(self) -> list[str]:
        """Name the items' columns of categories, p_cat for cat.

        A category may be called what a column of the model's is: robust-gpm has p_leads.
        """
        names = (f"p_{name}" for name in self.data.scale.names)
        return [f"{name}_" if name in self.item_columns else name for name in names]

    def annotator_table(self) -> pa.Table:
        """Make the annotators table in Arrow."""
        ids = {"annotator": self.data.annotators, "n_labels": self.data.labels_per_annotator}
        return table_of({**ids, **self.annotator_values()})

    def label_table(self) -> pa.Table:
        """Make the labels table in Arrow, in the order the labels came."""
        return decoded(self._coded_label_table())

    def _coded_label_table(self) -> pa.Table:
        table = self.data.to_codes()
        if self.p_serious is None:
            return table
        in_order = self.data.as_they_came(self.p_serious)
        return table.append_column("p_serious", as_arrow(in_order))

    def _label_rows(self, data: MappedLabels) -> Callable[[slice], pa.Table]:
        """Make the labels table as `_coded_label_table` does, some rows at a time."""
        in_order = None if self.p_serious is None else data.as_they_came(self.p_serious)

        def rows(at: slice) -> pa.Table:
            table = data.to_codes(at)
            if in_order is None:
                return table
            return table.append_column("p_serious", as_arrow(in_order[at]))

        return rows

    def soft_label_table(self) -> pa.Table:
        """Make the table of soft labels in Arrow, with every class, however many."""
        shares = self._distribution().dense(len(self.data.scale))
        names = [f"p_{name}" for name in self.data.scale.names]
        return pa.table([self.data.items, *shares.T], names=["item", *names])

    def verdict_table(self) -> pa.Table:
        """Return the table of verdicts in Arrow."""
        from annotruth.advice.advice import keep_table

        return keep_table(self)

    def distribution_table(self) -> pa.Table:
        """Make the table of distributions in Arrow, without the zeros."""
        return self._distribution_rows(slice(0, self.data.n_items))

    def _distribution_rows(self, at: slice) -> pa.Table:
        theta = self._distribution().part(at)
        some = np.flatnonzero(theta.probability > 0)
        return table_of(
            {
                "item": self.data.items[at].take(as_arrow(theta.item()[some])),
                "label": self.data.scale.categories.take(as_arrow(theta.category[some])),
                "p": theta.probability[some],
            }
        )

    def _distribution(self) -> Distribution:
        if self.distribution is None:
            raise AnnotruthError(f"{self.model} gives scores, not distributions: see items()")
        return self.distribution

    def summary(self) -> str:
        """Tell the fit in a few lines."""
        data = self.data
        lines = [f"{self.model} on {data.describe()}"]
        if self.chosen is not None:
            lines.append(f"chosen: {self.chosen['why']}")
        if data.read_as:
            lines.append(f"read as: {data.read_as}")
        if data.scale.edges is not None:
            low, high = data.scale.bounds
            lines.append(
                f"labels put into {len(data.scale)} bins from {low:g} to {high:g}, each counted "
                "by its centre"
            )
        lines += self.summary_of_annotators()
        if self.distribution is not None:
            sure = np.count_nonzero(self.distribution.confidence() > 0.9)
            lines.append(
                f"items: {sure:,} of {data.n_items:,} have a label of more than 90%; mean "
                f"difficulty (entropy) {self.distribution.entropy().mean():.2f} "
                f"of at most {math.log(len(data.scale)):.2f}"
            )
        if self.expectation is not None:
            low, mean, high = np.quantile(self.expectation, [0.0, 0.5, 1.0])
            lines.append(f"scores: {low:.2f} to {high:.2f}, median {mean:.2f}")
        if self.p_serious is not None:
            doubtful = sum(
                np.count_nonzero(self.p_serious[at] < SPAMMER_BELOW) for at in slices(data.n_labels)
            )
            lines.append(f"labels: {doubtful:,} of {data.n_labels:,} are probably not serious")
        return "\n".join(lines)

    @property
    def plot(self) -> Plots:
        """Charts of this fit, such as ``fit.plot.reliability()``; a notebook shows them."""
        from annotruth.report.plots import Plots

        return Plots(self)

    def report(self, path: str | Path, *, source: str | None = None) -> None:
        """Write one HTML file with tables and charts; ``source`` names the labels in it."""
        from annotruth.report.page import write_report

        write_report(self, path, source=source)

    def save(self, path: str | Path) -> None:
        """Write the fit to a folder of JSON and Arrow files that `annotruth.load` reads."""
        from annotruth.models.storage import save

        save(self, Path(path))
