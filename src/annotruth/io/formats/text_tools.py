"""Exports of tools that label texts: Argilla, doccano, Potato and Prodigy."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from annotruth.errors import InputError
from annotruth.io.content import FileContent, read_content, recognise_content, size_limit
from annotruth.io.decompress import check_size, open_zip, read_member
from annotruth.io.formats.source import ITEM_FIELD, Format, Record, Source
from annotruth.io.formats.votes import (
    Votes,
    check_scalar,
    choose_answered,
    counted,
    mapping,
    refuse_regions,
    sequence,
    with_note,
)
from annotruth.observations.options import ParsedLabels

# Argilla's records: responses by user and question, as versions 1 and 2 write them.

NOT_SUBMITTED = ("discarded", "draft")
"""The statuses of responses that are no labels."""
_FLAT = ".responses"


class Response(NamedTuple):
    """What a user answered to one question of a record."""

    question: str
    user: Any
    answer: Any
    status: Any
    time: Any = None


def _recognise_argilla(source: Source) -> bool:
    first = source.first
    if any(name.endswith(f"{_FLAT}.users") for name in first):
        return True
    return "responses" in first and ("fields" in first or "inputs" in first)


def _read_argilla(source: Source) -> ParsedLabels:
    """Read the responses that were submitted; discarded ones and drafts are left out."""
    kept, left_out, n_records = [], 0, 0
    for number, record in enumerate(source.records(), start=1):
        n_records += 1
        item = record.get("id", record.get("external_id"))
        item = number if item is None else item
        for response in responses_of(record):
            if response.status in NOT_SUBMITTED:
                left_out += 1
            else:
                kept.append((item, response))
    question, note = choose_answered(
        [(item, each.user, each.question, each.answer) for item, each in kept],
        source.read.question,
    )
    votes = Votes()
    for item, response in kept:
        if response.question == question:
            votes.add(item, response.user, response.answer, times={"time": response.time})
    return votes.parsed(
        counted(n_records, "record"),
        with_note(f"question {question}", note),
        counted(left_out, "discarded or draft left out", "discarded or draft left out"),
        **{"discarded or draft": left_out},
    )


def responses_of(record: Record) -> Iterator[Response]:
    """Return the responses of a record."""
    responses = record.get("responses")
    if isinstance(responses, dict):
        yield from _of_version_2(responses)
    elif responses is not None:
        yield from _of_version_1(responses)
    else:
        yield from _flattened(record)


def _of_version_1(responses: Any) -> Iterator[Response]:
    """Read ``[{"user_id": .., "status": .., "values": {question: {"value": ..}}}]``."""
    for one in sequence(responses, "the list of responses"):
        response = mapping(one, "a response")
        values = response.get("values")
        for question, value in mapping({} if values is None else values, "the values").items():
            answer = value.get("value") if isinstance(value, dict) else value
            yield _response(question, answer, response)


def _of_version_2(responses: Record) -> Iterator[Response]:
    """Read ``{question: [{"user_id": .., "value": .., "status": ..}]}``."""
    for question, given in responses.items():
        for one in sequence(given, "the list of responses"):
            response = mapping(one, "a response")
            yield _response(question, response.get("value"), response)


def _response(question: str, answer: Any, entries: Record) -> Response:
    """Return a response; its time is in what the server lists, but not in exports of the client."""
    time = entries.get("updated_at", entries.get("inserted_at"))
    return Response(question, entries.get("user_id"), answer, entries.get("status"), time)


def _flattened(record: Record) -> Iterator[Response]:
    """Read ``{"question.responses": [..], ".users": [..], ".status": [..]}``."""
    for name in record:
        if not name.endswith(_FLAT):
            continue
        responses = sequence(record[name], "the list of responses")
        users = sequence(record.get(f"{name}.users"), "the list of users")
        status = sequence(record.get(f"{name}.status"), "the list of statuses")
        if len(users) != len(responses):
            raise InputError(
                f"{name} has {len(responses)} responses by {len(users)} users: export the file again"
            )
        status = status if len(status) == len(responses) else [None] * len(responses)
        for user, answer, state in zip(users, responses, status, strict=True):
            yield Response(name.removesuffix(_FLAT), user, answer, state)


# doccano's JSON lines: annotations by user in one file, or one file per user.


def _recognise_doccano(source: Source) -> bool:
    first = source.first
    if "id" not in first and "doc_id" not in first:
        return False
    annotations = first.get("annotations")
    if isinstance(annotations, list):
        return all(isinstance(one, dict) and {"label", "user"} <= set(one) for one in annotations)
    # Of one user: an example with a list of labels and no user name.
    labels = first.get("label", first.get("labels", first.get("entities")))
    return isinstance(labels, list) and bool({"text", "data", "filename"} & set(first))


def _read_doccano(source: Source) -> ParsedLabels:
    votes, n_examples = Votes(), 0
    name = source.path.name.split(".")[0]
    for record in source.records():
        n_examples += 1
        _add(votes, record, name)
    note = "" if len(set(votes.annotators)) != 1 else "one user; give the folder of all users"
    parsed = votes.parsed(counted(n_examples, "example"), note)
    return replace(parsed, nominal=True)  # numbers are ids of labels


def read_users(path: Path, *, max_size: str | int | None = None) -> ParsedLabels | None:
    """Read a folder or a zip of one file per user, named after the user; None if it is not one."""
    votes, users = Votes(), []
    for name, content in _members(path, max_size):
        source = Source(Path(name), content)
        if content.kind != "json" or not _recognise_doccano(source):
            return None
        users.append(Path(name).stem)
        for record in source.records():
            _add(votes, record, users[-1])
    if len(users) < 2:
        return None
    return replace(votes.parsed(f"{len(users):,} users, one file each"), nominal=True)


def _add(votes: Votes, record: Record, user: str) -> None:
    item = record.get("id", record.get("doc_id"))
    if "entities" in record:
        _refuse_spans()
    if "annotations" not in record:
        labels = sequence(record.get("label", record.get("labels")), "the list of labels")
        if any(isinstance(label, list | dict) for label in labels):
            _refuse_spans()
        # An example without labels may not have been looked at.
        votes.add(item, record.get("username", record.get("user", user)), labels or None)
        return
    labels_of_user: dict[Any, list[Any]] = {}
    for one in sequence(record["annotations"], "the list of annotations"):
        annotation = mapping(one, "an annotation")
        if "start_offset" in annotation:
            _refuse_spans()
        labels_of_user.setdefault(check_scalar(annotation.get("user")), []).append(
            annotation.get("label")
        )
    for annotator, labels in labels_of_user.items():
        votes.add(item, annotator, labels)


def _refuse_spans() -> NoReturn:
    raise InputError(
        "these are spans in a text: only labels of whole items are read; write them as a table with "
        "the columns item, annotator, label"
    )


def _members(path: Path, max_size: str | int | None) -> Iterator[tuple[str, FileContent]]:
    if path.is_dir():
        for file in sorted(
            file for file in path.iterdir() if file.is_file() and _is_of_user(file.name)
        ):
            yield file.name, read_content(file, max_size=max_size)
    elif zipfile.is_zipfile(path):
        with open_zip(os.fspath(path)) as archive:
            yield from _members_of_zip(archive, size_limit(path.stat().st_size, max_size))


def _is_of_user(name: str) -> bool:
    return name.lower().endswith((".jsonl", ".json"))


def _members_of_zip(archive: zipfile.ZipFile, limit: int) -> Iterator[tuple[str, FileContent]]:
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) < 2 or not all(_is_of_user(member.filename) for member in members):
        return
    check_size(sum(member.file_size for member in members), "zip's content", limit)
    for member in members:
        data = read_member(archive, member, "zip's content", limit=limit)
        yield member.filename, recognise_content(data, limit)


# Potato's annotated_instances: a table of all users, or JSON lines in a folder of each user.

_USER, _INSTANCE = "user", "instance_id"
BETWEEN = ":::"
"""Stands between the name of a question and an option of it."""
_LABELS = "label_annotations"
_SPANS = "["  # at the start of a cell that holds spans of the text
_BEHAVIOR = "behavioral_data"


class _Mark(NamedTuple):
    """What a user entered for one option of a question."""

    item: object
    user: object
    question: str
    option: str
    value: object
    times: Record

    @property
    def choice(self) -> object:
        """The option if it was ticked, else the value of a slider or a field."""
        return choice_of(self.question, self.option, self.value)


def choice_of(question: str, option: str, value: object) -> object:
    """Return the option if the value says that it was ticked, else the value."""
    return option if str(value) in ("true", "True", f"{question}{BETWEEN}{option}") else value


def _recognise_potato(source: Source) -> bool:
    if source.kind == "json":
        return {"id", _LABELS} <= set(source.first)
    names = source.names
    return {_USER, _INSTANCE} <= set(names) and any(BETWEEN in name for name in names)


def _read_potato(source: Source) -> ParsedLabels:
    """Read the options that were ticked, or the values that were given, for one question."""
    marks = list(_in_lines(source) if source.kind == "json" else _in_table(source))
    spans = {mark.question for mark in marks if str(mark.value).startswith(_SPANS)}
    given = [
        (mark.item, mark.user, mark.question, mark.choice)
        for mark in marks
        if mark.question not in spans
    ]
    if spans and not given:
        refuse_regions(min(spans), "spans")
    question, note = choose_answered(given, source.read.question)
    choices: dict[tuple[object, object], list[object]] = {}
    times: dict[tuple[object, object], Record] = {}
    for mark in marks:
        of_user = choices.setdefault((mark.item, mark.user), [])
        times[mark.item, mark.user] = mark.times
        if mark.question == question:
            of_user.append(mark.choice)
    votes = Votes()
    for (item, user), of_user in choices.items():
        votes.add(item, user, of_user, times=times[item, user])
    parsed = votes.parsed(
        counted(len(choices), "annotation"),
        with_note(f"question {question}", note),
        f"spans of {', '.join(sorted(spans))} left out" if spans else "",
    )
    return replace(parsed, from_text=True)


def _in_table(source: Source) -> Iterator[_Mark]:
    item, user = source.column("item", _INSTANCE), source.column("annotator", _USER)
    columns = [name for name in source.names if BETWEEN in name]
    for row in source.table(list(source.names)).to_pylist():
        for name in columns:
            question, _, option = name.partition(BETWEEN)
            yield _Mark(row[item], row[user], question, option, row[name], {})


def _in_lines(source: Source) -> Iterator[_Mark]:
    """Return the marks of one user, whose name is that of the folder."""
    user = source.path.resolve().parent.name
    for record in source.records():
        times = _times_potato(record.get(_BEHAVIOR))
        for question, options in mapping(record.get(_LABELS), _LABELS).items():
            for option, value in mapping(options, f"{_LABELS} of {question!r}").items():
                yield _Mark(check_scalar(record.get("id")), user, question, option, value, times)


def _times_potato(behavior: object) -> Record:
    """Return when an instance was left, and the seconds that it took."""
    known = behavior if isinstance(behavior, dict) else {}
    took, end = known.get("total_time_ms"), known.get("session_end")
    seconds = took / 1000 if isinstance(took, int | float) else None
    return {"time": known.get("session_start") if end is None else end, "seconds": seconds}


# Prodigy's JSON lines: one line per decision, with the hash of the task and a session.

_HASHES = {"_input_hash", "_task_hash"}
_LABELS_OF_PRODIGY = {"label", "accept", "options"}


def _recognise_prodigy(source: Source) -> bool:
    """Return whether tasks are of Prodigy; those with spans alone are, also without hashes."""
    first = source.first
    only_spans = "spans" in first and _LABELS_OF_PRODIGY.isdisjoint(first)
    is_answer = first.get("answer") in ("accept", "reject", "ignore")
    return "answer" in first and (not _HASHES.isdisjoint(first) or (only_spans and is_answer))


def _read_prodigy(source: Source) -> ParsedLabels:
    """Read the choices where tasks have options, else whether each task was accepted.

    With options an item is an input, as every task on it is the same question; without them it
    is the input together with the label it was shown with, and its labels are accept and reject.
    """
    records = list(source.records())
    by_choice = any("accept" in record or "options" in record for record in records)
    votes, ignored, rejected = Votes(), 0, 0
    for record in records:
        answer = record.get("answer")
        if answer not in ("accept", "reject", "ignore"):
            raise InputError(f"an answer is {answer!r}, not accept, reject or ignore")
        if answer == "ignore":
            ignored += 1
        elif not by_choice:
            if "label" not in record and "spans" in record:
                _refuse_spans()
            votes.add(
                record.get("_task_hash"), _annotator(record), answer, times=_times_prodigy(record)
            )
        elif answer == "reject":
            rejected += 1
        else:
            accepted = sequence(record.get("accept"), "the list of accepted options")
            votes.add(_item(record), _annotator(record), accepted, times=_times_prodigy(record))
    return votes.parsed(
        counted(len(records), "decision"),
        "by choice" if by_choice else "accept or reject",
        counted(ignored, "ignored left out", "ignored left out"),
        counted(rejected, "rejected left out", "rejected left out"),
        ignored=ignored,
        rejected=rejected,
    )


def _item(record: Record) -> Any:
    """Return the item of a task: the one that annotruth made it for, else its input."""
    return record.get(ITEM_FIELD, record.get("_input_hash", record.get("_task_hash")))


def _annotator(record: Record) -> Any:
    return record.get("_annotator_id", record.get("_session_id"))


def _times_prodigy(record: Record) -> Record:
    return {"time": record.get("_timestamp")}


FORMATS = (
    Format("argilla", "Argilla records", _recognise_argilla, _read_argilla),
    Format("doccano", "doccano export", _recognise_doccano, _read_doccano),
    Format("potato", "Potato annotations", _recognise_potato, _read_potato),
    Format(
        "prodigy",
        "Prodigy annotations",
        _recognise_prodigy,
        _read_prodigy,
    ),
)
