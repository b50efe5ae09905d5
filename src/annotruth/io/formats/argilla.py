"""Argilla's records: responses by user and question, as versions 1 and 2 write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from annotruth.errors import InputError
from annotruth.io.formats.source import Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, chosen, counted, mapping, sequence

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


def _recognise(source: Source) -> bool:
    first = source.first
    if any(name.endswith(f"{_FLAT}.users") for name in first):
        return True
    return "responses" in first and ("fields" in first or "inputs" in first)


def _read(source: Source) -> ParsedLabels:
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
    question = chosen((response.question for _, response in kept), source.question, "question")
    votes = Votes()
    for item, response in kept:
        if response.question == question:
            votes.add(item, response.user, response.answer, times={"time": response.time})
    return votes.parsed(
        counted(n_records, "record", "records"),
        f"question {question}",
        counted(left_out, "discarded or draft left out", "discarded or draft left out"),
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


FORMATS = (Format("argilla", "Argilla records", _recognise, _read),)
