"""Prodigy's JSON lines: one line a decision, by a task's hash and a session."""

from __future__ import annotations

from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.base import Format, ParsedLabels
from annotruth.io.formats.source import Record, Source
from annotruth.io.formats.votes import Votes, counted, sequence


def _recognise(source: Source) -> bool:
    return bool({"_input_hash", "_task_hash"} & set(source.first)) and "answer" in source.first


def _read(source: Source) -> ParsedLabels:
    """Take choices where there are options to choose from, else whether a task was accepted.

    With options an item is an input, for every task on it asks the same; without them it is
    the input together with the label it was shown with, and its labels are accept and reject.
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
                raise InputError("these are spans in a text: a label is one choice out of a list")
            votes.add(record.get("_task_hash"), _person(record), answer)
        elif answer == "reject":
            rejected += 1
        else:
            said = sequence(record.get("accept"), "the list of accepted options")
            shown = record.get("_input_hash", record.get("_task_hash"))
            votes.add(shown, _person(record), said)
    return votes.found(
        counted(len(records), "decision", "decisions"),
        "by choice" if by_choice else "accept or reject",
        counted(ignored, "ignored left out", "ignored left out"),
        counted(rejected, "rejected left out", "rejected left out"),
    )


def _person(record: Record) -> Any:
    return record.get("_annotator_id", record.get("_session_id"))


FORMATS = (Format("prodigy", "Prodigy annotations", _recognise, _read),)
