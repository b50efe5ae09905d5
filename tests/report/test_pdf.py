"""Reports as PDF: by a browser or WeasyPrint, within a time limit, and never half-written."""

import re
import shutil
import subprocess
import sys
import time

import pytest

import annotruth as at
from annotruth.errors import InputError, OutputError
from annotruth.report import pdf

needs_browser = pytest.mark.skipif(pdf.find_browser() is None, reason="no Chromium or Chrome found")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put a program in the place of every browser: ``stand_in("exit 3")``."""

    def stand_in(script):
        program = tmp_path / "browser"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(pdf, "_BROWSERS", (str(program),))
        monkeypatch.setattr(pdf, "_has_weasyprint", lambda: False)

    return stand_in


def text_of(path):
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext found: apt-get install poppler-utils")
    return subprocess.run(
        ["pdftotext", "-layout", path, "-"], capture_output=True, check=True, text=True
    ).stdout


@needs_browser
def test_a_report_is_printed_with_its_tables_and_charts(crowd, tmp_path):
    path = tmp_path / "report.pdf"
    crowd.report(path, title="Sheep & goats")
    assert path.read_bytes().startswith(b"%PDF-")
    text = text_of(path)
    assert {"Sheep & goats", "Can these labels be trusted?", "Reliability of annotators"} <= {
        line.strip() for line in re.split(r"\n|  +", text)
    }
    assert "The first 30 of 60 rows" in text
    assert "Loading" not in text
    assert not re.search(r"\b(CSV|PNG|Show|Search)\b", text)  # nothing to press
    assert [each.name for each in tmp_path.iterdir()] == ["report.pdf"]


def test_without_a_browser_weasyprint_prints_the_first_rows(crowd, hostile, tmp_path, monkeypatch):
    pytest.importorskip("weasyprint")
    monkeypatch.setattr(pdf, "_BROWSERS", ())
    path = tmp_path / "report.pdf"
    crowd.report(path)
    text = text_of(path)
    assert "The first 30 of 60 rows" in text
    assert "Loading" not in text
    everybody = {str(each) for each in crowd.data.annotators.to_pylist()}
    assert everybody <= set(text.split())
    hostile.report(path)
    assert "<script>alert(1)</script>" in text_of(path).replace("\n", "")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("sleep 600", "stopped after 0.5 seconds"),
        ("echo 'no display' >&2; exit 3", "exit code 3: no display"),
        ("exit 0", "exit code 0: no message"),
    ],
)
def test_a_browser_that_fails_or_hangs_leaves_nothing(script, problem, stand_in, tmp_path, crowd):
    stand_in(script)
    pdf.MAX_SECONDS, usual = 0.5, pdf.MAX_SECONDS
    began = time.monotonic()
    try:
        with pytest.raises(OutputError, match=problem) as refused:
            crowd.report(tmp_path / "report.pdf")
    finally:
        pdf.MAX_SECONDS = usual
    assert time.monotonic() - began < 30
    assert "\n" not in str(refused.value)
    assert [each.name for each in tmp_path.iterdir()] == ["browser"]


def test_without_any_program_what_to_install_is_said_before_the_fit(
    run, write, monkeypatch, tmp_path
):
    monkeypatch.setattr(pdf, "_BROWSERS", ())
    monkeypatch.setattr(pdf, "_has_weasyprint", lambda: False)
    monkeypatch.setitem(sys.modules, "annotruth.fitting", None)  # a fit would fail
    labels, path = write("l.csv", "item,annotator,label\na,x,1\n"), tmp_path / "r.pdf"
    code, out, err = run("fit", labels, "--report", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Chromium, Chrome or Edge" in err
    assert "`pip install annotruth[pdf]`" in err
    assert not path.exists()


@pytest.mark.parametrize("command", ["fit", "rank", "compare", "report", "demo"])
@pytest.mark.parametrize("name", ["r.txt", "r.doc", "r", "r.pdf.gz"])
def test_other_names_are_refused_before_anything_is_read(command, name, run, tmp_path):
    words = [] if command == "demo" else [tmp_path / "absent.csv"]
    code, out, err = run(command, *words, "--report", tmp_path / name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "end the name in .html or .pdf" in err


@pytest.mark.parametrize("name", ["r.htm", "R.HTML"])
def test_names_of_html(name, crowd, tmp_path):
    crowd.report(tmp_path / name)
    assert (tmp_path / name).read_text().startswith("<!doctype html>")


@needs_browser
def test_a_pdf_of_ours_is_replaced_and_no_other(run, write, tmp_path):
    labels, path = write("l.csv", "item,annotator,label\na,x,1\na,y,2\n"), tmp_path / "r.pdf"
    for _ in range(2):
        assert run("fit", labels, "--report", path, "--quiet")[0] == 0
    path.write_bytes(path.read_bytes().removesuffix(pdf.MARK))
    code, _, err = run("fit", labels, "--report", path, "--quiet")
    assert code == 2
    assert "is not a page of annotruth" in err


@pytest.mark.parametrize("command", ["fit", "rank", "compare", "report"])
def test_a_title_is_shown_as_text(command, run, write, tmp_path):
    votes = "left,right,annotator,winner\na,b,x,left\nb,c,x,left\na,c,y,left\n"
    rows = votes if command == "rank" else "item,annotator,label\na,x,1\na,y,2\nb,x,1\nb,y,1\n"
    data, path = write("data.csv", rows), tmp_path / "r.html"
    title = '<script>alert(1)</script>\x07 & "more"\n2'
    options = ["--models", "majority,mean"] if command == "compare" else []
    code, _, err = run(command, data, *options, "--report", path, "--title", title, "--quiet")
    assert (code, err) == (0, "")
    page = path.read_text()
    (heading,) = re.findall("<h1>(.*?)</h1>", page)
    assert heading == (
        "&lt;script&gt;alert(1)&lt;/script&gt;\N{REPLACEMENT CHARACTER} &amp; &#34;more&#34; 2"
    )
    assert page.count("<script") == 2
    assert re.search('<p class="under">data.csv · ', page)
    code, _, err = run(command, data, *options, "--report", path, "--title", " ", "--quiet")
    assert (code, re.findall("<h1>(.*?)</h1>", path.read_text())) == (0, ["data.csv"])


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_title_needs_a_report(command, run, write):
    code, _, err = run(command, write("l.csv", "item,annotator,label\na,x,1\n"), "--title", "T")
    assert (code, err) == (2, "annotruth: --title needs --report FILE\n")


def test_unknown_names_are_refused_in_python(crowd, tmp_path):
    with pytest.raises(InputError, match=r"end the name in \.html or \.pdf"):
        crowd.report(tmp_path / "report.docx")
    with pytest.raises(InputError, match=r"end the name in \.html or \.pdf"):
        at.compare([("a", "x", 1), ("a", "y", 2)], ["majority", "mean"]).report(tmp_path / "r.txt")
    assert list(tmp_path.iterdir()) == []
