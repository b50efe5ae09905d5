"""What the items are, on the page: text, links, and images, audio and video by URL or path.

A value is shown as what it looks like. Only http and https URLs, paths, and images in data URLs are
ever used as addresses; everything else, such as ``javascript:``, is text. Images, audio and video are
loaded when their item is opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import pyarrow as pa

from annotruth.errors import shorten
from annotruth.kernels.arrays import Codes
from annotruth.observations.encode import to_text

ContentType: TypeAlias = Literal["text", "link", "image", "audio", "video"]
"""What a value is shown as."""

TYPES: tuple[ContentType, ...] = ("text", "link", "image", "audio", "video")

MAX_TEXT = 5_000
"""How many characters of a text the page holds."""

_SUFFIXES: Mapping[ContentType, tuple[str, ...]] = {
    "image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp"),
    "audio": (".mp3", ".wav", ".ogg", ".oga", ".m4a", ".flac", ".aac", ".opus"),
    "video": (".mp4", ".webm", ".mov", ".m4v", ".ogv"),
}
_DATA_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_URL = re.compile(r"https?://[^\s\x00-\x1f\\]+", re.IGNORECASE)
# A path: no scheme, no host (as in //host/a.png or \\host\a.png), one line, no control characters.
_PATH = re.compile(r"(?![A-Za-z][A-Za-z0-9+.-]*:)(?!//)[^\x00-\x1f\x7f\\:?#<>\"|*]{1,500}")
_POLICY: Mapping[ContentType, str] = {
    "image": "img-src",
    "audio": "media-src",
    "video": "media-src",
}


def content_type(value: str) -> ContentType:
    """Return what a value is shown as."""
    if _DATA_IMAGE.fullmatch(value):
        return "image"
    is_url = _URL.fullmatch(value) is not None
    if not is_url and not _PATH.fullmatch(value):
        return "text"
    path = urlsplit(value).path.lower() if is_url else value.lower()
    for kind, suffixes in _SUFFIXES.items():
        if path.endswith(suffixes):
            return kind
    return "link" if is_url else "text"


class ItemContent:
    """The content of items, as the page shows it.

    ``columns``: columns of content by name, one value per item.
    """

    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        self._values: dict[str, list[str | None]] = {}
        self._types: dict[str, list[ContentType]] = {}
        for name, column in columns.items():
            texts = to_text(column).to_pylist()
            types = ["text" if text is None else content_type(text.strip()) for text in texts]
            self._types[name] = types
            self._values[name] = [_shown(*pair) for pair in zip(texts, types, strict=True)]

    def columns(self, rows: Codes) -> list[dict[str, Any]]:
        """Return columns of the table of items, for some of them."""
        return [
            _page_column(name, [values[e] for e in rows], [self._types[name][e] for e in rows])
            for name, values in self._values.items()
        ]

    def sources(self, rows: Codes) -> dict[str, str]:
        """Return what the page may load, by directive of its Content-Security-Policy."""
        allowed: dict[str, set[str]] = {}
        for value, kind in self._addresses(rows):
            allowed.setdefault(_POLICY[kind], set()).add(_source(value))
        return {name: " ".join(sorted(sources)) for name, sources in sorted(allowed.items())}

    def _addresses(self, rows: Codes) -> set[tuple[str, ContentType]]:
        """Return the values that the page loads, and what they are."""
        return {
            (values[e], kind)
            for name, values in self._values.items()
            for e in rows
            if (kind := self._types[name][e]) in _POLICY
        }


def _page_column(name: str, values: list[str | None], types: list[ContentType]) -> dict[str, Any]:
    is_text = all(kind == "text" for kind in types)
    return {
        "key": f"content:{name}",
        "title": shorten(name, 30),
        "help": f"what the item is: column {shorten(name)} of the labels",
        "kind": "content",
        "rank": 99,
        "hidden": not is_text,
        "types": [TYPES.index(kind) for kind in types],
        "values": values,
    }


def _shown(text: str | None, kind: ContentType) -> str | None:
    if text is None or kind != "text":
        return None if text is None else text.strip()
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _source(value: str) -> str:
    """Return what must be allowed to load a value."""
    if _DATA_IMAGE.fullmatch(value):
        return "data:"
    if _URL.fullmatch(value):
        return f"{urlsplit(value).scheme.lower()}:"
    return "'self' file:"
