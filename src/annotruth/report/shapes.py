"""The shapes of charts: each takes plain columns and a width and gives a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.report.drawing import Axis, Drawing, across, fitted, number, room_for, upward

ROW = 20.0
_A_POINT = 2.5  # least pixels from one drawn interval to the next


@dataclass(frozen=True, eq=False)
class Ranges:
    """Values with intervals, in the order in which they are drawn; intervals may be missing."""

    names: Sequence[str]
    value: Floats
    low: Floats | None
    high: Floats | None
    flagged: Sequence[bool]
    domain: tuple[float, float]
    title: str
    limit: float | None = None
    digits: int = 2

    def tip(self, at: int) -> str:
        """Tell one of them in a line."""
        told = f"{self.names[at]}: {self.value[at]:.{self.digits}f}"
        if self.low is None or self.high is None or np.isnan(self.low[at]):
            return told
        low, high = (f"{end[at]:.{self.digits}f}" for end in (self.low, self.high))
        return f"{told} (95% interval {low} to {high})"

    def interval(self, at: int) -> tuple[float, float]:
        """Return the ends of one interval, within the domain."""
        ends = (side[at] if side is not None else self.value[at] for side in (self.low, self.high))
        kept = (self.value[at] if np.isnan(end) else end for end in ends)
        low, high = np.clip(list(kept), *self.domain)
        return float(low), float(high)


def named_ranges(ranges: Ranges, width: float) -> Drawing:
    """Draw a dot and its interval in a row for each name."""
    left = room_for(ranges.names, width * 0.35)
    on = Drawing(width, ROW * len(ranges.names) + 46)
    axis = Axis(*ranges.domain, left, width - 12)
    bottom = 6 + ROW * len(ranges.names)
    across(on, axis, 4, bottom, title=ranges.title)
    _limit(on, ranges.limit, axis, vertical=True, start=4, end=bottom)
    for at, name in enumerate(ranges.names):
        y = 6 + ROW * (at + 0.5)
        on.text(left - 8, y + 4, fitted(name, left), "at-text", "end")
        low, high = ranges.interval(at)
        flagged = ranges.flagged[at]

        def row(y: float = y, low: float = low, high: float = high, at: int = at) -> None:
            on.rect(left, y - ROW / 2, width - left, ROW, "at-target")
            on.line(axis(low), y, axis(high), y, _range(ranges.flagged[at]))
            on.circle(axis(ranges.value[at]), y, 4, _mark(ranges.flagged[at]))

        on.grouped(ranges.tip(at) + (" · spammer" if flagged else ""), row)
    return on


def ranked_ranges(ranges: Ranges, width: float, ranks_title: str) -> Drawing:
    """Draw many intervals side by side in their order, every k-th where they are too many."""
    on = Drawing(width, 280)
    left, top, bottom = 46.0, 24.0, 236.0
    n = len(ranges.names)
    x, y = Axis(1, max(n, 2), left + 6, width - 12), Axis(*ranges.domain, bottom, top)
    upward(on, y, left, width - 6, title=ranges.title)
    for tick in x.ticks(4 if width < 500 else 8):
        if 1 <= tick <= n:
            on.text(x(tick), bottom + 16, number(tick), "at-tick", "middle")
    on.text((left + width) / 2, bottom + 34, ranks_title, "at-tick", "middle")
    _limit(on, ranges.limit, y, vertical=False, start=left, end=width - 6)
    for at in thinned(n, width):
        low, high = ranges.interval(at)
        place = x(at + 1)

        def bar(place: float = place, low: float = low, high: float = high, at: int = at) -> None:
            on.line(place, y(low), place, y(high), _range(ranges.flagged[at]))
            on.circle(place, y(ranges.value[at]), 2.2, _mark(ranges.flagged[at]))

        on.grouped(ranges.tip(at), bar)
    return on


def thinned(n: int, width: float) -> Codes:
    """Choose which of n to draw: all, or as many as there is room for, evenly."""
    room = int(width / _A_POINT)
    return np.arange(n) if n <= room else np.unique(np.linspace(0, n - 1, room).round().astype(int))


def dumbbells(
    names: Sequence[str], rows: Sequence[tuple[str, Floats]], domain: tuple[float, float],
    width: float, title: str,
) -> Drawing:  # fmt: skip
    """Draw several values a name on one line, the first of them in grey."""
    left, kinds = room_for(names, width * 0.4), ("at-given", "at-mark", "at-ring")
    top = 12.0 + 18.0 * len(rows)
    on = Drawing(width, top + 28.0 * len(names) + 40)
    axis = Axis(*domain, left, width - 12)
    bottom = top + 28.0 * len(names)
    for k, (told, _) in enumerate(rows):
        on.circle(left + 6, 8 + 18 * k, 5, kinds[k])
        on.text(left + 18, 12 + 18 * k, told, "at-tick")
    across(on, axis, top, bottom, title=title)
    for at, name in enumerate(names):
        y = top + 28.0 * (at + 0.5)
        on.text(left - 8, y + 4, fitted(name, left), "at-text", "end")
        there = [float(values[at]) for _, values in rows if not np.isnan(values[at])]
        if there:
            on.line(axis(min(there)), y, axis(max(there)), y, "at-base")
        for k, (told, values) in enumerate(rows):
            if not np.isnan(values[at]):
                on.circle(axis(values[at]), y, 5, kinds[k], tip=f"{name}, {told}: {values[at]:.3f}")
    return on


def histogram(
    edges: Floats, counts: Codes, width: float, *, title: str, unit: str, of: str,
    whole: bool = False,
) -> Drawing:  # fmt: skip
    """Draw how many fall between each two edges; ``whole`` numbers end one before the next."""
    on = Drawing(width, 240)
    left, top, bottom = 46.0, 24.0, 196.0
    x = Axis(float(edges[0]), float(edges[-1]), left, width - 12)
    y = Axis(0.0, max(float(counts.max()), 1.0), bottom, top)
    upward(on, y, left, width - 12, title=unit, whole=True)
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        share = count / max(counts.sum(), 1)
        span = (
            f"{low:,.0f} to {high - 1:,.0f} {title}"
            if whole
            else f"{title} {low:.2f} to {high:.2f}"
        )
        tip = f"{span}: {count:,} {of} ({share:.1%})"
        on.rect(x(low) + 0.5, y(count), x(high) - x(low) - 1, bottom - y(count), "at-mark", tip=tip)
    for tick in x.ticks(5):
        on.text(x(tick), bottom + 16, number(tick), "at-tick", "middle")
    on.line(left, bottom, width - 12, bottom, "at-base")
    on.text((left + width) / 2, bottom + 34, title, "at-tick", "middle")
    return on


def paired_bars(
    names: Sequence[str], given: Floats, recovered: Floats | None, kinds: Sequence[str],
    width: float, tips: Sequence[str],
) -> Drawing:  # fmt: skip
    """Draw shares as bars: given in grey below, recovered in the category's colour above."""
    row = 30.0 if recovered is not None else 22.0
    top = 26.0 if recovered is not None else 6.0
    on = Drawing(width, top + row * len(names) + 28)
    left = room_for(names, width * 0.35)
    most = max(float(given.max()), float(recovered.max()) if recovered is not None else 0.0, 1e-9)
    axis = Axis(0.0, most, left, width - 56)
    if recovered is not None:
        on.rect(left, 6, 10, 10, kinds[0])
        on.text(left + 16, 15, "recovered", "at-tick")
        on.rect(left + 84, 6, 10, 10, "at-given")
        on.text(left + 100, 15, "as given", "at-tick")
    for at, name in enumerate(names):
        y = top + row * at
        on.text(left - 8, y + row / 2 + 2, fitted(name, left), "at-text", "end")
        said = given[at] if recovered is None else recovered[at]

        def bars(at: int = at, y: float = y, said: float = said) -> None:
            on.rect(0, y, width, row, "at-target")
            if recovered is not None:
                on.rect(left, y + 4, axis(recovered[at]) - left, 12, kinds[at])
                on.rect(left, y + 17, axis(given[at]) - left, 6, "at-given")
            else:
                on.rect(left, y + 4, axis(given[at]) - left, 14, kinds[at])
            on.text(axis(said) + 6, y + 15, f"{said:.1%}", "at-tick")

        on.grouped(tips[at], bars)
    bottom = top + row * len(names) + 2
    on.line(left, top, left, bottom, "at-base")
    return on


