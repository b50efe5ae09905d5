"""A picture: records, and how they are drawn; for pages, notebooks and files alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.io.atomic import atomic_write
from annotruth.report.drawing import Drawing, escaped
from annotruth.report.palette import THEMES

WIDE, NARROW = 560.0, 340.0
_PIXELS_A_POINT = 2.0


@dataclass(frozen=True, eq=False)
class Picture:
    """A chart that a notebook shows as it is and `save` writes as SVG, PNG or HTML.

    Attributes
    ----------
    name, title, caption
        A word for files; a heading; what is drawn, and what was left out.
    records
        The table behind the picture, column by column.
    draw
        Draws the picture at a width, so that words keep their size on a small screen.
    colours
        The categories' colours, if the picture has any.
    width
        The width it looks best at.
    """

    name: str
    title: str
    caption: str
    records: Mapping[str, Sequence[Any]]
    draw: Callable[[float], Drawing]
    colours: Sequence[str] = ()
    width: float = WIDE

    def inline(self, width: float | None = None) -> str:
        """Draw for a page that has the style sheet of charts and the colours."""
        return _svg(self.draw(width or self.width), self.title)

    def svg(self) -> str:
        """Draw with all that belongs to it, in the colours of a light page."""
        drawn = self.draw(self.width)
        body = "".join(drawn.parts)
        scope = f"at-{sha256(body.encode()).hexdigest()[:12]}"  # styles must not leak to others
        ground = f'<rect width="100%" height="100%" fill="{THEMES["light"]["card"]}"/>'
        drawn.parts[:0] = [f"<style>{self._style(scope)}</style>", ground]
        return _svg(drawn, self.title, scope)

    def save(self, path: str | Path) -> None:
        """Write the picture as the file's name asks: .svg, .png or .html."""
        kind = Path(path).suffix.lower()
        if kind == ".png":
            import vl_convert

            content: bytes = vl_convert.svg_to_png(self.svg(), scale=_PIXELS_A_POINT)
        elif kind == ".svg":
            content = self.svg().encode()
        elif kind == ".html":
            head = f'<!doctype html><meta charset="utf-8"><title>{escaped(self.title)}</title>'
            content = f"{head}\n{self._repr_html_()}\n".encode()
        else:
            raise InputError(
                f"cannot save a picture as {path}: end the name in .svg, .png or .html"
            )
        with atomic_write(path) as aside:
            aside.write_bytes(content)

    def __repr__(self) -> str:
        return f"Picture({self.title!r})"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        words = f"<figcaption>{escaped(self.title)}. {escaped(self.caption)}</figcaption>"
        return f'<figure style="margin:0;max-width:{self.width:.0f}px">{self.svg()}{words}</figure>'

    def _style(self, scope: str) -> str:
        plain = re.sub(r"var\(--(\w+)\)", lambda found: THEMES["light"][found[1]], chart_style())
        rules = [*plain.strip().splitlines(), *category_rules(self.colours)]
        return "".join(f".{scope} {rule}" for rule in rules)


def chart_style() -> str:
    """Return the style sheet of charts, in terms of a theme's colours; one rule a line."""
    return files("annotruth.report").joinpath("assets", "chart.css").read_text("utf-8")


def category_rules(colours: Sequence[str]) -> list[str]:
    """Return the style of each category, as class at-k0, at-k1 and so on."""
    return [f".at-k{n} {{ fill: {colour}; }}" for n, colour in enumerate(colours)]


def _svg(drawn: Drawing, title: str, scope: str = "") -> str:
    size = f'width="{drawn.width:.0f}" height="{drawn.height:.0f}"'
    view = f'viewBox="0 0 {drawn.width:.0f} {drawn.height:.0f}"'
    named = f'role="img" aria-label="{escaped(title)}"' + (f' class="{scope}"' if scope else "")
    body = "".join(drawn.parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} {named}>{body}</svg>'
