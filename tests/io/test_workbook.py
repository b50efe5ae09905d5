"""Workbooks as they are written: text stays text, limits of cells and rows, and complete or not at all."""

import importlib.util
import os
import signal
import subprocess
import sys
import zipfile
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import annotruth as at
from annotruth.io import workbook
from annotruth.io.parse import read_table
from annotruth.io.workbook import Sheet, write_workbook

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")
pytest.importorskip("xlsxwriter")

TIME = datetime(2026, 11, 16, 18, 0, tzinfo=UTC)
FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", '"=1"', "\u00a0=1", "\uff1d1"]
TEXTS = [
    *FORMULAS,
    "007",
    "-5",
    "1e5",
    "TRUE",
    "<b>&amp;",
    "a\nb",
    "http://x.y",
    "日本 🙂",
]


def write(path, table, **options):
    write_workbook([Sheet("Sheet", table, **options)], path, created=TIME)
    return path


def cells(path, sheet="Sheet"):
    return list(openpyxl.load_workbook(path)[sheet].iter_rows())


def test_text_stays_text_and_no_cell_is_a_formula(tmp_path):
    path = write(tmp_path / "w.xlsx", pa.table({"=item": TEXTS, "n": range(len(TEXTS))}), ids=["n"])
    header, *rows = cells(path)
    assert header[0].value == "=item"
    assert [row[0].value for row in rows] == TEXTS
    assert [row[0].data_type for row in rows] == ["s"] * len(rows)
    # Typed again, these would be run, but for the prefix.
    assert [row[0].value for row in rows if row[0].quotePrefix] == FORMULAS
    with zipfile.ZipFile(path) as archive:
        content = b"".join(map(archive.read, archive.namelist()))
        assert not any("vba" in name for name in archive.namelist())
    assert b"<f>" not in content
    assert b"hyperlink" not in content
    assert read_table(path)["=item"].to_pylist() == TEXTS


def test_numbers_missing_values_and_what_xml_forbids(tmp_path):
    texts = ["a\x00b\x1b\uffff", None, ""]
    numbers = [0.25, float("nan"), float("inf")]
    table = pa.table({"t": texts, "x": numbers, "k": [1, 2**60, None], "b": [True, False, None]})
    _, *rows = cells(write(tmp_path / "w.xlsx", table, formats={"x": "0%"}))
    values = [tuple(cell.value for cell in row) for row in rows]
    assert values == [
        ("a\ufffdb\ufffd\ufffd", 0.25, 1, "yes"),
        (None, None, str(2**60), "no"),
        (None, None, None, None),
    ]
    assert rows[0][1].number_format == "0%"


def test_more_rows_than_a_sheet_holds_and_longer_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "MAX_ROWS", 4)
    path = write(tmp_path / "w.xlsx", pa.table({"n": range(9)}))
    assert openpyxl.load_workbook(path).sheetnames == ["Sheet", "Sheet 2", "Sheet 3"]
    assert [row[0].value for row in cells(path, "Sheet 3")] == ["n", 8]
    long = pa.table({"item": ["short", "x" * 40_000], "why": ["y" * 40_000, "z"]})
    _, first, _ = cells(write(tmp_path / "long.xlsx", long))
    assert len(first[1].value) == workbook.MAX_LETTERS
    with pytest.raises(at.OutputError, match=r"an id of 40,000 characters .* write \.csv"):
        write(tmp_path / "ids.xlsx", long, ids=["item"])
    assert not (tmp_path / "ids.xlsx").exists()


def test_header_filter_choices_and_an_empty_sheet(tmp_path):
    table = pa.table({"who": ["ann", "bob"], "decision": pa.nulls(2, pa.string())})
    path = write(
        tmp_path / "w.xlsx",
        table,
        headings={"decision": "Your decision"},
        choices={"decision": ("pay", "ask")},
        if_empty="Nobody.",
    )
    sheet = openpyxl.load_workbook(path)["Sheet"]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("B2", "A1:B3")
    (choice,) = sheet.data_validations.dataValidation
    assert (str(choice.sqref), choice.formula1) == ("B2:B3", '"pay,ask"')
    _, empty = cells(write(tmp_path / "e.xlsx", table.slice(0, 0), if_empty="Nobody."))
    assert empty[0].value == "Nobody."


def test_the_same_sheets_have_the_same_bytes(tmp_path):
    table = pa.table({"a": ["x"], "b": [1.5]})
    one, two = (write(tmp_path / name, table).read_bytes() for name in ("1.xlsx", "2.xlsx"))
    assert one == two


def test_what_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    path, table = tmp_path / "w.xlsx", pa.table({"a": ["x"]})
    with pytest.raises(at.InputError, match=r"w\.xls: the name of a workbook must end in \.xlsx"):
        write(tmp_path / "w.xls", table)
    before = write(path, table).read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("xlsxwriter.workbook.ZipFile", full)
        with pytest.raises(at.OutputError, match="No space left on device; free some space"):
            write(path, table)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(at.InputError, match=r"pip install 'annotruth\[excel\]', or write \.csv"):
        write(path, table)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["w.xlsx"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_leaves_the_old_file(tmp_path):
    path, table = tmp_path / "w.xlsx", pa.table({"a": ["x"]})
    before = write(path, table).read_bytes()
    killed = (
        "import os, signal, sys, xlsxwriter.workbook as w; from tests.io.test_workbook import *\n"
        "w.ZipFile = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write(sys.argv[1], pa.table({'a': ['y']}))"
    )
    done = subprocess.run([sys.executable, "-c", killed, str(path)], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    write(path, table)
    assert [each.name for each in tmp_path.iterdir()] == ["w.xlsx"]
