"""Sums over partitions of what has one row per annotator, added by ranges of annotators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from annotruth.engines.spark.partitions import Partition
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.engines.spark.tasks import RunTasks
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels.frames import as_numpy

_NUMBERS_PER_RANGE = 1 << 22  # of all partitions' sums, which one task adds
_MAX_RANGES = 1_000


class AnnotatorRanges(NamedTuple):
    """Ranges of annotator codes, so that no task holds the sums of all annotators.

    The driver adds the sums of a single range; tasks add those of several.

    Examples
    --------
    >>> from annotruth.engines.spark.annotator_sums import AnnotatorRanges
    >>> AnnotatorRanges(n_annotators=10, n_ranges=2).bounds().tolist()
    [0, 5, 10]
    """

    n_annotators: int
    n_ranges: int

    @classmethod
    def for_sums(
        cls, partitions: Sequence[Partition], n_annotators: int, n_columns: int
    ) -> AnnotatorRanges:
        """Choose ranges in which all partitions together have a few million numbers."""
        n_numbers = n_columns * sum(partition.n_annotators for partition in partitions)
        n_ranges = min(-(-n_numbers // _NUMBERS_PER_RANGE), _MAX_RANGES, n_annotators)
        return cls(n_annotators, max(n_ranges, 1))

    def bounds(self) -> Codes:
        """Return the ``n_ranges + 1`` bounds of the ranges."""
        ends: Codes = np.arange(self.n_ranges + 1, dtype=np.int64)
        return ends * self.n_annotators // self.n_ranges

    def write_sums(self, folder: SharedFolder, annotator_codes: Codes, sums: Floats) -> str:
        """Write a partition's sums, annotators x columns, one batch per range."""
        bounds = np.searchsorted(annotator_codes, self.bounds())
        return folder.write_batches(
            "sums",
            (
                {"annotator_codes": annotator_codes[start:stop], "sums": sums[start:stop]}
                for start, stop in pairwise(bounds)
            ),
        )

    def add_sums(
        self, run_tasks: RunTasks, folder: SharedFolder, files: list[str], n_columns: int
    ) -> Iterator[tuple[slice, Floats]]:
        """Add the partitions' sums, and remove their files.

        Yields the ranges in order: the slice of annotator codes, and the sums, annotators x
        columns.
        """
        added: list[str] = []
        if self.n_ranges > 1:
            task = partial(_write_range, self, folder, files, n_columns)
            added = run_tasks(task, self.n_ranges)
        for number, (start, stop) in enumerate(pairwise(self.bounds().tolist())):
            if added:
                sums = as_numpy(folder.read(added[number])["sums"]).reshape(-1, n_columns)
            else:
                sums = self.add_range(folder, files, n_columns, number)
            yield slice(start, stop), sums
        folder.remove([*files, *added])

    def add_range(
        self, folder: SharedFolder, files: list[str], n_columns: int, number: int
    ) -> Floats:
        """Add the sums of one range in the order of the partitions, so that rounding is the same."""
        start, stop = self.bounds()[number : number + 2]
        total = np.zeros((stop - start, n_columns))
        for file in files:
            batch = folder.read(file, number)
            rows = as_numpy(batch["annotator_codes"]) - start
            total[rows] += as_numpy(batch["sums"]).reshape(-1, n_columns)
        return total


def _write_range(
    ranges: AnnotatorRanges, folder: SharedFolder, files: list[str], n_columns: int, number: int
) -> str:
    return folder.write("sums", {"sums": ranges.add_range(folder, files, n_columns, number)})
