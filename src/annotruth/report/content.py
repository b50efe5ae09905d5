"""What the items are, on the page: text, links, and images, audio and video by URL or path.

A value is shown as what it looks like. Only http and https URLs, paths, and images in data URLs are
ever used as addresses; everything else, such as ``javascript:``, is text. Images, audio and video are
loaded when their item is opened, unless they are embedded in the page.
"""

from __future__ import annotations

import mimetypes
import re
import warnings
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import pyarrow as pa

from annotruth.errors import AnnotruthWarning, counted, shorten
from annotruth.kernels.arrays import Codes
from annotruth.observations.encode import to_text

ContentType: TypeAlias = Literal["text", "link", "image", "audio", "video"]
"""What a value is shown as."""

TYPES: tuple[ContentType, ...] = ("text", "link", "image", "audio", "video")

MAX_TEXT = 5_000
"""How many characters of a text the page holds."""

MAX_FILE_BYTES = 5_000_000
"""Larger files are not embedded."""

MAX_EMBEDDED_BYTES = 100_000_000
"""How many bytes of files are embedded at most."""

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

    def embedded(self, rows: Codes, folder: Path) -> dict[str, str]:
        """Return the files of some items as data URLs, by path; paths are relative to a folder."""
        return _embedded(sorted({value for value, _ in self._addresses(rows)}), folder)

    def sources(self, rows: Codes, files: Mapping[str, str]) -> dict[str, str]:
        """Return what the page may load, by directive of its Content-Security-Policy.

        ``files`` are embedded.
        """
        allowed: dict[str, set[str]] = {}
        for value, kind in self._addresses(rows):
            allowed.setdefault(_POLICY[kind], set()).add(_source(value, files))
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


def _embedded(paths: Iterable[str], folder: Path) -> dict[str, str]:
    """Return files as data URLs; those that are missing or too large are one warning."""
    files: dict[str, str] = {}
    missing, large, total = [], [], 0
    for value in paths:
        if _URL.fullmatch(value) or _DATA_IMAGE.fullmatch(value):
            continue
        path = folder / value
        try:
            size = path.stat().st_size
            if size > MAX_FILE_BYTES or total + size > MAX_EMBEDDED_BYTES:
                large.append(value)
                continue
            content = path.read_bytes()
        except OSError:
            missing.append(value)
            continue
        total += size
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        files[value] = f"data:{kind};base64,{b64encode(content).decode()}"
    _warn_not_embedded(missing, large, folder)
    return files


def _warn_not_embedded(missing: list[str], large: list[str], folder: Path) -> None:
    texts = []
    if missing:
        found = counted(len(missing), "file is", "files are")
        texts.append(f"{found} missing in {folder}, such as {shorten(missing[0])}")
    if large:
        found = counted(len(large), "file is", "files are")
        texts.append(
            f"{found} too large (above {MAX_FILE_BYTES // 10**6} MB, or "
            f"{MAX_EMBEDDED_BYTES // 10**6} MB in all), such as {shorten(large[0])}"
        )
    if texts:
        text = f"{'; '.join(texts)}: the page refers to them"
        warnings.warn(text, AnnotruthWarning, stacklevel=2)


def _source(value: str, files: Mapping[str, str]) -> str:
    """Return what must be allowed to load a value."""
    if value in files or _DATA_IMAGE.fullmatch(value):
        return "data:"
    if _URL.fullmatch(value):
        return f"{urlsplit(value).scheme.lower()}:"
    return "'self' file:"
