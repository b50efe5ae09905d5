"""Comparisons in any order, sorted by annotator, and in an order that depends on no name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Floats, VoteBlock, map_on_all_cores, mix_bits
from annotruth.observations.disk import Disk, count_before, in_ranges
from annotruth.observations.frames import as_arrow
from annotruth.observations.layout import Colors, RowCodes, canonical_orders

if TYPE_CHECKING:
    from annotruth.observations.pairs.table import Comparisons


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
    """Outcomes of comparisons, in any order, on ``disk`` or in memory.

    They are `annotruth.engines.PassData`, whose partitions are made of comparisons.
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
        find_kernel("pairs.layout.count_ranges")(annotator, *tasks[task], shift, counts[task])

    map_on_all_cores(count, range(n_tasks))
    # Where each task's rows of a range begin: ranges follow each other, and tasks within a range.
    ends = counts.T.cumsum().reshape(counts.T.shape)
    begin = np.ascontiguousarray(ends.T - counts)
    bounds = np.append(0, ends[:, -1]).tolist()

    def distribute(task: int) -> None:
        kernel = find_kernel("pairs.layout.distribute_votes")
        kernel(annotator, left, right, outcome, *tasks[task], shift, begin[task], records)

    def sort(number: int) -> None:
        first = number << shift
        of_range = made.annotator_ptr[1:][first : first + (1 << shift)]
        kernel = find_kernel("pairs.layout.sort_range")
        kernel(records, *bounds[number : number + 2], of_range, *made[1:])

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


_ANNOTATOR = 2 * len(EXCHANGED)  # what an annotator is in a comparison, after what items can be


def in_canonical_order(data: Comparisons) -> Comparisons:
    """Return comparisons with items, annotators and rows in an order that follows from the votes.

    Names and the order of rows do not matter for it, nor do sides where they are not known. Contexts
    are left out.
    """
    left, right = data.left.astype(np.int64), data.right.astype(np.int64)
    annotator = data.annotator_of_comparison()
    # What the left and the right items are: winners, losers or tied, and on which side.
    of_left = data.outcome.astype(np.int64)
    of_right = len(EXCHANGED) + of_left if data.sides_known else EXCHANGED[of_left]
    # Labels of comparisons, given by items and annotators, say what these are in a comparison.
    rows = RowCodes(
        np.tile(np.arange(data.n_comparisons), 3),
        np.concatenate([left, right, data.n_items + annotator]),
        np.concatenate([of_left, of_right, np.full(data.n_comparisons, _ANNOTATOR)]),
    )
    first = (_colors_of_comparisons(data), _colors_of_nodes(data), _distinct_colors(_ANNOTATOR + 1))
    nodes = canonical_orders(rows, first)[0].annotator
    items, annotators = nodes[nodes < data.n_items], nodes[nodes >= data.n_items] - data.n_items
    place = np.argsort(items)
    left, right, outcome = place[left], place[right], data.outcome
    covariates = dict(data.covariates)
    if not data.sides_known:
        covariates = covariates_in_order_of_codes(left, right, covariates)
        left, right, outcome = in_order_of_codes(left, right, outcome)
    annotator = np.argsort(annotators)[annotator]
    keys: list[NDArray[Any]] = [*covariates.values(), outcome, right, left, annotator]
    order = np.lexsort(keys)
    made = data.from_codes(
        *(codes[order] for codes in (left, right, annotator, outcome)),
        items=data.items.take(as_arrow(items)),
        annotators=data.annotators.take(as_arrow(annotators)),
        covariates={name: values[order] for name, values in covariates.items()},
        sides_known=data.sides_known,
        frame=data.frame,
    )
    weight = data.annotator_weight
    return replace(made, annotator_weight=None if weight is None else weight[annotators])


def _colors_of_comparisons(data: Comparisons) -> Colors:
    """Return hashes of the covariates, as seen from the winner where sides are not known."""
    colors = np.ones(data.n_comparisons, dtype=np.uint64)
    for values in data.covariates.values():
        seen = np.asarray(values, dtype=np.float64)
        if not data.sides_known:
            seen = np.choose(data.outcome, [seen, -seen, abs(seen)])
        colors = mix_bits(colors + mix_bits((seen + 0.0).view(np.uint64)))  # -0.0 is 0.0
    return colors


def _colors_of_nodes(data: Comparisons) -> Colors:
    """Return hashes of items, which are alike, and of annotators, by their weights."""
    item, annotator = _distinct_colors(2)
    of_annotators = np.full(data.n_annotators, annotator)
    if data.annotator_weight is not None:
        weight = np.ascontiguousarray(data.annotator_weight, dtype=np.float64)
        of_annotators = mix_bits(of_annotators + mix_bits(weight.view(np.uint64)))
    return np.concatenate([np.full(data.n_items, item), of_annotators])


def _distinct_colors(n: int) -> Colors:
    return mix_bits(np.arange(1, n + 1, dtype=np.uint64))  # not 0, whose hash is 0
