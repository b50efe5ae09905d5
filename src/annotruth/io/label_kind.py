"""How labels are read: which columns, what they hold, and which exports there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, NoQuestionsError, option, shorten
from annotruth.io import formats
from annotruth.io.batches import read_header
from annotruth.io.formats.source import Source
from annotruth.io.formats.votes import chosen, with_note
from annotruth.io.sources import (
    LabelFile,
    labels_made_alike,
)
from annotruth.observations import Labels
from annotruth.observations.build import LabelBuilder, LabelColumns
from annotruth.observations.columns import questions, responses
from annotruth.observations.columns.candidates import (
    describe_others,
    is_unit_of_work,
    label_candidates,
    propose_columns,
)
from annotruth.observations.columns.names import (
    KNOWN_NAMES,
    LABEL_ROLES,
    ColumnsNotFoundError,
    describe_columns,
    find_columns,
    find_known,
    is_known_name,
    is_platform_export,
    pass_column,
    pass_columns,
    refuse_comparisons,
)
from annotruth.observations.columns.set_cells import with_sets_of_cells
from annotruth.observations.disk import Disk
from annotruth.observations.frames import to_arrow
from annotruth.observations.options import ALL_QUESTIONS, ParsedLabels, ReadOptions
from annotruth.observations.scale import is_text, to_plain, with_decimal_points

_MANY_LABELS = 3  # of so many columns, a usual name does not say which is the label
_NO_HEADER = "; if the first row holds no names, put one before it: item,annotator,label"


class NoLongTableError(ColumnsNotFoundError):
    """The columns of a long table are missing."""


@dataclass(frozen=True)
class LabelKind:
    """Tables of one row per label; where a question is asked for, its rows."""

    read: ReadOptions

    table: ClassVar = Labels
    function: ClassVar = "annotruth.fit"  # takes data in memory
    # Options that may be given beside observations that were made already.
    kept_options: ClassVar = frozenset({"duplicates", "drop"})

    def check_options(self) -> None:
        """Refuse all questions at once, and options of comparisons."""
        if self.read.outcomes:
            raise InputError(
                f"outcomes is for comparisons, not for labels: leave it out ({option('outcomes')})"
            )
        if self.read.question == ALL_QUESTIONS:
            raise InputError(
                "all questions at once are for fit (`annotruth fit`): name one question here"
            )

    def builder(self, disk: Disk | None = None) -> LabelBuilder:
        """Return a builder of labels."""
        return LabelBuilder(self.read, disk)

    def parse_data(self, data: Any) -> tuple[ParsedLabels, str]:
        """Return the labels in a frame or plain Python data; of several questions, the rows of one."""
        from annotruth.io.shapes import to_long  # loads narwhals

        shaped = None if asks_question(self.read) else to_long(data, self.read)
        if shaped is not None:
            return with_set_cells(shaped[0], self.read), shaped[1]
        long = LabelKind(replace(self.read, input_format="long"))
        try:
            table, frame = to_arrow(data, long.choose)
            return long.parse(table.select(long.choose(table.column_names))), frame
        except ColumnsNotFoundError as error:
            frame = ""

            def load() -> pa.Table:
                nonlocal frame
                table, frame = to_arrow(data)
                return table

            return long.parse_by_values(load, error), frame

    def choose(
        self, names: list[str], *, from_text: bool = False, on_disk: bool = False
    ) -> list[str]:
        """Return the columns of a long table to read; refuse exports of platforms and comparisons."""
        read = self.read
        names_all_roles = set(read.columns or ()) >= set(LABEL_ROLES)
        if read.input_format is None and not names_all_roles and is_platform_export(names):
            raise NoLongTableError(
                "this is a platform's export, not a table of one row per label; to read it so, "
                f"{pass_columns(dict.fromkeys(LABEL_ROLES, ''))}"
            )
        refuse_comparisons(names, read.columns)  # before another format takes them for labels
        question, options = None, read
        if asks_question(read):
            question = questions.find_question_column(names, read.columns)
            options = questions.without_question_column(read)
        may_be_columns = question is None and not on_disk
        may_be_columns &= questions.QUESTION not in (read.columns or {})
        if may_be_columns and read.question is not None:
            in_columns = responses.find_responses(names, read)
            if in_columns is not None:
                return in_columns
        try:
            others = [name for name in names if name != question]
            columns = LabelColumns.find(others, options, on_disk=on_disk).names()
        except InputError as error:
            boxes = responses.find_responses(names, read) if may_be_columns else None
            if boxes is not None:
                return boxes
            no_names = from_text and not read.columns and not any(map(is_known_name, names))
            problem = getattr(error, "problem", "")
            raise NoLongTableError(
                f"{error}{_NO_HEADER if no_names else ''}", problem, getattr(error, "known", None)
            ) from None
        if question is None and read.question is not None:
            self._refuse_question()
        return columns if question is None else [*columns, question]

    def parse(
        self, table: pa.Table, *, from_text: bool = False, first_row: int = 0, note: str = ""
    ) -> ParsedLabels:
        """Return the labels of a long table; of several questions, the rows of one."""
        read = self.read
        parsed = ParsedLabels(table, read.columns, from_text=from_text, notes=(note,))
        column = None
        if asks_question(read):
            column = questions.find_question_column(table.column_names, read.columns)
        if column is None:
            return self._of_responses(parsed, note)
        question = chosen(questions.question_names(table, column), read.question, "question")
        parsed = replace(
            parsed,
            table=questions.rows_of_question(table, column, question),
            columns=questions.without_question_column(read).columns,
            notes=(note, f"question {question}"),
        )
        return with_set_cells(parsed, questions.without_question_column(read))

    def check_label(self, names: Sequence[str], load: Callable[[], pa.Table]) -> None:
        """Refuse a column taken for the label by a usual name that is one of many, or data of items.

        ``load`` returns the first rows of all columns.
        """
        read = self.read
        if read.input_format or asks_question(read) or read.label_columns:
            return
        try:
            found = dict(LabelColumns.find(names, read).by_role)
        except ColumnsNotFoundError:  # it has boxes
            return
        label = found.pop("label")
        if find_known(KNOWN_NAMES["label"][:1], [label]):
            return
        rows = load()
        others = [name for name in rows.column_names if name not in found.values()]
        labels, rest = label_candidates(rows, others, found["item"], found["annotator"])
        is_content = any(each.name == label and each.role == "content" for each in rest)
        if len(labels) > _MANY_LABELS or (labels and is_content):
            what = (
                "has one value per item" if is_content else f"is one of {len(labels)} such columns"
            )
            problem = f"column {label!r} may not be the label: it {what}"
            raise NoLongTableError(f"{problem}: {pass_columns({'label': label})}", problem, found)

    def parse_by_values(
        self,
        load: Callable[[], pa.Table],
        error: ColumnsNotFoundError,
        *,
        from_text: bool = False,
    ) -> ParsedLabels:
        """Return the labels of a long table in which only the label is found by its values.

        Raise ``error``, with the columns that could be which, if that leaves several or none.
        ``load`` returns all columns.
        """
        table = all_columns(load, error)
        read, names = questions.without_question_column(self.read), table.column_names
        known = dict(error.known)
        if is_unit_of_work(known.get("item", "")) and "item" not in (read.columns or {}):
            del known["item"]
        pair, labels = propose_columns(table, known)
        given = {**(read.columns or {}), **pair}
        if pair.items() <= known.items() and "label" not in known:
            candidates = [each.name for each in labels]
            if read.question == ALL_QUESTIONS and candidates:
                raise questions.QuestionsFoundError(n for n in names if n in candidates)
            label = read.question if read.question in names else None
            if label is None and len(labels) == 1 and read.question is None:
                label = candidates[0]
            if label is not None:
                by_role = {**pair, "label": label}
                options = replace(read, columns={**given, **by_role})
                columns = LabelColumns.find(names, options).names()
                note = describe_columns(by_role)
                if len(labels) == 1:
                    others = [c for c in names if c not in columns]
                    note = with_note(
                        note, describe_others(others, option("columns", {"label": "NAME"}))
                    )
                return ParsedLabels(
                    table.select(columns), options.columns, from_text=from_text, notes=(note,)
                )
        if not labels:
            raise error
        asked = {role: name for role, name in pair.items() if role not in known}
        may_be = [f"the {role} may be {shorten(name)}" for role, name in asked.items()]
        each_label: list[dict[str, str]] = [{}]
        if "label" not in error.known:
            may_be += [f"the label may be {' or '.join(each.preview for each in labels[:3])}"]
            each_label = [{"label": each.name} for each in labels[:3]]
        asked = {**(read.columns or {}), **asked}
        message = f"{error.problem}; by their values, {' and '.join(may_be)}: " + " or ".join(
            pass_columns({**asked, **label}) for label in each_label
        )
        if len(each_label) > 1 and not asked:
            message += f"; {questions.take_all_questions()}"
        raise NoLongTableError(message, error.problem, error.known)

    def _of_responses(self, parsed: ParsedLabels, note: str) -> ParsedLabels:
        """Return labels that are in one column, which a question or boxes may name."""
        read, table = self.read, parsed.table
        lacks_label = True
        with suppress(InputError):
            find_columns(table.column_names, LABEL_ROLES, read.label_columns)
            lacks_label = False
        if not lacks_label and read.question is None:
            return with_set_cells(parsed, read)
        taken = responses.take_responses(table, read)
        if taken is None:
            if read.question is not None:
                self._refuse_question()
            find_columns(table.column_names, LABEL_ROLES, read.label_columns)  # which raises
            raise InputError("no column holds labels")
        table, columns = taken
        notes = (note, f"question {columns['label']}")
        return with_set_cells(replace(parsed, table=table, columns=columns, notes=notes), read)

    def _refuse_question(self) -> NoReturn:
        raise NoQuestionsError(
            f"a table of one row per label has no questions: leave out {option('question')}, or name "
            f"the column of questions: {pass_column(questions.QUESTION)}"
        )

    def recognise(self, source: Source, *, is_long: bool = True) -> ParsedLabels | None:
        """Return the labels of the format that is named, or recognised; None for a long table.

        Not ``is_long`` is a table without the columns of a long one.
        """
        named = self.read.input_format
        if named is not None:
            formats.check_name(named)
            return None if named == "long" else self._checked(formats.read_as(named, source))
        parsed, content = None, source.content
        if not is_long or content.kind == "json":  # whose keys are known only once it is read
            parsed = formats.recognise(source)
        elif content.kind == "text" and content.data[:1].to_pybytes().isdigit():
            parsed = formats.recognise_glad(source)
        return parsed and self._checked(parsed)

    def read_several(self, path: Path) -> ParsedLabels | None:
        """Return the labels of a folder or zip of one file per user, or of a Python file."""
        formats.check_name(self.read.input_format)
        parsed = formats.read_several(path, max_size=self.read.max_size)
        return parsed and self._checked(parsed)

    def made_alike(
        self, parts: Mapping[LabelFile, ParsedLabels]
    ) -> Mapping[LabelFile, ParsedLabels]:
        """Return labels of several files in the same columns and types; refuse others."""
        return parts if len(parts) == 1 else labels_made_alike(parts)

    def with_decimal_points(self, parsed: ParsedLabels, data: pa.Buffer) -> ParsedLabels:
        """Return the labels of a text table whose numbers have decimal commas, as Excel writes them.

        Where columns are separated by commas, or the caller says what the labels are, a comma is none.
        """
        read = self.read
        if not parsed.from_text or read.has_sets or read.categories is not None:
            return parsed
        given = {r: n for r, n in (parsed.columns or {}).items() if r in LABEL_ROLES}
        name = find_columns(parsed.table.column_names, LABEL_ROLES, given)["label"]
        numbers = with_decimal_points(parsed.table.column(name))
        if numbers is None or read_header(data)[0] == ",":
            return parsed
        place = parsed.table.column_names.index(name)
        table = parsed.table.set_column(place, name, numbers)
        return replace(parsed, table=table, notes=(*parsed.notes, "decimal commas"))

    def _checked(self, parsed: ParsedLabels) -> ParsedLabels:
        """Refuse options that are for long tables alone, where labels are an export."""
        read, title = self.read, parsed.title
        for role in read.time_columns:
            if role not in parsed.table.column_names:
                raise InputError(
                    f"the {role} is not read from a {title}: leave {role} out of {option('columns')}"
                )
        if read.covariates:
            raise InputError(
                f"covariates are columns of a long table, and this is a {title}: leave out "
                f"{option('covariates')}"
            )
        if questions.QUESTION in (read.columns or {}):
            raise InputError(
                f"{option('columns')} names a column of questions, and this is a {title}: leave it "
                f"out, and name a question ({option('question')})"
            )
        return with_set_cells(parsed, read)

    def check_on_disk(self) -> None:
        """Refuse options that are not for labels on disk."""
        read = self.read
        if read.input_format not in (None, "long") or asks_question(read):
            raise InputError(
                "within a memory limit only a table of one row per label is read: leave out "
                f"{option('input_format')} and {option('question')}, or {option('memory')}"
            )
        for role in read.time_columns:
            raise InputError(
                f"labels on disk do not carry their {role}: leave {role} out of {option('columns')}, or "
                f"leave out {option('memory')}"
            )
        for name in ("covariates", "content"):
            if getattr(read, name):
                raise InputError(
                    f"labels on disk do not carry {name}: leave out {option(name)} or "
                    f"{option('memory')}"
                )


def with_set_cells(parsed: ParsedLabels, read: ReadOptions) -> ParsedLabels:
    """Return labels with those cells of text as lists that hold several labels."""
    columns = parsed.options(read).label_columns
    name = find_columns(parsed.table.column_names, LABEL_ROLES, columns)["label"]
    column = to_plain(parsed.table.column(name))
    if not is_text(column.type):
        return parsed
    may_be_sets = pc.match_substring_regex(column.unique(), r"[\[|;,\n]")
    return with_sets_of_cells(parsed, read, name) if pc.any(may_be_sets).as_py() else parsed


def asks_question(read: ReadOptions) -> bool:
    """Return whether a table may have several questions: one is named, or their column is."""
    columns = read.columns if isinstance(read.columns, Mapping) else {}  # others are refused later
    return read.question is not None or questions.QUESTION in columns


def all_columns(load: Callable[[], pa.Table], error: ColumnsNotFoundError) -> pa.Table:
    """Return all columns of a table; raise ``error`` if they cannot be read."""
    if not error.problem:
        raise error
    try:
        return load()
    except InputError:  # of a column that is not needed
        raise error from None
