"""What a file seems to hold: its columns, its labels or comparisons, and the command to fit them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from annotruth.errors import ComparisonsError, InputError, as_flag, counted, is_database_url
from annotruth.io.batches import read_columns, read_header, read_start
from annotruth.io.content import DATABASE_TITLE, FileContent, read_content
from annotruth.io.databases import read_database
from annotruth.io.formats.source import Source
from annotruth.io.json_lines import is_json_list
from annotruth.io.kinds import Kind, PairKind
from annotruth.io.label_kind import LabelKind
from annotruth.io.parse import local_copy, open_content, parse_opened
from annotruth.io.readers import combine
from annotruth.io.sources import LabelFile, file_errors_reported, find_files, source_name
from annotruth.observations import Labels, Scale
from annotruth.observations.build import LabelColumns
from annotruth.observations.columns.candidates import propose_columns, propose_pair_columns
from annotruth.observations.columns.evidence import ColumnSummary, summarize_columns
from annotruth.observations.columns.names import LABEL_ROLES, ColumnsNotFoundError
from annotruth.observations.columns.questions import (
    QUESTION,
    QuestionsFoundError,
    find_question_column,
    without_question_column,
)
from annotruth.observations.frames import as_arrow, default_frame, from_arrow, records_to_arrow
from annotruth.observations.keywords import ReadKeywords
from annotruth.observations.options import ALL_QUESTIONS, ReadOptions, names_keywords

MAX_ROWS = 100_000
"""The first rows of a file that are looked at."""
_MAX_CATEGORIES = 1_000
_MAX_BYTES = 1 << 24  # of text that are looked at
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}
_TITLES = {"json": "JSON", "parquet": "Parquet", "arrow": "Arrow", **DATABASE_TITLE}


@dataclass(frozen=True)
class OpenedFile:
    """What a file seems to hold, and how to fit it, as `open_labels` returns it.

    ``n_rows`` rows were looked at, which are the first if it ``is_part``. ``holds`` is the labels or
    comparisons in one line, ``categories`` what the labels are, ``read_as`` how they were read and
    ``unused`` which rows do not count. ``problem`` says why the file cannot be read without a choice,
    or at all; ``commands`` fit the file, several where there is a choice.

    Examples
    --------
    >>> OpenedFile("labels.csv", "text", 8, False, (), commands=["annotruth fit labels.csv"]).command
    'annotruth fit labels.csv'
    """

    source: str
    kind: str
    n_rows: int
    is_part: bool
    summaries: Sequence[ColumnSummary]
    holds: str = ""
    categories: Sequence[str] = ()
    read_as: str = ""
    unused: Sequence[str] = ()
    problem: str = ""
    commands: Sequence[str] = ()

    @property
    def command(self) -> str:
        """The first command that fits the file; empty if there is none."""
        return next(iter(self.commands), "")

    @property
    def columns(self) -> Any:
        """A frame of the columns: column, role, why, n_distinct, share_empty, examples."""
        return from_arrow(self.column_table(), default_frame())

    def column_table(self) -> pa.Table:
        """Return the columns as an Arrow table."""
        names = ("role", "why", "n_distinct", "share_empty")
        rows = [
            {"column": each.name, **{name: getattr(each, name) for name in names}}
            | {"examples": ", ".join(each.examples)}
            for each in self.summaries
        ]
        return pa.Table.from_pylist(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON types."""
        names = ("source", "kind", "n_rows", "is_part", "holds", "read_as", "problem", "command")
        lists = {name: list(getattr(self, name)) for name in ("categories", "unused", "commands")}
        entries = {name: getattr(self, name) for name in names}
        return {**entries, **lists, "columns": self.column_table().to_pylist()}


@names_keywords(ReadKeywords)
def open_labels(
    path: LabelFile, read: ReadOptions | None = None, **options: Unpack[ReadKeywords]
) -> OpenedFile:
    r"""Return what a file of labels or comparisons seems to hold, and the command that fits it.

    Parameters
    ----------
    path
        A file in any format of `read_labels`; of a folder or pattern, the first file. Of a large
        file the first 100,000 rows are looked at.
    read, **options
        How to read it, where that is known: `ReadOptions`, or its fields as keywords.

    Examples
    --------
    >>> from pathlib import Path
    >>> rows = [f"p{n},{who},{(n * len(who)) % 4 // 2}" for n in range(9) for who in ("ann", "bo")]
    >>> _ = Path("votes.csv").write_text("\n".join(["photo_name,who,is_cat", *rows]))
    >>> open_labels("votes.csv").command
    'annotruth fit votes.csv --columns item=photo_name,annotator=who,label=is_cat'
    """
    chosen = ReadOptions.of(read, options)
    source = os.fspath(path)
    is_one = is_database_url(source) or (Path(source).is_dir() and _is_of_users(path))
    file = path if is_one else find_files(path)[0]
    with file_errors_reported(file), local_copy(file, chosen.max_size) as copy:
        content = open_content(copy, chosen)
        if content is None and Path(copy).suffix.lower() == ".zip" and not _is_of_users(copy):
            content = read_content(Path(copy), max_size=chosen.max_size)
        whole = content
        if content is not None:
            content = _first_rows(content)
        attempt = _Attempt(copy, content, chosen, source)
        opened = attempt.opened()
    return replace(opened, source=source_name(file), is_part=content is not whole)


