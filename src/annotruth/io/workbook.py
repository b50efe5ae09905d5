"""Excel workbooks (.xlsx) for people: sheets of text and numbers, without formulas or macros."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from annotruth.errors import InputError, OutputError, shown
from annotruth.io.atomic import atomic_write
from annotruth.observations.encode import are_formulas, decode_table

SUFFIX = ".xlsx"

MAX_ROWS, MAX_LETTERS = 1_048_575, 32_767
"""How many rows a sheet has under its header, and how many characters a cell."""

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # in XML
_ROWS_AT_ONCE, _ROWS_MEASURED = 1 << 14, 1_000
_LEAST_WIDTH, _MOST_WIDTH, _FILTER_ARROW = 9, 60, 3  # in characters
_MAX_INTEGER = 2**53
_COLORS = {"good": "#E3F1E5", "fair": "#FFF1D0", "bad": "#FADCD9", "input": "#FFFBE0"}
_CELL = {"valign": "top", "bottom": 1, "bottom_color": "#E1E4E8"}
_HEADER = {
    "bold": True,
    "bg_color": "#E8EBEF",
    "valign": "vcenter",
    "text_wrap": True,
    "quote_prefix": True,
}
_LINE_HEIGHT, _MOST_HEIGHT = 15, 405  # in points


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table for one sheet; of more than `MAX_ROWS` rows, for several."""

    name: str
    table: pa.Table
    headings: Mapping[str, str] = field(default_factory=dict)  # of columns with another heading
    formats: Mapping[str, str] = field(default_factory=dict)  # of numbers, such as "0%"
    ids: Collection[str] = ()  # columns whose cells are never cut
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of a drop-down list
    to_fill: Collection[str] = ()  # empty columns for the reader
    # the columns whose cells are colored good, fair or bad, by their text
    tones: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    if_empty: str = ""  # what stands where there are no rows


def check_workbook(path: str | os.PathLike[str]) -> None:
    """Refuse another suffix than .xlsx, and say what to install if the package is missing."""
    if Path(path).suffix.lower() != SUFFIX:
        raise InputError(f"{os.fspath(path)}: the name of a workbook must end in {SUFFIX}")
    if importlib.util.find_spec("xlsxwriter") is None:
        raise InputError(
            f"{os.fspath(path)}: workbooks need the package XlsxWriter: install it with: pip install "
            "'annotruth[excel]', or write .csv"
        )


def write_workbook(
    sheets: Sequence[Sheet], path: str | os.PathLike[str], *, created: datetime
) -> None:
    """Write a workbook; the file appears when it is complete.

    Text is never a formula, also after it was edited; characters that XML forbids become �. Of the
    same sheets and time, all bytes are the same.
    """
    check_workbook(path)
    _check_ids(sheets, path)
    writer: Any = importlib.import_module("xlsxwriter")
    with atomic_write(path) as temporary:
        folder = str(temporary.parent)
        book = writer.Workbook(str(temporary), {"constant_memory": True, "tmpdir": folder})
        try:
            book.use_zip64()
            time = created.astimezone(UTC).replace(tzinfo=None)
            book.set_properties({"author": "annotruth", "created": time})
            formats: dict[Any, Any] = {}

            def style(**properties: Any) -> Any:
                key = tuple(sorted(properties.items()))
                if key not in formats:
                    formats[key] = book.add_format({**_CELL, **properties})
                return formats[key]

            for name, sheet in _numbered(sheets):
                _write_sheet(book.add_worksheet(name), sheet, style)
            book.close()
        except BaseException as error:
            for each in book.worksheets():
                each.row_data_fh.close()
            if type(error).__name__ == "FileCreateError":  # the package's name for an OSError
                raise error.args[0] from None
            raise


def _check_ids(sheets: Sequence[Sheet], path: str | os.PathLike[str]) -> None:
    for sheet in sheets:
        for name in sheet.ids:
            column = sheet.table[name]
            if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
                continue
            long = column.filter(pc.greater(pc.utf8_length(column), MAX_LETTERS))
            if len(long):
                raise OutputError(
                    f"cannot write {os.fspath(path)}: {sheet.name} has an id of "
                    f"{len(long[0].as_py()):,} characters ({shown(long[0].as_py(), 20)}), and a cell "
                    f"holds {MAX_LETTERS:,}: write .csv, .parquet or .json"
                )


def _numbered(sheets: Sequence[Sheet]) -> Iterator[tuple[str, Sheet]]:
    """Yield sheets and their names; a table of too many rows on several sheets."""
    for sheet in sheets:
        for k, start in enumerate(range(0, max(1, sheet.table.num_rows), MAX_ROWS)):
            rows = sheet.table.slice(start, MAX_ROWS)
            name = sheet.name if k == 0 else f"{sheet.name} {k + 1}"
            yield name, Sheet(**{**vars(sheet), "table": rows})


