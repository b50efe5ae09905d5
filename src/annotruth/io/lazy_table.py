"""Tables that are made when they are written: all at once, or some rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class LazyTable:
    """A table whose rows are made on request, sliced as Arrow tables are.

    Attributes
    ----------
    num_rows
        The number of rows to request. Where a row requested yields several, or none, the tables
        returned are longer or shorter than requested.
    make_rows
        Makes some of the rows.
    fits_in_memory
        Whether all rows may be made at once.

    Examples
    --------
    >>> table = LazyTable(3, lambda rows: pa.table({"n": list(range(3))[rows]}))
    >>> table.slice(1, 5).to_pydict()
    {'n': [1, 2]}
    """

    num_rows: int
    make_rows: Callable[[slice], pa.Table]
    fits_in_memory: bool = False

    def slice(self, start: int, length: int) -> pa.Table:
        """Return ``length`` rows from ``start`` on, or as many as there are."""
        return self.make_rows(slice(start, min(start + length, self.num_rows)))

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self.slice(0, self.num_rows)