def _is_of_users(path: LabelFile) -> bool:
    return LabelKind(ReadOptions()).read_several(Path(path)) is not None


def _first_rows(content: FileContent) -> FileContent:
    """Return the content, or its first rows if there are more than are looked at."""
    if content.kind in DATABASE_TITLE or (content.kind == "json" and is_json_list(content.data)):
        return content
    if content.kind in ("text", "json"):
        size = min(_MAX_BYTES, content.data.size)
        letters = np.frombuffer(content.data.slice(0, size), dtype=np.uint8)
        quoted = np.bitwise_xor.accumulate(letters == ord('"'))
        is_end = letters == ord("\n")
        ends = np.flatnonzero(is_end if content.kind == "json" else is_end & ~quoted)
        n_lines = MAX_ROWS + (content.kind == "text")  # the names of columns
        is_whole = size == content.data.size and len(ends) <= n_lines
        if is_whole or not len(ends):
            return content
        return content._replace(data=content.data.slice(0, int(ends[:n_lines][-1]) + 1))
    first = read_start(content, MAX_ROWS + 1)
    if first.num_rows <= MAX_ROWS:
        return content
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, first.schema) as writer:
        writer.write_table(first.slice(0, MAX_ROWS))
    return content._replace(kind="arrow", data=sink.getvalue())


class _Attempt:
    """Attempts to read a file, as `fit` and `rank` do, and what they found."""

    def __init__(
        self, file: LabelFile, content: FileContent | None, read: ReadOptions, source: str
    ) -> None:
        self._file, self._content, self._read = file, content, read
        self._source = source
        self._n_parsed = 0
        self._roles: dict[str, str] = {}
        self._example: Any = None  # of the choices
        self._title = ""
        self._no_table: InputError | None = None  # why the columns cannot be read
        self._known: dict[str, str] | None = None  # columns found by name, where others are not

    def opened(self) -> OpenedFile:
        """Return what was found."""
        problem, commands, table = "", [], self._table()
        made: Any = None
        try:
            made, changes = self._labels({})
        except InputError as error:
            problem = self._problem(error)
            if isinstance(error, ColumnsNotFoundError):
                self._known = dict(error.known)
            if table is None and not isinstance(error, ColumnsNotFoundError | ComparisonsError):
                raise
            try:
                made, changes = self._comparisons({}), {}
            except InputError as other:
                commands = self._choices(table)
                if isinstance(error, ComparisonsError) or "annotruth rank" in "".join(commands):
                    problem = self._problem(other)
        if isinstance(made, Labels) and made.n_items == made.n_labels > 1:
            with suppress(InputError):  # one label per item: they may be pairs
                made, changes = self._comparisons({}), {}
        if made is None and not commands and self._no_table is not None:
            raise self._no_table
        if made is not None:
            command = "fit" if isinstance(made, Labels) else "rank"
            problem, commands = "", [self._typed(command, changes)]
        made = made or self._example
        if made is not None and (
            table is None or not self._roles or not {*self._roles.values()} <= {*table.column_names}
        ):  # the file is no table of its own: the one that it stands for
            table = _long_table(made)
            self._roles = {role: role for role in table.column_names}
        summaries = [] if table is None else summarize_columns(table, self._roles, self._title)
        return OpenedFile(
            source=self._source,
            kind=self._kind(),
            n_rows=self._n_parsed if table is None else table.num_rows,
            is_part=False,
            summaries=summaries,
            **_describe(None if problem else made),
            problem=problem,
            commands=commands,
        )

    def _problem(self, error: InputError) -> str:
        """Return what is wrong, without the name of the file and the options, which are commands."""
        return getattr(error, "problem", "") or str(error).removeprefix(
            f"{source_name(self._file)}: "
        )

    def _parse(self, kind: Kind) -> Any:
        """Return the observations, and keep which columns they are from."""
        parsed = parse_opened(self._file, self._content, kind)
        self._title = parsed.title
        if isinstance(kind, LabelKind):
            self._n_parsed = parsed.table.num_rows
            names, options = parsed.table.column_names, parsed.options(kind.read)
            found = LabelColumns.find(names, options)
            self._roles = {**found.by_role, **found.times, **(parsed.origin or {})}
        elif kind.columns is not None:
            self._n_parsed = len(parsed.columns["annotator"])
            self._roles = dict(kind.columns.by_role)
        return combine({self._file: parsed}, kind)

    def _labels(self, changes: Mapping[str, Any]) -> tuple[Labels, dict[str, Any]]:
        """Return the labels, and the options that they need: the last of several labels, if need be."""
        first: InputError | None = None
        for more in ({}, {"duplicates": "last"}):
            options = {**changes, **more}
            try:
                return self._parse(LabelKind(replace(self._read, **options))), options
            except InputError as error:
                first = first or error
        assert first is not None
        raise first

    def _comparisons(self, changes: Mapping[str, Any]) -> Any:
        self._roles = {}  # not those of an attempt to read labels
        return self._parse(PairKind(replace(self._read, **changes)))

    def _choices(self, table: pa.Table | None) -> list[str]:
        """Return the commands among which the caller has to choose; each of them can be read."""
        commands: list[str] = []
        every: list[dict[str, Any]] = [{"question": name} for name in self._questions()]
        of_all = [self._typed("fit", {"question": ALL_QUESTIONS})] if len(every) > 1 else []
        if table is not None and not every and self._known is not None:
            given = dict(without_question_column(self._read).columns or {})
            pair, labels = propose_columns(table, self._known | given)
            new = {role: name for role, name in pair.items() if self._known.get(role) != name}
            is_known = "label" in self._known
            every = [
                {"columns": {**given, **new, **({} if is_known else {"label": each.name})}}
                for each in labels
            ]
        for changes in every[:3]:
            with suppress(InputError):
                self._example, options = self._labels(changes)
                commands.append(self._typed("fit", options))
        names = [] if table is None else table.column_names
        asked = every and find_question_column(names, self._read.columns)
        if asked:
            self._roles[QUESTION] = asked
        elif len(every) > 1:
            self._roles.pop("label", None)
        if not commands and table is not None:
            columns = propose_pair_columns(table, self._read.columns)
            with suppress(InputError):
                if columns and self._comparisons({"columns": columns}):
                    commands.append(self._typed("rank", {"columns": columns}))
        return commands + of_all

    def _questions(self) -> Sequence[str]:
        """Return the names of the questions to choose from."""
        try:
            parse_opened(
                self._file, self._content, LabelKind(replace(self._read, question=ALL_QUESTIONS))
            )
        except QuestionsFoundError as found:
            return found.names
        except InputError:
            pass
        return ()

    def _typed(self, command: str, changes: Mapping[str, Any]) -> str:
        """Return a command for the caller's options with some changes."""
        given = {**self._read.changed(), **changes}
        flags = (as_flag(name, value) for name, value in given.items())
        return " ".join([f"annotruth {command} {shlex.quote(self._source)}", *flags])

    def _table(self) -> pa.Table | None:
        """Return all columns of a file that is a table; None for what is none."""
        content = self._content
        if content is None:
            return None
        try:
            if content.kind in DATABASE_TITLE:
                choose = partial(_choose_all, LabelKind(self._read))
                query, limit = self._read.query, content.limit
                return read_database(Path(self._file), content.kind, query, choose, limit=limit)[0]
            if content.kind == "json" and is_json_list(content.data):
                records = list(Source(Path(self._file), content).records())
                return records_to_arrow(records) if _are_flat(records) else None
            return read_columns(content, lambda names: names)
        except InputError as error:
            self._no_table = error
            return None

    def _kind(self) -> str:
        """Return what the file is, in words."""
        content = self._content
        if content is None:
            is_python = Path(self._file).suffix.lower() == ".py"
            files = "Python file" if is_python else "folder or archive"
            return "database" if is_database_url(self._file) else files
        if content.sheet:
            return f"Excel, {content.sheet}"
        if content.kind == "text":
            separator = _SEPARATORS.get(read_header(content.data)[0], "")
            return f"text, columns separated by {separator}, UTF-8"
        title = _TITLES[content.kind]
        if content.kind != "json":
            return title
        lines = "" if is_json_list(content.data) else " lines"
        in_lines = Source(Path(self._file), content).in_lines
        return f"{title}{lines if in_lines else ''}, UTF-8"


