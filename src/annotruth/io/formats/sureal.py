"""sureal's dataset as JSON: distorted videos with the opinion scores of observers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from annotruth.errors import InputError, shown
from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.io.formats.votes import Votes, counted, mapping, sequence


def _recognise(source: Source) -> bool:
    return "dis_videos" in source.first


def _read(source: Source) -> ParsedLabels:
    """Read the scores of every distorted video; in a list, observers are numbered from 1."""
    votes = Votes()
    videos = sequence(mapping(source.document, "the dataset").get("dis_videos"), "dis_videos")
    for one in videos:
        video = mapping(one, "a distorted video")
        item = video.get("asset_id", video.get("path"))
        for observer, scores in _by_observer(video.get("os"), item):
            for score in scores if isinstance(scores, list) else [scores]:
                votes.add(item, observer, score)
    return votes.parsed(counted(len(videos), "distorted video", "distorted videos"))


def _by_observer(scores: Any, item: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(scores, dict):
        return scores.items()
    if isinstance(scores, list):
        return enumerate(scores, start=1)
    raise InputError(
        f"the scores (os) of video {shown(item)} are {shown(scores)}, neither a list nor an object"
    )


def refuse_python() -> NoReturn:
    """Refuse a Python file: reading labels never runs code."""
    raise InputError(
        "Python files are not executed: write the dataset as JSON, "
        "json.dump(dict(ref_videos=ref_videos, dis_videos=dis_videos), file)"
    )


FORMATS = (Format("sureal", "sureal dataset", _recognise, _read),)
