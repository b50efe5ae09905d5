"""SVG drawings: shapes, axes and texts, safe with any text."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate
from typing import TypeAlias

FONT_SIZE = 12.0
TickLabel: TypeAlias = Callable[[float], str]
TICK_LETTER = 6.6  # the width of a digit in the font of ticks
_NOT_XML = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# Widths of letters relative to the font size: small letters, capitals, East Asian and other wide letters.
_SMALL, _CAPITAL, _FULL = 0.62, 0.75, 1.0
_WIDE = "mwMW@%…"


@dataclass
class Drawing:
    """An SVG drawing in the making.

    Colors come from CSS classes, so that a page can switch between light and dark.
    """

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def rect(
        self, x: float, y: float, width: float, height: float, css_class: str, *, tip: str = ""
    ) -> None:
        """Draw a bar or a cell."""
        size = f'width="{_number(max(width, 0.0))}" height="{_number(max(height, 0.0))}"'
        self._add(f'rect class="{css_class}" x="{_number(x)}" y="{_number(y)}" {size}', tip)

    def circle(self, x: float, y: float, radius: float, css_class: str, *, tip: str = "") -> None:
        """Draw a dot."""
        center = f'cx="{_number(x)}" cy="{_number(y)}"'
        self._add(f'circle class="{css_class}" {center} r="{_number(radius)}"', tip)

    def line(self, x1: float, y1: float, x2: float, y2: float, css_class: str) -> None:
        """Draw a straight line."""
        ends = f'x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}"'
        self._add(f'line class="{css_class}" {ends}')

    def path(self, points: Sequence[tuple[float, float]], css_class: str) -> None:
        """Draw a line through points."""
        steps = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self._add(f'path class="{css_class}" d="M{steps}"')

    def square(
        self, x: float, y: float, side: float, share: float, tip: str, text: str = "",
        *, css_class: str = "at-heat", least: float = 0.04, dark_from: float = 0.65,
    ) -> None:  # fmt: skip
        """Draw a square, darker for a higher share from 0 to 1, with a text where it has room."""
        place = (
            f'x="{_number(x)}" y="{_number(y)}" width="{_number(side)}" height="{_number(side)}"'
        )
        opacity = f'fill-opacity="{least + (1.0 - least) * share:.2f}"'
        self._add(f'rect class="{css_class}" {place} {opacity}', tip)
        if text and len(text) * TICK_LETTER <= side:
            on = "at-on-heat" if share > dark_from else "at-in-heat"
            self.text(x + side / 2, y + side / 2 + 4, text, on, "middle")

    def text(
        self, x: float, y: float, text: str, css_class: str = "at-text", anchor: str = "start"
    ) -> None:
        """Write a text with its baseline at y."""
        place = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"'
        self.parts.append(f'<text class="{css_class}" {place}>{escaped(text)}</text>')

    @contextmanager
    def group(self, tip: str) -> Iterator[None]:
        """Give all shapes that are drawn within one tip."""
        self.parts.append(f"<g><title>{escaped(tip)}</title>")
        yield
        self.parts.append("</g>")

    def svg(self, title: str, css_class: str = "") -> str:
        """Return the drawing as an SVG element."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}"'
        view = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        role = f'role="img" aria-label="{escaped(title)}"'
        role += f' class="{css_class}"' if css_class else ""
        body = "".join(self.parts)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} {role}>{body}</svg>'

    def _add(self, shape: str, tip: str = "") -> None:
        if tip:
            name = shape.split(" ", 1)[0]
            self.parts.append(f"<{shape}><title>{escaped(tip)}</title></{name}>")
        else:
            self.parts.append(f"<{shape}/>")


