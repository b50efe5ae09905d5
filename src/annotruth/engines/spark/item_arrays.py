"""Item-side arrays in files, one file per partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.protocol import Extent
from annotruth.engines.spark.partitions import LabelPartition
from annotruth.engines.spark.shared_folder import SharedFolder
from annotruth.labels.frames import as_numpy


@dataclass
class StoredArray:
    """An item-side array in files.

    Attributes
    ----------
    per, shape
        What it has an entry for, and the shape of an entry.
    files
        The file of each partition; None before a task has written it: the entries are zero.

    Examples
    --------
    >>> from annotruth.engines.spark.item_arrays import StoredArray
    >>> from annotruth.engines.spark.partitions import LabelPartition
    >>> from annotruth.engines.spark.shared_folder import SharedFolder
    >>> partition = LabelPartition("labels-1.arrow", 2, 3, 4, 2)
    >>> StoredArray("cells", (), [None]).read(SharedFolder("/tmp"), [partition], 0)
    array([0., 0., 0.])
    """

    per: Extent
    shape: tuple[int, ...]
    files: list[str | None]

    def read(
        self, folder: SharedFolder, partitions: Sequence[LabelPartition], number: int
    ) -> NDArray[Any]:
        """Return the entries of a partition."""
        shape = (partitions[number].length(self.per), *self.shape)
        file = self.files[number]
        if file is None:
            return np.zeros(shape)
        return as_numpy(folder.read(file)["values"]).reshape(shape)


def write_values(folder: SharedFolder, kind: str, values: NDArray[Any]) -> str:
    """Write an array to a new file, and return its name."""
    return folder.write(kind, {"values": values})
