"""Reports of CrowdFlower, later Figure Eight and Appen: one row per judgment of a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from annotruth.errors import InputError, listed
from annotruth.io.formats.matrix import is_empty
from annotruth.io.formats.source import Format, ParsedLabels, Record, Source
from annotruth.io.formats.votes import Votes, chosen, counted, differing, pass_question
from annotruth.observations.frames import check_further_columns
from annotruth.observations.options import ALL_QUESTIONS

_UNIT, _WORKER, _TAINTED = "_unit_id", "_worker_id", "_tainted"
_GOLD = ("_gold", ":gold")  # after the name of a question
_GOLD_REASON = "_gold_reason"


def _recognise(source: Source) -> bool:
    names = set(source.names)
    return _UNIT in names and (_WORKER in names or "_unit_state" in names)


def _read(source: Source) -> ParsedLabels:
    """Read one answer of every judgment; the answers of test questions are gold."""
    if _WORKER not in source.names and "annotator" not in source.columns:
        raise InputError(
            "this is an aggregated report, which has one answer per unit and not who gave it: "
            "download the full report instead"
        )
    item, worker = source.column("item", _UNIT), source.column("annotator", _WORKER)
    rows: list[Record] = source.table(list(source.names)).to_pylist()
    question = _question(source, rows)
    golds = [name for suffix in _GOLD if (name := question + suffix) in source.names]
    check_further_columns("content", source.names, source.items_content, ())
    votes = Votes(content={name: [] for name in source.items_content})
    several, tainted = set(), 0
    for row in rows:
        if row[question] is None:
            continue
        votes.add(row[item], row[worker], _choices(row[question]), row)
        tainted += str(row.get(_TAINTED)).lower() == "true"
        for accepted in (_choices(row[name]) for name in golds if row[name]):
            if len(accepted) > 1:
                several.add(row[item])
            else:
                votes.add_gold(row[item], accepted)
    parsed = votes.parsed(
        counted(len(rows), "judgment", "judgments"),
        f"items by {item}",
        f"question {question}",
        counted(tainted, "tainted judgment included", "tainted judgments included"),
        counted(
            len(several),
            "test question with several accepted answers is not gold",
            "test questions with several accepted answers are not gold",
        ),
    )
    return replace(parsed, from_text=source.from_text)


def _question(source: Source, rows: Sequence[Record]) -> str:
    """Return the question: a column with a gold column, or that differs between judgments."""
    if "label" in source.columns:
        return source.column("label", "")
    names = [
        name
        for name in source.names
        if not name.startswith(("_", "orig__")) and not name.endswith((*_GOLD, _GOLD_REASON))
    ]
    if source.question not in (None, ALL_QUESTIONS):
        return chosen(names, source.question, "question")
    answers = differing(rows, itemgetter(_UNIT), names)
    with_gold = {
        n.removesuffix(suffix) for n in source.names for suffix in _GOLD if n.endswith(suffix)
    }
    questions = [name for name in names if name in answers or name in with_gold]
    if not questions:
        names = [name for name in names if any(not is_empty(row[name] or "") for row in rows)]
    if questions or len(names) == 1:
        return chosen(questions or names, source.question, "question")
    raise InputError(
        f"the question could be any of {listed(names)}, as no column differs between the judgments "
        f"of a unit: {pass_question(names[0])}"
        if names
        else "there is no question with a label: nothing to fit"
    )


def _choices(cell: object) -> list[str]:
    """Return the choices in a cell, which has one per line where several could be ticked."""
    return [choice for line in str(cell).splitlines() if (choice := line.strip())]


FORMATS = (Format("crowdflower", "CrowdFlower or Appen report", _recognise, _read),)
