"""Matrices: squares that are darker for larger shares, of two codings or of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Floats
from annotruth.report.charts.chart import NORMAL_WIDTH, Chart
from annotruth.report.charts.drawing import TICK_LETTER, Drawing, shorten, text_width

_MAX_PAIR_SIDE = 40.0
_MAX_WIN_SIDE, _PERCENT_SIDE = 48.0, 36.0  # with the sign of percent from the latter on
_MIN_WIN_SIDE = 12.0  # at least, for the numbers above the columns


def matrix_chart(
    name: str, title: str, caption: str, names: Sequence[str], counts: Any,
    keys: tuple[str, str, str], titles: tuple[str, str], *, tips: Sequence[str] = (),
    width: float = NORMAL_WIDTH,
) -> Chart:  # fmt: skip
    """Chart counts of two codings, as shares of their row.

    ``keys``: what rows, columns and counts are in the data; ``titles``: those of rows and columns.
    ``tips``: one per square, row by row; by default the names and the count.
    """
    rows, columns = ([names[k] for k in axis.ravel()] for axis in np.indices(counts.shape))
    row, column, count = keys
    data = {row: rows, column: columns, count: counts.ravel().tolist()}
    tips = tips or [
        f"{row} {r}, {column} {c}: {n:,}" for r, c, n in zip(*data.values(), strict=True)
    ]
    counts = np.asarray(counts).round().astype(np.int64)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    n = len(names)

    def draw(width: float) -> Drawing:
        left, top = max(text_width(names, width * 0.35), 88.0), 44.0
        side = min((width - left - 12) / n, 44.0)
        drawing = Drawing(width, top + side * n + 12)
        drawing.text(left, 14, titles[1], "at-tick")
        drawing.text(left - 8, 14, titles[0], "at-tick", "end")
        for k, label in enumerate(names):
            middle = side * (k + 0.5)
            drawing.text(left + middle, top - 8, shorten(label, side + 8), anchor="middle")
            drawing.text(left - 8, top + middle + 4, shorten(label, left), anchor="end")
        for at, (k, g) in enumerate(np.ndindex(n, n)):
            x, y, text = left + side * g + 1, top + side * k + 1, _short_count(int(counts[k, g]))
            drawing.square(x, y, side - 2, float(share[k, g]), tips[at], text)
        drawing.rect(left, top, side * n, side * n, "at-frame")
        return drawing

    return Chart(name, title, caption, data, draw, width=width)


def _short_count(count: int) -> str:
    """Return a count in at most four letters, so that it fits into a square."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.2g}k" if count < 9_950 else f"{count / 1_000:,.0f}k"


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
    side = min((width - room) / max(n - 1, 1), _MAX_PAIR_SIDE)
    height = max(side, 16.0)
    drawing = Drawing(width, height * n + 4)
    drawn = share[np.tril_indices(n, -1)]
    lowest = min(float(np.nanmin(drawn, initial=1.0)), 0.99)
    for i, name in enumerate(names):
        y = height * i + 2
        for j in np.flatnonzero(~np.isnan(share[i, :i])).tolist():
            darkness = (float(share[i, j]) - lowest) / (1.0 - lowest)
            text = hundredths(float(share[i, j]))
            drawing.square(side * j, y, side - 1, 0.08 + 0.92 * darkness, tips[i][j], text)
        drawing.text(side * i + 4, y + height / 2 + 3, shorten(name, room))
    return drawing


def hundredths(share: float) -> str:
    """Return a share in hundredths, rounded down so that only 1 itself is equality: "="."""
    return "=" if share >= 1.0 - 1e-12 else f"{np.floor(100.0 * share):.0f}"


def win_matrix(names: Sequence[str], wins: Floats, ties: Floats, width: float) -> Drawing:
    """Draw a square per pair: blue where the item of the row was preferred, orange where not.

    ``names``: the names of the items, best first; columns have their numbers.
    ``wins``: items x items: how often the item of the row was preferred to that of the column.
    ``ties``: items x items: how often neither was.
    ``width``: the width of the drawing; only the first items are drawn if there is no room for all.
    """
    left, top = text_width(names, width * (0.26 if width > 500 else 0.36)) + 26, 22.0
    n = min(len(names), int((width - left - 4) / _MIN_WIN_SIDE))
    side = min((width - left - 4) / n, _MAX_WIN_SIDE)
    drawing = Drawing(width, top + side * n + 6)
    every = 1 if side >= 2.4 * TICK_LETTER or n < 10 else 2
    for k in range(n):
        middle = side * (k + 0.5)
        if k % every == 0:
            drawing.text(left + middle, top - 7, str(k + 1), "at-tick", "middle")
        label = shorten(names[k], left - 26)
        drawing.text(left - 24, top + middle + 4, label, anchor="end")
        drawing.text(left - 4, top + middle + 4, str(k + 1), "at-tick", "end")
    votes = wins + wins.T + ties
    for k, g in zip(*np.nonzero(votes[:n, :n]), strict=True):
        share = float((wins[k, g] + ties[k, g] / 2.0) / votes[k, g])
        tip = f"{names[k]} over {names[g]}: {share:.1%} of {votes[k, g]:,.0f} votes"
        tip += f" ({wins[k, g]:,.0f} to {wins[g, k]:,.0f}"
        tip += f", {ties[k, g]:,.0f} tied)" if ties[k, g] else ")"
        text = f"{share:.0%}" if side >= _PERCENT_SIDE else f"{100.0 * share:.0f}"
        has_room = side >= 22 and len(text) * TICK_LETTER <= side - 4
        drawing.square(
            *(left + side * g + 0.5, top + side * k + 0.5, side - 1, 2.0 * abs(share - 0.5)),
            *(tip, text if has_room else ""),
            css_class="at-heat" if share >= 0.5 else "at-warn",
            least=0.08,
            dark_from=0.6,
        )
    drawing.rect(left, top, side * n, side * n, "at-frame")
    return drawing