def matrix(names: Sequence[str], counts: Codes, width: float, tips: Sequence[str]) -> Drawing:
    """Draw a table of counts as squares: rows are recovered, columns given; dark is often."""
    rows = counts.sum(axis=1, keepdims=True)
    share = counts / np.where(rows > 0, rows, 1)
    return squares(names, names, share, width, tips, ("recovered ↓", "label given →"))


def squares(
    rows: Sequence[str], columns: Sequence[str], share: Floats, width: float,
    tips: Sequence[str], heads: tuple[str, str] = ("", ""),
) -> Drawing:  # fmt: skip
    """Draw a table of shares as squares, dark where it is large; nan stays empty."""
    n = len(rows)
    left = max(room_for(rows, width * 0.35), 88.0)
    side = min((width - left - 12) / n, 44.0)
    top = 44.0 if any(heads) else 28.0
    on = Drawing(width, top + side * n + 12)
    on.text(left, 14, heads[1], "at-tick")
    on.text(left - 8, 14, heads[0], "at-tick", "end")
    for k in range(n):
        on.text(left + side * (k + 0.5), top - 8, fitted(columns[k], side + 8), anchor="middle")
        on.text(left - 8, top + side * (k + 0.5) + 4, fitted(rows[k], left), anchor="end")
        for g in np.flatnonzero(~np.isnan(share[k])).tolist():
            depth = max(float(share[k, g]), 0.0)
            on.shade(left + side * g + 1, top + side * k + 1, side - 2, depth, tips[k * n + g])
    on.rect(left, top, side * n, side * n, "at-frame")
    return on


