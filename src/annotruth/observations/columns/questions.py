"""Labels of several questions in one table: which column names the question, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, listed, option
from annotruth.observations.columns.names import KNOWN_NAMES, find_known, pass_column
from annotruth.observations.encode import concat_columns, restore_text, to_text
from annotruth.observations.frames import as_arrow
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions
from annotruth.observations.scale import to_plain
from annotruth.observations.validate import missing

QUESTION = "question"
"""The role of the column that names the question, in the option ``columns``."""

# Column names that need no option, the first that a table has.
_KNOWN = ("question", "question_id", "question_name", "task", "task_id")


class QuestionsFoundError(Exception):
    """Stops reading a file once the names of its questions are known."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))


def take_all_questions() -> str:
    """Return what to do, in a message, to fit each of several questions."""
    return f"fit takes all of them with {option('question', ALL_QUESTIONS)}"


def without_question_column(read: ReadOptions) -> ReadOptions:
    """Return the options for the rows of one question, whose column is left out."""
    if QUESTION not in (read.columns or {}):
        return read
    others = {role: name for role, name in (read.columns or {}).items() if role != QUESTION}
    return replace(read, columns=others or None)


def find_question_column(names: Sequence[str], given: Mapping[str, str] | None) -> str | None:
    """Return the column that names the question of each label; None if there is none.

    A column of a known name is taken only if another column can be the item.
    """
    given = given or {}
    if QUESTION in given:
        if given[QUESTION] not in names:
            raise InputError(
                f"no column {given[QUESTION]!r} for the question (found: {listed(names)}); "
                f"{pass_column(QUESTION)}"
            )
        return given[QUESTION]
    free = [name for name in names if name not in given.values()]
    column = next(iter(find_known([[name] for name in _KNOWN], free)), None)
    others = [name for name in free if name != column]
    has_item = "item" in given or bool(find_known(KNOWN_NAMES["item"], others))
    return column if has_item else None


def question_of_rows(table: pa.Table, column: str) -> pa.Array:
    """Return the question of each row as text; raise if a row has none."""
    values = table.column(column)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    empty = np.flatnonzero(missing(values))
    if len(empty):
        raise InputError(
            f"{len(empty):,} of {table.num_rows:,} rows have no question (first: row "
            f"{int(empty[0]) + 1}): fill in column {column!r}, or delete these rows"
        )
    return to_text(restore_text(to_plain(values)))


def rows_of_question(table: pa.Table, column: str, question: str) -> pa.Table:
    """Return the rows of one question, without the column that names it."""
    is_asked = pc.equal(question_of_rows(table, column), question)
    return table.drop_columns([column]).filter(is_asked)


def question_names(table: pa.Table, column: str) -> list[str]:
    """Return the names of the questions in a table, in order of first appearance."""
    names: list[str] = question_of_rows(table, column).unique().to_pylist()
    return names


def concat_questions(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the tables of questions one after the other, with a first column ``question``.

    A column that some tables lack is null there. Ids and labels whose types differ become text.
    """
    names = list(dict.fromkeys(name for table in tables.values() for name in table.column_names))
    columns = {}
    for name in names:
        parts = [
            to_plain(table.column(name)).combine_chunks()
            if name in table.column_names
            else pa.nulls(table.num_rows)
            for table in tables.values()
        ]
        columns[name] = concat_columns(parts)
    rows = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables.values()])
    return pa.table({QUESTION: as_arrow(list(tables)).take(as_arrow(rows)), **columns})


def every_annotator(ids: Iterable[pa.Array]) -> pa.Array:
    """Return the ids of the annotators of all questions as text, in order of appearance."""
    return pa.chunked_array([to_text(to_plain(each)) for each in ids]).unique()
