"""Prodigy's JSON lines: one line per decision, with the hash of the task and a session."""

from __future__ import annotations

from typing import Any

from annotruth.errors import InputError
from annotruth.io.formats.source import ITEM_FIELD, Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, counted, sequence


def _recognise(source: Source) -> bool:
    return bool({"_input_hash", "_task_hash"} & set(source.first)) and "answer" in source.first


def _read(source: Source) -> ParsedLabels:
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
                raise InputError(
                    "these are spans in a text: only labels chosen from a list are read"
                )
            votes.add(record.get("_task_hash"), _annotator(record), answer, times=_times(record))
        elif answer == "reject":
            rejected += 1
        else:
            accepted = sequence(record.get("accept"), "the list of accepted options")
            votes.add(_item(record), _annotator(record), accepted, times=_times(record))
    return votes.parsed(
        counted(len(records), "decision", "decisions"),
        "by choice" if by_choice else "accept or reject",
        counted(ignored, "ignored left out", "ignored left out"),
        counted(rejected, "rejected left out", "rejected left out"),
    )


def _item(record: Record) -> Any:
    """Return the item of a task: the one that annotruth made it for, else its input."""
    return record.get(ITEM_FIELD, record.get("_input_hash", record.get("_task_hash")))


def _annotator(record: Record) -> Any:
    return record.get("_annotator_id", record.get("_session_id"))


def _times(record: Record) -> Record:
    return {"time": record.get("_timestamp")}


FORMATS = (Format("prodigy", "Prodigy annotations", _recognise, _read),)
