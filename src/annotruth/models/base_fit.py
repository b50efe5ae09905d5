"""What every fit has, wherever its labels are: annotators' results and the history."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.bindings import bound, bound_for
from annotruth.errors import InputError, counted
from annotruth.kernels.arrays import Floats
from annotruth.models.em import HasHistory, History
from annotruth.models.fits.further import HOW_TO_GET, FurtherResults
from annotruth.models.fits.notes import WITHHELD_LINE, Note, VoteCounts, notes_of, to_dicts
from annotruth.observations import LabelSummary
from annotruth.observations.frames import as_arrow, from_arrow

Column: TypeAlias = Floats | NDArray[np.bool_] | pa.Array
"""A model-specific column of a table: numbers, truth values, or text."""

Readout: TypeAlias = Literal["right", "opinion"]
"""What items' probabilities are: of the right label, or the shares of serious opinion."""

Verdict: TypeAlias = Literal["informative", "chance", "camps"]
"""Whether labels or comparisons agree better than chance, or no better.

"camps": they do, but about half of the annotators contradict the others.
"""

SPAMMER_BELOW = 0.5
"""Reliability below which the GPM paper calls an annotator a spammer."""

TOO_FEW = "too few labels to tell"
"""The behavior of annotators with too few labels to estimate it."""

LOW_ACCURACY, PARTLY_CARELESS, OTHER_OPINION = "low accuracy", "partly careless", "another opinion"
UNCLEAR = "unclear"
"""The behaviors of annotators who are noticed, but not flagged."""

NO_VERDICT = "no verdict"
"""The behavior of annotators where nobody can be assessed."""

ACCURACY_COLUMNS = ("accuracy", "accuracy_low", "accuracy_high")
"""The probability that a label of an annotator is right, with its 95% interval."""

FLAGGED = "flagged"
"""The column of annotators who are flagged, which is shown as ``spammer``."""

READOUTS: Mapping[Readout, str] = {
    "right": "probabilities of the right label",
    "opinion": "shares of opinion",
}
"""What items' probabilities are, in words."""

SETS = "sets"
"""The model of answers that are sets of labels, and the entry ``kind`` of its saved fits."""

FORMAT = 2
"""Version of the files that a fit is saved in; a change that old code cannot read raises it."""


def is_above(value: float, drawn: Sequence[float] | Floats, significance: float) -> bool:
    """Whether a value is significantly higher than those of random draws.

    Draws are normal, with a mean and a variance that are estimated from them: Student's t for one
    more draw.
    """
    from scipy.special import stdtrit  # imported here because that takes longer than a small fit

    n = len(drawn)
    limit = stdtrit(n - 1, significance) * np.std(drawn, ddof=1) * np.sqrt(1.0 + 1.0 / n)
    return bool(value > np.mean(drawn) + limit)


def now() -> datetime:
    """Return the time in UTC, to the second: the date of fits and reports."""
    return datetime.now(UTC).replace(microsecond=0)


class FitMethods:
    """Methods of fits in this process that rooms above carry out: verdicts on people, storage."""

    data: Any

    def keep(self) -> Any:
        """Return one row per annotator: annotator, verdict, reason; of labels also ask.

        The verdict is "keep", "drop", "unsure", or that there are too few labels, answers or votes;
        ask says whether to give the annotator more items. The verdict is that of the labels; a fit of labels
        that continues others has the column standing too, which changes on clear evidence only.
        """
        return from_arrow(self.verdict_table(), self.data.frame)

    def verdict_table(self) -> pa.Table:
        """Return the table of verdicts in Arrow."""
        table: pa.Table = self._bound("verdict_table")(self)
        return table

    def save(self, path: str | Path) -> None:
        """Write the fit to a folder of JSON and Arrow files that `annotruth.load` reads."""
        bound("save")(self, path)

    def _bound(self, name: str) -> Callable[..., Any]:
        """Return the function of a method that a room above has for this kind of fit."""
        return bound_for(self, name)


