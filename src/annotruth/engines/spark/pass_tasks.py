"""A pass over one partition, as a Spark task runs it, and the sums of all partitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import Pass
from annotruth.engines.spark.annotator_sums import AnnotatorRanges
from annotruth.engines.spark.item_arrays import StoredArray, read_values, write_values
from annotruth.engines.spark.partitions import Partition
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.kernels.arrays import Codes, Floats


@dataclass(frozen=True)
class StoredInput:
    """An input with one entry per annotator, in a file from which tasks take what they need.

    Examples
    --------
    >>> from annotruth.engines.spark.pass_tasks import StoredInput
    >>> StoredInput("input-1.arrow", (20,), np.dtype(np.float64), annotator_axis=0).shape
    (20,)
    """

    file: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    annotator_axis: int

    def read(self, folder: SharedFolder, annotator_codes: Codes) -> NDArray[Any]:
        """Return the entries of some annotators."""
        values = read_values(folder, self.file, self.shape, self.dtype)
        return values.take(annotator_codes, axis=self.annotator_axis)


@dataclass(frozen=True)
class PassTask:
    """What a task needs to run a pass over a partition: a function of the partition's number.

    ``inputs`` are by name, those with one entry per annotator as a `StoredInput`.

    Examples
    --------
    >>> from annotruth.engines.protocol import Pass
    >>> from annotruth.engines.spark.annotator_sums import AnnotatorRanges
    >>> from annotruth.engines.spark.pass_tasks import PassTask
    >>> from annotruth.engines.spark.shared_folder import SharedFolder
    >>> task = PassTask(SharedFolder("/tmp"), [], Pass("gpm.start"), {}, {}, AnnotatorRanges(10, 1))
    >>> task.one.kernel
    'gpm.start'
    """

    folder: SharedFolder
    partitions: Sequence[Partition]
    one: Pass
    state: dict[str, StoredArray]
    inputs: dict[str, Any]
    ranges: AnnotatorRanges

    def __call__(self, number: int) -> PartitionResult:
        """Run the pass as over data in memory, with the annotators of the partition."""
        folder, sums = self.folder, self.one.sums
        data, annotator_codes = self.partitions[number].load(folder)
        n = len(annotator_codes)
        local_pass = replace(
            self.one,
            sums=tuple(
                replace(one, shape=_local_shape(one.shape, one.annotator_axis, n)) for one in sums
            ),
        )
        session = MemoryEngine(threads=1).open(data)
        before = {
            name: array.read(folder, self.partitions, number) for name, array in self.state.items()
        }
        for name, array in self.state.items():
            session.put(name, before[name].copy(), array.per)
        inputs = {
            name: value.read(folder, annotator_codes) if isinstance(value, StoredInput) else value
            for name, value in self.inputs.items()
        }
        results = session.run_pass(local_pass, **inputs)
        changed = {
            name: write_values(folder, "state", session.collect(name))
            for name, array in self.state.items()
            if array.files[number] is None
            or not np.array_equal(session.collect(name), before[name])
        }
        by_annotator = [
            np.moveaxis(results[one.name], one.annotator_axis, 0).reshape(n, -1)
            for one in sums
            if one.annotator_axis is not None
        ]
        return PartitionResult(
            changed,
            self.ranges.write_sums(folder, annotator_codes, np.concatenate(by_annotator, axis=1))
            if by_annotator
            else None,
            [results[one.name] for one in sums if one.annotator_axis is None],
        )


class PartitionResult(NamedTuple):
    """What a task returns of a pass over its partition.

    Attributes
    ----------
    state
        The new files of the item-side arrays that have changed, by name.
    annotator_sums
        The file of the sums by annotator, if the pass has any.
    other_sums
        The other sums, in the order of the pass.

    Examples
    --------
    >>> from annotruth.engines.spark.pass_tasks import PartitionResult
    >>> PartitionResult({"theta": "theta-1.arrow"}, annotator_sums=None, other_sums=[]).state
    {'theta': 'theta-1.arrow'}
    """

    state: dict[str, str]
    annotator_sums: str | None
    other_sums: list[Floats]


def n_annotator_columns(one: Pass, n_annotators: int) -> int:
    """Return how many numbers per annotator the sums of a pass have."""
    return sum(
        math.prod(total.shape) // n_annotators
        for total in one.sums
        if total.annotator_axis is not None
    )


def combine_sums(
    one: Pass, by_annotator: Iterable[tuple[slice, Floats]], others: list[list[Floats]]
) -> dict[str, Floats]:
    """Return the sums of a pass by name.

    ``by_annotator`` are ranges of annotators and their sums, annotators x columns; ``others`` are
    the partitions' other sums, which are still to be added.
    """
    other_sums = (np.add.reduce(list(values), axis=0) for values in zip(*others, strict=True))
    sums = tuple(
        next(other_sums) if total.annotator_axis is None else np.empty(total.shape)
        for total in one.sums
    )
    for annotators, values in by_annotator:
        column = 0
        for declared, total in zip(one.sums, sums, strict=True):
            if declared.annotator_axis is not None:
                rows = np.moveaxis(total, declared.annotator_axis, 0)[annotators]
                n_columns = math.prod(rows.shape[1:])
                rows[...] = values[:, column : column + n_columns].reshape(rows.shape)
                column += n_columns
    return one.named(sums)


def _local_shape(
    shape: tuple[int, ...], annotator_axis: int | None, n_annotators: int
) -> tuple[int, ...]:
    """Return the shape of a sum over fewer annotators."""
    if annotator_axis is None:
        return shape
    return (*shape[:annotator_axis], n_annotators, *shape[annotator_axis + 1 :])