@dataclass(frozen=True)
class Axis:
    """A linear scale from data to the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value on the drawing."""
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, about: int, *, integers: bool = False) -> list[float]:
        """Return round values along the axis, about so many; only integers if asked for."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        raw = max(span / about, 1.0) if integers else span / about
        unit = 10.0 ** math.floor(math.log10(raw))
        multiples = (1, 2, 5, 10) if integers and unit == 1 else (1, 2, 2.5, 5, 10)
        step = unit * next(m for m in multiples if raw <= m * unit * 1.0001)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def draw_x_ticks(
    drawing: Drawing,
    axis: Axis,
    ticks: Sequence[float],
    bottom: float,
    label: TickLabel | None = None,
) -> None:
    """Write numbers below an axis, those at its ends within the drawing."""
    for tick in ticks:
        text = (label or short_number)(tick)
        half = (len(text) + 0.6 * text.count("%")) * TICK_LETTER / 2
        x = min(max(axis(tick), half), drawing.width - half)
        drawing.text(x, bottom + 16, text, "at-tick", "middle")


def draw_axes(
    drawing: Drawing, x_ends: tuple[float, float], y_ends: tuple[float, float],
    titles: tuple[str, str], *, inset: float = 0.0, band: float = 0.0, integers: str = "",
    ticks: Sequence[float] | None = None, label: TickLabel | None = None,
) -> tuple[Axis, Axis]:  # fmt: skip
    """Draw the axes of a drawing that is one plot, with their titles and faint horizontal lines.

    ``inset``: how far from the left end the x axis begins; ``band``: what is kept free above.
    ``integers``: the axes of whole numbers: "x", "y" or "xy".
    ``ticks``: those of the x axis, chosen by its range if not given, and ``label`` their texts.
    """
    right, bottom = drawing.width - 12.0, drawing.height - 44.0
    y = Axis(*y_ends, bottom, 24.0 + band)
    left = y_axis_room(y)
    x = Axis(*x_ends, left + inset, right)
    for tick in y.ticks(4, integers="y" in integers):
        drawing.line(left, y(tick), right, y(tick), "at-grid")
        drawing.text(left - 8, y(tick) + 4, short_number(tick), "at-tick", "end")
    drawing.text(2, 12, titles[1], "at-tick")
    if ticks is None:
        ticks = x.ticks(max(int(drawing.width // 110), 3), integers="x" in integers)
    draw_x_ticks(drawing, x, ticks, bottom, label)
    drawing.text((left + right) / 2, bottom + 34, titles[0], "at-tick", "middle")
    return x, y


def y_axis_room(axis: Axis) -> float:
    """Return the room that the numbers of an axis along the left need."""
    longest = max(len(short_number(tick)) for tick in axis.ticks(4))
    return max(longest * TICK_LETTER + 12.0, 46.0)


def escaped(text: object) -> str:
    """Return text escaped for HTML and SVG, on one line; U+FFFD replaces what XML cannot hold."""
    return escape(without_control(" ".join(str(text).split())))


def without_control(text: str) -> str:
    """Return text with U+FFFD instead of what XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def short_number(value: float) -> str:
    """Return a number in as few digits as it needs, at most six."""
    if value == 0:
        return "0"
    if abs(value) >= 1000 and value == round(value):
        return f"{value:,.0f}"
    return f"{value:.6g}"


def text_width(texts: Sequence[str], max_width: float) -> float:
    """Return the width that the longest of the texts needs, at most ``max_width``."""
    return min(max_width, 12 + max((sum(map(_width, text)) for text in texts), default=0.0))


def shorten(text: str, width: float) -> str:
    """Return a text cut in the middle to a width, so that names with the same beginning differ."""
    ends, room = list(accumulate(map(_width, text))), width - 12
    # Of a width that `text_width` returns, rounding may leave a little less than the text needs.
    if len(text) <= 2 or ends[-1] <= room + 1e-6:
        return text
    space = room - _width("…")
    start = max(bisect_right(ends, 0.6 * space), 1)
    end = bisect_left(ends, ends[-1] - space + ends[start - 1] - 1e-6) + 1
    return f"{text[:start]}…{text[max(end, start) :]}"


def _width(letter: str) -> float:
    if ord(letter) > 0x2E80 or letter in _WIDE:
        return FONT_SIZE * _FULL
    return FONT_SIZE * (_CAPITAL if letter.isupper() else _SMALL)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
