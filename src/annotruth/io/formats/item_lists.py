"""Items with all of their labels in one record: lists of labels and of annotators, or one list of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from annotruth.errors import InputError, option, shown
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import Votes, check_scalar, counted, mapping, sequence
from annotruth.io.json_lines import is_deep
from annotruth.observations.columns.names import NAMES_OF, spelling
from annotruth.observations.columns.set_cells import parse_value
from annotruth.observations.options import ParsedLabels

_LABELS = (
    *("annotations", "labels", "answers", "ratings", "votes", "judgments", "judgements", "scores"),
    *("annotator_labels", "responses", "annotators"),
)
_PEOPLE = (
    *("annotators", "annotator_ids", "annotator_id", "workers", "worker_ids", "worker_id"),
    *("raters", "rater_ids", "users", "user_ids", "coders", "judges"),
)
_ITEMS = ("id", "uid", "idx", "item_id", "example_id", "text_id", "post_id", "sample_id", "item")
_ANNOTATOR_NAMES, _LABEL_NAMES = (set(map(spelling, NAMES_OF[r])) for r in ("annotator", "label"))


class _Fields(NamedTuple):
    """The fields of a record: what holds the labels, and the annotators if these are beside it."""

    labels: str
    annotators: str = ""
    label: str = ""  # of the objects in a list of both


def _spelled(names: Iterable[str]) -> dict[str, str]:
    return {spelling(name): name for name in names}


def _find(record: Mapping[str, Any]) -> _Fields | None:
    """Return the fields that hold labels, by names that are unmistakable."""
    names = _spelled(record)
    known, people = (
        [names[name] for name in map(spelling, some) if name in names]
        for some in (_LABELS, _PEOPLE)
    )
    for name in known:
        value = _loaded(record[name])
        beside = next((each for each in people if each != name), "")
        if isinstance(value, dict) and value and not any(map(_is_nested, value.values())):
            who = _loaded(record[beside]) if beside else None
            if isinstance(who, list) and set(map(str, value)) == set(map(str, who)):
                return _Fields(name)  # its keys are the annotators
            continue
        if not isinstance(value, list) or not value:
            continue
        if all(isinstance(one, dict) for one in value):
            inner = _spelled(value[0])
            who = next((inner[n] for n in inner if n in _ANNOTATOR_NAMES), "")
            label = next((inner[n] for n in inner if n in _LABEL_NAMES), "")
            if who and label:
                return _Fields(name, who, label)
        elif beside and isinstance(_loaded(record[beside]), list):
            return _Fields(name, beside)
    return None


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def _loaded(cell: Any) -> Any:
    """Return the list in a text: as JSON or Python writes it, or separated by commas."""
    if not isinstance(cell, str) or not cell.strip():
        return cell
    if cell.lstrip()[0] not in "[{":
        return [part.strip() for part in cell.split(",")]
    value = parse_value(cell.strip())
    return cell if value is None or is_deep([value]) else value


def _records(source: Source) -> Iterator[tuple[Any, Record]]:
    """Return each item and its record; the item of an object of objects is its key."""
    by_key = _by_key(source)
    if by_key is not None:
        yield from by_key.items()
        return
    if source.kind == "json":
        rows = list(source.records())
    else:
        source.check_cells()
        rows = source.table(list(source.names)).to_pylist()
    names = _spelled(rows[0] if rows else ())
    name = source.columns.get("item") or next(
        (names[n] for n in map(spelling, _ITEMS) if n in names), None
    )
    for number, row in enumerate(rows, start=1):
        yield number if name is None else row.get(name), row


def _by_key(source: Source) -> dict[str, Record] | None:
    """Return the records of one object of objects; None for everything else."""
    first = source.first
    if not first or not all(isinstance(value, dict) for value in first.values()):
        return None
    return source.whole if source.whole == first else None


def _first(source: Source) -> Record:
    """Return the first record, whether of a table, a list or an object of objects."""
    if source.kind == "json":
        return next(iter((_by_key(source) or {"": source.first}).values()))
    if not set(_spelled(source.names)) & set(map(spelling, _LABELS)):
        return {}
    if source.from_text:
        rows = source.rows[1:2]
        cells = dict(zip(source.names, rows[0], strict=False)) if rows else {}
        return {name: cell for name, cell in cells.items() if cell.startswith(("[", "{"))}
    return next(iter(source.table(list(source.names)).slice(0, 1).to_pylist()), {})


def _read(source: Source) -> ParsedLabels:
    fields = _find(_first(source))
    if fields is None:
        raise InputError(
            "the records have no list of labels beside a list of annotators: pass another "
            f"{option('input_format')}"
        )
    votes, n_records = Votes(), 0
    for item, record in _records(source):
        n_records += 1
        for annotator, label in _labels(record, fields, item):
            votes.add(item, annotator, label)
    who = fields.annotators or "its keys"
    parsed = votes.parsed(
        counted(n_records, "record"), f"labels in {fields.labels}, annotators in {who}"
    )
    return replace(parsed, from_text=True)


def _labels(record: Record, fields: _Fields, item: Any) -> Iterator[tuple[Any, Any]]:
    """Return each annotator's label of one item."""
    given = _loaded(record.get(fields.labels))
    if isinstance(given, dict):
        yield from given.items()
        return
    labels = sequence(given, f"{fields.labels} of item {item!r}")
    if fields.label:
        for one in labels:
            answer = mapping(one, f"a label of item {item!r}")
            yield check_scalar(answer.get(fields.annotators)), answer.get(fields.label)
        return
    people = sequence(_loaded(record.get(fields.annotators)), f"the annotators of item {item!r}")
    if len(people) != len(labels):
        raise InputError(
            f"item {shown(item)} has {len(labels)} labels in {fields.labels!r} by {len(people)} in "
            f"{fields.annotators!r}: export the file again"
        )
    yield from zip(people, labels, strict=True)


# suJSON: trials, and scores that name them.

_SUJSON = {"trials", "scores", "pvs"}


def _read_sujson(source: Source) -> ParsedLabels:
    document = mapping(source.document, "the file")
    parts = [document.get(name) for name in ("pvs", "scores", "trials")]
    pvs, scores, trials = (
        [mapping(one, "an entry") for one in sequence(part, "a list of the file")] for part in parts
    )
    score_of = {check_scalar(score.get("id")): score.get("score") for score in scores}
    votes = Votes()
    for trial in trials:
        score = score_of.get(check_scalar(trial.get("score_id")))
        votes.add(trial.get("pvs_id"), trial.get("subject_id"), score)
    return votes.parsed(counted(len(pvs), "sequence"), counted(len(trials), "trial"))


FORMATS = (
    Format("lists", "items with lists of labels", lambda s: _find(_first(s)) is not None, _read),
    Format("sujson", "suJSON", lambda s: set(s.first) >= _SUJSON, _read_sujson),
)
