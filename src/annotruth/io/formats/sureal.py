"""sureal's dataset of opinion scores or of paired comparisons, as JSON or Python, which is not executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from annotruth.errors import (
    ComparisonsError,
    InputError,
    LabelsError,
    describe_exhaustion,
    function,
    listed,
    shown,
)
from annotruth.io.content import check_utf8
from annotruth.io.decompress import check_size
from annotruth.io.formats.source import Format, Source
from annotruth.io.formats.votes import Votes, check_scalar, counted, mapping, sequence
from annotruth.observations.frames import make_column
from annotruth.observations.options import ParsedLabels
from annotruth.observations.pairs.build import ParsedComparisons


def _recognise(source: Source) -> bool:
    return "dis_videos" in source.first


def _dataset(source: Source) -> dict[str, Any]:
    """Return the variables of a dataset that is written in JSON, or in Python, which is not executed."""
    if source.path.suffix.lower() != ".py":
        return mapping(source.document, "the dataset")
    data = source.content.data
    check_utf8(data)
    check_size(_BYTES_PER_SYMBOL * data.size, "Python's syntax tree", source.content.limit)
    return read_literals(data.to_pybytes().decode())


def _read(source: Source) -> ParsedLabels:
    """Read the scores of every distorted video; in a list, observers are numbered from 1."""
    votes, dataset = Votes(), _dataset(source)
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
    return votes.parsed(counted(len(videos), "distorted video"))


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


_BYTES_PER_SYMBOL = 200  # what a syntax tree takes for each byte of source code


class NotLiteral(NamedTuple):
    """An expression that would have to be executed to know its value, and its line in the file."""

    line: int
    code: str


def read_literals(source: str) -> dict[str, Any]:
    """Return the values of all variables that a Python file assigns.

    Values are numbers, text, None, lists, dictionaries, and variables assigned before; tuples are
    lists. Any other expression is a `NotLiteral`. Imports are skipped, and any other statement is
    refused, as it could change the variables.
    """
    variables: dict[str, Any] = {}
    for statement in _parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                variables[name] = _evaluate(value, variables)
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue
            case _:
                raise InputError(
                    f"line {statement.lineno} is not an assignment of a value, and Python files are "
                    "not executed: write the values themselves, or the data as JSON"
                )
    return variables


def check_literal(value: Any, what: str) -> Any:
    """Return a value; refuse one that would have to be computed."""
    if isinstance(value, NotLiteral):
        raise InputError(
            f"{what} is computed on line {value.line} ({value.code}), and Python files are not "
            "executed: write the value itself, or the data as JSON"
        )
    return value


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise InputError(
            f"line {error.lineno} is not Python ({error.msg}): correct it, or write the data as JSON"
        ) from error
    except ValueError as error:
        raise InputError(f"the file is not Python ({error}): write the data as JSON") from error
    except (MemoryError, RecursionError) as error:  # both where expressions are nested deeply
        raise InputError(describe_exhaustion(RecursionError())) from error


def _evaluate(node: ast.expr, variables: dict[str, Any]) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in variables:
            return variables[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_evaluate(element, variables) for element in elements]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            names = [_evaluate_key(key, variables) for key in keys if key is not None]
            if not any(isinstance(name, NotLiteral | list | dict) for name in names):
                evaluated = (_evaluate(value, variables) for value in values)
                return dict(zip(names, evaluated, strict=True))
    return NotLiteral(node.lineno, ast.unparse(node)[:60])


def _evaluate_key(node: ast.expr, variables: dict[str, Any]) -> Any:
    """Return the key of a dictionary; of tuples of plain values, a tuple."""
    key = _evaluate(node, variables)
    is_plain = isinstance(key, list) and not any(
        isinstance(entry, NotLiteral | list | dict) for entry in key
    )
    return tuple(key) if is_plain and isinstance(node, ast.Tuple) else key


_WINNER = {1: "left", 0: "right", 0.5: "tie"}


def _read_comparisons(source: Source) -> ParsedComparisons:
    """Read the comparisons of every video: ``os`` is {(observer, other): 1, 0 or 0.5}.

    ``other`` is the number of the other video in the list, from 0; 1 means that this video won.
    """
    given = check_literal(_dataset(source).get("dis_videos"), "dis_videos")
    videos = sequence(given, "dis_videos")
    if not videos:
        raise InputError("there is no list dis_videos, so this is not a dataset of sureal")
    ids = [_id(one, place) for place, one in enumerate(videos)]
    rows: dict[str, list[Any]] = {role: [] for role in ("left", "right", "annotator", "winner")}
    seen: set[tuple[Any, int, int]] = set()
    for place, video in enumerate(videos):
        name = shown(ids[place])
        scores = check_literal(video.get("os"), f"os of video {name}")
        if isinstance(scores, list) or (
            isinstance(scores, dict) and scores and all(map(_is_observer, scores))
        ):
            raise LabelsError(
                "these are scores of one video each, not comparisons of pairs: fit them with "
                f"{function('fit')}"
            )
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
        notes=(counted(len(videos), "distorted video"),),
    )


def _id(one: Any, place: int) -> Any:
    video = mapping(check_literal(one, f"video {place}"), "a distorted video")
    name = "asset_id" if "asset_id" in video else "path"
    return check_literal(video.get(name), f"{name} of video {place}")


def _is_observer(key: Any) -> bool:
    """Return whether a key of ``os`` is an observer alone; JSON has pairs with the other video as text."""
    return isinstance(key, str) and not key.startswith("(")


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


FORMATS = (Format("sureal", "sureal dataset", _recognise, _read, _read_comparisons),)
