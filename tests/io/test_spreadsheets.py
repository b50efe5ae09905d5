"""Labels, truth and gold in Excel's files, and workbooks that are made to exhaust memory."""

import importlib.util
import io
import zipfile
from datetime import date, datetime, time

import pytest
from tests.io.conftest import zipped_content

import annotruth as at
from annotruth.io import spreadsheets
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")

ROWS = [
    ("item", "annotator", "label"),
    (1, "ann", 4.0),
    (1, "bob", 5),
    (2, "ann", 4),
    (2, "bob", 4),
]


def workbook(**sheets) -> bytes:
    """Return a workbook with these rows in these sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def edited(content: bytes, old: bytes, new: bytes, *, declared: int | None = None) -> bytes:
    """Return a workbook with a part of its XML replaced; sizes that it declares may be false."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(file, "w", 8) as after:
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(old, new))
        if declared is not None:
            for member in after.filelist:
                member.file_size = declared
    return file.getvalue()


def test_the_first_sheet_or_a_named_one(write, run):
    path = write("labels.xlsx", workbook(Votes=ROWS, Other=[*ROWS[:3], (9, "cy", 1)]))
    expected = [(item, who, int(label)) for item, who, label in ROWS[1:]]
    labels = read_labels(path)
    assert labels.same_as(at.Labels.of(expected))
    assert labels.read_as == "sheet Votes, the first of 2"
    assert read_labels(path, query="Other").n_labels == 3
    assert read_labels(path, query="Other").read_as == "sheet Other"
    code, out, err = run("fit", path, "--query", "Nowhere")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "there is no sheet 'Nowhere' for `--query`: the sheets are Votes, Other\n" in err
    path.write_bytes(workbook(Votes=ROWS))
    assert read_labels([path]).read_as == "sheet Votes"


def test_numbers_dates_and_truth_values_are_as_in_the_table(write, refused):
    rows = [
        (1.0, date(2026, 1, 2)),
        (2.5, datetime(2026, 1, 2, 3, 4, 5)),
        (1e20, time(3, 4)),
        (-3, True),
        (None, None),
        ("007", " x\n"),
        (0.1, "=1"),
    ]
    path = write("table.xlsx", workbook(A=[(), (None, "a", "b"), *[(None, *row) for row in rows]]))
    table = read_table(path)
    assert table["a"].to_pylist() == ["1", "2.5", "1e+20", "-3", "007", "0.1"]
    assert table["b"].to_pylist()[:4] == ["2026-01-02", "2026-01-02 03:04:05", "03:04:00", "TRUE"]
    assert table["b"].to_pylist()[4] == " x\n"


def test_gold_truth_and_exports_of_platforms(tmp_path):
    truth, batch = tmp_path / "truth.xlsx", tmp_path / "batch.xlsx"
    truth.write_bytes(workbook(T=[("item", "label"), (1, 4), (2, 4)]))
    fit = at.fit(ROWS[1:], gold=truth)
    assert fit.data.known.tolist() == [0, 0]
    assert at.evaluate(fit, truth)["accuracy"] == 1
    names = ("HITId", "WorkerId", "AssignmentStatus", "Answer.x")
    batch.write_bytes(workbook(B=[names, ("H", "a", "Approved", 1), ("H", "b", "Rejected", 1)]))
    labels = read_labels(batch)
    assert labels.n_labels == 1
    assert labels.read_as.endswith("sheet B)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zipped_content(b"<x/>", ("[Content_Types].xml", "word/document.xml")),
            "a document or .xlsb",
        ),
        (
            zipped_content(b"<x/>", ("mimetype", "content.xml")),
            "an OpenDocument file: save it as .xlsx",
        ),
        (workbook(A=[]), "the sheet 'A' is empty: check that it is the right file"),
        (workbook(A=[], B=ROWS, C=[]), "choose one of B, C with query='B'"),
        (workbook(A=[("x",), ("y",)]), "the header has only one column"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel file (.xls)"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "the workbook has a password: save it without one, or as CSV",
        ),
        (workbook(A=ROWS)[:-50], "damaged or truncated"),
        (edited(workbook(A=ROWS), b"</row>", b"</rov>"), "the workbook is damaged"),
        (edited(workbook(A=ROWS), b"sheetData", b"sheetDota"), "is empty"),
        (edited(workbook(A=ROWS), b"<sheets>", b"<!--"), "the workbook"),
    ],
)
def test_workbooks_at_fault(refused, content, message):
    assert message in refused(content, "labels.xlsx")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'r="C5"', b'r="XFD1048576"'),
        (b'r="C5"', b"r = 'xfd1048576' x=\">\""),
        (b'<row r="5">', b'<row r="1048576">' + b"<c><v>1</v></c>" * 20_000),
        (b'<row r="5">', b"<row/>" * 200_000 + b"<row>" + b"<c><v>1</v></c>" * 200),
    ],
)
def test_few_cells_far_apart_are_refused_before_they_are_read(refused, monkeypatch, old, new):
    content = edited(workbook(A=ROWS), old, new)
    monkeypatch.setattr(spreadsheets, "_to_csv", lambda sheet: pytest.fail("it was read"))
    assert "area of cells of a sheet takes" in refused(content, "labels.xlsx")


def test_coloured_cells_far_away_do_not_count(read):
    coloured = b'<row r="1048576"><c r="XFD1048576" s="1"/></row></sheetData>'
    content = edited(workbook(A=ROWS), b"</sheetData>", coloured)
    assert read(content, "labels.xlsx").n_labels == 4


def test_bombs_and_false_sizes(refused):
    large = edited(workbook(A=ROWS), b">ann<", b">" + b"a" * 30_000_000 + b"<")
    assert len(large) < 500_000
    assert "the limit" in refused(large, "labels.xlsx", max_size="20MB")
    false = edited(workbook(A=ROWS), b">ann<", b">" + b"a" * 30_000_000 + b"<", declared=900)
    assert "damaged or truncated" in refused(false, "labels.xlsx", max_size="20MB")


def test_where_workbooks_are_not_read(write, monkeypatch):
    path = write("labels.xlsx", workbook(A=ROWS))
    with pytest.raises(at.InputError, match="not decompressed within a memory limit"):
        read_labels(path, memory="100MB")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(at.InputError, match=r"pip install 'annotruth\[excel\]', or save the sheet"):
        read_labels(path)
