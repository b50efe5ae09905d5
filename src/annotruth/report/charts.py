"""Pictures: records plus a Vega-Lite spec, turned into PNG and SVG without a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeAlias

Spec: TypeAlias = dict[str, Any]

# Twice the size in pixels, so that the picture is sharp on dense screens.
_PIXELS_A_POINT = 2.0


def filled(name: str, records: Sequence[Mapping[str, Any]], words: Mapping[str, Any]) -> Spec:
    """Fill a spec with records and words.

    Parameters
    ----------
    name
        A file of ``report/specs`` without its extension. Where a text in it is ``$word``, the
        word's value goes.
    records
        The table behind the picture.
    words
        Titles, formats and the like.
    """
    text = files("annotruth.report").joinpath("specs", f"{name}.json").read_text("utf-8")
    spec: Spec = _with_words(json.loads(text), words)
    spec["data"] = {"values": [dict(record) for record in records]}
    return spec


def png(spec: Spec) -> bytes:
    """Draw a spec as PNG."""
    import vl_convert

    picture: bytes = vl_convert.vegalite_to_png(spec, scale=_PIXELS_A_POINT)
    return picture


def svg(spec: Spec) -> str:
    """Draw a spec as SVG."""
    import vl_convert

    picture: str = vl_convert.vegalite_to_svg(spec)
    return picture


def _with_words(part: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {key: _with_words(value, words) for key, value in part.items()}
    if isinstance(part, list):
        return [_with_words(value, words) for value in part]
    if isinstance(part, str) and part.startswith("$"):
        return words[part.removeprefix("$")]
    return part
