"""Fits of every question of a source, each file of which is opened once; what they share of annotators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from annotruth.engines import get_engine, native_engine
from annotruth.errors import AnnotruthWarning, InputError, listed, option, shown
from annotruth.io.drop_list import dropped_annotators, dropped_ids, leave_out
from annotruth.io.label_kind import LabelKind
from annotruth.io.parse import load_table, local_copy, open_content, parse_opened
from annotruth.io.readers import combine, is_source, labels_of, reading_stage
from annotruth.io.sources import (
    LabelFile,
    file_errors_reported,
    file_named_in_errors,
    find_files,
)
from annotruth.models.em import ProgressCallback, start_stage
from annotruth.models.options import settings_of
from annotruth.models.registry import MODELS, get_model, make_estimator
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.columns.questions import (
    QUESTION,
    QuestionsFoundError,
    every_annotator,
    question_names,
    rows_of_question,
)
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import to_arrow
from annotruth.observations.options import ParsedLabels, ReadOptions
from annotruth.observations.truth import match_annotator_prior
from annotruth.questions.result import QuestionFits
from annotruth.questions.sharing import SharedEvidence, Sharing, choose_sharing


def fit_questions(
    request: Any, fit_labels: Callable[[Any], Fit], warn: Callable[..., None]
) -> QuestionFits:
    """Fit every question, and share what is known of annotators where that predicts better.

    ``request`` is what `annotruth.fit` was asked for, which ``fit_labels`` fits for one question, and
    ``warn`` warns of the scale of a fit.
    """
    _check_request(request)
    read, progress = request.read, request.progress
    start_stage(progress, reading_stage(request.data))
    prior = request.annotator_prior
    labels = read_questions(request.data, read, gold=request.gold, annotator_prior=prior)
    of_one = replace(request, gold=None, annotator_prior=None, read=type(read)())
    fits: dict[str, Fit] = {}
    for name, of_question in labels.items():
        with question_named_in_errors(name):
            fits[name] = fit_labels(replace(of_one, data=of_question))
            if fits[name].kind == "sets":
                raise InputError(
                    f"its answers are sets of labels: fit it alone ({option('question', 'NAME')}), and "
                    "the others from a file without it"
                )
        warn(fits[name], read, f"question {shown(name)}: ")

    def refit(before: Fit, with_prior: Labels) -> Fit:
        options = settings_of(before)
        again = replace(of_one, data=with_prior, model=before.model, options=options)
        return replace(fit_labels(again), chosen=before.chosen)

    shared, dropped = share_between_questions(fits, refit, progress), dropped_ids(read)
    remembered = {
        name: replace(fit, campaign=fit.campaign.after(replace(read, question=name), dropped))
        for name, fit in shared.questions.items()
    }
    return replace(shared, questions=remembered)


def _check_request(request: Any) -> None:
    given = [option(name) for name in request.special]
    if request.is_of_sets:
        given.append(option("sets"))
    for what in given:
        raise InputError(
            f"{what} is of one question: name the question ({option('question', 'NAME')}), or leave "
            "it out"
        )
    engine = getattr(request.model, "engine", request.options.get("engine", "memory"))
    if native_engine(request.data) is not None or get_engine(engine).capabilities.distributed:
        raise InputError(
            f"all questions at once are fitted on this machine: leave out {option('engine')}, or name "
            "one question of a file of its own"
        )


def share_between_questions(
    fits: Mapping[str, Fit],
    refit: Callable[[Fit, Labels], Fit],
    progress: ProgressCallback | None = None,
) -> QuestionFits:
    """Return the fits of all questions, refitted with priors from the others where that helps.

    ``fits`` are those of each question alone; ``refit`` fits labels with the model and the options of
    a fit.
    """
    reason = _why_not(fits)
    if reason:
        return QuestionFits(fits, Sharing(0.0, reason))
    start_stage(progress, "choosing what to share between questions")
    evidence = SharedEvidence(fits)
    estimators = {name: make_estimator(fit.model, settings_of(fit)) for name, fit in fits.items()}
    sharing = choose_sharing(fits, estimators, evidence, progress)
    if sharing.strength == 0.0:
        return QuestionFits(fits, sharing)
    shared = {
        name: refit(fit, evidence.with_prior(name, fit.data, sharing.strength))
        for name, fit in fits.items()
    }
    return QuestionFits(shared, sharing)


def _why_not(fits: Mapping[str, Fit]) -> str:
    """Return why nothing can be shared; empty if it can."""
    if len(fits) < 2:
        return "one question: there is nothing to share"
    without = [
        fit.model
        for fit in fits.values()
        if fit.model not in MODELS or not get_model(fit.model).capabilities.annotator_prior
    ]
    if without:
        return (
            f"annotators' reliability is not shared between questions: {without[0]} takes no "
            "annotator prior"
        )
    people = [set(map(str, fit.data.annotators.to_pylist())) for fit in fits.values()]
    if not any(one & other for k, one in enumerate(people) for other in people[:k]):
        return "annotators' reliability is not shared: nobody answered two questions"
    return ""


def read_questions(
    data: Any, read: ReadOptions, *, gold: Any = None, annotator_prior: Any = None
) -> dict[str, Labels]:
    """Return the labels of every question, in order of appearance.

    ``gold`` has a column ``question``; ``annotator_prior`` counts in every question.
    """
    if read.memory is not None:
        raise InputError(
            f"all questions at once are read into memory: leave out {option('memory')}, or name one "
            "question"
        )
    labels = _read_files(data, read) if is_source(data) else _read_frame(data, read)
    labels = _without_dropped(labels, read)
    golds = {} if gold is None else split_by_question(gold, labels, "gold", read.max_size)
    for name, table in golds.items():
        with question_named_in_errors(name):
            labels[name] = labels[name].with_gold(table)
    if annotator_prior is not None:
        with file_named_in_errors(annotator_prior):
            # Annotators may lack a question.
            everybody = every_annotator(each.annotators for each in labels.values())
            table = load_table(annotator_prior, max_size=read.max_size)
            counts = match_annotator_prior(table, everybody)
        for name, each in labels.items():
            prior = counts[match_ids(each.annotators, everybody)]
            labels[name] = replace(each, annotator_prior=prior)
    return labels


def _without_dropped(labels: dict[str, Labels], read: ReadOptions) -> dict[str, Labels]:
    """Return the labels without those of the annotators to leave out, who may lack a question."""
    if not read.drops_annotators:
        return labels
    dropped_annotators(
        every_annotator(each.annotators for each in labels.values()), read
    )  # refuses unknown ids
    left: dict[str, Labels] = {}
    for name, each in labels.items():
        with question_named_in_errors(name), warnings.catch_warnings():
            warnings.simplefilter("ignore", AnnotruthWarning)
            left[name] = leave_out(each, read, strict=False)
    return left


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
    read.refuse_options_of_files(data)
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
            raise InputError(
                f"this file has no questions to choose from: leave out {option('question')}"
            )
        return {
            name: parse_opened(path, content, LabelKind(replace(read, question=name)))
            for name in names
        }
