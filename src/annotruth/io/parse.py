"""What one file holds, in any format: a table, a platform's export, the rows of a database.

`TableKind` is what is read: `LabelKind` or `PairKind`. It says which columns of a table to read,
what they hold, and which exports of labelling tools there are.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from annotruth.errors import InputError, is_database_url, is_url
from annotruth.io import formats
from annotruth.io.batches import column_names, read_columns
from annotruth.io.content import DATABASE_TITLE, FileContent, read_content
from annotruth.io.databases import read_database, read_database_url
from annotruth.io.formats import crowdsourcing
from annotruth.io.formats.source import Source
from annotruth.io.formats.votes import chosen
from annotruth.io.json_lines import is_json_list
from annotruth.io.sources import LabelFile, file_errors_reported
from annotruth.observations import questions
from annotruth.observations.build import LabelColumns, is_platform_export, refuse_comparisons
from annotruth.observations.encode import restore_text
from annotruth.observations.frames import (
    LABEL_ROLES,
    is_known_name,
    records_to_arrow,
    to_arrow,
)
from annotruth.observations.options import ParsedLabels, ParsedSource, ReadOptions
from annotruth.observations.pairs.build import ParsedComparisons, parse_table
from annotruth.observations.pairs.columns import PairColumns, find_pair_columns

Parsed = TypeVar("Parsed", bound=ParsedSource)


class TableKind(ABC, Generic[Parsed]):
    """How tables of one kind of response are read, with the caller's options."""

    def __init__(self, read: ReadOptions) -> None:
        self.read = read

    @abstractmethod
    def choose(
        self, names: list[str], *, from_text: bool = False, on_disk: bool = False
    ) -> list[str]:
        """Return the columns of a table to read, given the names of all; refuse any other table."""

    @abstractmethod
    def parse(
        self, table: pa.Table, *, from_text: bool = False, first_row: int = 0, note: str = ""
    ) -> Parsed:
        """Return what the chosen columns hold; ``first_row`` is the position of their first row."""

    @abstractmethod
    def recognise(self, source: Source) -> Parsed | None:
        """Return what an export of a labelling tool holds; None for a table."""

    def read_several(self, path: Path) -> Parsed | None:
        """Return what a folder or zip of one file per user holds, or a Python file; else None."""
        return None

    @abstractmethod
    def check_on_disk(self) -> None:
        """Refuse options that are not for responses on disk."""


def parse_file(path: LabelFile, kind: TableKind[Parsed]) -> Parsed:
    """Return what a file holds."""
    with local_copy(path, kind.read.max_size) as file:
        return parse_opened(file, open_content(file, kind.read), kind)


@contextmanager
def local_copy(source: LabelFile, max_size: str | int | None) -> Iterator[LabelFile]:
    """Return the source, or the temporary copy of a file elsewhere."""
    if not is_url(source) or is_database_url(source):
        yield source
        return
    from annotruth.io.remote import downloaded  # loads Python's client of HTTP

    with downloaded(os.fspath(source), max_size=max_size) as path:
        yield path


def open_content(source: LabelFile, read: ReadOptions) -> FileContent | None:
    """Return the content of a file; None for what may hold several, Python files and databases."""
    if is_database_url(source):
        return None
    path = Path(source)
    if path.suffix.lower() in (".py", ".zip") or path.is_dir():
        return None
    return read_content(path, max_size=read.max_size, sheet=read.query)


def parse_opened(file: LabelFile, content: FileContent | None, kind: TableKind[Parsed]) -> Parsed:
    """Return what a file holds that `open_content` opened."""
    read = kind.read
    if is_database_url(file):
        table, note = read_database_url(
            os.fspath(file), read.query, kind.choose, max_size=read.max_size
        )
        return kind.parse(table, note=note)
    path = Path(file)
    if content is None:
        several = kind.read_several(path)
        if several is not None:
            return several
        content = read_content(path, max_size=read.max_size, sheet=read.query)
    if content.kind in DATABASE_TITLE:
        limit = content.limit
        table, note = read_database(path, content.kind, read.query, kind.choose, limit=limit)
        return kind.parse(table, note=note)
    if read.query is not None and not content.sheet:
        raise InputError("this is not a database or workbook: leave out query (`--query`)")
    source = Source(path, content, read.columns or {}, read.question, read.content, read.categories)
    parsed = kind.recognise(source)
    if parsed is not None:
        return replace(parsed, notes=(*parsed.notes, content.sheet))
    from_text = content.kind == "text"
    table = read_columns(content, partial(kind.choose, from_text=from_text), keep_codes=True)
    return kind.parse(table, from_text=from_text, note=content.sheet)


