"""`Chart`: a table and how it is drawn, for pages, notebooks and files; and its colors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from annotruth.errors import AnnotruthError, InputError
from annotruth.io.atomic import atomic_write
from annotruth.observations import Scale
from annotruth.report.charts.drawing import Drawing, escaped

NORMAL_WIDTH, NARROW_WIDTH = 560.0, 340.0

THEMES = {
    "light": {
        "paper": "#fbfbfc",
        "card": "#ffffff",
        "sunk": "#f2f3f5",
        "ink": "#191c21",
        "quiet": "#5a626d",
        "line": "#dfe1e5",
        "accent": "#2b5f8f",
        "warn": "#a8461b",
        "good": "#2d6a4f",
    },
    "dark": {
        "paper": "#101317",
        "card": "#171b20",
        "sunk": "#20252b",
        "ink": "#e7e8e6",
        "quiet": "#a3abb4",
        "line": "#30363e",
        "accent": "#86b7e3",
        "warn": "#f2a073",
        "good": "#84c7a3",
    },
}
"""Colors of a page; text has a contrast of at least 4.5 on every background."""

# Safe for color-blind readers (after Paul Tol's bright scheme), and of medium lightness, so that
# one set serves light and dark pages.
CLASS_COLORS = (
    *("#4477aa", "#ee6677", "#228833", "#ccbb44"),
    *("#66ccee", "#aa3377", "#ee8866", "#9aa0a6"),
)

# From light to dark, so that the order shows without hue.
_ORDINAL_STOPS = ((232, 190, 84), (150, 190, 118), (68, 160, 150), (48, 118, 160), (70, 76, 148))
_MAX_SHADES = 64


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart that a notebook shows and `save` writes as SVG, PNG, PDF or HTML."""

    # a name for files; a heading; what is drawn, and what was left out
    name: str
    title: str
    caption: str
    data: Mapping[str, Sequence[Any]]  # the table behind the chart, column by column
    # draws the chart at a width, so that text keeps its size on a small screen
    draw: Callable[[float], Drawing]
    colors: Sequence[str] = ()  # the colors of categories or series, if the chart has any
    width: float = NORMAL_WIDTH  # the width it looks best at

    def inline(self, width: float | None = None) -> str:
        """Return SVG for a page that has the style sheet of charts and the colors."""
        return self.draw(width or self.width).svg(self.title)

    def svg(self, width: float | None = None) -> str:
        """Return a self-contained SVG file, in the colors of a light page."""
        drawing = self.draw(width or self.width)
        # Its styles must not reach other charts of the same document.
        scope = f"at-{sha256(''.join(drawing.parts).encode()).hexdigest()[:12]}"
        background = f'<rect width="100%" height="100%" fill="{THEMES["light"]["card"]}"/>'
        drawing.parts[:0] = [f"<style>{self._style(scope)}</style>", background]
        return drawing.svg(self.title, scope)

    def html(self) -> str:
        """Return an HTML figure with its caption."""
        caption = f"<figcaption>{escaped(self.title)}. {escaped(self.caption)}</figcaption>"
        style = f"margin:0;max-width:{self.width:.0f}px"
        return f'<figure style="{style}">{self.svg()}{caption}</figure>'

    def save(self, path: str | Path) -> None:
        """Write the chart in the format of the file's name: .svg, .png, .pdf or .html."""
        suffix, content = Path(path).suffix.lower(), self.svg().encode()
        if suffix not in (".svg", ".png", ".pdf", ".html"):
            names = ".svg, .png, .pdf or .html"
            raise InputError(f"cannot save a chart as {path}: end the name in {names}")
        if suffix in (".png", ".pdf"):
            content = _converted(self.svg(), path)
        if suffix == ".html":
            head = f'<!doctype html><meta charset="utf-8"><title>{escaped(self.title)}</title>'
            content = f"{head}\n{self.html()}\n".encode()
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)

    def __repr__(self) -> str:
        return f"Chart({self.title!r})"

    def _repr_html_(self) -> str:
        return self.html()

    def _style(self, scope: str) -> str:
        light = re.sub(r"var\(--(\w+)\)", lambda match: THEMES["light"][match[1]], chart_style())
        rules = [*light.strip().splitlines(), *color_rules(self.colors)]
        return "".join(f".{scope} {rule}" for rule in rules)


def drawable(charts: Iterable[Callable[[], Chart]]) -> dict[str, Chart]:
    """Return the charts that the model has data for, by name."""
    drawn = {}
    for make in charts:
        try:
            chart = make()
        except AnnotruthError:  # the model gives no data for it
            continue
        drawn[chart.name] = chart
    return drawn


def _converted(svg: str, path: str | Path) -> bytes:
    """Return SVG as PDF, or as PNG at twice its size so that it is sharp on dense screens."""
    suffix = Path(path).suffix.lower()
    try:
        import vl_convert
    except ImportError:
        raise InputError(
            f"cannot save {path}: {suffix[1:].upper()} needs one more package, run `pip install "
            "annotruth[png]`; or end the name in .svg or .html"
        ) from None
    content: bytes = (
        vl_convert.svg_to_pdf(svg) if suffix == ".pdf" else vl_convert.svg_to_png(svg, scale=2.0)
    )
    return content


def chart_style() -> str:
    """Return the style sheet of charts, in terms of a theme's colors, one rule per line."""
    return files("annotruth.report").joinpath("assets", "chart.css").read_text("utf-8")


def color_rules(colors: Sequence[str]) -> list[str]:
    """Return the styles of categories or series: .at-k0, .. fill areas, .at-l0, .. draw lines."""
    fills = [f".at-k{n} {{ fill: {color}; }}" for n, color in enumerate(colors)]
    return fills + [f".at-l{n} {{ stroke: {color}; }}" for n, color in enumerate(colors)]


def category_colors(scale: Scale) -> list[str]:
    """Return the colors of categories: steps of an ordered ramp, or eight for classes."""
    if not scale.is_ordinal:
        return list(CLASS_COLORS[: len(scale)])
    n = min(len(scale), _MAX_SHADES)
    return [_interpolated(_ORDINAL_STOPS, k / max(n - 1, 1)) for k in range(n)]


def color_indices(scale: Scale) -> list[int]:
    """Return the index of each category's color; classes repeat them after eight."""
    if not scale.is_ordinal:
        return [k % len(CLASS_COLORS) for k in range(len(scale))]
    n = min(len(scale), _MAX_SHADES)
    return [k * (n - 1) // max(len(scale) - 1, 1) for k in range(len(scale))]


def _interpolated(stops: Sequence[tuple[int, int, int]], share: float) -> str:
    """Return the color at a share of the way along the stops."""
    place = share * (len(stops) - 1)
    left = min(int(place), len(stops) - 2)
    mixed = (
        a + (b - a) * (place - left) for a, b in zip(stops[left], stops[left + 1], strict=True)
    )
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
