"""Sort comparisons by annotator, on all cores where they are many."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import map_on_all_cores
from annotruth.labels.layout import kernels_for

# Rows are first distributed to so many ranges of annotators, so that the places that a range is
# sorted into are in the caches.
_MAX_RANGES = 256
_ROWS_PER_TASK, _MAX_TASKS = 1 << 18, 64


class InputCodes(NamedTuple):
    """The codes of comparisons in the order of the input.

    Examples
    --------
    >>> InputCodes._fields
    ('left', 'right', 'annotator', 'outcome')
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    annotator: NDArray[np.int32]
    outcome: NDArray[np.int8]


class SortedCodes(NamedTuple):
    """The codes of comparisons, sorted by annotator.

    Examples
    --------
    >>> SortedCodes._fields[:2]
    ('annotator_ptr', 'left')
    """

    annotator_ptr: NDArray[np.int64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    outcome: NDArray[np.int8]
    row: NDArray[np.int64]


def sort_codes(votes: InputCodes, n_annotators: int) -> SortedCodes:
    """Return comparisons sorted by annotator; those of one annotator stay in order.

    Examples
    --------
    >>> item, annotator = np.array([5, 6, 7], np.int32), np.array([1, 0, 1], np.int32)
    >>> votes = InputCodes(item, item, annotator, np.zeros(3, np.int8))
    >>> sorted_votes = sort_codes(votes, n_annotators=2)
    >>> sorted_votes.annotator_ptr.tolist(), sorted_votes.left.tolist(), sorted_votes.row.tolist()
    ([0, 1, 3], [6, 5, 7], [1, 0, 2])
    """
    left, right, annotator, outcome = votes
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
