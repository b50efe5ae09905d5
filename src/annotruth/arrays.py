"""The arrays that everything here passes around, by what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Probabilities, scores, sums."""

Codes: TypeAlias = NDArray[np.int64]
"""Places in a list: of items, annotators, categories, cells."""


def slices(n: int, at_once: int = 1 << 20) -> Iterator[slice]:
    """Cut ``n`` places into slices, so that work on a slice needs no array of all; at least one."""
    for start in range(0, max(n, 1), at_once):
        yield slice(start, min(start + at_once, n))
