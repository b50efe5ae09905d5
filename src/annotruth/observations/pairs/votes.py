"""Comparisons in any order, and sorted by annotator, on all cores where they are many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats, VoteBlock, map_on_all_cores
from annotruth.observations.disk_sort import count_before, in_ranges
from annotruth.observations.layout import kernels_for

if TYPE_CHECKING:
    from annotruth.observations.disk import Disk


Code = TypeVar("Code", bound=np.integer[Any])
OutcomeCode = TypeVar("OutcomeCode", bound=np.integer[Any])

EXCHANGED = np.array([1, 0, 2])
"""The code of each outcome with sides exchanged."""


def in_order_of_codes(
    left: NDArray[Code], right: NDArray[Code], outcome: NDArray[OutcomeCode]
) -> tuple[NDArray[Code], NDArray[Code], NDArray[OutcomeCode]]:
    """Return pairs with the smaller code on the left, and the outcomes exchanged where needed."""
    swapped = left > right
    return (
        np.where(swapped, right, left),
        np.where(swapped, left, right),
        np.where(swapped, EXCHANGED.astype(outcome.dtype)[outcome], outcome),
    )


def covariates_in_order_of_codes(
    left: NDArray[Code], right: NDArray[Code], covariates: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return covariates, which are differences, negated where `in_order_of_codes` exchanges sides."""
    swapped = left > right
    return {name: np.where(swapped, -values, values) for name, values in covariates.items()}


@dataclass(frozen=True, eq=False)
class UnsortedVotes:
    """Outcomes of comparisons, in any order.

    They are `annotruth.engines.PassData`, whose partitions are made of comparisons.

    Attributes
    ----------
    n_items
        The number of items.
    left, right, outcome
        As in `annotruth.observations.Comparisons`.
    disk
        Where they are, if they are not in memory.
    """

    n_items: int
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    disk: Disk | None = None

    @property
    def n_annotators(self) -> int:
        """0, as annotators are alike."""
        return 0

    @property
    def n_labels(self) -> int:
        """The number of comparisons."""
        return len(self.outcome)

    def length(self, per: str) -> int:
        """Return the number of comparisons."""
        return len(self.outcome)

    def block(self) -> VoteBlock:
        """Return the arrays that kernels read."""
        return VoteBlock(self.left, self.right, self.outcome)

    def partition(self, n_partitions: int) -> NDArray[np.int64]:
        """Return the ``n_partitions + 1`` bounds that divide the comparisons evenly."""
        return np.linspace(0, len(self.outcome), n_partitions + 1).astype(np.int64)

    def zeros(self, shape: int | tuple[int, ...]) -> Floats:
        """Return an array of zeros in memory."""
        return np.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        if self.disk is not None:
            self.disk.check_room(n_bytes, what)


_BYTES_PER_VOTE = 100  # what sorting a vote takes at most, with room for everything else
# Rows are first distributed to so many ranges of annotators, so that the places that a range is
# sorted into are in the caches.
_MAX_RANGES = 256
_ROWS_PER_TASK, _MAX_TASKS = 1 << 18, 64


class RowVotes(NamedTuple):
    """The codes of comparisons in the order of the input."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    annotator: NDArray[np.int32]
    outcome: NDArray[np.int8]
    context: NDArray[np.int32] | None = None

    def at(self, rows: Any) -> RowVotes:
        """Return some of the rows, in memory."""
        left, right, annotator, outcome = (np.array(each[rows]) for each in self[:4])
        context = None if self.context is None else np.array(self.context[rows])
        return RowVotes(left, right, annotator, outcome, context)


class SortedCodes(NamedTuple):
    """The codes of comparisons, sorted by annotator."""

    annotator_ptr: NDArray[np.int64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    row: NDArray[np.int64]


def sort_codes(votes: RowVotes, n_annotators: int) -> SortedCodes:
    """Return comparisons sorted by annotator; those of one annotator stay in order."""
    left, right, annotator, outcome = votes[:4]
    n = len(annotator)
    if (annotator[:-1] <= annotator[1:]).all():
        n_votes = np.bincount(annotator, minlength=n_annotators)
        pointers = np.append(0, np.cumsum(n_votes))
        return SortedCodes(pointers, left, right, outcome, np.arange(n))
    kernels = kernels_for(n, "pairs.layout")
    shift = max((n_annotators - 1).bit_length() - (_MAX_RANGES - 1).bit_length(), 0)
    n_tasks = min(max(n // _ROWS_PER_TASK, 1), _MAX_TASKS)
    tasks = list(pairwise(np.linspace(0, n, n_tasks + 1).astype(np.int64).tolist()))
    counts = np.zeros((n_tasks, ((n_annotators - 1) >> shift) + 1), dtype=np.int64)
    made = SortedCodes(
        annotator_ptr=np.zeros(n_annotators + 1, dtype=np.int64),
        left=np.empty(n, dtype=np.int32),
        right=np.empty(n, dtype=np.int32),
        outcome=np.empty(n, dtype=np.int8),
        row=np.empty(n, dtype=np.int64),
    )
    records = np.empty((n, 4), dtype=np.int32)

    def count(task: int) -> None:
        kernels.count_ranges(annotator, *tasks[task], shift, counts[task])

    map_on_all_cores(count, range(n_tasks))
    # Where each task's rows of a range begin: ranges follow each other, and tasks within a range.
    ends = counts.T.cumsum().reshape(counts.T.shape)
    begin = np.ascontiguousarray(ends.T - counts)
    bounds = np.append(0, ends[:, -1]).tolist()

    def distribute(task: int) -> None:
        codes = annotator, left, right, outcome
        kernels.distribute_votes(*codes, *tasks[task], shift, begin[task], records)

    def sort(number: int) -> None:
        first = number << shift
        of_range = made.annotator_ptr[1:][first : first + (1 << shift)]
        kernels.sort_range(records, *bounds[number : number + 2], of_range, *made[1:])

    map_on_all_cores(distribute, range(n_tasks))
    map_on_all_cores(sort, range(counts.shape[1]))
    return made


def sort_votes_on_disk(disk: Disk, rows: RowVotes, n_annotators: int) -> dict[str, Any]:
    """Return the fields of comparisons sorted by annotator, one range of annotators at a time."""
    names = ["annotator", "left", "right", "outcome"]
    names += ["context"] if rows.context is not None else []
    values = [getattr(rows, name) for name in names]
    pointers = count_before(rows.annotator, n_annotators)
    columns = {
        name: disk.column(each.dtype) for name, each in zip(names[1:], values[1:], strict=True)
    }
    columns["row"] = disk.column(np.int64)
    for part in in_ranges(disk, values, pointers, _BYTES_PER_VOTE):
        annotator, *others = part.columns
        order = np.argsort(annotator, kind="stable")
        for column, each in zip(columns.values(), (*others, part.row), strict=True):
            column.append(each[order])
    return {name: column.to_array() for name, column in columns.items()} | {
        "annotator_ptr": pointers
    }