_NO_HEADER = "; if the first row holds no names, put one before it: item,annotator,label"


class _NoLongTableError(InputError):
    """The columns of a long table are missing."""


class LabelKind(TableKind[ParsedLabels]):
    """Tables of one row per label; where a question is asked for, its rows."""

    def choose(
        self, names: list[str], *, from_text: bool = False, on_disk: bool = False
    ) -> list[str]:
        """Return the columns of a long table to read; refuse exports of platforms and comparisons."""
        read = self.read
        names_all_roles = set(read.columns or ()) >= set(LABEL_ROLES)
        if read.input_format is None:
            if not names_all_roles and is_platform_export(names):
                raise _NoLongTableError(
                    "this is a platform's export, not a table of one row per label; to read it so, "
                    "pass columns={'item': NAME, 'annotator': NAME, 'label': NAME} "
                    "(`--columns item=NAME,annotator=NAME,label=NAME`)"
                )
            refuse_comparisons(names, read.columns)  # before another format takes them for labels
        question, options = None, read
        if asks_question(read):
            question = questions.find_question_column(names, read.columns)
            options = questions.without_question_column(read)
        try:
            others = [name for name in names if name != question]
            columns = LabelColumns.find(others, options, on_disk=on_disk).names()
        except InputError as error:
            no_names = from_text and not read.columns and not any(map(is_known_name, names))
            raise _NoLongTableError(f"{error}{_NO_HEADER if no_names else ''}") from None
        if question is None and read.question is not None:
            raise questions.no_questions_error()
        return columns if question is None else [*columns, question]

    def parse(
        self, table: pa.Table, *, from_text: bool = False, first_row: int = 0, note: str = ""
    ) -> ParsedLabels:
        """Return the labels of a long table; of several questions, the rows of one."""
        read = self.read
        parsed = ParsedLabels(table, read.columns, from_text=from_text, notes=(note,))
        if not asks_question(read):
            return parsed
        column = questions.find_question_column(table.column_names, read.columns)
        assert column is not None  # else the table was refused
        question = chosen(questions.question_names(table, column), read.question, "question")
        return replace(
            parsed,
            table=questions.rows_of_question(table, column, question),
            columns=questions.without_question_column(read).columns,
            notes=(note, f"question {question}"),
        )

    def recognise(self, source: Source) -> ParsedLabels | None:
        """Return the labels of the format that is named, or recognised; None for a long table."""
        named = self.read.input_format
        if named is not None:
            formats.check_name(named)
            return None if named == "long" else self._checked(formats.read_as(named, source))
        content = source.content
        if content.kind != "json":  # whose keys are known only once they are read
            try:
                self.choose(column_names(content), from_text=content.kind == "text")
            except _NoLongTableError:
                pass
            else:
                return None
        parsed = formats.recognise(source)
        return parsed and self._checked(parsed)

    def read_several(self, path: Path) -> ParsedLabels | None:
        """Return the labels of a folder or zip of one file per user, or of a Python file."""
        formats.check_name(self.read.input_format)
        parsed = formats.read_several(path, max_size=self.read.max_size)
        return parsed and self._checked(parsed)

    def _checked(self, parsed: ParsedLabels) -> ParsedLabels:
        """Refuse options that are for long tables alone, where labels are an export."""
        read, title = self.read, parsed.title
        for role in read.time_columns:
            if role not in parsed.table.column_names:
                raise InputError(
                    f"the {role} is not read from a {title}: leave {role} out of columns (`--columns`)"
                )
        if read.covariates:
            raise InputError(
                f"covariates are columns of a long table, and this is a {title}: leave them out "
                "(`--covariates`)"
            )
        if questions.QUESTION in (read.columns or {}):
            raise InputError(
                f"columns names a column of questions, and this is a {title}: leave it out "
                "(`--columns`), and name a question (`--question`)"
            )
        return parsed

    def check_on_disk(self) -> None:
        """Refuse options that are not for labels on disk."""
        read = self.read
        if read.input_format not in (None, "long") or asks_question(read):
            raise InputError(
                "within a memory limit only a table of one row per label is read: leave out "
                "input_format and question (`--input-format`, `--question`), or memory (`--memory`)"
            )
        for role in read.time_columns:
            raise InputError(
                f"labels on disk do not carry their {role}: leave {role} out of columns (`--columns`), "
                "or leave out memory (`--memory`)"
            )
        for name in ("covariates", "content"):
            if getattr(read, name):
                raise InputError(
                    f"labels on disk do not carry {name}: leave out {name} (`--{name}`), or "
                    "memory (`--memory`)"
                )


