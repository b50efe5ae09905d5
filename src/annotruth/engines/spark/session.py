"""A session on partitions: passes as tasks of workers, and tables written where the partitions are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.memory import MemoryEngine
from annotruth.engines.protocol import BuildTables, Extent, Pass, Sum
from annotruth.engines.spark.frames import SparkFrames, write_parquet
from annotruth.engines.spark.labels import (
    LabelPartition,
    SparkLabels,
    load_partition,
    read_values,
    write_values,
)
from annotruth.engines.spark.storage import SharedFolder
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations.frames import as_numpy


@dataclass
class StoredArray:
    """An item-side array of floats in files."""

    per: Extent  # what it has an entry for, and the shape of an entry
    shape: tuple[int, ...]
    # the file of each partition; None before a task has written it: the entries are zero
    files: list[str | None]

    def read(
        self, folder: SharedFolder, partitions: Sequence[LabelPartition], number: int
    ) -> Floats:
        """Return the entries of a partition."""
        shape = (partitions[number].length(self.per), *self.shape)
        file = self.files[number]
        return np.zeros(shape) if file is None else read_values(folder, file, shape)


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


def _run_pass(
    folder: SharedFolder,
    partitions: Sequence[LabelPartition],
    one: Pass,
    state: dict[str, StoredArray],
    inputs: dict[str, Any],
    number: int,
) -> tuple[dict[str, str], str]:
    """Run a pass over a partition as over data in memory, with the annotators of the partition.

    ``inputs`` by name, those with one entry per annotator as a `StoredInput`. Returns the new files
    of the item-side arrays that have changed, by name, and the file of the sums.
    """
    labels, annotator_codes = load_partition(folder, partitions[number])
    session = MemoryEngine(threads=1).open(labels)
    before = {name: array.read(folder, partitions, number) for name, array in state.items()}
    for name, array in state.items():
        session.put(name, before[name].copy(), array.per)
    values = {
        name: value.read(folder, annotator_codes) if isinstance(value, StoredInput) else value
        for name, value in inputs.items()
    }
    local = (replace(each, shape=_local_shape(each, len(annotator_codes))) for each in one.sums)
    sums = session.run_pass(replace(one, sums=tuple(local)), **values)
    changed = {
        name: write_values(folder, "state", session.collect(name))
        for name, array in state.items()
        if array.files[number] is None or not np.array_equal(session.collect(name), before[name])
    }
    return changed, folder.write("sums", {"annotator_codes": annotator_codes, **sums})


def _local_shape(total: Sum, n_annotators: int) -> tuple[int, ...]:
    """Return the shape of a sum over fewer annotators."""
    axis, shape = total.annotator_axis, total.shape
    return shape if axis is None else (*shape[:axis], n_annotators, *shape[axis + 1 :])


class SparkPassSession:
    """Labels in partitions with the arrays beside them, in a folder that all workers can reach.

    A pass reads a partition's files and writes new ones. Only when all tasks are done does the
    driver switch to the new files and remove the old ones, so a task that is lost runs again.
    """

    def __init__(self, labels: SparkLabels) -> None:
        self._labels = labels
        self._folder = labels.folder
        self._partitions = labels.partitions
        self._state: dict[str, StoredArray] = {}

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item, cell, label."""
        self._replace(name, StoredArray(per, shape, [None] * len(self._partitions)))

    def put(self, name: str, values: Floats, per: Extent) -> None:
        """Store an array beside the labels: one entry per item, cell or label."""
        bounds = np.cumsum([0, *(partition.length(per) for partition in self._partitions)])
        files: list[str | None] = [
            write_values(self._folder, "state", values[start:stop])
            for start, stop in pairwise(bounds)
        ]
        self._replace(name, StoredArray(per, values.shape[1:], files))

    def _replace(self, name: str, array: StoredArray) -> None:
        old, self._state[name] = self._state.get(name), array
        if old is not None:
            self._folder.remove(old.files)

    def apply(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace an item-side array by a function of it, which is computed on the driver."""
        self.put(name, function(self.collect(name)), self._state[name].per)

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a kernel over all partitions and return the sums by name."""
        stored = {
            declared.name: self._store_input(value, declared.annotator_axis)
            for declared, value in zip(one.inputs, one.ordered(inputs), strict=True)
        }
        state = {name: self._state[name] for name in one.state}
        task = partial(_run_pass, self._folder, self._partitions, one, state, stored)
        results = self._labels.run_tasks(task, len(self._partitions))
        input_files = (value.file for value in stored.values() if isinstance(value, StoredInput))
        old: list[str | None] = [*input_files]
        for number, (changed, _) in enumerate(results):
            for name, file in changed.items():
                files = self._state[name].files
                old.append(files[number])
                files[number] = file
        sums = self._add_sums(one, [file for _, file in results])
        self._folder.remove([*old, *(file for _, file in results)])
        return sums

    def _add_sums(self, one: Pass, files: Sequence[str]) -> dict[str, Floats]:
        """Add the sums in the order of the partitions, so that rounding is always the same."""
        sums = {total.name: np.zeros(total.shape) for total in one.sums}
        for file in files:
            columns = self._folder.read(file)
            codes = as_numpy(columns["annotator_codes"])
            for total in one.sums:
                axis, added = total.annotator_axis, sums[total.name]
                values = as_numpy(columns[total.name]).reshape(_local_shape(total, len(codes)))
                if axis is None:
                    added += values
                else:
                    np.moveaxis(added, axis, 0)[codes] += np.moveaxis(values, axis, 0)
        return sums

    def _store_input(self, value: Any, annotator_axis: int | None) -> Any:
        """Write an input with one entry per annotator to a file; others travel with the task."""
        if annotator_axis is None or value.shape[annotator_axis] != self._labels.n_annotators:
            return value
        file = write_values(self._folder, "input", value)
        return StoredInput(file, value.shape, value.dtype, annotator_axis)

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

    def collect(self, name: str) -> Floats:
        """Return an item-side array of all items."""
        array = self._state[name]
        numbers = range(len(self._partitions))
        return np.concatenate([array.read(self._folder, self._partitions, n) for n in numbers])

    def write_tables(self, build: BuildTables, arrays: tuple[str, ...]) -> SparkFrames:
        """Build the tables of every partition on the workers, and return frames of them."""
        frames = SparkFrames(self._labels)
        try:
            state = {name: self._state[name] for name in arrays}
            task = partial(
                _write_tables, build, self._folder, frames.folder, self._partitions, state
            )
            files = self._labels.run_tasks(task, len(self._partitions))
            for name in files[0]:
                frames.add(name, [by_name[name] for by_name in files])
        except BaseException:
            frames.close()
            raise
        return frames

    def close(self) -> None:
        """Do nothing: closing the labels removes the files of the session."""


def _write_tables(
    build: BuildTables,
    source: SharedFolder,
    target: SharedFolder,
    partitions: list[LabelPartition],
    state: Mapping[str, StoredArray],
    number: int,
) -> dict[str, str]:
    """Write the tables of one partition, and return their files by name."""
    labels, _ = load_partition(source, partitions[number])
    arrays = {name: array.read(source, partitions, number) for name, array in state.items()}
    tables = build(labels, arrays)
    return {name: write_parquet(target, name, table) for name, table in tables.items()}
