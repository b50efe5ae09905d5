"""`Labels` whose arrays are on disk, so that memory holds a small part of them at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.labels.layout import RowCodes
from annotruth.labels.on_disk.disk import Disk
from annotruth.labels.table import Labels


@dataclass(frozen=True, eq=False, repr=False)
class MappedLabels(Labels):
    """Labels whose arrays, and whatever models put beside them, are on disk.

    What has one entry per item or annotator is in memory: ids, known truths.

    Attributes
    ----------
    disk
        Where the arrays are.
    rows
        The codes of the labels in row order.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> from annotruth import read_labels
    >>> table = pa.table({"item": ["a", "a"], "annotator": ["ann", "bob"], "label": [1, 2]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parquet.write_table(table, f"{folder}/labels.parquet")
    ...     labels = read_labels(f"{folder}/labels.parquet", memory="1GB")
    >>> type(labels).__name__, labels.on_disk
    ('MappedLabels', True)
    """

    on_disk: ClassVar[bool] = True

    disk: Disk = field(kw_only=True)
    rows: RowCodes = field(kw_only=True)

    def zeros(self, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array of zeros, on disk."""
        return self.disk.zeros(shape)

    def check_room(self, n_bytes: float, what: str) -> None:
        """Refuse what must be in memory and exceeds the memory that may be used."""
        self.disk.check_room(n_bytes, what)

    def to_codes(self, rows: slice = slice(None)) -> pa.Table:
        """Return some labels in row order, with dictionaries for ids."""
        return self._with_ids(*(np.array(codes[rows]) for codes in self.rows))

    def in_row_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return one value per label in row order, on disk."""
        return self.disk.in_row_order(values, self.row)
