"""Estimates with their intervals, and their columns in tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Floats


class Estimate(NamedTuple):
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


UNKNOWN_ESTIMATE = Estimate(*(float("nan"),) * 3)
"""The estimate of what cannot be measured."""


def numbers(values: Sequence[float] | Floats) -> pa.Array:
    """Return a column of numbers, null where there is none."""
    return pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)


def estimate_columns(name: str, estimates: Sequence[Estimate]) -> dict[str, pa.Array]:
    """Return three columns: the values, and the lower and upper ends of their intervals."""
    columns = np.array(estimates, dtype=np.float64).reshape(-1, 3).T
    ends = (name, f"{name}_low", f"{name}_high")
    return {end: numbers(column) for end, column in zip(ends, columns, strict=True)}