def asks_question(read: ReadOptions) -> bool:
    """Return whether a table may have several questions: one is named, or their column is."""
    return read.question is not None or questions.QUESTION in (read.columns or {})


def parse_frame(data: Any, read: ReadOptions) -> tuple[ParsedLabels, str]:
    """Return the rows of one question in a frame, and the name of the frame's library."""
    kind = LabelKind(replace(read, input_format="long"))
    table, frame = to_arrow(data, kind.choose)
    return kind.parse(table.select(kind.choose(table.column_names))), frame


class PairKind(TableKind[ParsedComparisons]):
    """Tables of one row per comparison, or of ranks; of several files, one after the other."""

    def __init__(self, read: ReadOptions) -> None:
        super().__init__(read)
        self.columns: PairColumns | None = None  # of the table chosen from last

    def choose(
        self, names: list[str], *, from_text: bool = False, on_disk: bool = False
    ) -> list[str]:
        """Return the columns of comparisons to read, and keep what they are."""
        read = self.read
        is_batch = crowdsourcing.is_batch(names)
        if is_batch:
            columns = crowdsourcing.batch_columns(
                names, read.columns, read.covariates, read.question
            )
        elif read.question is not None:
            raise InputError(
                "a table of comparisons has no questions: leave out question (`--question`)"
            )
        else:
            columns = find_pair_columns(names, read.columns, read.covariates, read.further)
        if on_disk and (is_batch or columns.shape not in ("sides", "winners")):
            raise InputError(
                "within a memory limit only a table of one row per comparison is read: leave out "
                "memory (`--memory`)"
            )
        self.columns = columns
        return [*columns.names(), *(crowdsourcing.review_columns(names) if is_batch else ())]

    def parse(
        self, table: pa.Table, *, from_text: bool = False, first_row: int = 0, note: str = ""
    ) -> ParsedComparisons:
        """Return the comparisons of a table; of a batch, those that were not rejected."""
        assert self.columns is not None
        if not crowdsourcing.review_columns(table.column_names):
            parsed = parse_table(table, self.columns, from_text=from_text, first_row=first_row)
            return replace(parsed, notes=(note, *parsed.notes))
        kept = crowdsourcing.without_rejected(table)
        n_rejected = table.num_rows - kept.num_rows
        rejected = f"{n_rejected:,} rejected left out" if n_rejected else ""
        parsed = parse_table(kept, self.columns, from_text=from_text)
        return replace(parsed, title="MTurk batch results", notes=(*parsed.notes, rejected))

    def recognise(self, source: Source) -> ParsedComparisons | None:
        """Return the comparisons of an export in JSON or Python; None for a table."""
        if source.kind != "json" and source.path.suffix.lower() != ".py":
            return None
        parsed = formats.recognise_comparisons(source)
        if parsed is None and source.kind == "json" and not source.in_lines:
            return self.parse(records_to_arrow(list(source.records()), self.choose))
        return parsed

    def check_on_disk(self) -> None:
        """Refuse options that are not for comparisons on disk."""
        for name in ("covariates", "further", "drop"):
            if name in self.read.changed():
                raise InputError(
                    f"comparisons on disk do not take {name}: leave out {name} (`--{name}`), or "
                    "memory (`--memory`)"
                )


def load_table(data: Any, *, max_size: str | int | None = None) -> Any:
    """Return the table in a file; whatever is not a path is returned as it is."""
    return read_table(data, max_size=max_size) if isinstance(data, str | Path) else data


def read_table(path: str | os.PathLike[str], *, max_size: str | int | None = None) -> pa.Table:
    """Read all columns of a long table, in the formats of `read_labels`; those of a CSV as text."""
    with file_errors_reported(path), local_copy(path, max_size) as file:
        content = read_content(Path(file), max_size=max_size)
        if content.kind == "json" and is_json_list(content.data):
            records = list(Source(Path(file), content).records())
            return records_to_arrow(records)
        table = read_columns(content, lambda names: names)
        if content.kind != "text":
            return table
        return pa.table([restore_text(column) for column in table.columns], table.column_names)
