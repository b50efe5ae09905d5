"""sureal's dataset, as JSON or Python: distorted videos with the opinion scores of observers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from annotruth.errors import ComparisonsError, InputError, listed, shown
from annotruth.io.content import FileContent, check_utf8
from annotruth.io.decompress import check_size
from annotruth.io.formats.source import Format, ParsedLabels, Source
from annotruth.io.formats.votes import Votes, counted, mapping, sequence
from annotruth.io.literals import check_literal, read_literals, tree_size


def _recognise(source: Source) -> bool:
    return "dis_videos" in source.first


def _read(source: Source) -> ParsedLabels:
    return _read_dataset(mapping(source.document, "the dataset"))


def read_python(content: FileContent) -> ParsedLabels:
    """Read a dataset that is written in Python, without executing it."""
    return _read_dataset(read_dataset(content))


def read_dataset(content: FileContent) -> dict[str, Any]:
    """Return the variables of a dataset that is written in Python, without executing it."""
    check_utf8(content.data)
    check_size(tree_size(content.data.size), "Python's syntax tree", content.limit)
    return read_literals(content.data.to_pybytes().decode())


def _read_dataset(dataset: dict[str, Any]) -> ParsedLabels:
    """Read the scores of every distorted video; in a list, observers are numbered from 1."""
    votes = Votes()
    if "dis_videos" not in dataset:
        raise InputError("there is no list dis_videos, so this is not a dataset of sureal")
    videos = sequence(check_literal(dataset["dis_videos"], "dis_videos"), "dis_videos")
    for place, one in enumerate(videos, start=1):
        video = mapping(check_literal(one, f"video {place}"), "a distorted video")
        name = "asset_id" if "asset_id" in video else "path"
        item = check_literal(video.get(name), f"{name} of video {place}")
        for observer, scores in _by_observer(video, item):
            for score in scores if isinstance(scores, list) else [scores]:
                votes.add(item, observer, check_literal(score, f"a score of video {shown(item)}"))
    return votes.parsed(counted(len(videos), "distorted video", "distorted videos"))


def _by_observer(video: dict[str, Any], item: Any) -> Iterable[tuple[Any, Any]]:
    if "os" not in video:
        raise InputError(
            f"video {shown(item)} has no scores of observers (os, found: {listed(video)}): "
            "a mean over observers cannot be fitted, give the raw scores"
        )
    scores = check_literal(video["os"], f"os of video {shown(item)}")
    if isinstance(scores, dict):
        if any(isinstance(observer, tuple) for observer in scores):
            raise ComparisonsError(
                f"the scores (os) of video {shown(item)} are comparisons with other videos, not "
                "labels: rank the videos with `annotruth rank` (annotruth.rank)"
            )
        return scores.items()
    if isinstance(scores, list):
        return enumerate(scores, start=1)
    raise InputError(
        f"the scores (os) of video {shown(item)} are {shown(scores)}, neither a list nor an object"
    )


FORMATS = (Format("sureal", "sureal dataset", _recognise, _read),)
