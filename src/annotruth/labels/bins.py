"""Numbers from a continuous scale, such as a slider, put into bins that are categories."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.labels.formatting import shown
from annotruth.labels.scale import Scale, numbers_behind, whole_or_float

Bins = int | Sequence[float]
"""How many bins of equal width, or the edges of the bins."""

MANY_NUMBERS = 25
"""With more different numbers than this, a scale is taken to be continuous."""


def binned(observed: pa.Array, bins: Bins) -> tuple[Scale, NDArray[np.int32]]:
    """Make an ordinal scale of bins, and find the bin of each observed number.

    A bin reaches from its lower edge up to, not including, the next; the last one includes its
    upper edge. It counts with its centre, so that expectations stay on the scale of the numbers.
    """
    numbers = numbers_behind(observed)
    if numbers is None:
        word = next(v for v in observed.to_pylist() if numbers_behind(pa.array([v])) is None)
        raise InputError(f"label {shown(word)} is no number, so bins cannot hold it")
    edges = _edges(numbers, bins)
    outside = np.flatnonzero((numbers < edges[0]) | (numbers > edges[-1]))
    if len(outside):
        raise InputError(
            f"label {numbers[outside[0]]:g} is outside the bins {edges[0]:g} to {edges[-1]:g}: "
            "widen them"
        )
    centres = (edges[:-1] + edges[1:]) / 2.0
    scale = Scale("ordinal", whole_or_float(centres), centres, edges)
    return scale, scale.codes_of(observed)


def _edges(numbers: NDArray[np.float64], bins: Bins) -> NDArray[np.float64]:
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if not 2 <= bins <= 1000:
            raise InputError(f"bins={bins}: choose from 2 to 1000 bins, or give their edges")
        low, high = _rounded_outward(float(numbers.min()), float(numbers.max()))
        return np.linspace(low, high, int(bins) + 1)
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 3 or not (np.diff(edges) > 0).all():
        raise InputError(
            f"bins={shown(bins)}: give how many there are, or at least three rising edges"
        )
    if not np.isfinite(edges).all():
        raise InputError("an edge of the bins is infinite: edges must be finite numbers")
    return edges


def _rounded_outward(low: float, high: float) -> tuple[float, float]:
    """Widen the range to round numbers: 2 to 98 is a slider from 0 to 100."""
    if not math.isfinite(high - low):
        raise InputError("the labels are too far apart for bins of equal width: give their edges")
    if high == low:
        return low - 0.5, high + 0.5
    unit = 10.0 ** math.floor(math.log10(high - low))
    wide = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return min(low, wide[0]), max(high, wide[1])