def line(x: Floats, y: Floats, width: float, *, x_title: str, y_title: str) -> Drawing:
    """Draw one line."""
    on = Drawing(width, 240)
    left, top, bottom = 84.0, 24.0, 196.0
    across_ = Axis(float(x.min()), max(float(x.max()), float(x.min()) + 1), left, width - 12)
    spread = float(np.ptp(y)) or max(abs(float(y[0])) * 1e-6, 1e-9)
    up = Axis(float(y.min()) - 0.05 * spread, float(y.max()) + 0.05 * spread, bottom, top)
    upward(on, up, left, width - 12, title=y_title)
    for tick in across_.ticks(5):
        if tick == round(tick):
            on.text(across_(tick), bottom + 16, number(tick), "at-tick", "middle")
    on.text((left + width) / 2, bottom + 34, x_title, "at-tick", "middle")
    at = thinned(len(x), width)
    on.path([(across_(a), up(b)) for a, b in zip(x[at], y[at], strict=True)], "at-mark-line")
    for k in at:
        tip = f"{x_title} {x[k]:,.0f}: {y[k]:,.4f}"
        on.circle(across_(x[k]), up(y[k]), 2.5 if len(at) > 60 else 3.5, "at-mark", tip=tip)
    return on


def _limit(
    on: Drawing, limit: float | None, axis: Axis, *, vertical: bool, start: float, end: float
) -> None:
    if limit is None:
        return
    at = axis(limit)
    ends = (at, start, at, end) if vertical else (start, at, end, at)
    on.line(*ends, "at-limit")


def _range(flagged: bool) -> str:
    return "at-warn-range" if flagged else "at-range"


def _mark(flagged: bool) -> str:
    return "at-warn" if flagged else "at-mark"
