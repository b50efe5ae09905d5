"""Chunks: the labels of some items, in a file that a task loads and sweeps as if it were all."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.engines.spark.storage import Storage
from annotruth.engines.spark.tasks import run_tasks
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels
from annotruth.labels.buffers import as_numpy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS_A_SLICE = 1 << 22  # of all chunks' sums, that one task adds up
_MOST_SLICES = 1_000
_ARRAYS = ("item_ptr", "cell_category", "cell_ptr", "annotator", "row", "known")


class Chunk(NamedTuple):
    """Where a chunk is, and how many it has of what."""

    file: str
    n_items: int
    n_cells: int
    n_labels: int
    n_annotators: int


class Loaded(NamedTuple):
    """A chunk's labels, and the codes that its annotators have among all, rising."""

    labels: Labels
    people: Codes


def write_chunk(storage: Storage, labels: Labels, people: Codes) -> Chunk:
    """Write labels of some items, whose annotators have the codes ``people`` among all."""
    file = storage.write(
        "chunk",
        {
            "items": labels.items,
            "annotators": labels.annotators,
            "scale": pa.array([pickle.dumps(labels.scale)], pa.large_binary()),
            "people": people,
            **{name: getattr(labels, name) for name in _ARRAYS},
        },
    )
    return Chunk(file, labels.n_items, labels.n_cells, labels.n_labels, labels.n_annotators)


@lru_cache(maxsize=4)
def load(storage: Storage, file: str) -> Loaded:
    """Read a chunk; a worker that meets it again in the next pass has it still."""
    columns = storage.read(file)
    arrays: dict[str, Any] = {name: as_numpy(columns[name]) for name in _ARRAYS}
    labels = Labels(
        items=columns["items"],
        annotators=columns["annotators"],
        scale=pickle.loads(columns["scale"][0].as_py()),
        **arrays,
    )
    return Loaded(labels, as_numpy(columns["people"]))


class Slices(NamedTuple):
    """How sums by annotator are cut, so that no task and no file holds those of all.

    Where there is one slice, the driver adds the chunks' sums up; more of them tasks do.
    """

    n_annotators: int
    n: int

    @classmethod
    def of(cls, chunks: Sequence[Chunk], n_annotators: int, width: int) -> Slices:
        """Cut so that a slice holds some millions of numbers of all chunks."""
        numbers = width * sum(chunk.n_annotators for chunk in chunks)
        n = min(-(-numbers // _NUMBERS_A_SLICE), _MOST_SLICES, n_annotators)
        return cls(n_annotators, max(n, 1))

    def bounds(self) -> Codes:
        """Return where slices begin and end among all annotators."""
        ends: Codes = np.arange(self.n + 1, dtype=np.int64) * self.n_annotators // self.n
        return ends

    def write(self, storage: Storage, people: Codes, sums: Floats) -> str:
        """Write a chunk's sums, annotators x numbers, slice by slice."""
        ends = np.searchsorted(people, self.bounds())
        return storage.write_parts(
            "sums",
            (
                {"people": people[start:stop], "sums": sums[start:stop]}
                for start, stop in pairwise(ends)
            ),
        )

    def added(
        self, spark: SparkSession, storage: Storage, files: list[str], width: int
    ) -> Iterator[tuple[slice, Floats]]:
        """Add the chunks' sums up, and remove their files.

        Gives slices one after the other: which annotators, and their sums, annotators x numbers.
        """
        parts: list[str] = []
        if self.n > 1:
            parts = run_tasks(spark, partial(_write_slice, self, storage, files, width), self.n)
        for place, (start, stop) in enumerate(pairwise(self.bounds().tolist())):
            if parts:
                sums = as_numpy(storage.read(parts[place])["sums"]).reshape(-1, width)
            else:
                sums = self.add_slice(storage, files, width, place)
            yield slice(start, stop), sums
        storage.remove([*files, *parts])

    def add_slice(self, storage: Storage, files: list[str], width: int, place: int) -> Floats:
        """Add up one slice, chunk after chunk: the same to the last bit wherever it is done."""
        start, stop = self.bounds()[place : place + 2]
        total = np.zeros((stop - start, width))
        for file in files:
            part = storage.read(file, place)
            total[as_numpy(part["people"]) - start] += as_numpy(part["sums"]).reshape(-1, width)
        return total


def _write_slice(slices: Slices, storage: Storage, files: list[str], width: int, place: int) -> str:
    return storage.write("sums", {"sums": slices.add_slice(storage, files, width, place)})
