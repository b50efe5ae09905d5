"""The win matrix: how often each item was preferred to each other one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.report.charts.drawing import Drawing, shorten, text_width

_MAX_SIDE = 34.0
_MIN_SIDE = 12.0  # at least, for the numbers above the columns
_DIGIT = 6.6


def fitting_items(n: int, names: Sequence[str], width: float) -> int:
    """Return how many of n items a matrix of this width has room for, the first of them."""
    return min(n, int((width - _room(names, width) - 4) / _MIN_SIDE))


def win_matrix(names: Sequence[str], wins: Floats, ties: Floats, width: float) -> Drawing:
    """Draw a square per pair: blue where the item of the row was preferred, orange where not.

    ``names``: the names of the items, best first; columns have their numbers.
    ``wins``: items x items: how often the item of the row was preferred to that of the column.
    ``ties``: items x items: how often neither was.
    ``width``: the width of the drawing; only the first items are drawn if there is no room for all.
    """
    n = fitting_items(len(names), names, width)
    left, top = _room(names, width), 22.0
    side = min((width - left - 4) / n, _MAX_SIDE)
    drawing = Drawing(width, top + side * n + 6)
    every = 1 if side >= 2.4 * _DIGIT or n < 10 else 2
    for k in range(n):
        middle = side * (k + 0.5)
        if k % every == 0:
            drawing.text(left + middle, top - 7, str(k + 1), "at-tick", "middle")
        label = shorten(names[k], left - 26)
        drawing.text(left - 24, top + middle + 4, label, anchor="end")
        drawing.text(left - 4, top + middle + 4, str(k + 1), "at-tick", "end")
    votes = wins + wins.T + ties
    for k, g in zip(*np.nonzero(votes[:n, :n]), strict=True):
        share = (wins[k, g] + ties[k, g] / 2.0) / votes[k, g]
        tip = _tip(names[k], names[g], wins[k, g], wins[g, k], ties[k, g])
        x, y = left + side * g + 0.5, top + side * k + 0.5
        drawing.balance(x, y, side - 1, float(share), tip, _percentage(float(share), side))
    drawing.rect(left, top, side * n, side * n, "at-frame")
    return drawing


def matrix_data(names: Sequence[str], wins: Floats, ties: Floats) -> dict[str, list[object]]:
    """Return the table behind the matrix, one row per pair that was compared."""
    above: Codes = np.argwhere(np.triu(wins + wins.T + ties, 1))
    return {
        "item": [names[k] for k, _ in above],
        "other": [names[g] for _, g in above],
        "wins": [int(wins[k, g]) for k, g in above],
        "losses": [int(wins[g, k]) for k, g in above],
        "ties": [int(ties[k, g]) for k, g in above],
        "share": [
            float((wins[k, g] + ties[k, g] / 2.0) / (wins[k, g] + wins[g, k] + ties[k, g]))
            for k, g in above
        ],
    }


def _room(names: Sequence[str], width: float) -> float:
    """Return the width of the names and numbers left of the matrix."""
    return text_width(names, width * (0.26 if width > 500 else 0.36)) + 26


def _tip(name: str, other: str, wins: float, losses: float, ties: float) -> str:
    text = f"{name} over {other}: {wins:.0f} to {losses:.0f}"
    return f"{text}, {ties:.0f} tied" if ties else text


def _percentage(share: float, side: float) -> str:
    """Return the percentage of votes for the item of the row where the square has room for it."""
    text = f"{100.0 * share:.0f}"
    return text if side >= 22 and len(text) * _DIGIT <= side - 4 else ""