class AnnotatorResults(HasHistory, ABC):
    """What fits of labels and of pair comparisons share: annotators' results and parameters."""

    unit: ClassVar[str] = "label"
    """What annotators give, in words."""

    too_few: ClassVar[tuple[str, str]] = ("too few labels", TOO_FEW)
    """The verdict on annotators of whom too little is known, and their behavior."""

    model: str
    settings: Mapping[str, Any]
    data: Any
    p_serious: Floats | None
    reliability: Floats | None
    low: Floats | None
    high: Floats | None
    behavior: Sequence[str] | None
    annotator_columns: Mapping[str, Column]
    parameters: Mapping[str, NDArray[Any]]
    further: Mapping[str, FurtherResults]
    verdict: Verdict | None = None

    @property
    @abstractmethod
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: flagged, or serious less than half of the time."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the settings, counts, history, stop reason and versions, as JSON types."""

    @property
    def accuracy(self) -> Floats | None:
        """The probability that a label of each annotator is right; None if the model does not estimate it."""
        accuracy = self.annotator_columns.get("accuracy")
        return None if accuracy is None else np.asarray(accuracy, dtype=np.float64)

    @property
    def notes(self) -> list[Note]:
        """What limits the results, which is said before them; empty if nothing is known."""
        return []

    @property
    def is_void(self) -> bool:
        """Whether a note is critical: results mean next to nothing, and say nothing about people."""
        return any(note.severity == "critical" for note in self.notes)

    @property
    def withholds_figures(self) -> bool:
        """Whether figures would reassure against what the notes say."""
        kinds = {note.kind for note in self.notes}
        return self.is_void or not kinds.isdisjoint({"camps", "chance test", "other model"})

    @property
    def n_spammers(self) -> int | None:
        """The number of spammers; None where `spammer` is."""
        return None if self.spammer is None else int(self.spammer.sum())

    def annotator_line(self) -> str:
        """Return the line of the summary on annotators, for a model that has reliabilities.

        Spammers whose whole interval is below `SPAMMER_BELOW` are counted apart: the interval of
        the others says that they may be none.
        """
        assert self.reliability is not None
        if FLAGGED in self.annotator_columns:
            return self._flag_line()
        line = f"annotators: median reliability {np.median(self.reliability):.2f}"
        has_too_few = np.array(self.behavior or [""] * len(self.reliability)) == self.too_few[1]
        if self.spammer is not None:
            are = "is a spammer" if self.n_spammers == 1 else "are spammers"
            line += (
                f"; {self.n_spammers:,} of {len(self.reliability):,} {are} "
                f"(reliability below {SPAMMER_BELOW})"
            )
            if self.n_spammers and self.high is not None and self.verdict != "chance":
                n_clear = int((self.spammer & (self.high < SPAMMER_BELOW) & ~has_too_few).sum())
                clear = f"{f'{n_clear:,}' if n_clear else 'none'} of them clearly"
                if self.n_spammers == 1:
                    clear = "clearly" if n_clear else "not clearly"
                line += f", {clear} (whole 95% interval)"
        if n_few := int(has_too_few.sum()):
            line += f"; {n_few:,} {'has' if n_few == 1 else 'have'} {self.too_few[1]}"
        return line

    def _flag_line(self) -> str:
        """Return the line of the summary on annotators, for a model that flags them."""
        n_flagged, n = self.n_spammers or 0, len(self.behavior or ())
        line = "annotators:"
        if "accuracy" in self.annotator_columns:
            line += f" median accuracy {np.median(self.annotator_columns['accuracy']):.2f};"
        if NO_VERDICT in (self.behavior or ()):
            return f"{line} no verdicts on people"
        are = "is a spammer" if n_flagged == 1 else "are spammers"
        line += f" {n_flagged:,} of {n:,} {are} (careless or consistently wrong)"
        counts = Counter(self.behavior or ())
        for name in (LOW_ACCURACY, PARTLY_CARELESS, OTHER_OPINION, self.too_few[1]):
            if counts[name]:
                line += f"; {counts[name]:,} {'has' if counts[name] == 1 else 'have'} {name}"
        return line.replace(f"have {PARTLY_CARELESS}", f"are {PARTLY_CARELESS}").replace(
            f"has {PARTLY_CARELESS}", f"is {PARTLY_CARELESS}"
        )

    def parameter(self, name: str, *shape: int) -> NDArray[Any]:
        """Return one of ``parameters``; raise if it is missing or has another shape."""
        values = self.parameters.get(name)
        if values is None or values.shape != shape:
            raise InputError(
                f"this fit of {self.model} has no {name} of {' x '.join(map(str, shape))}: it was "
                "saved by another version of annotruth, or changed; fit again"
            )
        return values

    def further_table(self, kind: str, name: str) -> pa.Table:
        """Return a table of further results in Arrow; raise if the fit has no results of the kind."""
        if kind not in self.further:
            raise InputError(
                f"this fit has no results on {kind.replace('_', ' ')}: {HOW_TO_GET[kind]}"
            )
        return self.further[kind].tables[name]

    def further_tables(self) -> dict[str, pa.Table]:
        """Return all tables of further results by name."""
        return {
            name: table
            for results in self.further.values()
            for name, table in results.tables.items()
        }

    def machines(self) -> Any:
        """Return one row per machine among the annotators: how it compares with people.

        ``agreement`` is how often it agrees with a person, ``people_agreement`` how often two people
        agree; ``accuracy`` is how often its label is the people's consensus; ``weight`` what its labels
        count. ``winning_rate``, ``advantage``, ``p_value`` and ``may_replace`` are of the alternative
        annotator test.
        """
        return from_arrow(self.further_table("machines", "machines"), self.data.frame)

    def dependence(self) -> Any:
        """Return one row per pair of machines: whether they err together.

        ``agreement`` is the share of ``n_items`` common items with the same label, ``expected`` that of
        independent machines; ``correlation`` is of labels given the items' true state, with its 95%
        interval; ``p_value`` is adjusted for the number of pairs; ``weight`` is what the labels of
        ``annotator`` count.
        """
        return from_arrow(self.further_table("machines", "dependence"), self.data.frame)

    def further_lines(self) -> list[str]:
        """Return what the summary says of further results."""
        return [line for results in self.further.values() for line in results.lines]

    def further_facts(self) -> dict[str, Any]:
        """Return the figures of further results by kind, as JSON types."""
        return {kind: dict(results.facts) for kind, results in self.further.items()}

    def further_entries(self) -> dict[str, Any]:
        """Return what ``fit.json`` says of further results; nothing if there are none."""
        if not self.further:
            return {}
        return {"further": {kind: results.to_dict() for kind, results in self.further.items()}}

    def annotator_values(self) -> dict[str, Column | Sequence[str]]:
        """Return the estimates per annotator: the columns of their table, without the ids."""
        own = dict(self.annotator_columns)
        own.pop(FLAGGED, None)
        columns = {
            **{name: own.pop(name) for name in ACCURACY_COLUMNS if name in own},
            "reliability": self.reliability,
            "low": self.low,
            "high": self.high,
            "spammer": self.spammer,
            "behavior": self.behavior,
            **own,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def to_json(self, **more: Any) -> str:
        """Return the content of ``fit.json``: `to_dict` and further entries."""
        return json.dumps(self.to_dict() | more, indent=2) + "\n"


@dataclass(frozen=True, eq=False)
class BaseFit(AnnotatorResults):
    """The results of a fitted model per annotator, and how the fit ended.

    What a model does not estimate is None, and absent from the tables. `annotruth.Fit` adds the
    results per item and per label.

    Attributes
    ----------
    model, settings
        The model's name and the options it was fitted with.
    data
        The labels.
    history
        The objective after every iteration, and why the iterations ended.
    reliability, low, high
        Each annotator's reliability with its 95% interval.
    behavior
        A short description of how each annotator labels, such as "serious".
    annotator_columns
        Further estimates per annotator, such as a bias: additional columns of the table.
    parameters
        Arrays by name that `Estimator.predict_proba` and warm starts need beyond the above.
    readout
        What items' probabilities are: "right", those of the right label, or "opinion", the shares
        of serious opinion.
    verdict
        "chance" if the labels agree no better than chance, "informative" if they agree better, "camps" if
        about half of the annotators contradict the others; None for models that do not test it.
    chosen
        For a model chosen by ``auto``: ``model``, ``why`` and ``scores``, from `Choice.to_dict`. For one
        fitted because the default could not be: ``model``, ``why`` and ``instead_of``.
    further
        Results on annotators who depend on one another, on groups of annotators, over time, and on
        machines, by kind; empty where there are none.
    """

    model: str
    settings: dict[str, Any]
    data: LabelSummary
    history: History
    reliability: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    behavior: Sequence[str] | None = None
    annotator_columns: Mapping[str, Column] = field(default_factory=dict)
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    chosen: Mapping[str, Any] | None = None
    readout: Readout = "right"
    verdict: Verdict | None = None
    further: Mapping[str, FurtherResults] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model} on {self.data.describe()}: {self.stop_reason})"

    @property
    @abstractmethod
    def knows_serious(self) -> bool:
        """Whether the model estimates how likely each label was serious."""

    @property
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: flagged, or serious less than half of the time.

        RobustGPM flags annotators whose labels show that they are careless or consistently wrong. None for
        models that do not separate serious labels from others: an annotator who is often wrong is not
        necessarily a spammer.
        """
        if self.reliability is None or not self.knows_serious:
            return None
        if FLAGGED in self.annotator_columns:
            return np.asarray(self.annotator_columns[FLAGGED], dtype=np.bool_)
        return self.reliability < SPAMMER_BELOW

    @cached_property
    def vote_counts(self) -> VoteCounts | None:
        """Results beside plain counts of votes; None where items are not in this process, or few."""
        return None

    @cached_property
    def notes(self) -> list[Note]:
        """What limits the results, which is said before them; empty if nothing is known."""
        return notes_of(self)

    def notice(self) -> str:
        """Return the notes in one line; empty if there are none."""
        return "; ".join(note.sentence for note in self.notes)

    def heading_lines(self) -> list[str]:
        """Return the first lines of the summary: the notice, then the model and the data."""
        heading = f"{self.model} on {self.data.describe()}"
        return [f"WARNING: {self.notice()}", heading] if self.notice() else [heading]

    def summary_lines(self) -> list[str]:
        """Return the lines on dropped rows, convergence and annotators."""
        data = self.data
        lines = []
        if data.n_dropped:
            rows = counted(data.n_dropped, "row had no label and was", "rows had no label and were")
            lines.append(f"{rows} dropped")
        if data.n_repeated:
            lines.append(f"{counted(data.n_repeated, 'repeated row')} counted once")
        lines += self.history_lines(data.n_labels, "label")
        if self.withholds_figures:
            lines.append(WITHHELD_LINE)
        elif self.reliability is not None:
            lines.append(self.annotator_line())
        return lines

    def readout_line(self) -> str:
        """Return the line of the summary on what items' probabilities are."""
        return f"p_<label> and confidence are {READOUTS[self.readout]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, counts, history, stop reason and versions, as JSON types."""
        data = self.data
        entries = {
            "format": FORMAT,
            "model": self.model,
            "settings": self.settings,
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            "n_labels": data.n_labels,
            "n_categories": data.n_categories,
            "n_dropped": data.n_dropped,
            "n_repeated": data.n_repeated,
            "read_as": data.read_as or None,
            "left_out": data.left_out or None,
            "scale": data.scale.kind,
            "scale_reason": data.scale.reason or None,
            "bins": None if data.scale.edges is None else data.scale.edges.tolist(),
            "frame": data.frame,
            "readout": self.readout,
            "verdict": self.verdict,
            "notes": to_dicts(self.notes),
            **self.history_entries(),
            **self.further_entries(),
        }
        return entries if self.chosen is None else entries | {"chosen": dict(self.chosen)}


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return an Arrow table of columns of numbers, truth values, or text."""
    return pa.table(
        {
            name: column if isinstance(column, pa.Array) else as_arrow(column)
            for name, column in columns.items()
        }
    )
