"""`Comparisons`: which of two items each annotator preferred, laid out for the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from annotruth.bindings import bound
from annotruth.errors import InputError, counted
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import validate
from annotruth.observations.arrays import LocalObservations
from annotruth.observations.encode import concat_columns, decode_table
from annotruth.observations.frames import as_arrow, default_frame
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import ReadOptions, names_keywords

LEFT, RIGHT, TIE = 0, 1, 2
"""The codes of the outcomes."""

OUTCOMES = ("left", "right", "tie")
"""The names of the outcomes, by code."""


RANKING, BOTH_BAD = "ranking", "both_bad"
"""Further columns with a meaning: which ranking a vote follows from, and ties of two bad items."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(LocalObservations):
    """A frozen, validated table of pair comparisons in integer codes, sorted by annotator.

    Attributes
    ----------
    items, annotators
        The ids behind the codes, in order of first appearance.
    left, right, outcome
        The codes of the two items of each comparison, and which was preferred: `LEFT`, `RIGHT` or `TIE`.
    annotator_ptr
        Annotator s made the comparisons ``annotator_ptr[s]:annotator_ptr[s + 1]``.
    row
        The position of each comparison in the input.
    sides_known
        Whether left and right are the sides on which the items were shown. If a file holds winners
        and losers only, they are not, and nothing is concluded about sides.
    covariates
        Known differences between the left and the right item of each comparison by name, such as
        left minus right in length. In tables of winners and losers: winner minus loser.
    contexts, context
        The prompts, scenes or questions under which items were compared, and the code of each
        comparison's; None where there are none.
    further
        Further columns by name, one value per comparison, such as a category; see `RANKING` and
        `BOTH_BAD`.
    annotator_weight, n_dropped, n_repeated, unused, frame, read_as, left_out
        As in `annotruth.observations.LabelSummary`.

    Examples
    --------
    >>> votes = Comparisons.from_codes(
    ...     [0, 1, 0], [1, 2, 2], [0, 0, 1], [0, 2, 1], items=["a", "b", "c"], annotators=["x", "y"]
    ... )
    >>> votes
    Comparisons(3 comparisons of 3 items by 2 annotators)
    >>> votes.comparisons_per_annotator.tolist(), votes.comparisons_per_item.tolist()
    ([2, 1], [2, 2, 2])
    """

    items: pa.Array
    annotators: pa.Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    annotator_ptr: NDArray[np.int64]
    row: NDArray[np.int64]
    sides_known: bool = True
    covariates: Mapping[str, Floats] = field(default_factory=dict)
    contexts: pa.Array | None = None
    context: NDArray[np.int32] | None = None
    n_dropped: int = 0
    n_repeated: int = 0
    unused: Mapping[str, int] = field(default_factory=dict)
    frame: str = "pyarrow"
    read_as: str = ""
    left_out: str = ""
    annotator_weight: Floats | None = None
    further: Mapping[str, pa.Array] = field(default_factory=dict)

    kind: ClassVar[str] = "comparisons"
    """What annotators gave, as `annotruth.models.result.Fit.kind`."""

    noun: ClassVar[str] = "comparison"

    @classmethod
    @names_keywords(ReadKeywords)
    def of(
        cls, data: Any, read: ReadOptions | None = None, **options: Unpack[ReadKeywords]
    ) -> Comparisons:
        """Return the comparisons in a frame or plain Python data.

        ``data`` is a pandas, polars or pyarrow frame, one row per comparison (left, right, annotator,
        winner; or winner, loser, annotator) or per rank (annotator, item, rank); a list of (left,
        right, annotator, winner) tuples, or of dicts; or Comparisons (returned as they are). The
        winner is left, right, tie, or the id of the item. ``read`` says which columns to take; or
        its fields ``columns`` and ``covariates`` as keywords.
        """
        made: Comparisons = bound("comparisons.read")(data, read, **options)
        return made

    @classmethod
    def from_codes(
        cls,
        left: Sequence[int] | NDArray[np.integer[Any]],
        right: Sequence[int] | NDArray[np.integer[Any]],
        annotator: Sequence[int] | NDArray[np.integer[Any]],
        outcome: Sequence[int] | NDArray[np.integer[Any]],
        *,
        items: pa.Array | Sequence[Any],
        annotators: pa.Array | Sequence[Any],
        covariates: Mapping[str, Floats] | None = None,
        sides_known: bool = True,
        frame: str | None = None,
    ) -> Comparisons:
        """Return comparisons given as integer codes, one entry per comparison, in any order."""
        codes = [np.asarray(values) for values in (left, right, annotator, outcome)]
        sizes = (len(items), len(items), len(annotators), len(OUTCOMES))
        names = ("left item", "right item", "annotator", "outcome")
        for values, size, name in zip(codes, sizes, names, strict=True):
            validate.check_codes(values, size, name)
            if len(values) != len(codes[0]):
                raise InputError(
                    f"there are {len(codes[0]):,} left items and {len(values):,} {name}s: give one of "
                    "each per comparison"
                )
        n_votes = np.bincount(codes[2], minlength=len(annotators))
        # NumPy sorts short integers faster.
        order = np.argsort(codes[2].astype(np.min_scalar_type(len(annotators))), kind="stable")
        left, right, _, outcomes = (values[order] for values in codes)
        return cls(
            items=pa.array(items),
            annotators=pa.array(annotators),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            outcome=outcomes.astype(np.int8),
            annotator_ptr=np.append(0, n_votes.cumsum()),
            row=order,
            sides_known=sides_known,
            covariates={name: values[order] for name, values in (covariates or {}).items()},
            frame=frame or default_frame(),
        )

    @property
    def n_comparisons(self) -> int:
        """The number of comparisons."""
        return len(self.outcome)

    @property
    def n_labels(self) -> int:
        """The number of observations: the comparisons."""
        return self.n_comparisons

    @property
    def comparisons_per_annotator(self) -> NDArray[np.int64]:
        """The number of comparisons of each annotator."""
        return np.diff(self.annotator_ptr)

    @property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """The number of observations of each annotator: `comparisons_per_annotator`."""
        return self.comparisons_per_annotator

    @property
    def comparisons_per_item(self) -> NDArray[np.int64]:
        """The number of comparisons of each item."""
        both = np.concatenate([self.left, self.right])
        return np.bincount(both, minlength=self.n_items)

    @property
    def has_ties(self) -> bool:
        """Whether any outcome is a tie."""
        return self.tie_share > 0.0

    @property
    def tie_share(self) -> float:
        """The share of outcomes that are a tie."""
        return int(np.count_nonzero(self.outcome == TIE)) / max(len(self.outcome), 1)

    def subset(self, keep: NDArray[np.bool_]) -> Comparisons:
        """Return the comparisons where ``keep`` is true; items and annotators keep their codes."""
        kept = np.flatnonzero(keep)
        return self._at(kept, np.searchsorted(kept, self.annotator_ptr))

    def of_annotators(self, annotators: NDArray[np.bool_]) -> Comparisons:
        """Return the comparisons of the marked annotators; items keep their codes."""
        counts = self.comparisons_per_annotator[annotators]
        end = counts.cumsum()
        # Each annotator's comparisons follow each other from the annotator's first on.
        shift = self.annotator_ptr[:-1][annotators] - (end - counts)
        kept = np.arange(counts.sum()) + np.repeat(shift, counts)
        weight = self.annotator_weight
        return replace(
            self._at(kept, np.append(0, end)),
            annotators=self.annotators.filter(as_arrow(annotators)),
            annotator_weight=None if weight is None else weight[annotators],
        )

    def _at(self, places: Codes, annotator_ptr: Codes) -> Comparisons:
        """Return the comparisons at some places, in order, with the bounds of their annotators."""
        return replace(
            self,
            left=self.left[places],
            right=self.right[places],
            outcome=self.outcome[places],
            annotator_ptr=annotator_ptr,
            row=self.row[places],
            covariates={name: values[places] for name, values in self.covariates.items()},
            context=None if self.context is None else self.context[places],
            further={name: each.take(as_arrow(places)) for name, each in self.further.items()},
        )

    def without_gaps(self) -> Comparisons:
        """Return the comparisons without items, annotators and contexts that have none."""
        item, items = _renumber(np.concatenate([self.left, self.right]), self.items)
        left, right = np.split(item, 2)
        has_any = self.comparisons_per_annotator > 0
        further: dict[str, Any] = {}
        if self.context is not None and self.contexts is not None:
            further["context"], further["contexts"] = _renumber(self.context, self.contexts)
        return replace(
            self,
            items=items,
            left=left,
            right=right,
            annotators=self.annotators.filter(as_arrow(has_any)),
            annotator_ptr=np.append(0, self.annotator_ptr[1:][has_any]),
            **further,
        )

    def without_annotators(self, dropped: NDArray[np.bool_]) -> Comparisons:
        """Return the comparisons without those of the marked annotators, and items of theirs alone."""
        return self.of_annotators(~dropped).without_gaps()

    def annotator_of_comparison(self) -> Codes:
        """Return the code of each comparison's annotator."""
        return np.repeat(np.arange(self.n_annotators), self.comparisons_per_annotator)

    def to_arrow(self, rows: slice = slice(None)) -> pa.Table:
        """Return some or all comparisons, in the order of the input: left, right, annotator, winner.

        The winner is left, right or tie. A context, covariates and further columns follow where there
        are any.
        """
        order = np.argsort(self.row)[rows]
        annotator = self.annotator_of_comparison()[order]
        columns: dict[str, Any] = {
            "left": self.items.take(as_arrow(self.left[order])),
            "right": self.items.take(as_arrow(self.right[order])),
            "annotator": self.annotators.take(as_arrow(annotator)),
            "winner": pa.array(OUTCOMES).take(as_arrow(self.outcome[order])),
        }
        if self.contexts is not None and self.context is not None:
            columns["context"] = self.contexts.take(as_arrow(self.context[order]))
        table = decode_table(pa.table(columns))
        for name, values in self.covariates.items():
            table = table.append_column(name, as_arrow(values[order]))
        for name, column in self.further.items():
            if name not in (RANKING, BOTH_BAD, *table.column_names):
                table = table.append_column(name, column.take(as_arrow(order)))
        return table

    def in_row_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return one value per comparison in the order of the input."""
        return values[np.argsort(self.row)]

    def describe(self) -> str:
        """Return the counts as one line."""
        return (
            f"{counted(self.n_comparisons, 'comparison')} of {counted(self.n_items, 'item')} by "
            f"{counted(self.n_annotators, 'annotator')}"
        )


def join_further(name: str, columns: Sequence[pa.Array]) -> pa.Array:
    """Return a further column of several sources, one after the other; as text if types differ.

    Rankings of each source have numbers of their own.
    """
    if name == RANKING:
        sizes = [(pc.max(column).as_py() or 0) + 1 for column in columns]
        before = [sum(sizes[:number]) for number in range(len(sizes))]
        columns = [
            column if column.null_count == len(column) else pc.add(column, n)
            for column, n in zip(columns, before, strict=True)
        ]
    return concat_columns(columns)


def _renumber(codes: NDArray[np.int32], values: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """Return codes without gaps, in their order, and the values that occur."""
    present, renumbered = np.unique(codes, return_inverse=True)
    return renumbered.astype(np.int32), values.take(as_arrow(present))
