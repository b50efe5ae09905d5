"""A session whose labels lie in chunks, each swept by a task of Spark's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.memory import (
    MemoryEngine,
    MemorySession,
    find_kernel,
    use_single_precision,
)
from annotruth.engines.protocol import Extent, Pass
from annotruth.engines.spark.chunks import Chunk, Loaded, Slices, load
from annotruth.engines.spark.storage import Storage
from annotruth.engines.spark.tasks import run_tasks
from annotruth.kernels.arrays import Floats
from annotruth.labels.buffers import as_numpy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")


@dataclass
class ItemArray:
    """An item-side array: how it is laid out, and in which file each chunk's part is.

    A part that no task has written yet has no file, and is zero.
    """

    per: Extent
    shape: tuple[int, ...]
    files: list[str | None]


@dataclass(frozen=True)
class Shared:
    """An argument by annotator, in a file of which a chunk takes its own annotators."""

    file: str
    shape: tuple[int, ...]
    axis: int

    def of(self, storage: Storage, people: NDArray[np.int64]) -> NDArray[Any]:
        """Take some annotators."""
        whole = as_numpy(storage.read(self.file)["values"]).reshape(self.shape)
        return whole.take(people, axis=self.axis)


class Job(NamedTuple):
    """What a task needs to sweep a chunk."""

    storage: Storage
    chunks: list[Chunk]
    one: Pass
    state: dict[str, ItemArray]
    shared: dict[str, Any]
    slices: Slices


class Swept(NamedTuple):
    """What a task tells of its chunk: the files of changed parts, and sums."""

    state: dict[str, str]
    by_annotator: str | None
    others: list[Floats]


class SparkPasses:
    """Labels in chunks with their item-side arrays, in a folder that all workers reach.

    A pass reads a chunk's files and writes new ones. Only when all tasks are done does the driver
    take up the new names and remove the old files, so a task that dies is simply run again.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        chunks: list[Chunk],
        n_annotators: int,
        on_close: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._storage = storage
        self._chunks = chunks
        self._n_annotators = n_annotators
        self._state: dict[str, ItemArray] = {}
        self._on_close = on_close

    def allocate(self, name: str, per: Extent, shape: tuple[int, ...] = ()) -> None:
        """Make an item-side array of zeros: one entry, or one of ``shape``, per item or so."""
        self._replace(name, ItemArray(per, shape, [None] * len(self._chunks)))

    def put(self, name: str, values: NDArray[Any], per: Extent) -> None:
        """Lay an array of the caller's beside the labels, in the order of the chunks."""
        ends = np.cumsum([0, *(_length(chunk, per) for chunk in self._chunks)])
        if len(values) != ends[-1]:
            raise ValueError(f"{name} has {len(values)} entries for {ends[-1]} {per}")
        files: list[str | None] = [
            self._storage.write("state", {"values": values[start:stop]})
            for start, stop in pairwise(ends)
        ]
        self._replace(name, ItemArray(per, values.shape[1:], files))

    def _replace(self, name: str, array: ItemArray) -> None:
        old, self._state[name] = self._state.get(name), array
        if old is not None:
            self._storage.remove(file for file in old.files if file is not None)

    def run_pass(self, one: Pass, **inputs: Any) -> dict[str, Floats]:
        """Run a kernel over all chunks and return the sums by name."""
        width = sum(
            math.prod(total.shape) // self._n_annotators
            for total in one.sums
            if total.annotator_axis is not None
        )
        job = Job(
            storage=self._storage,
            chunks=self._chunks,
            one=one,
            state={name: self._state[name] for name in one.state},
            shared={
                declared.name: self._handed_over(value, declared.annotator_axis)
                for declared, value in zip(one.inputs, one.ordered(inputs), strict=True)
            },
            slices=Slices.of(self._chunks, self._n_annotators, width),
        )
        results = run_tasks(self._spark, partial(_pass_over_chunk, job), len(self._chunks))
        self._take_up([result.state for result in results])
        shared = (value for value in job.shared.values() if isinstance(value, Shared))
        self._storage.remove(value.file for value in shared)
        files = [result.by_annotator for result in results if result.by_annotator is not None]
        added = job.slices.added(self._spark, self._storage, files, width) if files else ()
        return one.named(_sums(one, added, [result.others for result in results]))

    def run_over_annotators(self, kernel: str, n_annotators: int, *arrays: Any) -> None:
        """Run ``kernel(lo, hi, *arrays)`` over the annotators, on the driver."""
        find_kernel(MemorySession.kernel_package, kernel)(0, n_annotators, *arrays)

    def single_precision(self, tol: float) -> bool:
        """Whether large tables are held in single precision, given the stopping tolerance."""
        return use_single_precision(sum(chunk.n_labels for chunk in self._chunks), tol)

    def _handed_over(self, value: Any, axis: int | None) -> Any:
        """Put what has one entry an annotator into a file; the rest goes with the task."""
        if axis is None or value.shape[axis] != self._n_annotators:
            return value
        file = self._storage.write("shared", {"values": value})
        return Shared(file, value.shape, axis)

    def _take_up(self, told: list[dict[str, str]]) -> None:
        """Go over to the new files of what has changed."""
        old = []
        for place, files in enumerate(told):
            for name, file in files.items():
                known = self._state[name].files
                old.append(known[place])
                known[place] = file
        self._storage.remove(file for file in old if file is not None)

    def each(
        self, read: Callable[[Loaded, dict[str, NDArray[Any]]], Result], names: tuple[str, ...]
    ) -> list[Result]:
        """Read something off every chunk and its parts of item-side arrays, where it is."""
        state = {name: self._state[name] for name in names}
        work = partial(_read_chunk, self._storage, self._chunks, state, read)
        return run_tasks(self._spark, work, len(self._chunks))

    def collect(self, name: str) -> NDArray[Any]:
        """Bring an item-side array back whole."""
        array = self._state[name]
        parts = [
            _part(self._storage, chunk, array, place) for place, chunk in enumerate(self._chunks)
        ]
        return np.concatenate(parts)

    def close(self) -> None:
        """Remove what the session has written."""
        self._on_close()


