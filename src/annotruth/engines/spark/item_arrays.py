"""Item-side arrays in files, one file per partition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.engines.protocol import Extent
from annotruth.engines.spark.partitions import Partition
from annotruth.engines.spark.shared_folder import SharedFolder, storage_errors
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
    dtype
        The type of the numbers.

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
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))

    def read(
        self, folder: SharedFolder, partitions: Sequence[Partition], number: int
    ) -> NDArray[Any]:
        """Return the entries of a partition."""
        shape = (partitions[number].length(self.per), *self.shape)
        file = self.files[number]
        if file is None:
            return np.zeros(shape)
        return read_values(folder, file, shape, self.dtype)


def read_values(
    folder: SharedFolder, file: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Read an array; kernels do not check lengths, so shape and type must be as written."""
    with storage_errors("read", folder.address_of(file)):
        columns = folder.read(file)
        if list(columns) != ["values"]:
            raise ValueError("it has other columns than values")
        values = as_numpy(columns["values"])
        if values.dtype != dtype or len(values) != math.prod(shape):
            raise ValueError(
                f"it has {len(values)} values of {values.dtype}, not {shape} of {dtype}"
            )
        return values.reshape(shape)


def write_values(folder: SharedFolder, kind: str, values: NDArray[Any]) -> str:
    """Write an array to a new file, and return its name."""
    return folder.write(kind, {"values": values})