def _choose_all(kind: LabelKind, names: list[str]) -> list[str]:
    """Return all columns of a table that has those of labels."""
    kind.choose(names)
    return names


def _are_flat(records: Sequence[Mapping[str, Any]]) -> bool:
    return not any(isinstance(value, dict) for row in records[:100] for value in row.values())


def _categories(scale: Scale) -> list[str]:
    """Return the categories, or the labels that sets have, as text."""
    if scale.set_labels is None:
        return scale.names[:_MAX_CATEGORIES]
    return [str(label) for label in scale.set_labels[:_MAX_CATEGORIES].to_pylist()]


def _long_table(made: Any) -> pa.Table:
    """Return observations as a table of one row each."""
    if not isinstance(made, Labels):
        table: pa.Table = made.to_arrow()
        return table
    columns = (
        made.items.take(as_arrow(made.item_of_label())),
        made.annotators.take(as_arrow(made.annotator)),
        made.scale.categories.take(as_arrow(made.category_of_label())),
    )
    return pa.table(dict(zip(LABEL_ROLES, columns, strict=True)))


def _describe(made: Any) -> dict[str, Any]:
    """Return what observations are, and which rows do not count."""
    if made is None:
        return {}
    is_labels = isinstance(made, Labels)
    missing = "without a label" if is_labels else "without an outcome"
    numbers = {missing: made.n_dropped, "identical to another": made.n_repeated, **made.unused}
    return {
        "holds": made.describe(),
        "categories": _categories(made.scale) if is_labels else [],
        "read_as": made.read_as,
        "unused": [
            f"{counted(number, 'row')} {reason}" for reason, number in numbers.items() if number
        ],
    }
