"""The labels of every question of a source: each file is opened once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from annotruth.errors import AnnotruthWarning, InputError, listed, shown
from annotruth.io.drop_list import dropped_annotators, leave_out
from annotruth.io.kinds import LabelKind
from annotruth.io.parse import (
    load_table,
    local_copy,
    open_content,
    parse_opened,
)
from annotruth.io.readers import combine, is_source, labels_of
from annotruth.io.sources import (
    LabelFile,
    file_errors_reported,
    file_named_in_errors,
    find_files,
)
from annotruth.observations import Labels
from annotruth.observations.encode import match_ids, to_text
from annotruth.observations.frames import to_arrow
from annotruth.observations.options import ParsedLabels, ReadOptions
from annotruth.observations.questions import (
    QUESTION,
    QuestionsFoundError,
    question_names,
    rows_of_question,
)
from annotruth.observations.scale import to_plain
from annotruth.observations.truth import match_annotator_prior


def read_questions(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> dict[str, Labels]:
    """Return the labels of every question, in order of appearance.

    Parameters
    ----------
    data
        A file, several of one kind, or a frame of one row per label with a column of questions.
    read
        How to read it; ``question`` is "all".
    gold
        Known truths with a column ``question``: a path or a frame.
    annotator_prior
        What is known about annotators, which counts in every question.
    """
    if read.memory is not None:
        raise InputError(
            "all questions at once are read into memory: leave out memory (`--memory`), or name "
            "one question"
        )
    labels = _read_files(data, read) if is_source(data) else _read_frame(data, read)
    labels = _without_dropped(labels, read)
    golds = {} if gold is None else split_by_question(gold, labels, "gold", read.max_size)
    for name, table in golds.items():
        with question_named_in_errors(name):
            labels[name] = labels[name].with_gold(table)
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            labels = _with_prior(labels, load_table(annotator_prior, max_size=read.max_size))
    return labels


def _without_dropped(labels: dict[str, Labels], read: ReadOptions) -> dict[str, Labels]:
    """Return the labels without those of the annotators to leave out, who may lack a question."""
    if not read.drops_annotators:
        return labels
    dropped_annotators(annotators_of(labels), read)  # refuses unknown ids
    left: dict[str, Labels] = {}
    for name, each in labels.items():
        with question_named_in_errors(name), warnings.catch_warnings():
            warnings.simplefilter("ignore", AnnotruthWarning)
            left[name] = leave_out(each, read, strict=False)
    return left


def _with_prior(labels: Mapping[str, Labels], prior: Any) -> dict[str, Labels]:
    """Return the labels with an annotator prior, whose annotators may lack a question."""
    everybody = annotators_of(labels)
    counts = match_annotator_prior(prior, everybody)
    return {
        name: replace(each, annotator_prior=counts[match_ids(each.annotators, everybody)])
        for name, each in labels.items()
    }


def annotators_of(labels: Mapping[str, Labels]) -> pa.Array:
    """Return the ids of all annotators as text, in order of appearance."""
    ids = [to_text(to_plain(each.annotators)) for each in labels.values()]
    return pa.chunked_array(ids).unique()


def split_by_question(
    data: Any, labels: Mapping[str, Any], role: str, max_size: str | int | None
) -> dict[str, pa.Table]:
    """Return the rows of each question in a table with a column ``question``.

    ``role`` names the table in messages: "gold" or "truth".
    """
    with file_named_in_errors(data):
        table, _ = to_arrow(load_table(data, max_size=max_size))
        if QUESTION not in table.column_names:
            raise InputError(
                f"the {role} has no column 'question' (found: {listed(table.column_names)}), so it "
                "is not known which question it answers: add one, or fit one question"
            )
        names = question_names(table, QUESTION)
        unknown = [name for name in names if name not in labels]
        if unknown:
            raise InputError(
                f"the {role} has the unknown question {shown(unknown[0])}: the questions are "
                f"{listed(labels)}"
            )
        return {name: rows_of_question(table, QUESTION, name) for name in names}


@contextmanager
def question_named_in_errors(name: str) -> Iterator[None]:
    """Put the question before messages about its labels."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"question {shown(name)}: {error}") from error


def _read_frame(data: Any, read: ReadOptions) -> dict[str, Labels]:
    """Return the labels of each question in a frame of one row per label."""
    read.refuse_options_of_files()
    try:
        LabelKind(read).parse_data(data)
    except QuestionsFoundError as found:
        names = found.names
    labels = {}
    for name in names:
        with question_named_in_errors(name):
            of_question = replace(read, question=name, drop=())
            labels[name] = labels_of(data, of_question)
    return labels


def _read_files(source: Any, read: ReadOptions) -> dict[str, Labels]:
    """Return the labels of each question in one file or several of one kind."""
    parsed: dict[str, dict[LabelFile, ParsedLabels]] = {}
    for file in find_files(source):
        with file_errors_reported(file):
            for name, part in _parse_questions(file, read).items():
                parsed.setdefault(name, {})[file] = part
    labels = {}
    for name, parts in parsed.items():
        with question_named_in_errors(name):
            labels[name] = combine(parts, LabelKind(read))
    return labels


def _parse_questions(file: LabelFile, read: ReadOptions) -> dict[str, ParsedLabels]:
    """Return what a file has of each question; the file is opened once."""
    with local_copy(file, read.max_size) as path:
        content = open_content(path, read)
        try:
            parse_opened(path, content, LabelKind(read))
        except QuestionsFoundError as found:
            names: Sequence[str] = found.names
        else:
            raise InputError("this file has no questions to choose from: leave out `--question`")
        return {
            name: parse_opened(path, content, LabelKind(replace(read, question=name)))
            for name in names
        }
