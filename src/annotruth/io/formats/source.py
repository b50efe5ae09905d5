"""A file as the formats see it, and what they make of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotruth.errors import InputError, listed, shown
from annotruth.io.batches import read_columns, read_first_rows, read_header
from annotruth.io.content import ContentKind, FileContent, check_utf8
from annotruth.io.json_lines import check_object_size, describe_fault, is_deep
from annotruth.observations.columns.names import pass_column
from annotruth.observations.frames import ChooseColumns, records_to_arrow
from annotruth.observations.options import ParsedLabels, ReadOptions
from annotruth.observations.pairs.build import ParsedComparisons

Record = dict[str, Any]

# Fields of the tasks that `annotruth next --assign` writes. A platform exports them with the labels,
# so that a label goes to the item that the task was made for, not to the platform's new task.
ITEM_FIELD = "annotruth_item"
ANNOTATORS_FIELD = "annotruth_annotators"
INPUT_PREFIX = "Input."  # of the variables of a HIT in the results of Mechanical Turk


@dataclass(frozen=True)
class Format:
    """A file format that is recognised by its content, and reads labels or pair comparisons."""

    name: str
    """Its name as an option; ``title`` is that in messages."""
    title: str
    recognise: Callable[[Source], bool]
    """Whether a source is in the format, by its column names, first rows or first record."""
    read: Callable[[Source], ParsedLabels]
    read_comparisons: Callable[[Source], ParsedComparisons] | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """An opened file: its first rows, and methods to read the rest.

    ``read`` are the caller's options.
    """

    path: Path
    content: FileContent
    read: ReadOptions = field(default_factory=ReadOptions)

    @property
    def columns(self) -> Mapping[str, str]:
        """The column of each role that the caller names."""
        return self.read.columns or {}

    @property
    def kind(self) -> ContentKind:
        """The kind of content."""
        return self.content.kind

    @property
    def from_text(self) -> bool:
        """Whether columns have no types, as in a CSV."""
        return self.kind == "text"

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, none for JSON."""
        if self.from_text:
            return read_header(self.content.data)[1]
        return [] if self.kind == "json" else list(self._table.column_names)

    @cached_property
    def rows(self) -> list[list[str]]:
        """The first rows of a table as text, the one with the column names included."""
        if self.kind == "text":
            return read_first_rows(self.content.data)
        if self.kind == "json":
            return []
        rows = self._table.slice(0, 100).to_pylist()
        return [
            list(self.names),
            *(["" if cell is None else str(cell) for cell in row.values()] for row in rows),
        ]

    @cached_property
    def first(self) -> Record:
        """The first object of a JSON file: of its lines, of its list, or the file itself."""
        if self.kind != "json":
            return {}
        value, line = self._first_line
        if value is None:  # written over several lines, or malformed
            try:
                value = self.document
            except InputError:
                if line.startswith(b"[") or line == b"{":
                    raise
                # One object per line was meant; reading it that way names the line at fault.
        if isinstance(value, list):
            value = value[0] if value else {}
        return value if isinstance(value, dict) else {}

    @cached_property
    def document(self) -> Any:
        """The whole file as one JSON value, read once."""
        if self.kind != "json":
            raise InputError(
                "this input format is JSON, and the file is not: choose another format"
            )
        check_object_size(self.content.data, self.content.limit)
        return _load_json(self.content.data.to_pybytes(), self.content.data)

    @property
    def whole(self) -> Any:
        """The whole file as one JSON value; None if it is not one, as where it is in lines."""
        with suppress(InputError):
            return self.document
        return None

    @property
    def in_lines(self) -> bool:
        """Whether a JSON file has one object per line."""
        return self.kind == "json" and isinstance(self._first_line[0], dict)

    def records(self) -> Iterator[Record]:
        """Return the objects of a JSON file, whether one per line or in a list."""
        for where, record in self._numbered():
            if not isinstance(record, dict):
                raise InputError(
                    f"{where} is {shown(record)}, which is not an object: export the file again"
                )
            yield record

    def record_table(self, choose: ChooseColumns | None = None) -> pa.Table:
        """Return the objects of a JSON file as a table, with all columns or those chosen."""
        return records_to_arrow(list(self.records()), choose)

    @cached_property
    def unnamed_table(self) -> pa.Table:
        """All rows of a text file without a header, in columns named 1, 2, 3, ... ."""
        separator, names = read_header(self.content.data)
        header = separator.join(str(n) for n in range(1, len(names) + 1)) + "\n"
        named = pa.py_buffer(header.encode() + self.content.data.to_pybytes())
        return read_columns(self.content._replace(data=named), lambda names: names)

    def table(self, names: Sequence[str]) -> pa.Table:
        """Read the named columns."""
        if self.kind in ("parquet", "arrow"):
            return self._table.select(names)
        return read_columns(self.content, lambda _: names)

    def check_cells(self) -> None:
        """Refuse cells of JSON that take too much memory as Python's objects."""
        if self.from_text:
            check_object_size(self.content.data, self.content.limit)

    def column(self, role: str, usual: str) -> str:
        """Return the column of a role: the one that the caller names, or the usual one."""
        name = self.columns.get(role, usual)
        if name not in self.names:
            raise InputError(
                f"no column {name!r} (found: {listed(self.names)}); {pass_column(role)}"
            )
        return name

    def time_columns(self, usual: Mapping[str, str]) -> dict[str, str]:
        """Return the columns of times by role: those that the caller names, and the usual ones."""
        given = {role: self.column(role, "") for role in self.read.time_columns}
        return {role: name for role, name in usual.items() if name in self.names} | given

    @cached_property
    def _table(self) -> pa.Table:
        return read_columns(self.content, lambda names: names)

    @cached_property
    def _first_line(self) -> tuple[Any, bytes]:
        """The first line as a JSON value, None where it is not complete, and as bytes."""
        lines = io.BufferedReader(pa.BufferReader(self.content.data))
        line = next((line.strip() for line in lines if line.strip()), b"")
        check_object_size(pa.py_buffer(line), self.content.limit)
        try:
            return json.loads(line), line
        except (ValueError, RecursionError):
            return None, line

    def _numbered(self) -> Iterator[tuple[str, Any]]:
        if self.in_lines:
            check_object_size(self.content.data, self.content.limit)
            lines = io.TextIOWrapper(pa.BufferReader(self.content.data), encoding="utf-8")
            try:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        yield (
                            f"line {number}",
                            _load_json(line, self.content.data, f"line {number}"),
                        )
            except UnicodeDecodeError:
                check_utf8(self.content.data)
                raise
            return
        document = self.document
        for number, record in enumerate(
            document if isinstance(document, list) else [document], start=1
        ):
            yield f"record {number}", record


def _load_json(text: str | bytes, data: pa.Buffer, where: str = "the file") -> Any:
    try:
        value = json.loads(text)
    except UnicodeDecodeError:
        check_utf8(data)
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where} is not JSON ({describe_fault(error)}): it may be truncated, export it again"
        ) from error
    if is_deep([value]):
        raise InputError(f"{where} is nested too deeply to be labels: export it again")
    return value
