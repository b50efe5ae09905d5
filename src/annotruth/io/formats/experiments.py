"""Data of tools for experiments: jsPsych, Gorilla and oTree, with rows that are no labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotruth.errors import InputError, listed
from annotruth.io.formats.source import Format, Record, Source
from annotruth.io.formats.votes import FormAnswer, counted, labels_of
from annotruth.observations.columns.names import KNOWN_NAMES, find_known, pass_column
from annotruth.observations.options import ParsedLabels

_EMPTY = (None, "", "null")
_PEOPLE = (
    *("PROLIFIC_PID", "prolific_pid", "subject_id", "subject", "participant_id", "participant"),
    *("worker_id", "workerId", "run_id"),
)


def _column(source: Source, role: str, names: Sequence[str], usual: Sequence[str]) -> str:
    """Return the column that the caller names for a role, or the first usual one there is."""
    name = (source.read.columns or {}).get(role) or next((n for n in usual if n in names), None)
    if name not in names:
        raise InputError(f"no column for the {role} (found: {listed(names)}); {pass_column(role)}")
    return str(name)


# jsPsych: one row per trial of any kind, as CSV or JSON.

_TRIAL = {"trial_type", "trial_index", "time_elapsed"}


def _recognise_jspsych(source: Source) -> bool:
    return set(source.first or source.names) >= _TRIAL


def _read_jspsych(source: Source) -> ParsedLabels:
    """Read the trials with a stimulus and a response; the kind of trial is the question."""
    is_json = source.kind == "json"
    rows = list(source.records()) if is_json else source.table(list(source.names)).to_pylist()
    names = list({name: None for row in rows for name in row})
    item = _column(source, "item", names, ("stimulus",))
    label = _column(source, "label", names, ("response",))
    who = _column(source, "annotator", names, _PEOPLE)
    answers = [
        FormAnswer(
            row[item],
            row.get(who),
            str(row["trial_type"]),
            row[label],
            {"order": row.get("trial_index")},
        )
        for row in rows
        if row.get(item) not in _EMPTY and row.get(label) not in _EMPTY
    ]
    return _read(answers, rows, source)


def _read(answers: list[FormAnswer], rows: Sequence[Record], source: Source) -> ParsedLabels:
    n_left_out = len(rows) - len(answers)
    notes = (counted(len(rows), "row"), counted(n_left_out, "row{s} without a label left out"))
    unused = {"without a label": n_left_out}
    return labels_of(answers, source, *notes, from_text=source.from_text, unused=unused)


# Gorilla: one row per zone of a screen; those of kind response_... have answers.

_GORILLA = {"Participant Private ID", "Zone Type", "Response"}
_END = "END OF FILE"


def _read_gorilla(source: Source) -> ParsedLabels:
    rows = source.table(list(source.names)).to_pylist()
    others = [name for name in source.names if name.strip().lower() != "task"]
    stimuli = find_known(KNOWN_NAMES["item"], others)
    item = _column(source, "item", source.names, stimuli)
    who = _column(source, "annotator", source.names, ("Participant Private ID",))
    answers = [
        FormAnswer(row[item], row[who], str(row.get("Zone Name")), row["Response"], _times(row))
        for row in rows
        if str(row["Zone Type"]).startswith("response") and row["Response"] not in _EMPTY
    ]
    return _read(answers, [row for row in rows if row[source.names[0]] != _END], source)


def _times(row: Mapping[str, Any]) -> Record:
    return {"order": row.get("Trial Number")}


# oTree: one row per participant and round, with the fields of an app as player.NAME.

_OTREE = {"participant.code", "session.code", "subsession.round_number"}
_PLAYER = "player."


def _read_otree(source: Source) -> ParsedLabels:
    names = source.names
    fields = [name.removeprefix(_PLAYER) for name in names if name.startswith(_PLAYER)]
    items, labels = (find_known(KNOWN_NAMES[role], fields) for role in ("item", "label"))
    item = _column(source, "item", names, [f"{_PLAYER}{name}" for name in items])
    label = _column(source, "label", names, [f"{_PLAYER}{name}" for name in labels])
    who = _column(source, "annotator", names, ("participant.code",))
    round_number = "subsession.round_number"
    rows = source.table(list(dict.fromkeys([item, label, who, round_number]))).to_pylist()
    answers = [
        FormAnswer(row[item], row[who], label, row[label], {"order": row[round_number]})
        for row in rows
        if row[label] not in _EMPTY
    ]
    return _read(answers, rows, source)


FORMATS = (
    Format("jspsych", "jsPsych data", _recognise_jspsych, _read_jspsych),
    Format("gorilla", "Gorilla data", lambda s: set(s.names) >= _GORILLA, _read_gorilla),
    Format("otree", "oTree data", lambda s: set(s.names) >= _OTREE, _read_otree),
)
