"""Tables that are made piece by piece, for files, where all of one would not fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Pieces:
    """A table of which pieces are made as they are asked for, as slices of an Arrow table are.

    Attributes
    ----------
    num_rows
        How many rows there are to ask for. Where a row asked for stands for several, or none,
        the pieces are longer or shorter than what was asked.
    make
        Makes some of the rows.
    """

    num_rows: int
    make: Callable[[slice], pa.Table]

    def slice(self, start: int, length: int) -> pa.Table:
        """Make ``length`` rows from ``start`` on, or as many as there are."""
        return self.make(slice(start, min(start + length, self.num_rows)))
