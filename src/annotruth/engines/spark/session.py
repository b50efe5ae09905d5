"""A session on partitions: passes as tasks of workers, and tables written where the partitions are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import BuildTables, Extent, Pass, Sum
from annotruth.engines.spark.frames import SparkFrames, write_parquet
from annotruth.engines.spark.labels import SparkComparisons, SparkLabels
from annotruth.engines.spark.partitions import (
    AnnotatorRanges,
    LabelPartition,
    Partition,
    StoredArray,
    read_values,
    write_values,
)
from annotruth.engines.spark.storage import SharedFolder
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Codes, Floats


@dataclass(frozen=True)
class StoredInput:
    """An input with one entry per annotator, in a file from which tasks take what they need."""

    file: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    annotator_axis: int

    def read(self, folder: SharedFolder, annotator_codes: Codes) -> NDArray[Any]:
        """Return the entries of some annotators."""
        values = read_values(folder, self.file, self.shape, self.dtype)
        return values.take(annotator_codes, axis=self.annotator_axis)


class PartitionResult(NamedTuple):
    """What a task returns of a pass over its partition."""

    state: dict[str, str]  # the new files of the item-side arrays that have changed, by name
    annotator_sums: str | None  # the file of the sums by annotator, if the pass has any
    other_sums: list[Floats]  # the other sums, in the order of the pass


def _run_pass(
    folder: SharedFolder,
    partitions: Sequence[Partition],
    one: Pass,
    state: dict[str, StoredArray],
    stored: dict[str, Any],
    ranges: AnnotatorRanges,
    number: int,
) -> PartitionResult:
    """Run a pass over a partition as over data in memory, with the annotators of the partition.

    ``stored`` are the inputs by name, those with one entry per annotator as a `StoredInput`.
    """
    data, annotator_codes = partitions[number].load(folder)
    n = len(annotator_codes)
    session = MemoryEngine(threads=1).open(data)
    before = {name: array.read(folder, partitions, number) for name, array in state.items()}
    for name, array in state.items():
        session.put(name, before[name].copy(), array.per)
    inputs = {
        name: value.read(folder, annotator_codes) if isinstance(value, StoredInput) else value
        for name, value in stored.items()
    }
    local = tuple(replace(total, shape=_local_shape(total, n)) for total in one.sums)
    results = session.run_pass(replace(one, sums=local), **inputs)
    changed = {
        name: write_values(folder, "state", session.collect(name))
        for name, array in state.items()
        if array.files[number] is None or not np.array_equal(session.collect(name), before[name])
    }
    by_annotator = [
        np.moveaxis(results[total.name], total.annotator_axis, 0).reshape(n, -1)
        for total in one.sums
        if total.annotator_axis is not None
    ]
    file = None
    if by_annotator:
        file = ranges.write_sums(folder, annotator_codes, np.concatenate(by_annotator, axis=1))
    others = [results[total.name] for total in one.sums if total.annotator_axis is None]
    return PartitionResult(changed, file, others)


def _local_shape(total: Sum, n_annotators: int) -> tuple[int, ...]:
    """Return the shape of a sum over fewer annotators."""
    axis, shape = total.annotator_axis, total.shape
    return shape if axis is None else (*shape[:axis], n_annotators, *shape[axis + 1 :])


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


class PartitionedSession:
    """Data in partitions with the arrays beside them, in a folder that all workers can reach.

    A pass reads a partition's files and writes new ones. Only when all tasks are done does the
    driver switch to the new files and remove the old ones, so a task that is lost runs again.

    ``data``: The labels or comparisons, in whose folder the session writes.
    ``remove_data``: Whether closing the session removes the data and with them all of its own
      files; else closing the data does.
    """

    def __init__(self, data: SparkLabels | SparkComparisons, *, remove_data: bool = False) -> None:
        self._data = data
        self._folder = data.folder
        self._partitions: Sequence[Partition] = data.partitions
        self._state: dict[str, StoredArray] = {}
        self._remove_data = remove_data

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item, cell, label."""
        self._replace(name, StoredArray(per, shape, [None] * len(self._partitions)))

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Store an array beside the labels: one entry per item, cell or label."""
        bounds = np.cumsum([0, *(partition.length(per) for partition in self._partitions)])
        if len(values) != bounds[-1]:
            raise ValueError(f"{name} has {len(values)} entries for {bounds[-1]} {per}")
        files: list[str | None] = [
            write_values(self._folder, "state", values[start:stop])
            for start, stop in pairwise(bounds)
        ]
        self._replace(name, StoredArray(per, values.shape[1:], files, values.dtype))

    def _replace(self, name: str, array: StoredArray) -> None:
        old, self._state[name] = self._state.get(name), array
        if old is not None:
            self._folder.remove(file for file in old.files if file is not None)

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an item-side array by a function of it, which is computed on the driver."""
        self.put(name, function(self.collect(name)), self._state[name].per)

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a kernel over all partitions and return the sums by name."""
        n_annotators = self._data.n_annotators
        n_columns = sum(
            math.prod(total.shape) // n_annotators
            for total in one.sums
            if total.annotator_axis is not None
        )
        ranges = AnnotatorRanges.for_sums(self._partitions, n_annotators, n_columns)
        stored = {
            declared.name: self._store_input(value, declared.annotator_axis)
            for declared, value in zip(one.inputs, one.ordered(inputs), strict=True)
        }
        state = {name: self._state[name] for name in one.state}
        task = partial(_run_pass, self._folder, self._partitions, one, state, stored, ranges)
        results = self._data.run_tasks(task, len(self._partitions))
        self._switch_files([result.state for result in results])
        files = [value.file for value in stored.values() if isinstance(value, StoredInput)]
        self._folder.remove(files)
        files = [result.annotator_sums for result in results if result.annotator_sums is not None]
        added: Iterable[tuple[slice, Floats]] = ()
        if files:
            added = ranges.add_sums(self._data.run_tasks, self._folder, files, n_columns)
        return combine_sums(one, added, [result.other_sums for result in results])

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array: this engine computes in memory."""
        return values

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array, which is in memory."""
        array: NDArray[Any] = values
        return array

    def run_over_annotators(self, kernel: str, n_annotators: int, **arrays: Any) -> None:
        """Run a kernel over all annotators, on the driver."""
        find_kernel(kernel)(0, n_annotators, **arrays)

    def map_groups(self, compute: Callable[..., Any], groups: Mapping[int, Any]) -> list[Any]:
        """Return what a function computes of each group of annotators, on the driver."""
        return [compute(key, annotators) for key, annotators in groups.items() if len(annotators)]

    def _store_input(self, value: Any, annotator_axis: int | None) -> Any:
        """Write an input with one entry per annotator to a file; others travel with the task."""
        if annotator_axis is None or value.shape[annotator_axis] != self._data.n_annotators:
            return value
        file = write_values(self._folder, "input", value)
        return StoredInput(file, value.shape, value.dtype, annotator_axis)

    def _switch_files(self, new_files: list[dict[str, str]]) -> None:
        """Use the new files of the arrays that have changed, and remove the old ones."""
        old = []
        for number, files in enumerate(new_files):
            for name, file in files.items():
                array = self._state[name]
                old.append(array.files[number])
                array.files[number] = file
        self._folder.remove(file for file in old if file is not None)

    def collect(self, name: str) -> NDArray[Any]:
        """Return an item-side array of all items."""
        array = self._state[name]
        return np.concatenate(
            [
                array.read(self._folder, self._partitions, number)
                for number in range(len(self._partitions))
            ]
        )

    def close(self) -> None:
        """Remove the data, if the session is to do so."""
        if self._remove_data:
            self._data.close()


class SparkPassSession(PartitionedSession):
    """Labels in partitions; the tables of the results are written where the partitions are."""

    def __init__(self, labels: SparkLabels, *, remove_data: bool = False) -> None:
        super().__init__(labels, remove_data=remove_data)
        self._labels = labels

    def write_tables(self, build: BuildTables, arrays: tuple[str, ...]) -> SparkFrames:
        """Build the tables of every partition on the workers, and return frames of them."""
        frames = SparkFrames(self._labels)
        try:
            state = {name: self._state[name] for name in arrays}
            task = partial(
                _write_tables, build, self._folder, frames.folder, self._labels.partitions, state
            )
            files = self._labels.run_tasks(task, len(self._partitions))
            for name in files[0]:
                frames.add(name, [by_name[name] for by_name in files])
        except BaseException:
            frames.close()
            raise
        return frames


def _write_tables(
    build: BuildTables,
    source: SharedFolder,
    target: SharedFolder,
    partitions: list[LabelPartition],
    state: Mapping[str, StoredArray],
    number: int,
) -> dict[str, str]:
    """Write the tables of one partition, and return their files by name."""
    labels, _ = partitions[number].load(source)
    arrays = {name: array.read(source, partitions, number) for name, array in state.items()}
    tables = build(labels, arrays)
    return {name: write_parquet(target, name, table) for name, table in tables.items()}
