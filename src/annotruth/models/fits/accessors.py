"""The tables of a fit, as callers ask for them, and what differs between kinds of fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from annotruth.bindings import bound_for
from annotruth.errors import AnnotruthError, InputError
from annotruth.models import base_fit
from annotruth.models.base_fit import Readout
from annotruth.models.fits import past_fits
from annotruth.models.fits.further import FurtherResults, further_kinds
from annotruth.models.registry import DEFAULT_MODEL
from annotruth.observations.encode import decode_table
from annotruth.observations.frames import from_arrow
from annotruth.observations.validate import check_choice

if TYPE_CHECKING:
    from annotruth.analyses.advice.changes import Changes
    from annotruth.io.writers import LazyTable
    from annotruth.models.distribution import Distribution
    from annotruth.models.fits.notes import Note
    from annotruth.models.result import Fit
    from annotruth.report.explain import Explanation


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What differs between fits of one kind of data and those of others."""

    unit: str  # what annotators give, in words
    too_few: tuple[str, str]  # the verdict and behavior of annotators of whom too little is known
    no_spammers: tuple[str, ...] = ()  # behaviors of no spammers, whatever their reliability
    tables: Mapping[str, Callable[[Fit[Any]], pa.Table]]  # by name, beside those of further results
    written: Callable[[Fit[Any]], dict[str, LazyTable | pa.Table]]  # the tables written to files
    summary: Callable[[Fit[Any]], list[str]]  # its lines, before those of further results
    notes: Callable[[Fit[Any]], list[Note]]  # what limits the results
    counts: Callable[[Fit[Any]], dict[str, Any]]  # entries of fit.json on the size of the data
    entries: Callable[[Fit[Any]], dict[str, Any]]  # the others that only this kind has
    describe: Callable[[Any], str] = methodcaller("describe")  # the data in one line
    saved_as: str | None = None  # the entry kind of fit.json, which fits of labels do not have


