"""Numbers on a continuous scale in bins, each of which is a category."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, option, shown
from annotruth.observations.scale import (
    Bins,
    Scale,
    first_not_number,
    parse_numbers,
    to_categories,
)


def make_bins(observed: pa.Array, bins: Bins) -> tuple[Scale, NDArray[np.int32]]:
    """Return an ordinal scale of bins, and the bin of each observed number.

    A bin reaches from its lower edge up to, not including, its upper edge; the last one includes
    it. Its value is its centre, so that expectations stay on the scale of the numbers.
    """
    numbers = parse_numbers(observed, leading_zeros=True)
    if numbers is None:
        text = shown(first_not_number(observed, leading_zeros=True))
        raise InputError(
            f"label {text} is not a number, so no bin can hold it: leave out {option('bins')}"
        )
    edges = _edges(numbers, bins)
    outside = np.flatnonzero((numbers < edges[0]) | (numbers > edges[-1]))
    if len(outside):
        raise InputError(
            f"label {numbers[outside[0]]:g} is outside the bins {edges[0]:g} to {edges[-1]:g}: "
            "give wider edges"
        )
    centres = (edges[:-1] + edges[1:]) / 2.0
    scale = Scale("ordinal", to_categories(centres), centres, edges)
    return scale, scale.codes_of(observed)


def _edges(numbers: NDArray[np.float64], bins: Bins) -> NDArray[np.float64]:
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if not 2 <= bins <= 1000:
            raise InputError(
                f"{option('bins')} is {bins}: choose from 2 to 1000 bins, or give their edges"
            )
        low, high = _round_outward(float(numbers.min()), float(numbers.max()))
        return np.linspace(low, high, int(bins) + 1)
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 3 or not (np.diff(edges) > 0).all():
        raise InputError(
            f"{option('bins')} is {shown(bins)}: give the number of bins, or at least three ascending "
            "edges"
        )
    if not np.isfinite(edges).all():
        raise InputError("an edge of the bins is infinite: edges must be finite numbers")
    return edges


def _round_outward(low: float, high: float) -> tuple[float, float]:
    """Return the range widened to round numbers: 2 to 98 is a slider from 0 to 100."""
    if not math.isfinite(high - low):
        raise InputError("the labels are too far apart for bins of equal width: give their edges")
    if high == low:
        return low - 0.5, high + 0.5
    unit = 10.0 ** math.floor(math.log10(high - low))
    below, above = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return min(low, below), max(high, above)
