"""Ids, labels, columns and file names cannot control the terminal."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from annotruth.errors import InputError, one_line, printable

ESCAPE = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202e\u2066"
LABELS = [f"yes{ESCAPE}", f"no{ESCAPE}", "[red]maybe[/red]"]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder in which everything has a hostile name."""
    place = tmp_path / f"place{ESCAPE.replace('/', '')}"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def _write(name, *, items=12, header=("item", "annotator", "label"), repeat=False, unlike=LABELS):
    rows = [
        (f"item{e}\nannotruth: fake{ESCAPE}", f"ann{s}{ESCAPE}", unlike[(e + s * (s > 3)) % 3])
        for e in range(items)
        for s in range(6)
    ]
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([header, *rows, *rows[:repeat]])
    return name


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "LABELS", "--out", f"out{ESCAPE}", "--report", f"r{ESCAPE}.html"),
        ("fit", "LABELS", "--save", f"fit{ESCAPE}", "--soft", f"s{ESCAPE}.csv", "--keep", "k.csv"),
        ("fit", "LABELS", "--json"),
        ("fit", "LABELS", "--truth", "TRUTH"),
        ("fit", "LABELS", "--gold", "LABELS"),
        ("fit", "LABELS", "--model", ESCAPE),
        ("fit", "LABELS", "--set", f"{ESCAPE}={ESCAPE}"),
        ("fit", "LABELS", "--columns", f"item={ESCAPE}"),
        ("fit", "LABELS", "--categories", f"a,{ESCAPE}"),
        ("fit", "LABELS", "--scale", "ordinal"),
        ("fit", "LABELS", "--format", ESCAPE),
        ("fit", "LABELS", f"--{ESCAPE}"),
        ("fit", "COLUMNS"),
        ("fit", "REPEAT"),
        ("fit", f"nowhere{ESCAPE}"),
        ("fit", "DAMAGED"),
        ("next", "LABELS"),
        ("next", "LABELS", "--out", f"next{ESCAPE}.csv", "--keep", f"keep{ESCAPE}.csv"),
        ("next", "LABELS", "--assign", f"a{ESCAPE}.csv", "--predictions", f"p{ESCAPE}.json"),
        ("next", "LABELS", "--assign", f"a{ESCAPE}", "--assign-format", ESCAPE),
        ("next", "LABELS", "--predictions", "p.json", "--label-studio", f"{ESCAPE}={ESCAPE}"),
        ("next", "LABELS", "--json"),
        ("next", "FIT"),
        ("plan", "LABELS", "--target", "accuracy=0.9"),
        ("plan", "LABELS", "--target", ESCAPE),
        ("compare", "LABELS", "--models", "gpm,majority", "--truth", "TRUTH"),
        ("compare", "LABELS", "--models", f"gpm,{ESCAPE}"),
        ("update", "FIT", "NEW"),
        ("update", "FIT", "LABELS"),
        ("update", "FIT", "UNLIKE"),
        ("report", "FIT", "--out", f"page{ESCAPE}.html"),
        ("simulate", "--out", f"crowd{ESCAPE}", "--items", "5", "--annotators", "3"),
        ("reproduce", ESCAPE),
        (ESCAPE,),
    ],
    ids=lambda words: " ".join(words).replace(ESCAPE, "X"),
)
def test_no_command_prints_control_characters(run, folder, words):
    files = {
        "LABELS": lambda: _write(f"labels{ESCAPE}.csv"),
        "COLUMNS": lambda: _write("columns.csv", header=(f"a{ESCAPE[-4:]}", "\x7fb", "\x9bc")),
        "REPEAT": lambda: _write(f"repeat{ESCAPE}.csv", repeat=3),
        "NEW": lambda: _write("new.csv", items=15),
        "UNLIKE": lambda: _write("unlike.csv", unlike=[f"new{ESCAPE}"] * 3),
        "TRUTH": lambda: _write("truth.csv"),
        "DAMAGED": lambda: _damaged(),
        "FIT": lambda: _saved(run),
    }
    words = [files[word]() if word in files else word for word in words]
    if words[0] == "update":
        words += ["--duplicates", "last"]
    code, out, err = run(*words)
    assert code in (0, 2)
    assert out or err
    assert not CONTROL.search(out)
    assert not CONTROL.search(err)
    if code == 2:
        assert err.startswith("annotruth: ")
        assert err.count("\n") == 1
    assert not re.search("^annotruth: fake", out + err, re.MULTILINE)  # a line of its own


def _saved(run):
    assert run("fit", _write("old.csv"), "--model", "gpm", "--save", "fit", "--quiet")[0] == 0
    return "fit"


def _damaged():
    path = Path("damaged.parquet")
    path.write_bytes(b"PAR1" + ESCAPE.encode() * 20 + b"\x10\x00\x00\x00PAR1")
    return path


def test_an_ascii_terminal_shows_other_letters_as_escapes(tmp_path):
    path = tmp_path / "étiquettes.csv"
    path.write_text("item,annotator,label\né,ü,où\né,a,là\nb,ü,où\nb,a,où\n", encoding="utf-8")
    commands = (
        ["fit", path.name, "--keep", "é.csv"],
        ["next", path.name],
        ["fit", "été.csv"],
        ["fit", "--help"],
    )
    for words in commands:
        done = subprocess.run(
            [sys.executable, "-c", "from annotruth.app.cli import main; main()", *words],
            cwd=tmp_path,
            capture_output=True,
            env={
                **os.environ,
                "PYTHONIOENCODING": "ascii",
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            check=False,
        )
        assert done.returncode == (2 if words[1] == "été.csv" else 0)
        assert b"Traceback" not in done.stderr
        assert (done.stdout + done.stderr).isascii()
        assert words[1] == "--help" or b"\\x" in done.stdout + done.stderr


def test_messages_are_one_printable_line():
    error = InputError(f"first\r\n  second {ESCAPE} a  b")
    assert "\n" not in str(error)
    assert str(error).startswith("first second \\x1b[2J")
    assert str(error).endswith("a  b")
    assert one_line(str(error)) == str(error)


def test_letters_of_all_scripts_are_printable():
    text = "é ß 日本\u3000語 می\u200cخ 👩\u200d👧 \u00a0 \\x1b"
    assert printable(text) == text


# Bytes that are not UTF-8, as Python has them.
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize(
    "words",
    [
        ("fit", "odd\udcff.csv"),
        ("fit", "odd\udcff.csv", "--memory", "1GB"),
        ("fit", "."),
        ("fit", "*.csv"),
        ("rank", "odd\udcff.csv"),
        ("fit", "even.csv", "--gold", "odd\udcff.csv"),
        ("fit", "http://odd\udcff/labels.csv"),
        ("fit", "even.csv", "--out", "out\udcff"),
        ("fit", "even.csv", "--save", "fit\udcff"),
        ("fit", "even.csv", "--report", "report\udcff.html"),
        ("fit", "even.csv", "--keep", "keep\udcff.csv"),
        ("update", "fit\udcff", "even.csv"),
        ("simulate", "--out", "crowd\udcff"),
        ("serve", "--data-dir", "data\udcff"),
    ],
)
def test_names_that_are_not_utf8_are_refused_in_one_line(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    for name in ("even.csv", "odd\udcff.csv"):
        Path(name).write_text("item,annotator,label\na,x,1\na,y,2\nb,x,1\n")
    before = sorted(tmp_path.iterdir())
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "not UTF-8" in err
    assert err.count("\n") == 1
    assert not CONTROL.search(err.rstrip("\n"))
    assert sorted(tmp_path.iterdir()) == before
