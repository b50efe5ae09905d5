"""`SetFit`: the results of the model of sets of labels, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import counted
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import (
    FORMAT,
    SETS,
    SPAMMER_BELOW,
    AnnotatorResults,
    Column,
    FitMethods,
    table_of,
)
from annotruth.models.em import History
from annotruth.models.fits.further import FurtherResults
from annotruth.models.fits.notes import ONE_ANNOTATOR_LINE, ONE_LABEL_LINE
from annotruth.observations import Labels
from annotruth.observations.frames import from_arrow
from annotruth.observations.sets import Members, describe_sets, members
from annotruth.sets.annotators import TOO_FEW_ANSWERS

if TYPE_CHECKING:
    from annotruth.models.result import Fit

SEPARATOR = "|"
_SEPARATORS = (SEPARATOR, ";", ",", "/", "\t", "\x1f")
SURE = 0.9
"""Items whose set is more likely than this have a clear set."""

# What completion offers.
_PUBLIC = (
    *("annotators", "answers", "behavior", "chosen", "confidence", "converged", "data", "high"),
    *("history", "items", "keep", "labels", "log_likelihood", "low", "model", "n_iter"),
    *("n_spammers", "p_serious", "probability", "reliability", "report", "save", "separator"),
    *("sets", "settings", "soft_labels", "spammer", "stop_reason", "summary", "to_dict"),
)


@dataclass(frozen=True, eq=False, repr=False)
class SetFit(FitMethods, AnnotatorResults):
    """The results of the model of sets of labels. Frozen.

    `items`, `annotators`, `answers` and `labels` return tables in the caller's frame library.

    Attributes
    ----------
    model, settings
        The model's name and the options it was fitted with.
    data
        The answers: labels whose categories are sets.
    history
        The objective after every iteration, and why the iterations ended.
    probability
        The probability that each item has each label, items x labels.
    sets, confidence
        The most likely set of each item, items x labels, and the probability that it is exactly this.
    p_serious
        The probability that each answer was serious, in the order of ``data``.
    reliability, low, high
        Each annotator's reliability with its 95% interval: the informedness (sensitivity +
        specificity - 1) of their answers relative to that of a typical serious annotator.
    behavior
        What each annotator does: "serious", "random", "always the same set", "always empty",
        "always everything", or `TOO_FEW_ANSWERS`.
    annotator_columns
        Sensitivity and specificity over all labels, with 95% intervals.
    parameters
        Arrays by name, such as ``sensitivity`` and ``specificity`` (annotators x labels).
    chosen
        How many types of items there are, and why.
    separator
        The text between the labels of a set in tables.
    fitted_at
        When it was fitted, in UTC; None if that is not known.

    Examples
    --------
    >>> import annotruth as at
    >>> answers = [
    ...     ("a", "ann", {"cat", "dog"}), ("a", "bob", {"cat", "dog"}), ("a", "eve", {"dog"}),
    ...     ("b", "ann", {"cat"}), ("b", "bob", {"cat"}), ("b", "eve", set()),
    ... ]
    >>> fit = at.fit(answers)
    >>> fit.items()["labels"].tolist()
    ['cat|dog', 'cat']
    """

    unit: ClassVar[str] = "answer"
    too_few: ClassVar[tuple[str, str]] = ("too few answers", TOO_FEW_ANSWERS)

    model: str
    settings: Mapping[str, Any]
    data: Labels
    history: History
    probability: Floats
    sets: Members
    confidence: Floats
    p_serious: Floats
    reliability: Floats
    low: Floats
    high: Floats
    behavior: Sequence[str]
    annotator_columns: Mapping[str, Column]
    parameters: Mapping[str, NDArray[Any]]
    chosen: str = ""
    separator: str = SEPARATOR
    fitted_at: datetime | None = None
    further: Mapping[str, FurtherResults] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"SetFit({self.model} on {self.describe()}: {self.stop_reason})"

    def __dir__(self) -> tuple[str, ...]:
        return _PUBLIC

    def describe(self) -> str:
        """Return one line on how many answers, items, annotators and labels there are."""
        data = self.data
        return describe_sets(data.n_labels, data.n_items, data.n_annotators, self.n_labels)

    @property
    def label_names(self) -> list[str]:
        """The labels, in order."""
        assert self.data.scale.set_labels is not None
        names: list[str] = self.data.scale.set_labels.to_pylist()
        return names

    @property
    def n_labels(self) -> int:
        """The number of labels to choose from."""
        return len(self.label_names)

    @property
    def spammer(self) -> NDArray[np.bool_]:
        """Whether each annotator is a spammer: reliability below one half.

        Annotators with too few answers to tell are not.
        """
        few = np.array(self.behavior) == TOO_FEW_ANSWERS
        spammer: NDArray[np.bool_] = (self.reliability < SPAMMER_BELOW) & ~few
        return spammer

    @cached_property
    def given(self) -> Members:
        """Which labels each answer has, in the order of ``data``: answers x labels."""
        return members(self.data.scale)[self.data.category_of_label()]

    def items(self) -> Any:
        """Return one row per item: item, n_answers, labels, confidence and p_<label>.

        ``labels`` is the most likely set, with the separator between labels, and ``confidence`` the
        probability that it is exactly this set. ``p_<label>`` is the probability of the label.
        """
        return from_arrow(self.item_table(), self.data.frame)

    def annotators(self) -> Any:
        """Return one row per annotator: reliability, sensitivity, specificity and behavior."""
        return from_arrow(self.annotator_table(), self.data.frame)

    def answers(self) -> Any:
        """Return one row per answer, in the order of the input: item, annotator, labels, p_serious."""
        return from_arrow(self.answer_table(), self.data.frame)

    def labels(self) -> Any:
        """Return one row per label: prevalence, n_given, and the typical annotator's rates."""
        return from_arrow(self.label_table(), self.data.frame)

    def soft_labels(self) -> Any:
        """Return one row per item with the probability of each label, as targets for training."""
        return from_arrow(self.soft_label_table(), self.data.frame)

    def item_table(self) -> pa.Table:
        """Return the table of items in Arrow."""
        columns: dict[str, Any] = {
            "item": self.data.items,
            "n_answers": self.data.labels_per_item,
            "labels": self.joined(self.sets),
            "confidence": self.confidence,
        }
        return table_of({**columns, **self._probability_columns()})

    def annotator_table(self) -> pa.Table:
        """Return the table of annotators in Arrow."""
        columns = {
            "annotator": self.data.annotators,
            "n_answers": self.data.labels_per_annotator,
            **self.annotator_values(),
        }
        return table_of(columns)

    def answer_table(self) -> pa.Table:
        """Return the table of answers in Arrow, in the order of the input."""
        data = self.data
        rows = data.to_arrow()
        given = self.joined(data.in_row_order(self.given))
        columns = {"item": rows["item"], "annotator": rows["annotator"]}
        return pa.table(
            {**columns, "labels": given, "p_serious": data.in_row_order(self.p_serious)}
        )

    def label_table(self) -> pa.Table:
        """Return the table of labels in Arrow."""
        shape = self.n_labels
        return table_of(
            {
                "label": self.label_names,
                "prevalence": self.probability.mean(axis=0),
                "n_items": self.sets.sum(axis=0),
                "n_given": self.given.sum(axis=0),
                "sensitivity": self.parameter("crowd_sensitivity", shape),
                "specificity": self.parameter("crowd_specificity", shape),
            }
        )

    def soft_label_table(self) -> pa.Table:
        """Return the table of soft labels in Arrow."""
        return table_of({"item": self.data.items, **self._probability_columns()})

    def tables(self) -> dict[str, pa.Table]:
        """Return all tables by name, to be written to files."""
        return {
            "items": self.item_table(),
            "annotators": self.annotator_table(),
            "answers": self.answer_table(),
            "labels": self.label_table(),
        }

    def joined(self, sets: Members) -> pa.Array:
        """Return sets as text, with the separator between labels."""
        names = self.label_names
        return pa.array(
            [self.separator.join(names[n] for n in np.flatnonzero(row)) for row in sets],
            pa.string(),
        )

    def summary(self) -> str:
        """Return a few lines: the data, convergence, items, labels and annotators."""
        return "\n".join(self._summary_lines())

    def notice(self) -> str:
        """Return why the results say little; empty if nothing is known."""
        if self.data.n_annotators == 1:
            return ONE_ANNOTATOR_LINE
        one_each = self.data.n_labels == self.data.n_items
        return ONE_LABEL_LINE.replace("labels", "answers") if one_each else ""

    def _summary_lines(self) -> list[str]:
        data = self.data
        lines = [f"WARNING: {self.notice()}"] if self.notice() else []
        lines.append(f"{self.model} on {self.describe()}")
        if data.n_dropped:
            rows = counted(
                data.n_dropped, "row had no answer and was", "rows had no answer and were"
            )
            lines.append(f"{rows} dropped")
        if data.n_repeated:
            lines.append(f"{counted(data.n_repeated, 'repeated row')} counted once")
        lines += self.history_lines(data.n_labels, "answer")
        lines.append(self.chosen)
        n_sure = int((self.confidence > SURE).sum())
        n_empty = int((~self.sets.any(axis=1)).sum())
        lines.append(
            f"items: {n_sure:,} of {data.n_items:,} have a set above {SURE:.0%} probability; "
            f"{self.sets.sum(axis=1).mean():.1f} labels per item, {n_empty:,} without a label"
        )
        return [*lines, self.annotator_line()]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, counts, history, stop reason and versions, as JSON types."""
        data = self.data
        return {
            "format": FORMAT,
            "kind": SETS,
            "model": self.model,
            "settings": dict(self.settings),
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_answers": data.n_labels,
            "n_labels": self.n_labels,
            "n_sets": data.n_categories,
            "labels": self.label_names,
            "separator": self.separator,
            "n_dropped": data.n_dropped,
            "n_repeated": data.n_repeated,
            "read_as": data.read_as or None,
            "left_out": data.left_out or None,
            "frame": data.frame,
            "chosen": self.chosen or None,
            **self.history_entries(),
        }

    def report(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        truth: Any = None,
        command: str | None = None,
    ) -> None:
        """Write a report with tables and charts, one HTML file.

        Parameters
        ----------
        path
            The file to write.
        source
            The name of the answers in the report's heading.
        truth
            Known sets of some or all items, as `annotruth.evaluate` takes them.
        command
            The command line that makes the report, for its heading.
        """
        self._bound("report")(self, path, source=source, truth=truth, command=command)

    def stored(self) -> Fit:
        """Return the fit of labels whose tables and parameters are saved."""
        stored: Fit = self._bound("stored")(self)
        return stored

    def with_separator(self, separator: str | None) -> SetFit:
        """Return the fit with a separator that no label contains, by preference the given one."""
        names = self.label_names
        usable = (each for each in (separator, *_SEPARATORS) if each)
        free = (each for each in usable if not any(each in name for name in names))
        return replace(self, separator=next(free, SEPARATOR))

    def of_original(self, data: Labels, item: Codes, annotator: Codes, position: Codes) -> SetFit:
        """Return the fit of labels in another order.

        ``item`` and ``annotator`` are the codes here of those there, ``position`` those of answers.
        """
        people = ("sensitivity", "specificity", "irregular")
        return replace(
            self,
            data=data,
            probability=self.probability[item],
            sets=self.sets[item],
            confidence=self.confidence[item],
            p_serious=self.p_serious[position],
            reliability=self.reliability[annotator],
            low=self.low[annotator],
            high=self.high[annotator],
            behavior=[self.behavior[code] for code in annotator.tolist()],
            annotator_columns={
                name: np.asarray(column)[annotator]
                for name, column in self.annotator_columns.items()
            },
            parameters={
                name: values[annotator] if name in people else values
                for name, values in self.parameters.items()
            },
        )

    def _probability_columns(self) -> dict[str, Floats]:
        return {
            f"p_{name}": np.ascontiguousarray(column)
            for name, column in zip(self.label_names, self.probability.T, strict=True)
        }
