"""Colours: of the page in light and dark, and of categories."""

from __future__ import annotations

from collections.abc import Sequence

from annotruth.labels import Scale

THEMES = {
    "light": {
        "paper": "#fdfdfb",
        "card": "#ffffff",
        "sunk": "#f3f3ef",
        "ink": "#1d2126",
        "quiet": "#5b626b",
        "line": "#dcdcd5",
        "accent": "#2b5f8f",
        "warn": "#a8461b",
        "good": "#2d6a4f",
    },
    "dark": {
        "paper": "#14171b",
        "card": "#1b1f24",
        "sunk": "#23282e",
        "ink": "#e7e8e6",
        "quiet": "#a3abb4",
        "line": "#363c44",
        "accent": "#86b7e3",
        "warn": "#f2a073",
        "good": "#84c7a3",
    },
}
"""Text on every ground has a contrast of at least 4.5."""

# Told apart by colour-blind people too (after Paul Tol's bright scheme), and of middling
# lightness, so that one set serves light and dark pages.
_CLASSES = (
    *("#4477aa", "#ee6677", "#228833", "#ccbb44"),
    *("#66ccee", "#aa3377", "#ee8866", "#9aa0a6"),
)

# From light to dark all the way, so that the order shows without hue.
_ORDER = ((232, 190, 84), (150, 190, 118), (68, 160, 150), (48, 118, 160), (70, 76, 148))


_MOST_SHADES = 64


def category_colours(scale: Scale) -> list[str]:
    """Return the colours that categories have: steps of an ordered ramp, or eight for classes."""
    if not scale.is_ordinal:
        return list(_CLASSES[: len(scale)])
    n = min(len(scale), _MOST_SHADES)
    return [_along(_ORDER, k / max(n - 1, 1)) for k in range(n)]


def colour_of(scale: Scale) -> list[int]:
    """Return the place of each category's colour; classes repeat them after eight."""
    if not scale.is_ordinal:
        return [k % len(_CLASSES) for k in range(len(scale))]
    n = min(len(scale), _MOST_SHADES)
    return [k * (n - 1) // max(len(scale) - 1, 1) for k in range(len(scale))]


def _along(stops: Sequence[tuple[int, int, int]], place: float) -> str:
    at = place * (len(stops) - 1)
    left = min(int(at), len(stops) - 2)
    mixed = (a + (b - a) * (at - left) for a, b in zip(stops[left], stops[left + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
