"""Style sheets and scripts of the pages: static files whose address has a hash of their content.

Browsers keep them for a year; another version of the package has other addresses.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from annotruth.observations import Scale
from annotruth.report.charts.chart import CLASS_COLORS, category_colors, color_rules
from annotruth.report.render import asset, page_style, script_of

STATIC = "/static"
"""Where static files are served."""

STYLE, SCRIPT = "serve.css", "serve.js"

_COLORS = re.compile(r"ordinal-([1-9]\d?)\.css")


class StaticFile(NamedTuple):
    """The content of a static file and its media type."""

    content: str
    media_type: str


def static_path(name: str) -> str:
    """Return the address of a static file."""
    return f"{STATIC}/{version_hash()}/{name}"


def colors_name(scale: Scale | None) -> str:
    """Return the name of the style sheet with a scale's colors; empty for classes.

    The colors of classes are in the style sheet of all pages.
    """
    if scale is None or not scale.is_ordinal:
        return ""
    return f"ordinal-{len(category_colors(scale))}.css"


@cache
def version_hash() -> str:
    """Return a hash of all static files."""
    text = static_file(STYLE).content + static_file(SCRIPT).content + _ordinal_colors(5)
    return sha256(text.encode()).hexdigest()[:16]


@cache
def static_file(name: str) -> StaticFile:
    """Return a static file; raises KeyError for an unknown one."""
    if name == STYLE:
        return StaticFile(page_style(CLASS_COLORS) + _own("serve.css"), "text/css")
    if name == SCRIPT:
        parts = (asset("tips.js"), asset("theme.js"), _own("live.js"), _own("serve.js"))
        return StaticFile(script_of(parts), "text/javascript")
    if found := _COLORS.fullmatch(name):
        return StaticFile(_ordinal_colors(int(found[1])), "text/css")
    raise KeyError(name)


def _ordinal_colors(n_colors: int) -> str:
    """Return the colors of an ordinal scale, which depend on their number alone."""
    return "\n".join(color_rules(category_colors(Scale.ordinal(range(n_colors)))))


def _own(name: str) -> str:
    return files("annotruth.serve.pages").joinpath("assets", name).read_text("utf-8")
