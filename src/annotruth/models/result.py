"""`Fit`: the results of a fitted model, and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import AnnotruthError, InputError
from annotruth.io.writers import LazyTable
from annotruth.kernels.arrays import Floats
from annotruth.models import base_fit
from annotruth.models.base_fit import (
    SETS,
    AnnotatorResults,
    BaseFit,
    Column,
    FitMethods,
    Readout,
    table_of,
)
from annotruth.models.distribution import Distribution
from annotruth.models.fits import past_fits
from annotruth.models.fits.consensus import annotator_stats_table, label_quality_table
from annotruth.models.fits.notes import VoteCounts, count_votes, support_of
from annotruth.models.fits.tables import (
    all_tables,
    coded_label_table,
    distribution_rows,
    item_rows,
    summary_of,
)
from annotruth.models.pairs.result import RankFit
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.observations import Labels
from annotruth.observations.encode import decode_table
from annotruth.observations.frames import from_arrow
from annotruth.observations.validate import check_choice

if TYPE_CHECKING:
    from annotruth.analyses.advice.changes import Changes
    from annotruth.report.charts.fit_charts import FitCharts

QUESTIONS_MANIFEST = "questions.json"
"""The file that names the saved fits of several questions, in their folder."""

# What completion offers.
_PUBLIC = (
    *(
        "accuracy",
        "annotator_columns",
        "annotator_stats",
        "annotators",
        "behavior",
        "changes_over_time",
    ),
    *("chosen", "converged", "crowd_over_time", "data", "dependence"),
    *("dependent_annotators", "disputed", "distribution"),
    *("distributions", "expectation", "group_differences", "group_summary", "groups", "high"),
    *("history", "item_columns", "items", "keep", "label", "label_quality", "labels"),
    *("log_likelihood", "low", "machines", "model", "n_iter", "n_spammers", "notes", "over_time"),
    *("p_serious", "past_fits", "plot", "readout", "reliability", "report", "save", "score"),
    *("settings", "soft_labels", "spammer", "stop_reason", "summary", "to_dict", "verdict"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FitMethods, BaseFit):
    """The results of a fitted model. Frozen.

    `items`, `annotators` and `labels` return tables in the caller's frame library. What a model
    does not estimate is None, and absent from the tables. The attributes on annotators and
    iterations are those of `annotruth.models.base_fit.BaseFit`.

    Attributes
    ----------
    data
        The labels.
    distribution
        Each item's distribution: what ``readout`` says.
    score
        Each item's score, for models that estimate it directly.
    p_serious
        The probability that each label was serious, in the order of ``data``.
    item_columns
        Further estimates per item, such as a difficulty: additional columns of the table.
    other_distribution
        The other read-out of each item, for models that have both: see `distributions`.
    fitted_at
        When it was fitted, in UTC; None if that is not known.
    earlier_fits
        The table of the fits that this one continues, as `past_fits` returns it; None if there is
        none.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [("a", "ann", 4), ("a", "bob", 4), ("b", "ann", 2), ("b", "bob", 3)]
    >>> fit = at.fit(labels, "gpm")
    >>> fit
    Fit(gpm on 4 labels of 2 items by 2 annotators, 3 ordinal categories: change of Q below 0.0001)
    >>> fit.item_table().column_names
    ['item', 'n_labels', 'label', 'expectation', 'confidence', 'entropy', 'disputed', 'p_2', 'p_3', 'p_4']
    >>> fit.annotator_table().column_names
    ['annotator', 'n_labels', 'reliability', 'low', 'high', 'spammer', 'behavior']
    >>> fit.label_table().column_names
    ['item', 'annotator', 'label', 'p_serious']
    """

    data: Labels
    distribution: Distribution | None = None
    score: Floats | None = None
    p_serious: Floats | None = None
    item_columns: Mapping[str, Column] = field(default_factory=dict)
    other_distribution: Distribution | None = None
    fitted_at: datetime | None = None
    earlier_fits: pa.Table | None = None

    def __dir__(self) -> tuple[str, ...]:
        return _PUBLIC

    def _repr_html_(self) -> str:
        return str(self._bound("notebook")(self))

    @property
    def knows_serious(self) -> bool:
        """Whether the model estimates how likely each label was serious."""
        return self.p_serious is not None

    @cached_property
    def label(self) -> NDArray[np.int32] | None:
        """The code of each item's most likely category."""
        return None if self.distribution is None else self.distribution.mode()

    @cached_property
    def disputed(self) -> NDArray[np.bool_] | None:
        """Whether votes hardly support each item's label; see `annotruth.models.fits.notes.Support`.

        Known truths are never disputed. None for models that give no labels.
        """
        if self.label is None:
            return None
        return support_of(self.data, self.label).disputed & (self.data.known < 0)

    @cached_property
    def vote_counts(self) -> VoteCounts | None:
        """Results beside plain counts of votes; None where too few items have two votes."""
        return count_votes(self)

    @cached_property
    def expectation(self) -> Floats | None:
        """Each item's score: `score`, or on an ordinal scale the mean of its distribution."""
        if self.score is not None or self.distribution is None:
            return self.score
        scale = self.data.scale
        return self.distribution.expectation(scale.values) if scale.is_ordinal else None

    def items(self) -> Any:
        """Return one row per item: label, score, confidence, entropy and distribution."""
        return from_arrow(self.item_table(), self.data.frame)

    def annotators(self) -> Any:
        """Return one row per annotator: reliability with its 95% interval, and behavior."""
        return from_arrow(self.annotator_table(), self.data.frame)

    def labels(self) -> Any:
        """Return one row per label, in the order of the input, with the probability it was serious."""
        return from_arrow(self.label_table(), self.data.frame)

    def distributions(self, readout: Readout | None = None) -> Any:
        """Return one row per item and category of probability above 0: item, label, p.

        Parameters
        ----------
        readout
            "right": p is the probability that the label is the right one. "opinion": p is the share
            of serious opinion. By default as in `items`, which `readout` says.
        """
        return from_arrow(self.distribution_table(readout), self.data.frame)

    def soft_labels(self, readout: Readout | None = None) -> Any:
        """Return one row per item, one column per class, p_<label>: targets for training.

        ``readout`` is as in `distributions`.
        """
        return from_arrow(self.soft_label_table(readout), self.data.frame)

    def label_quality(self) -> Any:
        """Return one row per item with cleanlab's names of columns.

        These are item, consensus_label, consensus_quality_score (the probability of the label),
        annotator_agreement (the share of labels that are the consensus) and num_annotations.
        """
        return from_arrow(label_quality_table(self), self.data.frame)

    def annotator_stats(self) -> Any:
        """Return one row per annotator with cleanlab's names of columns, the lowest quality first.

        These are annotator, annotator_quality (the expected share of right labels),
        num_examples_labeled, agreement_with_consensus and worst_class (the class of which most
        items are expected to be mislabelled).
        """
        return from_arrow(annotator_stats_table(self), self.data.frame)

    def dependent_annotators(self) -> Any:
        """Return one row per pair of annotators whose labels match more often than their items explain.

        The columns are annotator, other, n_items (in common), agreement (the share of them with equal
        labels), expected (the share if both are independent), correlation (the share of their labels
        that depend on one another, (agreement - expected) / (1 - expected)), and p_value, adjusted
        for the number of pairs and below 0.05. In up to 5% of crowds a pair is listed by chance.
        """
        table = self.further_table("dependent_annotators", "dependent_annotators")
        return from_arrow(table, self.data.frame)

    def over_time(self) -> Any:
        """Return the reliability over time: one row per window of an annotator's labels.

        The columns are annotator, from, to (times or orders), n_labels, reliability, low and high.
        """
        return from_arrow(self.further_table("over_time", "over_time"), self.data.frame)

    def changes_over_time(self) -> Any:
        """Return one row per change: annotator, at, n_before, n_after, probability, before, after.

        ``at`` is the time or order of the first label after it, ``probability`` that the annotator
        changed; ``before`` and ``after`` are reliabilities.
        """
        return from_arrow(self.further_table("over_time", "changes_over_time"), self.data.frame)

    def crowd_over_time(self) -> Any:
        """Return the crowd's reliability in bins of labels, by position and by time.

        The columns are by, from, to, n_labels, reliability, low and high.
        """
        return from_arrow(self.further_table("over_time", "crowd_over_time"), self.data.frame)

    def groups(self) -> Any:
        """Return one row per item and group of annotators that labelled it.

        The columns are item, group, n_labels, label, on ordinal scales expectation, low and high (the
        95% interval of the expectation, on nominal scales of the label's share), and the shares of
        opinion in the group, p_<label>. For fits with ``by``.
        """
        return from_arrow(self.further_table("groups", "groups"), self.data.frame)

    def group_differences(self) -> Any:
        """Return one row per item that two groups or more labelled, and whether they differ.

        The columns are item, p_value, q_value, differs (q_value at most 0.05), and the two groups
        that differ most: group, other, and the Hellinger distance of their opinions.
        """
        return from_arrow(self.further_table("groups", "group_differences"), self.data.frame)

    def group_summary(self) -> Any:
        """Return one row per group: its annotators, and whether it differs from the others.

        The columns are group, n_annotators, n_labels, reliability (the median), n_spammers, on ordinal
        scales level (how far labels are above those of the others), p_value, q_value and differs.
        """
        return from_arrow(self.further_table("groups", "group_summary"), self.data.frame)

    def past_fits(self) -> Any:
        """Return one row per fit and annotator: all fits that were updated up to this one.

        The columns are time (UTC), fit_labels, fit_items, fit_annotators (counts of the fit),
        annotator, n_labels, reliability, low, high, verdict, since (how many labels the annotator had
        when fits began to give that verdict) and standing (the verdict that changes on clear evidence only),
        accuracy, accuracy_low and accuracy_high.
        """
        return from_arrow(self.past_fit_table(), self.data.frame)

    def past_fit_table(self) -> pa.Table:
        """Return the table of past fits in Arrow."""
        standing = self._bound("standing_table")(self)
        rows = past_fits.rows_of(self, self.fitted_at or base_fit.now(), standing)
        return past_fits.append_rows(self.earlier_fits, rows)

    def tables(self) -> dict[str, LazyTable]:
        """Return all tables by name, to be written to files; each is made when it is read.

        Ids in the labels table are dictionary-encoded. Where the labels are on disk, long tables
        are made in partitions. There is a table of distributions if the items table has no columns
        for the categories.
        """
        return all_tables(self)

    def item_table(self) -> pa.Table:
        """Return the items table in Arrow."""
        return item_rows(self, slice(0, self.data.n_items))

    def share_names(self) -> list[str]:
        """Return the names of the items' columns of categories, such as p_cat for cat.

        A name that a model-specific column has, such as robust-gpm's p_leads, gets an underscore.
        """
        names = (f"p_{name}" for name in self.data.scale.names)
        return [f"{name}_" if name in self.item_columns else name for name in names]

    def annotator_table(self) -> pa.Table:
        """Return the annotators table in Arrow."""
        ids = {"annotator": self.data.annotators, "n_labels": self.data.labels_per_annotator}
        return table_of({**ids, **self.annotator_values()})

    def label_table(self) -> pa.Table:
        """Return the labels table in Arrow, in the order of the input."""
        return decode_table(coded_label_table(self))

    def soft_label_table(self, readout: Readout | None = None) -> pa.Table:
        """Return the table of soft labels in Arrow, with a column for every class."""
        shares = self.distribution_of(readout).dense(len(self.data.scale))
        names = [f"p_{name}" for name in self.data.scale.names]
        return pa.table([self.data.items, *shares.T], names=["item", *names])

    def distribution_table(self, readout: Readout | None = None) -> pa.Table:
        """Return the table of distributions in Arrow, without zeros."""
        return distribution_rows(self, slice(0, self.data.n_items), readout)

    def distribution_of(self, readout: Readout | None = None) -> Distribution:
        """Return the distribution of a read-out; raise if the model has none."""
        if self.distribution is None:
            raise AnnotruthError(
                f"{self.model} estimates scores, not distributions: use items() instead"
            )
        if readout is None:
            return self.distribution
        check_choice("read-out", readout, get_args(Readout))
        if readout == self.readout:
            return self.distribution
        if self.other_distribution is None:
            raise InputError(
                f"{self.model} has no read-out {readout!r}: choose {self.readout!r}, or the model "
                f"{DEFAULT_MODEL}, which has both"
            )
        return self.other_distribution

    def right_distribution(self) -> Distribution:
        """Return the probabilities of the right label; of models without them, shares of opinion."""
        other = self.other_distribution
        return self.distribution_of(
            "opinion" if other is None and self.readout == "opinion" else "right"
        )

    def opinion_distribution(self) -> Distribution:
        """Return the shares of opinion; of models without them, probabilities of the right label."""
        other = self.other_distribution
        return self.distribution_of(
            "right" if other is None and self.readout == "right" else "opinion"
        )

    def summary(self) -> str:
        """Return a few lines: the data, convergence, annotators, items and labels."""
        return summary_of(self)

    @property
    def plot(self) -> FitCharts:
        """Charts of this fit, such as ``fit.plot.reliability()``, which notebooks display."""
        charts: FitCharts = self._bound("plot")(self)
        return charts

    def report(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        truth: Any = None,
        command: str | None = None,
        arguments: str | None = None,
        embed: bool = False,
        changes: Changes | None = None,
    ) -> None:
        """Write a report with tables and charts, one HTML file.

        Parameters
        ----------
        path
            The file to write.
        source
            The name of the labels in the report's heading.
        truth
            The truths of some or all items, as `annotruth.evaluate` takes them: adds a section on
            accuracy, calibration and the worst items.
        command
            The command line that makes the report, for its heading.
        arguments
            What to type after ``annotruth next`` for advice on this fit, for the first screen.
        embed
            Whether to put images, audio and video of the items into the file, where their content
            is paths, relative to the report. Otherwise the report refers to them.
        changes
            What is different from the fit before, as `annotruth.changes` returns it: adds the items
            that changed to the section "Since the last fit".
        """
        self._bound("report")(
            self,
            path,
            source=source,
            truth=truth,
            command=command,
            arguments=arguments,
            embed=embed,
            changes=changes,
        )


def is_fit(data: Any) -> bool:
    """Return whether data are a fit or the folder of a saved one; other folders may hold labels."""
    if isinstance(data, str | Path):
        names = ("fit.json", QUESTIONS_MANIFEST)
        with suppress(OSError):  # no file can have that name
            return any((Path(data) / name).is_file() for name in names)
        return False
    is_of_sets = isinstance(data, AnnotatorResults) and data.model == SETS
    return is_of_sets or isinstance(data, Fit | RankFit)
