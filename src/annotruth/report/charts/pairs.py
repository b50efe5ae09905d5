"""A triangle of numbers, one per pair of names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.report.charts.drawing import Drawing, shorten, text_width

_MAX_SIDE = 40.0


def pair_triangle(
    names: Sequence[str], share: Floats, width: float, tips: Sequence[Sequence[str]]
) -> Drawing:
    """Draw a square with its number for each pair: row i has those with the names above it.

    The name of a row stands to its right, above the squares of its column. So there is room for
    the names and the numbers of 15 models on a phone.

    ``names``: the names, in the order of the rows.
    ``share``: names x names: at most 1, of which the lower triangle is drawn; nan stays empty.
    ``tips``: names x names: what each square shows as its tip.
    """
    n = len(names)
    room = text_width(names, width * 0.45)
    side = min((width - room) / max(n - 1, 1), _MAX_SIDE)
    height = max(side, 16.0)
    drawing = Drawing(width, height * n + 4)
    drawn = share[np.tril_indices(n, -1)]
    lowest = min(float(np.nanmin(drawn, initial=1.0)), 0.99)
    for i, name in enumerate(names):
        y = height * i + 2
        for j in np.flatnonzero(~np.isnan(share[i, :i])).tolist():
            darkness = (float(share[i, j]) - lowest) / (1.0 - lowest)
            text = hundredths(float(share[i, j]))
            drawing.shade(side * j, y, side - 1, 0.08 + 0.92 * darkness, tips[i][j], text)
        drawing.text(side * i + 4, y + height / 2 + 3, shorten(name, room))
    return drawing


def hundredths(share: float) -> str:
    """Return a share in hundredths, rounded down so that only 1 itself is equality: "="."""
    return "=" if share >= 1.0 - 1e-12 else f"{np.floor(100.0 * share):.0f}"
