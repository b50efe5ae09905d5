"""`Fit`: the results of a fitted model, whatever it was fitted to."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.bindings import bound
from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.models.base_fit import (
    ACCURACY_COLUMNS,
    FLAGGED,
    FORMAT,
    SPAMMER_BELOW,
    Column,
    Readout,
    Verdict,
)
from annotruth.models.distribution import Distribution
from annotruth.models.em import History
from annotruth.models.fits.accessors import FitTables, Kind
from annotruth.models.fits.further import FurtherResults
from annotruth.models.fits.notes import Note, VoteCounts, count_votes, support_of
from annotruth.models.pairs import posterior
from annotruth.models.pairs.posterior import Ranking, ScorePosterior
from annotruth.observations import Comparisons, Labels
from annotruth.observations.options import Campaign

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from annotruth.engines import DistributedFrames

    Data = TypeVar("Data", bound=Any, default=Labels)
else:
    from typing import TypeVar

    Data = TypeVar("Data")

QUESTIONS_MANIFEST = "questions.json"
"""The file that names the saved fits of several questions, in their folder."""

_ABSENT: Any = None  # what only fits of another kind have


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FitTables, Generic[Data]):
    """The results of a fitted model. Frozen.

    `items`, `annotators` and other methods return tables in the caller's frame library. What a model
    does not estimate is None, and absent from the tables. The `kind` of a fit is that of its data:
    "labels", "comparisons" or "sets"; or "distributed", for labels on other machines.

    Attributes
    ----------
    model, settings
        The model's name and the options it was fitted with.
    data
        The labels or comparisons; of labels on other machines their summary.
    history
        The objective after every iteration, and why the iterations ended.
    reliability, low, high
        Each annotator's reliability with its 95% interval.
    behavior
        A short description of how each annotator labels, such as "serious".
    annotator_columns
        Further estimates per annotator, such as a bias: additional columns of the table.
    p_serious
        The probability that each label or comparison was serious, in the order of ``data``.
    parameters
        Arrays by name that `predict_proba`, warm starts and further tables need beyond the above.
    verdict
        "chance" if the labels agree no better than chance, "informative" if they agree better, "camps" if
        about half of the annotators contradict the others; None for models that do not test it. In a
        ranking by chance all scores are equal and all ranks tied.
    chosen
        ``why``, and more, for what was chosen by held-out data: the model by ``auto`` (``model`` and
        ``scores``, from `Choice.to_dict`), or the number of types of items. For
        a model fitted because the default could not be, ``instead_of``.
    fitted_at
        When it was fitted, in UTC; None if that is not known.
    further
        Results on annotators who depend on one another, on groups of annotators, over time, on
        machines, on boards and more, by kind; empty where there are none.
    campaign
        What a saved fit remembers for updates and workbooks: columns, question, who was left out, and the
        price of a label.
    distribution, other_distribution
        Of labels: each item's distribution, which is what ``readout`` says, and the other read-out, for
        models that have both (see `distributions`).
    readout
        Of labels: what items' probabilities are: "right", those of the right label, or "opinion", the
        shares of serious opinion.
    score
        Of labels: each item's score, for models that estimate it directly.
    item_columns
        Further estimates per item, such as a difficulty: additional columns of the table.
    earlier_fits
        The table of the fits that this one continues, as `past_fits` returns it; None if there is
        none.
    scores
        Of comparisons: the posterior of the items' scores. A difference of 1 between two items is odds of
        e to 1 that an annotator of average sharpness prefers the one to the other, ties apart. Scores have
        mean 0 within each connected part of the graph of comparisons. Those of `Thurstone` are in
        standard deviations of a perceived difference.
    part
        Of comparisons: the connected part of the graph of comparisons that each item is in: scores of
        different parts cannot be compared.
    side_bias
        Of comparisons: the crowd's side bias, in the unit of scores, with the ends of its 95% interval: three
        numbers, above 0 in favor of the left item. None where sides are not known.
    coefficients
        Of comparisons: the coefficient of each covariate with the ends of its 95% interval: three numbers by
        name.
    probability
        Of sets of labels: the probability that each item has each label, items x labels.
    sets, confidence
        Of sets of labels: the most likely set of each item, items x labels, and the probability that it is
        exactly this.
    separator
        Of sets of labels: the text between the labels of a set in tables.
    frames
        Of labels on other machines: the tables by name, as frames of the engine, which read files in the
        engine's storage. The files remain until `close` or the end of the program, also when this object
        is gone. The end of a ``with`` block removes them only if no frame was taken.

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

    model: str
    settings: dict[str, Any]
    data: Data
    history: History
    _: KW_ONLY
    reliability: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    behavior: Sequence[str] | None = None
    annotator_columns: Mapping[str, Column] = field(default_factory=dict)
    p_serious: Floats | None = None
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    verdict: Verdict | None = None
    chosen: Mapping[str, Any] | None = None
    fitted_at: datetime | None = None
    further: Mapping[str, FurtherResults] = field(default_factory=dict)
    campaign: Campaign = field(default_factory=Campaign)
    distribution: Distribution | None = None
    other_distribution: Distribution | None = None
    readout: Readout = "right"
    score: Floats | None = None
    item_columns: Mapping[str, Column] = field(default_factory=dict)
    earlier_fits: pa.Table | None = None
    scores: ScorePosterior = _ABSENT
    part: NDArray[np.int64] = _ABSENT
    side_bias: Floats | None = None
    coefficients: Mapping[str, Floats] = field(default_factory=dict)
    probability: Floats = _ABSENT
    sets: NDArray[np.bool_] = _ABSENT
    confidence: Floats = _ABSENT
    separator: str = ""
    frames: DistributedFrames | None = None

    def __repr__(self) -> str:
        return f"Fit({self.model} on {self.describe()}: {self.stop_reason})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    @property
    def _kind(self) -> Kind:
        kind: Kind = bound(f"{self.kind}.kind")
        return kind

    def describe(self) -> str:
        """Return the data in one line: how many items, annotators and labels there are."""
        return self._kind.describe(self.data)

    @property
    def unit(self) -> str:
        """What annotators give: a label, a comparison or an answer."""
        return self._kind.unit

    @property
    def too_few(self) -> tuple[str, str]:
        """The verdict on annotators of whom too little is known, and their behavior."""
        return self._kind.too_few

    @property
    def n_iter(self) -> int:
        """The number of iterations."""
        return self.history.n_iter

    @property
    def converged(self) -> bool:
        """Whether the stopping rule was met."""
        return self.history.converged

    @property
    def stop_reason(self) -> str:
        """Why the iterations ended."""
        return self.history.stop_reason

    @property
    def log_likelihood(self) -> float | None:
        """Log-likelihood of all observations at the end; None for a model that has none."""
        return self.history.final_log_likelihood

    @property
    def accuracy(self) -> Floats | None:
        """The probability that a label of each annotator is right; None if the model does not estimate it."""
        accuracy = self.annotator_columns.get("accuracy")
        return None if accuracy is None else np.asarray(accuracy, dtype=np.float64)

    @property
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: flagged, or serious less than half of the time.

        RobustGPM flags annotators whose labels show that they are careless or consistently wrong. Annotators
        of whom too little is known are no spammers. None for models that do not separate serious labels
        from others: an annotator who is often wrong is not necessarily a spammer.
        """
        if self.reliability is None:
            return None
        if self.frames is not None:
            knows_serious = "p_serious" in self.frames.columns("labels")
        else:  # all reliabilities of votes are how likely they were serious
            knows_serious = self.p_serious is not None or self.kind == "comparisons"
        if not knows_serious:
            return None
        if FLAGGED in self.annotator_columns:
            return np.asarray(self.annotator_columns[FLAGGED], dtype=np.bool_)
        spammer: NDArray[np.bool_] = self.reliability < SPAMMER_BELOW
        if self.behavior is not None and self._kind.no_spammers:
            spammer &= ~np.isin(self.behavior, self._kind.no_spammers)
        return spammer

    @property
    def n_spammers(self) -> int | None:
        """The number of spammers; None where `spammer` is."""
        return None if self.spammer is None else int(self.spammer.sum())

    @cached_property
    def notes(self) -> list[Note]:
        """What limits the results, which is said before them; empty if nothing is known."""
        return self._kind.notes(self)

    def notice(self) -> str:
        """Return the notes in one line; empty if there are none."""
        return "; ".join(note.sentence for note in self.notes)

    @property
    def is_void(self) -> bool:
        """Whether a note is critical: results mean next to nothing, and say nothing about people."""
        return any(note.severity == "critical" for note in self.notes)

    @property
    def withholds_figures(self) -> bool:
        """Whether figures would reassure against what the notes say."""
        kinds = {note.kind for note in self.notes}
        return self.is_void or not kinds.isdisjoint({"camps", "chance test", "other model"})

    @cached_property
    def vote_counts(self) -> VoteCounts | None:
        """Results beside plain counts of votes; None where items are not in this process, or few."""
        return None if self.frames is not None else count_votes(cast("Fit", self))

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
        disputed: NDArray[np.bool_] = support_of(self.data, self.label).disputed
        disputed &= self.data.known < 0
        return disputed

    @cached_property
    def expectation(self) -> Floats | None:
        """Each item's score: `score`, or on an ordinal scale the mean of its distribution."""
        if self.score is not None or self.distribution is None:
            return self.score
        scale = self.data.scale
        return self.distribution.expectation(scale.values) if scale.is_ordinal else None

    @cached_property
    def ranking(self) -> Ranking:
        """The rank of each item within its part of the graph, with its 95% interval, and p_best."""
        if self.verdict == "chance":
            return posterior.tied_ranking(self.part)
        return posterior.ranking_by_part(self.scores, self.part)

    @property
    def n_parts(self) -> int:
        """How many connected parts the graph of comparisons has."""
        return int(self.part.max(initial=-1)) + 1

    @property
    def is_thurstone(self) -> bool:
        """Whether scores are in standard deviations of perceived differences, instead of log odds."""
        return self.model == "thurstone"

    def parameter(self, name: str, *shape: int) -> NDArray[Any]:
        """Return one of ``parameters``; raise if it is missing or has another shape."""
        values = self.parameters.get(name)
        if values is None or values.shape != shape:
            raise InputError(
                f"this fit of {self.model} has no {name} of {' x '.join(map(str, shape))}: it was "
                "saved by another version of annotruth, or changed; fit again"
            )
        return values

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

    def summary(self) -> str:
        """Return a few lines: the data, convergence, and what was found on items and annotators."""
        lines = list(self._kind.summary(self))
        for results in self.further.values():
            lines += results.lines
        return "\n".join(lines)

    def heading_lines(self) -> list[str]:
        """Return the first lines of the summary: the notice, then the model and the data."""
        heading = f"{self.model} on {self.describe()}"
        return [f"WARNING: {self.notice()}", heading] if self.notice() else [heading]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, counts, history, stop reason and versions, as JSON types."""
        data, kind = self.data, self._kind
        own = kind.entries(self)
        entries = {
            "format": FORMAT,
            **({} if kind.saved_as is None else {"kind": kind.saved_as}),
            "model": self.model,
            "settings": dict(self.settings),
            "n_items": data.n_items,
            "n_annotators": data.n_annotators,
            **kind.counts(self),
            "n_dropped": data.n_dropped,
            "n_repeated": data.n_repeated,
            "n_read": data.n_read,
            "unused": dict(data.unused),
            "read_as": data.read_as or None,
            "left_out": data.left_out or None,
            **own,
            **self.history.entries(),
        }
        if self.further:
            entries["further"] = {
                name: {"facts": dict(each.facts), "lines": list(each.lines)}
                for name, each in self.further.items()
            }
        if "chosen" not in own and self.chosen is not None:
            entries["chosen"] = dict(self.chosen)
        return entries

    def to_json(self, **more: Any) -> str:
        """Return the content of ``fit.json``: `to_dict` and further entries."""
        return json.dumps(self.to_dict() | more, indent=2) + "\n"

    def close(self) -> None:
        """Remove the files behind frames on other machines, which can no longer be used."""
        if self.frames is not None:
            self.frames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.frames is not None:
            self.frames.release()


RankFit: TypeAlias = Fit[Comparisons]
"""A fit of comparisons, in annotations."""


def is_fit(data: Any) -> bool:
    """Return whether data are a fit or the folder of a saved one; other folders may hold labels."""
    if isinstance(data, str | Path):
        folder = Path(data)
        with suppress(OSError):  # no file can have that name
            return (folder / "fit.json").is_file() or (folder / QUESTIONS_MANIFEST).is_file()
        return False
    return isinstance(data, Fit)
