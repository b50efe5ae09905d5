"""Sheets of Excel's .xlsx files, as CSV, which is then read as any other."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from annotruth.errors import InputError, did_you_mean, listed, one_line, option, shorten, shown
from annotruth.io.decompress import check_size, open_zip, read_member

_CELL_BYTES = 40  # of a cell in memory, empty ones included
_INSTALL = "install it with: pip install 'annotruth[excel]', or save the sheet as CSV"
_PLACE = re.compile(r"([A-Za-z]*)(\d*)")


def refuse_old_workbook(data: pa.Buffer) -> None:
    """Refuse what Excel wrote before .xlsx, and workbooks with a password, which look the same."""
    if "EncryptedPackage".encode("utf-16-le") in data.to_pybytes():
        raise InputError("the workbook has a password: save it without one, or as CSV")
    raise InputError("this is an old Excel file (.xls) or document: save it as .xlsx or CSV")


def read_sheet(data: pa.Buffer, sheet: str | None, *, limit: int) -> tuple[pa.Buffer, str] | None:
    """Return a sheet of a workbook, by default the first, as CSV, and which; None of another zip.

    What it takes in memory is found before it is read: a sheet with two cells far from each other is
    a table of billions.
    """
    with open_zip(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        if "mimetype" in names and "content.xml" in names:
            raise InputError("this is an OpenDocument file: save it as .xlsx or CSV")
        if "[Content_Types].xml" not in names:
            return None
        if not any(name.startswith("xl/") and name.endswith(".xml") for name in names):
            raise InputError("this is a document or .xlsb: save the labels as .xlsx or CSV")
        _check_members(archive, limit)
    if importlib.util.find_spec("python_calamine") is None:
        raise InputError(f"Excel files need the package python-calamine: {_INSTALL}")
    calamine: Any = importlib.import_module("python_calamine")
    with _errors_reported():
        workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        names_of_sheets = _names(workbook, calamine)
        name = _choose(names_of_sheets, sheet)
        text = _to_csv(workbook.get_sheet_by_name(name))
    if not text:
        raise InputError(f"the sheet {name!r} is empty{_pass_other(names_of_sheets, name)}")
    others = f", the first of {len(names_of_sheets)}" if len(names_of_sheets) > 1 else ""
    return pa.py_buffer(text), f"sheet {shorten(name)}{others if sheet is None else ''}"


def _names(workbook: Any, calamine: Any) -> list[str]:
    """Return the names of the sheets with cells, the visible ones first."""
    of_cells, visible = calamine.SheetTypeEnum.WorkSheet, calamine.SheetVisibleEnum.Visible
    sheets = [each for each in workbook.sheets_metadata if each.typ == of_cells]
    return [each.name for each in sorted(sheets, key=lambda each: each.visible != visible)]


def _choose(names: list[str], sheet: str | None) -> str:
    if not names:
        raise InputError("the workbook has no sheets: check that it is the right file")
    if sheet is None:
        return names[0]
    if sheet not in names:
        raise InputError(
            f"there is no sheet {shown(sheet)} for {option('query')}: the sheets are {listed(names)}"
            f"{did_you_mean(sheet, names)}"
        )
    return sheet


def _pass_other(names: list[str], empty: str) -> str:
    others = [name for name in names if name != empty]
    if not others:
        return ": check that it is the right file"
    return f": choose one of {listed(others)} with {option('query', others[0])}"


def _check_members(archive: zipfile.ZipFile, limit: int) -> None:
    """Refuse a workbook whose parts, or the area of cells of a sheet, are larger than the limit."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    check_size(sum(member.file_size for member in members), "workbook", limit)
    for member in members:
        content = read_member(archive, member, "workbook", limit=limit).to_pybytes()
        if b"sheetData" in content:
            check_size(_CELL_BYTES * _count_cells(content), "area of cells of a sheet", limit)


def _count_cells(content: bytes) -> int:
    """Return how many cells the area from the first to the last one of a sheet has."""
    rows: list[int] = []
    columns: list[int] = []
    row = column = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column
        tag = name.rpartition(":")[2]
        if tag == "row":
            row, column = int(attributes.get("r") or row + 1), 0
        elif tag == "c":
            letters, digits = _PLACE.match(attributes.get("r", "")).groups()  # type: ignore[union-attr]
            column = _column_number(letters) or column + 1
            row = int(digits or row)
        elif tag in ("v", "is"):  # a cell that is only coloured has neither
            rows[:] = [min(row, *rows), max(row, *rows)] if rows else [row, row]
            columns[:] = [min(column, *columns), max(column, *columns)] if columns else [column] * 2

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError) as error:
        raise InputError(f"the workbook is damaged ({error}): save it again") from None
    if not rows:
        return 0
    return (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1)


def _column_number(letters: str) -> int:
    """Return the number of a column: A is 1, AA is 27."""
    number = 0
    for letter in letters[:7].upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _to_csv(sheet: Any) -> bytes:
    """Return the rows of a sheet that are not empty."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    for row in sheet.iter_rows():
        cells = [_to_text(cell) for cell in row]
        if any(cells):
            writer.writerow(cells)
    return file.getvalue().encode()


def _to_text(cell: Any) -> str:
    """Return a cell as Excel's own CSV has it, with dates as in ISO 8601."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Turn what the package raises, also where it panics, into one line."""
    try:
        yield
    except BaseException as error:
        kind = type(error)
        if kind.__module__ != "python_calamine" and kind.__name__ != "PanicException":
            raise
        what = shorten(one_line(str(error)), 120)
        raise InputError(f"the workbook is damaged ({what}): save it again") from None