def _pass_over_chunk(job: Job, place: int) -> Swept:
    """Run the pass over one chunk as over labels in memory, with the annotators that it has."""
    chunk = job.chunks[place]
    labels, people = load(job.storage, chunk.file)
    n = len(people)
    local = replace(
        job.one,
        sums=tuple(
            replace(total, shape=_with(total.shape, total.annotator_axis, n))
            for total in job.one.sums
        ),
    )
    before = {name: _part(job.storage, chunk, array, place) for name, array in job.state.items()}
    session = MemoryEngine(threads=1).open(labels)
    for name, array in job.state.items():
        session.put(name, before[name].copy(), array.per)
    inputs = {
        name: value.of(job.storage, people) if isinstance(value, Shared) else value
        for name, value in job.shared.items()
    }
    sums = session.run_pass(local, **inputs)
    changed = {
        name: job.storage.write("state", {"values": session.collect(name)})
        for name, array in job.state.items()
        if array.files[place] is None or not np.array_equal(session.collect(name), before[name])
    }
    by_annotator = [
        np.moveaxis(sums[total.name], total.annotator_axis, 0).reshape(n, -1)
        for total in job.one.sums
        if total.annotator_axis is not None
    ]
    return Swept(
        changed,
        job.slices.write(job.storage, people, np.concatenate(by_annotator, axis=1))
        if by_annotator
        else None,
        [sums[total.name] for total in job.one.sums if total.annotator_axis is None],
    )


def _read_chunk(
    storage: Storage,
    chunks: list[Chunk],
    state: dict[str, ItemArray],
    read: Callable[[Loaded, dict[str, NDArray[Any]]], Result],
    place: int,
) -> Result:
    chunk = chunks[place]
    parts = {name: _part(storage, chunk, array, place) for name, array in state.items()}
    return read(load(storage, chunk.file), parts)


def _part(storage: Storage, chunk: Chunk, array: ItemArray, place: int) -> NDArray[Any]:
    """Read a chunk's part of an item-side array."""
    shape = (_length(chunk, array.per), *array.shape)
    file = array.files[place]
    return (
        np.zeros(shape) if file is None else as_numpy(storage.read(file)["values"]).reshape(shape)
    )


def _length(chunk: Chunk, per: Extent) -> int:
    return {"items": chunk.n_items, "cells": chunk.n_cells, "labels": chunk.n_labels}[per]


def _with(shape: tuple[int, ...], axis: int | None, n: int) -> tuple[int, ...]:
    return shape if axis is None else (*shape[:axis], n, *shape[axis + 1 :])


def _sums(
    one: Pass, added: Iterable[tuple[slice, Floats]], others: list[list[Floats]]
) -> tuple[Floats, ...]:
    """Put the added numbers of annotators where they belong, and add up the other sums."""
    rest = (np.add.reduce(list(parts), axis=0) for parts in zip(*others, strict=True))
    sums = [
        next(rest) if total.annotator_axis is None else np.empty(total.shape) for total in one.sums
    ]
    for at, part in added:
        column = 0
        for total, values in zip(one.sums, sums, strict=True):
            if total.annotator_axis is not None:
                place = np.moveaxis(values, total.annotator_axis, 0)[at]
                width = math.prod(place.shape[1:])
                place[...] = part[:, column : column + width].reshape(place.shape)
                column += width
    return tuple(sums)
