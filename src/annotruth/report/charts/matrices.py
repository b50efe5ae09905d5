"""Matrices: squares that are darker for larger shares, of two codings or of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.report.charts.chart import NORMAL_WIDTH, Chart
from annotruth.report.charts.drawing import TICK_LETTER, Drawing, shorten, text_width

_MAX_PAIR_SIDE = 40.0
_MAX_WIN_SIDE = 34.0
_MIN_WIN_SIDE = 12.0  # at least, for the numbers above the columns


def matrix_chart(
    name: str, title: str, caption: str, names: Sequence[str], counts: Any,
    keys: tuple[str, str, str], titles: tuple[str, str], *, tips: Sequence[str] = (),
    width: float = NORMAL_WIDTH,
) -> Chart:  # fmt: skip
    """Chart counts of two codings: what rows, columns and counts are in the data, and titles."""
    rows, columns = ([names[k] for k in axis.ravel()] for axis in np.indices(counts.shape))
    row, column, count = keys
    data = {row: rows, column: columns, count: counts.ravel().tolist()}
    texts = tips or [
        f"{row} {r}, {column} {c}: {n:,}" for r, c, n in zip(*data.values(), strict=True)
    ]
    shown = np.asarray(counts).round().astype(np.int64)
    return Chart(
        name,
        title,
        caption,
        data,
        lambda width: confusion_matrix(names, shown, width, texts, titles),
        width=width,
    )


def confusion_matrix(
    names: Sequence[str], counts: Codes, width: float, tips: Sequence[str],
    titles: tuple[str, str] = ("recovered ↓", "label given →"),
) -> Drawing:  # fmt: skip
    """Draw counts as squares, darker for a larger share of the row."""
    rows = counts.sum(axis=1, keepdims=True)
    share = counts / np.where(rows > 0, rows, 1)
    texts = [_short_count(count) for count in counts.ravel().tolist()]
    return heatmap(names, names, share, width, tips, titles, texts)


def heatmap(
    rows: Sequence[str], columns: Sequence[str], share: Floats, width: float,
    tips: Sequence[str], titles: tuple[str, str] = ("", ""), texts: Sequence[str] = (),
) -> Drawing:  # fmt: skip
    """Draw shares as squares, darker where they are larger; nan stays empty.

    ``tips`` and ``texts``, what is written into the squares, have one entry per square, row by row.
    """
    n = len(rows)
    left = max(text_width(rows, width * 0.35), 88.0)
    side = min((width - left - 12) / n, 44.0)
    top = 44.0 if any(titles) else 28.0
    drawing = Drawing(width, top + side * n + 12)
    drawing.text(left, 14, titles[1], "at-tick")
    drawing.text(left - 8, 14, titles[0], "at-tick", "end")
    for k in range(n):
        middle = side * (k + 0.5)
        drawing.text(left + middle, top - 8, shorten(columns[k], side + 8), anchor="middle")
        drawing.text(left - 8, top + middle + 4, shorten(rows[k], left), anchor="end")
        for g in np.flatnonzero(~np.isnan(share[k])).tolist():
            x, y = left + side * g + 1, top + side * k + 1
            at = k * n + g
            text = texts[at] if texts else ""
            drawing.shade(x, y, side - 2, max(float(share[k, g]), 0.0), tips[at], text)
    drawing.rect(left, top, side * n, side * n, "at-frame")
    return drawing


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
            drawing.shade(side * j, y, side - 1, 0.08 + 0.92 * darkness, tips[i][j], text)
        drawing.text(side * i + 4, y + height / 2 + 3, shorten(name, room))
    return drawing


def hundredths(share: float) -> str:
    """Return a share in hundredths, rounded down so that only 1 itself is equality: "="."""
    return "=" if share >= 1.0 - 1e-12 else f"{np.floor(100.0 * share):.0f}"


def fitting_items(n: int, names: Sequence[str], width: float) -> int:
    """Return how many of n items a matrix of this width has room for, the first of them."""
    return min(n, int((width - _win_room(names, width) - 4) / _MIN_WIN_SIDE))


def win_matrix(names: Sequence[str], wins: Floats, ties: Floats, width: float) -> Drawing:
    """Draw a square per pair: blue where the item of the row was preferred, orange where not.

    ``names``: the names of the items, best first; columns have their numbers.
    ``wins``: items x items: how often the item of the row was preferred to that of the column.
    ``ties``: items x items: how often neither was.
    ``width``: the width of the drawing; only the first items are drawn if there is no room for all.
    """
    n = fitting_items(len(names), names, width)
    left, top = _win_room(names, width), 22.0
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
        share = (wins[k, g] + ties[k, g] / 2.0) / votes[k, g]
        tip = _win_tip(names[k], names[g], wins[k, g], wins[g, k], ties[k, g])
        x, y = left + side * g + 0.5, top + side * k + 0.5
        drawing.balance(x, y, side - 1, float(share), tip, _percentage(float(share), side))
    drawing.rect(left, top, side * n, side * n, "at-frame")
    return drawing


def _win_room(names: Sequence[str], width: float) -> float:
    """Return the width of the names and numbers left of the matrix."""
    return text_width(names, width * (0.26 if width > 500 else 0.36)) + 26


def _win_tip(name: str, other: str, wins: float, losses: float, ties: float) -> str:
    text = f"{name} over {other}: {wins:.0f} to {losses:.0f}"
    return f"{text}, {ties:.0f} tied" if ties else text


def _percentage(share: float, side: float) -> str:
    """Return the percentage of votes for the item of the row where the square has room for it."""
    text = f"{100.0 * share:.0f}"
    return text if side >= 22 and len(text) * TICK_LETTER <= side - 4 else ""
