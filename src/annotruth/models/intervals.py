"""Profile likelihood intervals of reliabilities, and credible sets of categories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from annotruth.kernels.arrays import Floats
from annotruth.labels.buffers import as_arrow

Profile = Callable[[Floats], tuple[Floats, Floats]]
"""From reliabilities to each annotator's log-likelihood and its slope."""

# Half the 95% quantile of chi-squared with one degree of freedom.
DROP_95 = 1.9207294103470627

Z_95 = 1.959963984540054
"""The 97.5% quantile of the standard Gaussian."""

_EDGE = 1e-9
_PRECISION = 0.01
_MAX_STEPS = 60


def likely_sets(probability: Floats, names: Sequence[str], share: float = 0.95) -> pa.Array:
    """Return the smallest set of categories that contains ``share`` of each row's probability.

    A set is text: the names in the order of the scale, joined by "|".
    """
    order = np.argsort(-probability, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(probability, order, axis=1), axis=1)
    before = np.roll(before, 1, axis=1)
    before[:, 0] = 0.0
    within = np.zeros(probability.shape, dtype=bool)
    np.put_along_axis(within, order, before < share, axis=1)
    # Few different sets occur, so each text is made once.
    sets, place = np.unique(np.packbits(within, axis=1), axis=0, return_inverse=True)
    members = np.unpackbits(sets, axis=1, count=len(names)).astype(bool)
    texts = [
        "|".join(name for name, is_in in zip(names, row, strict=True) if is_in) for row in members
    ]
    return as_arrow(texts).take(as_arrow(place.ravel()))


def likelihood_interval(profiles: Iterable[Profile], peak: Floats) -> tuple[Floats, Floats]:
    """Return where each annotator's log-likelihood has fallen by 1.92 on either side of its maximum.

    ``profile(eps)`` returns the log-likelihood and its slope per annotator. It is concave in eps,
    so Newton's method from the far end approaches the crossing without passing it; stopped early,
    the interval is only wider.

    The first of ``profiles`` belongs to the estimate. Others belong to other values of the
    annotators' remaining parameters: the interval then contains the values within 1.92 of the
    estimate's log-likelihood under any of them.
    """
    floor, low, high = peak, peak, peak
    for number, profile in enumerate(profiles):
        if number == 0:
            floor = profile(np.clip(peak, _EDGE, 1 - _EDGE))[0] - DROP_95
        # fmin and fmax ignore NaN: profiles that never reach the floor.
        low = np.fmin(low, _crossing(profile, floor, _EDGE))
        high = np.fmax(high, _crossing(profile, floor, 1 - _EDGE))
    low[low <= 2 * _EDGE] = 0.0
    high[high >= 1 - 2 * _EDGE] = 1.0
    return low, high


def _crossing(profile: Profile, floor: Floats, end: float) -> Floats:
    """Return where the log-likelihood crosses the floor, from one end; NaN where it stays below it.

    There may be millions of annotators, so arrays are reused.
    """
    eps = np.full_like(floor, end)
    never = np.zeros(len(eps), dtype=bool)
    for _ in range(_MAX_STEPS):
        value, slope = profile(eps)
        shortfall = np.subtract(floor, value, out=value)
        # Convergence is measured on the likelihood, which near 0 and 1 changes fast with eps.
        active = (shortfall > _PRECISION) & ~never
        if not active.any():
            break
        move = np.divide(shortfall, slope, out=shortfall, where=active)
        move[~active] = 0.0
        # Newton's method changes direction only beyond a maximum that is below the floor.
        never |= move < 0 if end < 0.5 else move > 0
        np.add(eps, move, out=eps, where=~never)
        np.clip(eps, _EDGE, 1 - _EDGE, out=eps)
    eps[never] = np.nan
    return eps
