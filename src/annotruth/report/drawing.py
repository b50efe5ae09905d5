"""A few strokes of SVG: enough for the charts of a report, and safe with any text."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate

FONT = 12.0
_NOT_XML = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# Widths of letters, in sizes of the font: small ones, capitals, and those of the Far East.
_SMALL, _CAPITAL, _FULL = 0.6, 0.75, 1.0


@dataclass
class Drawing:
    """Shapes on a sheet; colours come from classes, so that a page can turn them dark."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, *, tip: str = ""
    ) -> None:
        """Draw a bar or a cell."""
        size = f'width="{_n(max(width, 0.0))}" height="{_n(max(height, 0.0))}"'
        self._add(f'rect class="{kind}" x="{_n(x)}" y="{_n(y)}" {size}', tip)

    def circle(self, x: float, y: float, radius: float, kind: str, *, tip: str = "") -> None:
        """Draw a dot."""
        self._add(f'circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"', tip)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a straight line."""
        ends = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
        self._add(f'line class="{kind}" {ends}')

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        along = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._add(f'path class="{kind}" d="M{along}"')

    def shade(self, x: float, y: float, side: float, depth: float, tip: str) -> None:
        """Draw a square as dark as ``depth``, from 0 to 1."""
        at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(side)}" height="{_n(side)}"'
        self._add(f'rect class="at-heat" {at} fill-opacity="{0.04 + 0.96 * depth:.2f}"', tip)

    def text(
        self, x: float, y: float, said: str, kind: str = "at-text", anchor: str = "start"
    ) -> None:
        """Write a word; the baseline is at y."""
        place = f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"'
        self.parts.append(f'<text class="{kind}" {place}>{escaped(said)}</text>')

    def grouped(self, tip: str, draw: Callable[[], None]) -> None:
        """Give several shapes one tip."""
        self.parts.append(f"<g><title>{escaped(tip)}</title>")
        draw()
        self.parts.append("</g>")

    def _add(self, shape: str, tip: str = "") -> None:
        if tip:
            name = shape.split(" ", 1)[0]
            self.parts.append(f"<{shape}><title>{escaped(tip)}</title></{name}>")
        else:
            self.parts.append(f"<{shape}/>")


@dataclass(frozen=True)
class Axis:
    """A straight scale from data to the sheet."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Find the place of a value."""
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        """Choose round values along the axis."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        raw = span / about
        unit = 10.0 ** math.floor(math.log10(raw))
        step = unit * next(m for m in (1, 2, 2.5, 5, 10) if raw <= m * unit * 1.0001)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def across(on: Drawing, axis: Axis, top: float, bottom: float, *, title: str) -> None:
    """Draw an axis along the bottom, with faint lines up."""
    for tick in axis.ticks(5):
        on.line(axis(tick), top, axis(tick), bottom, "at-grid")
        on.text(axis(tick), bottom + 16, number(tick), "at-tick", "middle")
    on.text((axis.start + axis.end) / 2, bottom + 34, title, "at-tick", "middle")


def upward(
    on: Drawing, axis: Axis, left: float, right: float, *, title: str, whole: bool = False
) -> None:
    """Draw an axis along the left, with faint lines across; its title stands on top."""
    for tick in axis.ticks(4):
        if whole and tick != round(tick):
            continue
        on.line(left, axis(tick), right, axis(tick), "at-grid")
        on.text(left - 8, axis(tick) + 4, number(tick), "at-tick", "end")
    on.text(2, 12, title, "at-tick")


def escaped(text: object) -> str:
    """Escape text for HTML and SVG, on one line; what XML cannot hold becomes a sign for it."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", " ".join(str(text).split())))


def number(value: float) -> str:
    """Write a number as short as it may be."""
    if value == 0:
        return "0"
    if abs(value) >= 1000 and value == round(value):
        return f"{value:,.0f}"
    return f"{value:.6g}"


def room_for(words: Sequence[str], most: float) -> float:
    """Return the width that the longest of the words needs, within bounds."""
    return min(most, 12 + max((_length(word) for word in words), default=0.0))


def fitted(word: str, width: float) -> str:
    """Shorten a word to a width."""
    kept = bisect_right(list(accumulate(map(_width, word))), width - 12)
    return word if kept >= len(word) or len(word) <= 2 else word[: max(kept, 2) - 1] + "…"


def _length(word: str) -> float:
    return sum(map(_width, word))


def _width(letter: str) -> float:
    return FONT * (_FULL if ord(letter) > 0x2E80 else _CAPITAL if letter.isupper() else _SMALL)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
