"""sureal's dataset of paired comparisons, as Python or JSON."""

from __future__ import annotations

import ast
from typing import Any

import pyarrow as pa

from annotruth.comparisons.rows import ParsedComparisons
from annotruth.errors import InputError, shown
from annotruth.io.content import FileContent
from annotruth.io.formats.source import Source
from annotruth.io.formats.sureal import read_dataset
from annotruth.io.formats.votes import check_scalar, counted, mapping, sequence
from annotruth.io.literals import check_literal
from annotruth.labels.frames import make_column

_WINNER = {1: "left", 0: "right", 0.5: "tie"}


def read_sureal(source: Source) -> ParsedComparisons:
    """Read a dataset that is written as JSON."""
    return _read(mapping(source.document, "the dataset"))


def read_sureal_python(content: FileContent) -> ParsedComparisons:
    """Read a dataset that is written in Python, without executing it."""
    return _read(read_dataset(content))


def _read(dataset: dict[str, Any]) -> ParsedComparisons:
    """Read the comparisons of every video: ``os`` is {(observer, other): 1, 0 or 0.5}.

    ``other`` is the number of the other video in the list, from 0; 1 means that this video won.
    """
    videos = sequence(check_literal(dataset.get("dis_videos"), "dis_videos"), "dis_videos")
    if not videos:
        raise InputError("there is no list dis_videos, so this is not a dataset of sureal")
    ids = [_id(one, place) for place, one in enumerate(videos)]
    rows: dict[str, list[Any]] = {role: [] for role in ("left", "right", "annotator", "winner")}
    seen: set[tuple[Any, int, int]] = set()
    for place, video in enumerate(videos):
        name = shown(ids[place])
        scores = check_literal(video.get("os"), f"os of video {name}")
        for key, score in mapping(scores, f"os of video {name}").items():
            observer, other = _key(key, name, len(videos))
            if (observer, other, place) in seen:  # written with both of its videos
                continue
            seen.add((observer, place, other))
            if check_scalar(check_literal(score, f"a score of video {name}")) not in _WINNER:
                raise InputError(f"a score of video {name} is {shown(score)}: give 1, 0 or 0.5")
            values = (ids[place], ids[other], observer, _WINNER[score])
            for role, value in zip(rows, values, strict=True):
                rows[role].append(value)
    return ParsedComparisons(
        {role: pa.chunked_array([make_column(role, values)]) for role, values in rows.items()},
        sides_known=False,
        title="sureal dataset of paired comparisons",
        notes=(counted(len(videos), "distorted video", "distorted videos"),),
    )


def _id(one: Any, place: int) -> Any:
    video = mapping(check_literal(one, f"video {place}"), "a distorted video")
    name = "asset_id" if "asset_id" in video else "path"
    return check_literal(video.get(name), f"{name} of video {place}")


def _key(key: Any, video: str, n_videos: int) -> tuple[Any, int]:
    """Return the observer and the place of the other video; JSON has tuples as text."""
    if isinstance(key, str) and key.startswith("("):
        try:
            key = ast.literal_eval(key)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            key = None
    match key:
        case (str() | int() as observer, int(other)) if 0 <= other < n_videos:
            return observer, other
    raise InputError(
        f"a score of video {video} has the key {shown(key)}: give (observer, number of the other "
        f"video), numbers from 0 to {n_videos - 1}"
    )
