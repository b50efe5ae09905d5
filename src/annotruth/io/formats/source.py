"""An opened file, as the formats see it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from annotruth.errors import InputError
from annotruth.io.content import Kind, check_utf8
from annotruth.io.delimited import first_rows
from annotruth.labels.formatting import listed, shown

Choose = Callable[[list[str]], Iterable[str]]
Record = dict[str, Any]

_HEAD = 1 << 20  # how far recognition looks at once for the first record of a JSON file


@dataclass(frozen=True, eq=False)
class Source:
    """An opened file: what it shows at first sight, and ways to read the rest.

    Attributes
    ----------
    path, kind, data
        The file, what it holds, and its bytes, unpacked.
    read
        Reads the columns that a function picks from their names; says whether they are text.
    columns, question
        What the user said: which column plays which role, which question to take.
    """

    path: Path
    kind: Kind
    data: pa.Buffer
    read: Callable[[Choose], tuple[pa.Table, bool]]
    columns: Mapping[str, str] = field(default_factory=dict)
    question: str | None = None

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, none for JSON."""
        if self.kind == "json":
            return []

        def look(names: list[str]) -> NoReturn:
            raise _SeenError(names)

        try:
            self.read(look)
        except _SeenError as seen:
            return seen.names
        raise AssertionError("columns were read unseen")

    @cached_property
    def rows(self) -> list[list[str]]:
        """The first rows of a table as text, the one with the names among them."""
        if self.kind == "text":
            return first_rows(self.data)
        if self.kind == "json":
            return []
        rows = self._whole[0].slice(0, 100).to_pylist()
        return [
            list(self.names),
            *(["" if cell is None else str(cell) for cell in row.values()] for row in rows),
        ]

    @cached_property
    def first(self) -> Record:
        """The first object of a JSON file: of its lines, of its list, or the file itself."""
        if self.kind != "json":
            return {}
        found, line = self._first_line
        if found is None:  # written over several lines, or broken
            try:
                found = self.document
            except InputError:
                if line.startswith(b"[") or line.rstrip() == b"{":
                    raise
                # One object a line was meant: whoever reads it that way names the line at fault.
        if isinstance(found, list):
            found = found[0] if found else {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def document(self) -> Any:
        """The whole file as one JSON value, read once."""
        if self.kind != "json":
            raise InputError("this input format is JSON, and the file is not: name another")
        return _loaded(self.data.to_pybytes(), self.data)

    @property
    def in_lines(self) -> bool:
        """Whether a JSON file has one object a line."""
        return self.kind == "json" and isinstance(self._first_line[0], dict)

    def records(self) -> Iterator[Record]:
        """Hand out the objects of a JSON file, whether one a line or in a list."""
        for where, record in self._numbered():
            if not isinstance(record, dict):
                raise InputError(
                    f"{where} is {shown(record)}, which is no object: export the file again"
                )
            yield record

    def table(self, names: Sequence[str]) -> tuple[pa.Table, bool]:
        """Read the named columns; the second value says whether they are text."""
        if self.kind in ("parquet", "arrow"):
            table, from_text = self._whole
            return table.select(names), from_text
        return self.read(lambda _: names)

    def column(self, role: str, usual: str) -> str:
        """Name the column of a role: the one that the user says, or the usual one."""
        name = self.columns.get(role, usual)
        if name not in self.names:
            raise InputError(
                f"no column {name!r} (found: {listed(self.names)}); "
                f"say which it is: columns {role}=NAME"
            )
        return name

    @cached_property
    def _whole(self) -> tuple[pa.Table, bool]:
        return self.read(lambda names: names)

    @cached_property
    def _first_line(self) -> tuple[Any, bytes]:
        """The first line as JSON, None where it is no complete value, and as it stands."""
        size, line, rest = _HEAD, b"", b""
        while not rest and (size == _HEAD or size < 2 * self.data.size):
            start = self.data.slice(0, min(size, self.data.size)).to_pybytes().lstrip()
            line, rest, _ = start.partition(b"\n")
            size *= 2
        try:
            return json.loads(line), line
        except (ValueError, RecursionError):
            return None, line

    def _numbered(self) -> Iterator[tuple[str, Any]]:
        if self.in_lines:
            lines = io.TextIOWrapper(pa.BufferReader(self.data), encoding="utf-8")
            try:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        yield f"line {number}", _loaded(line, self.data, f"line {number}")
            except UnicodeDecodeError:
                check_utf8(self.data)
                raise
            return
        document = self.document
        for number, record in enumerate(
            document if isinstance(document, list) else [document], start=1
        ):
            yield f"record {number}", record


class _SeenError(Exception):
    """Ends the reading of a table once the names of its columns are seen."""

    def __init__(self, names: list[str]):
        self.names = names


def _loaded(text: str | bytes, data: pa.Buffer, where: str = "the file") -> Any:
    try:
        return json.loads(text)
    except UnicodeDecodeError:
        check_utf8(data)
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else error
        raise InputError(
            f"{where} is no JSON ({reason}): it may be cut short, export it again"
        ) from error
