"""Long tables, with one row per label: which columns are read, and the rows of one question."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.batches import read_columns
from annotruth.io.content import DATABASE_TITLE, ContentKind, FileContent
from annotruth.io.options import ReadOptions
from annotruth.labels.build import LabelBuilder
from annotruth.labels.frames import (
    LABEL_ROLES,
    is_known_name,
    is_platform_export,
    refuse_comparisons,
)

if TYPE_CHECKING:
    from annotruth.io.formats.source import ParsedLabels

_NO_HEADER = "; if the first row holds no names, put one before it: item,annotator,label"


class _NoLongTableError(InputError):
    """The columns of a long table are missing."""


def read_long_table(content: FileContent, read: ReadOptions) -> pa.Table | None:
    """Return the columns of a long table; None for another format, named or to be recognised."""
    if read.input_format not in (None, "long") or content.kind in DATABASE_TITLE:
        return None
    refuse_query(content, read)
    # The keys of JSON lines are known only once they are read, so other formats are tried first.
    if read.input_format is None and content.kind == "json":
        return None
    try:
        choose = partial(choose_long_table, label_builder(read), content.kind, read)
        return read_columns(content, choose, keep_codes=True)
    except _NoLongTableError:
        if read.input_format is None:
            return None
        raise


def choose_long_table(
    builder: LabelBuilder, kind: ContentKind, read: ReadOptions, names: list[str]
) -> list[str]:
    """Choose the columns of a long table."""
    names_all_roles = set(read.columns or ()) >= set(LABEL_ROLES)
    if read.input_format is None and not names_all_roles and is_platform_export(names):
        raise _NoLongTableError(
            "this is a platform's export, not a table of one row per label; to read it so, pass "
            "columns={'item': NAME, 'annotator': NAME, 'label': NAME} "
            "(`--columns item=NAME,annotator=NAME,label=NAME`)"
        )
    if read.input_format is None:
        refuse_comparisons(names, read.columns)  # before another format takes them for labels
    question = _question_column(read, names)
    try:
        columns = builder.choose_columns([name for name in names if name != question])
    except InputError as error:
        no_names = kind == "text" and not read.columns and not any(map(is_known_name, names))
        raise _NoLongTableError(f"{error}{_NO_HEADER if no_names else ''}") from None
    if question is not None:
        return [*columns, question]
    if read.question is not None:
        from annotruth.labels.questions import no_questions_error

        raise no_questions_error()
    return columns


def _question_column(read: ReadOptions, names: list[str]) -> str | None:
    """Return the column that names the question of each label; None if there is none."""
    if not asks_question(read):
        return None
    from annotruth.labels.questions import find_question_column

    return find_question_column(names, read.columns)


def label_builder(read: ReadOptions) -> LabelBuilder:
    """Return a builder of the labels of one question, or of the only one."""
    if asks_question(read):
        from annotruth.labels.questions import without_question_column

        read = without_question_column(read)
    return LabelBuilder(read)


def asks_question(read: ReadOptions) -> bool:
    """Return whether a table may have several questions: one is named, or their column is."""
    return read.question is not None or "question" in (read.columns or {})


def of_question(parsed: ParsedLabels, read: ReadOptions) -> ParsedLabels:
    """Return the rows of one question, where a long table has several."""
    if not asks_question(read):
        return parsed
    from annotruth.io.formats.votes import chosen
    from annotruth.labels import questions

    table = parsed.table
    column = questions.find_question_column(table.column_names, read.columns)
    assert column is not None  # else the table was refused
    question = chosen(questions.question_names(table, column), read.question, "question")
    return replace(
        parsed,
        table=questions.rows_of_question(table, column, question),
        columns=questions.without_question_column(read).columns,
        notes=(*parsed.notes, f"question {question}"),
    )


def refuse_query(content: FileContent, read: ReadOptions) -> None:
    """Refuse a query of what is neither a database nor a workbook."""
    if read.query is not None and not content.sheet:
        raise InputError("this is not a database or workbook: leave out query (`--query`)")