def _write_sheet(target: Any, sheet: Sheet, style: Callable[..., Any]) -> None:
    """Write the header and the rows of a sheet."""
    names = sheet.table.column_names
    n_rows, last = sheet.table.num_rows, max(len(names) - 1, 0)
    target.freeze_panes(1, 1)
    target.hide_gridlines(1)
    target.set_landscape()
    target.set_paper(9)
    target.fit_to_pages(1, 0)
    target.repeat_rows(0)
    target.ignore_errors({"number_stored_as_text": f"A1:XFD{MAX_ROWS + 1}"})
    columns = [_Column(sheet, name, style) for name in names]
    for k, column in enumerate(columns):
        target.set_column(k, k, column.width)
        target.write_string(0, k, column.heading, style(**_HEADER, **column.align))
        if column.choices and n_rows:
            options = {
                "validate": "list",
                "source": list(column.choices),
                "error_title": column.heading,
                "error_message": f"Choose {', '.join(column.choices)}, or leave it empty.",
            }
            target.data_validation(1, k, n_rows, k, options)
    if not n_rows and sheet.if_empty:
        target.write_string(1, 0, sheet.if_empty, style(italic=True))
    n_lines = max(len(wrap(each.heading, each.width - _FILTER_ARROW)) for each in columns)
    target.set_row(0, _LINE_HEIGHT * n_lines + 6)
    target.autofilter(0, 0, max(n_rows, 1), last)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        part = decode_table(sheet.table.slice(start, _ROWS_AT_ONCE))
        cells = [each.cells(part[name]) for each, name in zip(columns, names, strict=True)]
        for row, values in enumerate(zip(*cells, strict=True), start + 1):
            # Without a height, not every program shows all lines of a row.
            texts = zip((value for value, _ in values), columns, strict=True)
            n_lines = max(
                (_lines(text, each.room) for text, each in texts if each.wraps), default=1
            )
            if n_lines > 1:
                target.set_row(row, min(_LINE_HEIGHT * n_lines, _MOST_HEIGHT))
            for k, (value, format) in enumerate(values):
                if isinstance(value, str):
                    target.write_string(row, k, value, format)
                elif value is None:
                    target.write_blank(row, k, None, format)
                else:
                    target.write_number(row, k, value, format)


class _Column:
    """How the cells of a column are written."""

    def __init__(self, sheet: Sheet, name: str, style: Callable[..., Any]) -> None:
        self.heading = _clean(sheet.headings.get(name, name), 255)
        self.choices = sheet.choices.get(name, ())
        first = decode_table(sheet.table.slice(0, _ROWS_MEASURED))[name]
        texts = [_to_cell(value) for value in first.to_pylist()]
        lines = [line for text in texts if isinstance(text, str) for line in text.split("\n")]
        longest = max(map(len, lines), default=0)
        words = max(map(len, [*self.heading.split(), *islice(self.choices, 9)]), default=0)
        self.width = min(max(longest + 2, words + _FILTER_ARROW, _LEAST_WIDTH), _MOST_WIDTH)
        self.room = round(1.1 * self.width)  # text is narrower than digits
        self.wraps = longest > _MOST_WIDTH - 2 or len(lines) > len(texts)
        is_number = any(isinstance(text, int | float) for text in texts) and name not in sheet.ids
        self.align = {"align": "right"} if is_number else {"align": "left", "indent": 1}
        own: dict[str, Any] = {"text_wrap": self.wraps, **self.align}
        own |= (
            {"bg_color": _COLORS["input"], "border": 1, "border_color": "#D9CFA0"}
            if name in sheet.to_fill
            else {}
        )
        number = sheet.formats.get(name) or _number_format(first.type, is_id=name in sheet.ids)
        self._number = style(**own, num_format=number)
        self._text = style(**own)
        self._formula = style(**own, quote_prefix=True)
        self._tones = {
            text: style(**{**own, "bg_color": _COLORS[tone]})
            for text, tone in sheet.tones.get(name, {}).items()
        }

    def cells(self, column: pa.ChunkedArray) -> Iterator[tuple[Any, Any]]:
        """Yield the value and the format of each cell."""
        values = [_to_cell(value) for value in column.to_pylist()]
        texts = pa.array([each if isinstance(each, str) else None for each in values], pa.string())
        # Text that is typed again is run as a formula, unless its cell has the prefix '.
        formulas = are_formulas(texts).to_pylist()
        for value, is_formula in zip(values, formulas, strict=True):
            if not isinstance(value, str):
                yield value, self._number
            elif is_formula:
                yield value, self._formula
            else:
                yield value, self._tones.get(value, self._text)


def _lines(text: object, room: int) -> int:
    """Return how many lines a text takes in a cell."""
    if not isinstance(text, str):
        return 1
    return sum(math.ceil(len(line) / room) or 1 for line in text.split("\n"))


def _number_format(kind: pa.DataType, *, is_id: bool) -> str:
    if pa.types.is_integer(kind):
        return "0" if is_id else "#,##0"
    return "0.00"


def _to_cell(value: Any) -> str | int | float | None:
    """Return what a cell holds: text, a number, or nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return value if abs(value) < _MAX_INTEGER else str(value)
    if isinstance(value, float):
        return value if value - value == 0.0 else None  # nan and infinity are no numbers in Excel
    if value is None:
        return None
    if isinstance(value, list):
        return _clean(", ".join(map(str, value)))
    return _clean(str(value)) or None


def _clean(text: str, most: int = MAX_LETTERS) -> str:
    """Return text that a cell can hold."""
    text = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
