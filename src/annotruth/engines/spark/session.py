"""A session on labels in partitions, each of which a Spark task runs the passes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.distributed import BuildTables
from annotruth.engines.memory import MemorySession, find_kernel, use_single_precision
from annotruth.engines.protocol import Extent, Pass
from annotruth.engines.spark.annotator_sums import AnnotatorRanges
from annotruth.engines.spark.comparisons import SparkComparisons
from annotruth.engines.spark.frames import SparkFrames, write_parquet
from annotruth.engines.spark.item_arrays import StoredArray, write_values
from annotruth.engines.spark.labels import SparkLabels
from annotruth.engines.spark.partitions import LabelPartition, Partition, load_partition
from annotruth.engines.spark.pass_tasks import (
    PassTask,
    StoredInput,
    combine_sums,
    n_annotator_columns,
)
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.kernels.arrays import Floats


class PartitionedSession:
    """Data in partitions with the arrays beside them, in a folder that all workers can reach.

    A pass reads a partition's files and writes new ones. Only when all tasks are done does the
    driver switch to the new files and remove the old ones, so a task that is lost runs again.

    Parameters
    ----------
    data
        The labels or comparisons, in whose folder the session writes.
    remove_data
        Whether closing the session removes the data and with them all of its own files; else
        closing the data does.

    Examples
    --------
    >>> from contextlib import closing
    >>> from annotruth import SparkEngine
    >>> from annotruth.engines import Pass
    >>> from annotruth.io.options import ReadOptions
    >>> engine = SparkEngine()
    >>> labels = engine.read("crowd.votes", ReadOptions())  # doctest: +SKIP
    >>> with closing(engine.open(labels)) as session:  # doctest: +SKIP
    ...     session.allocate("theta", per="cells")
    ...     sums = session.run_pass(Pass("gpm.start", state=("theta",)))
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
        n_columns = n_annotator_columns(one, n_annotators)
        task = PassTask(
            folder=self._folder,
            partitions=self._partitions,
            one=one,
            state={name: self._state[name] for name in one.state},
            inputs={
                declared.name: self._store_input(value, declared.annotator_axis)
                for declared, value in zip(one.inputs, one.ordered(inputs), strict=True)
            },
            ranges=AnnotatorRanges.for_sums(self._partitions, n_annotators, n_columns),
        )
        results = self._data.run_tasks(task, len(self._partitions))
        self._switch_files([result.state for result in results])
        stored = (value for value in task.inputs.values() if isinstance(value, StoredInput))
        self._folder.remove(value.file for value in stored)
        files = [result.annotator_sums for result in results if result.annotator_sums is not None]
        added = (
            task.ranges.add_sums(self._data.run_tasks, self._folder, files, n_columns)
            if files
            else ()
        )
        return combine_sums(one, added, [result.other_sums for result in results])

    def without_items(self, name: str, value: float) -> PartitionedSession:
        """Return this session: passes skip the items where they are."""
        return self

    def to_engine(self, values: NDArray[Any], annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array: this engine computes in memory."""
        return values

    def to_host(self, values: Any, annotator_axis: int = 0) -> NDArray[Any]:
        """Return the array, which is in memory."""
        array: NDArray[Any] = values
        return array

    def run_over_annotators(self, kernel: str, n_annotators: int, *arrays: Any) -> None:
        """Run ``kernel(lo, hi, *arrays)`` over the annotators, on the driver."""
        find_kernel(MemorySession.kernel_package, kernel)(0, n_annotators, *arrays)

    def map_groups(self, compute: Callable[..., Any], groups: Mapping[int, Any]) -> list[Any]:
        """Return what a function computes of each group of annotators, on the driver."""
        return [compute(key, annotators) for key, annotators in groups.items() if len(annotators)]

    def single_precision(self, tol: float) -> bool:
        """Whether large tables are held in single precision, given the stopping tolerance."""
        return use_single_precision(self._data.n_labels, tol)

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
    """Labels in partitions; the tables of the results are written where the partitions are.

    Examples
    --------
    >>> from annotruth.engines.spark.session import PartitionedSession, SparkPassSession
    >>> issubclass(SparkPassSession, PartitionedSession)
    True
    """

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
    labels = load_partition(source, partitions[number]).labels
    arrays = {name: array.read(source, partitions, number) for name, array in state.items()}
    tables = build(labels, arrays)
    return {name: write_parquet(target, name, table) for name, table in tables.items()}
