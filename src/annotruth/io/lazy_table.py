"""Tables that are made when they are written: whole, or piece by piece where that is too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class LazyTable:
    """A table of which pieces are made as they are asked for, as slices of an Arrow table are.

    Attributes
    ----------
    num_rows
        How many rows there are to ask for. Where a row asked for stands for several, or none,
        the pieces are longer or shorter than what was asked.
    make
        Makes some of the rows.
    at_once
        Whether there is room for all of it.
    """

    num_rows: int
    make: Callable[[slice], pa.Table]
    at_once: bool = False

    def slice(self, start: int, length: int) -> pa.Table:
        """Make ``length`` rows from ``start`` on, or as many as there are."""
        return self.make(slice(start, min(start + length, self.num_rows)))

    def whole(self) -> pa.Table:
        """Make all rows."""
        return self.slice(0, self.num_rows)