class FitTables:
    """Part of `annotruth.models.result.Fit`: its tables, and what rooms above make of it."""

    model: str
    data: Any
    frames: Any
    readout: Readout
    distribution: Distribution | None
    other_distribution: Distribution | None
    further: Mapping[str, FurtherResults]
    earlier_fits: pa.Table | None
    fitted_at: Any
    _kind: Any

    @property
    def kind(self) -> str:
        """What the fit is of: "labels", "comparisons", "sets", or "distributed" labels."""
        return str(self.data.kind) if self.frames is None else "distributed"

    def items(self) -> Any:
        """Return one row per item.

        Of labels: label, score, confidence, entropy and distribution. Of comparisons, best first: score
        and rank with 95% intervals, and p_best. Of sets of labels: ``labels``, the most likely set, with
        ``confidence``, the probability that it is exactly this set, and p_<label>.
        """
        return self._frame("items")

    def annotators(self) -> Any:
        """Return one row per annotator: reliability with its 95% interval, and behavior."""
        return self._frame("annotators")

    def labels(self) -> Any:
        """Return one row per label, in the order of the input, with the probability it was serious.

        Of sets, one row per label to choose from: prevalence, n_given, and the typical annotator's rates.
        """
        return self._frame("labels")

    def comparisons(self) -> Any:
        """Return one row per comparison, in the order of the input, with its p_serious."""
        return self._frame("comparisons")

    def answers(self) -> Any:
        """Return one row per set of labels, in the order of the input: item, annotator, labels, p_serious."""
        return self._frame("answers")

    def item(self, item: Any) -> Explanation:
        """Return what the fit says of one item, and why: label, distribution, who said what.

        Parameters
        ----------
        item
            Its id; one of another item is refused, and a similar id named.
        """
        found: Explanation = bound_for(self.kind, "item")(self, item)
        return found

    def annotator(self, annotator: Any) -> Explanation:
        """Return what the fit says of one annotator, and why: verdict, reason, what they gave.

        Parameters
        ----------
        annotator
            Their id; one of another annotator is refused, and a similar id named.
        """
        found: Explanation = bound_for(self.kind, "annotator")(self, annotator)
        return found

    def keep(self) -> Any:
        """Return one row per annotator: annotator, verdict, reason; of labels also ask.

        The verdict is "keep", "drop", "unsure", or that there are too few labels, answers or votes;
        ask says whether to give the annotator more items. The verdict is that of the labels; a fit of labels
        that continues others has the column standing too, which changes on clear evidence only.
        """
        return from_arrow(self.verdict_table(), self.data.frame)

    def distributions(self, readout: Readout | None = None) -> Any:
        """Return one row per item and category of probability above 0: item, label, p.

        Parameters
        ----------
        readout
            "right": p is the probability that the label is the right one. "opinion": p is the share
            of serious opinion. By default as in `items`, which `readout` says.
        """
        if self.frames is not None and readout is None:
            return self.frames["distributions"]
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
        return self._frame("label_quality")

    def annotator_stats(self) -> Any:
        """Return one row per annotator with cleanlab's names of columns, the lowest quality first.

        These are annotator, annotator_quality (the expected share of right labels),
        num_examples_labeled, agreement_with_consensus and worst_class (the class of which most
        items are expected to be mislabelled).
        """
        return self._frame("annotator_stats")

    def preferences(self) -> Any:
        """Return one row per decided comparison: prompt, chosen, rejected and weight, for training.

        The weight is the probability that the vote was serious. Without contexts there is no prompt.
        """
        return self._frame("preferences")

    def machines(self) -> Any:
        """Return one row per machine among the annotators: how it compares with people.

        ``agreement`` is how often it agrees with a person, ``people_agreement`` how often two people
        agree; ``accuracy`` is how often its label is the people's consensus; ``weight`` what its labels
        count. ``winning_rate``, ``advantage``, ``p_value`` and ``may_replace`` are of the alternative
        annotator test.
        """
        return self._frame("machines")

    def dependence(self) -> Any:
        """Return one row per pair of machines: whether they err together.

        ``agreement`` is the share of ``n_items`` common items with the same label, ``expected`` that of
        independent machines; ``correlation`` is of labels given the items' true state, with its 95%
        interval; ``p_value`` is adjusted for the number of pairs; ``weight`` is what the labels of
        ``annotator`` count.
        """
        return self._frame("dependence")

    def dependent_annotators(self) -> Any:
        """Return one row per pair of annotators whose labels match more often than their items explain.

        The columns are annotator, other, n_items (in common), agreement (the share of them with equal
        labels), expected (the share if both are independent), correlation (the share of their labels
        that depend on one another, (agreement - expected) / (1 - expected)), and p_value, adjusted
        for the number of pairs and below 0.05. In up to 5% of crowds a pair is listed by chance.
        """
        return self._frame("dependent_annotators")

    def over_time(self) -> Any:
        """Return the reliability over time: one row per window of an annotator's labels.

        The columns are annotator, from, to (times or orders), n_labels, reliability, low and high.
        """
        return self._frame("over_time")

    def changes_over_time(self) -> Any:
        """Return one row per change: annotator, at, n_before, n_after, probability, before, after.

        ``at`` is the time or order of the first label after it, ``probability`` that the annotator
        changed; ``before`` and ``after`` are reliabilities.
        """
        return self._frame("changes_over_time")

    def crowd_over_time(self) -> Any:
        """Return the crowd's reliability in bins of labels, by position and by time.

        The columns are by, from, to, n_labels, reliability, low and high.
        """
        return self._frame("crowd_over_time")

    def groups(self) -> Any:
        """Return one row per item and group of annotators that labelled it, for fits with ``by``.

        The columns are item, group, n_labels, label, on ordinal scales expectation, low and high (the
        95% interval of the expectation, on nominal scales of the label's share), and the shares of
        opinion in the group, p_<label>.
        """
        return self._frame("groups")

    def group_differences(self) -> Any:
        """Return one row per item that two groups or more labelled, and whether they differ.

        The columns are item, p_value, q_value, differs (q_value at most 0.05), and the two groups
        that differ most: group, other, and the Hellinger distance of their opinions.
        """
        return self._frame("group_differences")

    def group_summary(self) -> Any:
        """Return one row per group: its annotators, and whether it differs from the others.

        The columns are group, n_annotators, n_labels, reliability (the median), n_spammers, on ordinal
        scales level (how far labels are above those of the others), p_value, q_value and differs.
        """
        return self._frame("group_summary")

    def boards(self) -> Any:
        """Return one row per board and item, by the column that `annotruth.rank` was given as ``by``.

        ``score`` has its 95% interval; ``difference`` is that from the score over all boards, and
        ``compared`` whether the item was compared on the board at all.
        """
        return self._frame("boards")

    def past_fits(self) -> Any:
        """Return one row per fit and annotator: all fits that were updated up to this one.

        The columns are time (UTC), fit_labels, fit_items, fit_annotators (counts of the fit),
        annotator, n_labels, reliability, low, high, verdict, since (how many labels the annotator had
        when fits began to give that verdict) and standing (the verdict that changes on clear evidence only),
        accuracy, accuracy_low and accuracy_high.
        """
        return from_arrow(self.past_fit_table(), self.data.frame)

    def tables(self) -> dict[str, LazyTable | pa.Table]:
        """Return all tables by name, to be written to files; each is made when it is read.

        Ids in the labels table are dictionary-encoded. Where the data are on disk, long tables
        are made in partitions. There is a table of distributions if the items table has no columns
        for the categories.
        """
        made: dict[str, LazyTable | pa.Table] = {**self._kind.written(self)}
        for results in self.further.values():
            made |= results.tables
        return made

    def table(self, name: str) -> pa.Table:
        """Return a table in Arrow; raise if this fit has none of that name."""
        if name in self._kind.tables:
            return decode_table(self._kind.tables[name](self))
        for results in self.further.values():
            if name in results.tables:
                return results.tables[name]
        for kind, missing in further_kinds().items():
            if name in missing.tables:
                return self.further_table(kind, name)
        raise InputError(f"a fit of {self.kind} has no table {name.replace('_', ' ')}")

    def _frame(self, name: str) -> Any:
        """Return a table in the caller's frame library, or that of a distributed engine."""
        if self.frames is not None and name in self.frames:
            return self.frames[name]
        return from_arrow(self.table(name), self.data.frame)

    def item_table(self) -> pa.Table:
        """Return the items table in Arrow."""
        return self.table("items")

    def annotator_table(self) -> pa.Table:
        """Return the annotators table in Arrow."""
        return self.table("annotators")

    def label_table(self) -> pa.Table:
        """Return the labels table in Arrow, in the order of the input."""
        return self.table("labels")

    def comparison_table(self) -> pa.Table:
        """Return the table of comparisons in Arrow, in the order of the input."""
        return self.table("comparisons")

    def soft_label_table(self, readout: Readout | None = None) -> pa.Table:
        """Return the table of soft labels in Arrow, with a column for every class."""
        table: pa.Table = self._kind.tables["soft_labels"](self, readout)
        return table

    def distribution_table(self, readout: Readout | None = None) -> pa.Table:
        """Return the table of distributions in Arrow, without zeros."""
        table: pa.Table = self._kind.tables["distributions"](self, readout)
        return table

    def distribution_of(self, readout: Readout | None = None) -> Distribution:
        """Return the distribution of a read-out; raise if the model has none."""
        if self.distribution is None:
            raise AnnotruthError(
                f"{self.model} estimates scores, not distributions: use the table of items instead"
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
        only = self.other_distribution is None
        return self.distribution_of(self.readout if only else "right")

    def opinion_distribution(self) -> Distribution:
        """Return the shares of opinion; of models without them, probabilities of the right label."""
        only = self.other_distribution is None
        return self.distribution_of(self.readout if only else "opinion")

    def verdict_table(self) -> pa.Table:
        """Return the table of verdicts on annotators in Arrow."""
        table: pa.Table = bound_for(self.kind, "verdict_table")(self)
        return table

    def past_fit_table(self) -> pa.Table:
        """Return the table of past fits in Arrow."""
        fit: Any = self
        time = self.fitted_at or base_fit.now()
        rows = past_fits.rows_of(fit, time, bound_for(self.kind, "standing_table")(fit))
        return past_fits.append_rows(self.earlier_fits, rows)

    def further_table(self, kind: str, name: str) -> pa.Table:
        """Return a table of further results in Arrow; raise if the fit has no results of the kind."""
        if kind not in self.further:
            raise InputError(
                f"this fit has no results on {kind.replace('_', ' ')}: {further_kinds()[kind].remedy}"
            )
        return self.further[kind].tables[name]

    def further_facts(self) -> dict[str, Any]:
        """Return the figures of further results by kind, as JSON types."""
        return {kind: dict(results.facts) for kind, results in self.further.items()}

    @property
    def plot(self) -> Any:
        """Charts of this fit, such as ``fit.plot.reliability()``, which notebooks display."""
        return bound_for(self.kind, "plot")(self)

    def save(self, path: str | Path) -> None:
        """Write the fit to a folder of JSON and Arrow files that `annotruth.load` reads."""
        bound_for(self.kind, "save")(self, path)

    def write(self, path: str | Path, **options: Any) -> None:
        """Write a workbook (.xlsx) for people: whom to pay, what to relabel, what is disputed.

        Parameters
        ----------
        path
            The file to write; needs the extra ``excel``.
        **options
            ``price``: that of one label, for the amounts. ``source``: the name of the labels' file.
            ``advice``: what `annotruth.next_labels` returned, in place of that without a budget.
        """
        bound_for(self.kind, "write")(self, path, **options)

    def report(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        title: str | None = None,
        truth: Any = None,
        command: str | None = None,
        arguments: str | None = None,
        changes: Changes | None = None,
    ) -> None:
        """Write a report with tables and charts, one HTML or PDF file.

        Parameters
        ----------
        path
            The file to write; its name ends in .html or .pdf. A PDF needs Chromium, Chrome or Edge,
            or WeasyPrint.
        source
            The name of the data in the report's heading.
        title
            The heading; the name of the data is then under it.
        truth
            The truths of some or all items, as `annotruth.evaluate` takes them: adds a section on how
            good the results are.
        command
            The command line that makes the report, for its end.
        arguments
            What to type after ``annotruth next`` for advice on this fit, for the first screen.
        changes
            Of labels, what is different from the fit before, as `annotruth.changes` returns it: adds the
            items that changed to the section "Since the last fit".
        """
        options = {"arguments": arguments, "changes": changes}
        given = {name: value for name, value in options.items() if value is not None}
        write = bound_for(self.kind, "report")
        write(self, path, source=source, title=title, truth=truth, command=command, **given)
