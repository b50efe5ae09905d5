"""How far an estimate may lie from the truth without the labels objecting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Floats
from annotruth.labels.buffers import as_arrow

Support = Callable[[Floats], tuple[Floats, Floats]]

# Half the 95% quantile of chi-squared with one degree of freedom.
DROP_95 = 1.9207294103470627

Z_95 = 1.959963984540054
"""How many standard deviations either way hold 95% of a Gaussian."""

_EDGE = 1e-9
_PRECISION = 0.01
_MOST_STEPS = 60


def likely_sets(probability: Floats, names: Sequence[str], share: float = 0.95) -> pa.Array:
    """Write out, for every row, the fewest categories that hold ``share``.

    Rows come as text, the names joined by a bar, in the scale's order.
    """
    order = np.argsort(-probability, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(probability, order, axis=1), axis=1)
    before = np.roll(before, 1, axis=1)
    before[:, 0] = 0.0
    within = np.zeros(probability.shape, dtype=bool)
    np.put_along_axis(within, order, before < share, axis=1)
    # Few different sets occur: each is written once.
    sets, place = np.unique(np.packbits(within, axis=1), axis=0, return_inverse=True)
    members = np.unpackbits(sets, axis=1, count=len(names)).astype(bool)
    told = [
        "|".join(name for name, is_in in zip(names, row, strict=True) if is_in) for row in members
    ]
    return as_arrow(told).take(as_arrow(place.ravel()))


def likelihood_interval(supports: Iterable[Support], peak: Floats) -> tuple[Floats, Floats]:
    """Find where each annotator's log-likelihood has fallen by 1.92 on either side of its peak.

    ``support(eps)`` returns, by annotator, the log-likelihood and its slope. It is concave in
    eps, so Newton's method from the far end runs toward the crossing without ever passing it;
    stopped early, the interval is only wider.

    The first of ``supports`` belongs to the estimate. Others belong to other values of what else
    is unknown of the annotators, each taken up when the one before is done with: the interval
    then holds what is within 1.92 of the estimate's log-likelihood under any of them.
    """
    floor, low, high = peak, peak, peak
    for turn, support in enumerate(supports):
        if turn == 0:
            floor = support(np.clip(peak, _EDGE, 1 - _EDGE))[0] - DROP_95
        # fmin and fmax pass over those who never come up to the floor.
        low = np.fmin(low, _crossing(support, floor, _EDGE))
        high = np.fmax(high, _crossing(support, floor, 1 - _EDGE))
    low[low <= 2 * _EDGE] = 0.0
    high[high >= 1 - 2 * _EDGE] = 1.0
    return low, high


def _crossing(support: Support, floor: Floats, end: float) -> Floats:
    """Run from one end of the scale to the floor; nan where the log-likelihood stays below it.

    Annotators may be millions, so arrays of theirs are used again.
    """
    eps = np.full_like(floor, end)
    never = np.zeros(len(eps), dtype=bool)
    for _ in range(_MOST_STEPS):
        value, slope = support(eps)
        short = np.subtract(floor, value, out=value)
        # Judged by the likelihood: near an end a tiny move of eps still changes it much.
        open_ = (short > _PRECISION) & ~never
        if not open_.any():
            break
        move = np.divide(short, slope, out=short, where=open_)
        move[~open_] = 0.0
        # Newton's method turns back only beyond a highest point that is below the floor.
        never |= move < 0 if end < 0.5 else move > 0
        np.add(eps, move, out=eps, where=~never)
        np.clip(eps, _EDGE, 1 - _EDGE, out=eps)
    eps[never] = np.nan
    return eps
