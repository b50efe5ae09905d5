"""Answers to the questions of a form, from which the labels of one question are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from annotruth.io.formats.source import Record, Source
from annotruth.io.formats.votes import Votes, chosen
from annotruth.observations.options import ALL_QUESTIONS, ParsedLabels


class FormAnswer(NamedTuple):
    """What an annotator answered to one question about an item: choices are a list."""

    item: Any
    annotator: Any
    question: str
    value: Any
    times: Record | None = None


def labels_of(
    answers: Sequence[FormAnswer],
    source: Source,
    *notes: str,
    from_text: bool = False,
    unused: Mapping[str, int] | None = None,
) -> ParsedLabels:
    """Return the labels of the question that the caller asks for, or of the only one.

    Where some questions have choices, others, such as comments, are read only if they are named.
    ``unused`` are rows that were left out, by reason.
    """
    wanted = source.read.question
    names = [answer.question for answer in answers]
    if wanted in (None, ALL_QUESTIONS):
        names = [each.question for each in answers if isinstance(each.value, list)] or names
    question = chosen(names, wanted, "question")
    votes = Votes()
    for answer in answers:
        if answer.question == question:
            votes.add(answer.item, answer.annotator, answer.value, times=answer.times)
    parsed = votes.parsed(notes[0], f"question {question}", *notes[1:], **(unused or {}))
    return replace(parsed, from_text=from_text)
