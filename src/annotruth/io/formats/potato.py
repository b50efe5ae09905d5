"""Potato's annotated_instances.tsv: one row per user and instance, one column per option."""

from __future__ import annotations

from dataclasses import replace

from annotruth.io.formats.source import Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, chosen, counted, refuse_regions

_USER, _INSTANCE = "user", "instance_id"
_BETWEEN = ":::"  # the name of a question and an option of it
_SPANS = "["  # at the start of a cell that holds spans of the text


def _recognise(source: Source) -> bool:
    names = source.names
    return {_USER, _INSTANCE} <= set(names) and any(_BETWEEN in name for name in names)


def _read(source: Source) -> ParsedLabels:
    """Read the options that were ticked, or the values that were given, for one question."""
    item, user = source.column("item", _INSTANCE), source.column("annotator", _USER)
    rows: list[Record] = source.table(list(source.names)).to_pylist()
    columns = [name for name in source.names if _BETWEEN in name]
    spans = {
        _question(name) for name in columns for row in rows if (row[name] or "").startswith(_SPANS)
    }
    questions = [_question(name) for name in columns if _question(name) not in spans]
    if spans and not questions:
        refuse_regions(min(spans), "spans")
    question = chosen(questions, source.question, "question")
    options = [name for name in columns if _question(name) == question]
    votes = Votes()
    for row in rows:
        votes.add(row[item], row[user], [_choice(name, row[name]) for name in options])
    parsed = votes.parsed(
        counted(len(rows), "annotation", "annotations"),
        f"question {question}",
        f"spans of {', '.join(sorted(spans))} left out" if spans else "",
    )
    return replace(parsed, from_text=source.from_text)


def _question(name: str) -> str:
    return name.partition(_BETWEEN)[0]


def _choice(name: str, cell: str | None) -> str | None:
    """Return the option that was ticked, or the value of a slider or a field; None if there is none."""
    return name.partition(_BETWEEN)[2] if str(cell).lower() == "true" else cell


FORMATS = (Format("potato", "Potato annotations", _recognise, _read),)
