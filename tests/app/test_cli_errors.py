"""The command line: bad input and failures are one line on stderr, with an exit code."""

import errno
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import annotruth as at

ROOT = Path(__file__).parents[2]
GOOD = "item,annotator,label\na,x,1\na,y,3\nb,x,3\nb,y,3\n"


@pytest.mark.parametrize("option", ["--gold", "--truth"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("item,label\nzzz,1\n", "has labels (first: 'zzz', 1 in all)"),
        ("item,label\na,9\n", "9"),
        ("item,label\na,1\na,2\n", "names item 'a' twice"),
        ("item,label\n", "no rows"),
        ("item,value\na,1\n", "no column for the truth"),
        ("", "empty"),
    ],
)
def test_bad_gold_and_truth_are_one_line_and_exit_2(
    refused, write, tmp_path, option, content, text
):
    labels, known = write("l.csv", GOOD), write("known.csv", content)
    assert text in refused("fit", labels, option, known, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_truth_and_gold_of_other_items_are_left_out_with_one_warning(run, write, tmp_path):
    labels, truth = write("l.csv", GOOD), write("t.csv", "item,label\na,1\nz,1\n")
    gold = write("g.csv", "item,label\ny,1\na,1\nz,1\n")
    page = tmp_path / "r.html"
    code, _, err = run(
        "fit", labels, "--truth", truth, "--gold", gold, "--report", page, "--model", "majority"
    )
    assert code == 0
    assert [line for line in err.splitlines() if "without labels" in line] == [
        "annotruth: warning: 2 of 3 gold truths are of items without labels and were left out",
        "annotruth: warning: 1 of 2 truths is of an item without labels and was left out",
    ]


def test_a_path_that_cannot_be_written_is_one_line_and_exit_2(refused, write, tmp_path):
    labels, file = write("l.csv", GOOD), write("file", "here")
    assert "cannot write" in refused("fit", labels, "--out", file / "out")
    assert file.read_text() == "here"


@pytest.mark.parametrize("words", [["{}"], ["l.csv", "--out", "{}"], ["l.csv", "--report", "{}"]])
def test_a_name_that_is_too_long_is_one_line_and_exit_2(run, write, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    write("l.csv", GOOD)
    code, out, err = run("fit", *(word.format("x" * 300) for word in words))
    assert (code, out) == (2, "")
    assert err == f"annotruth: {'x' * 39}…{'x' * 20}: the name is too long: choose a shorter one\n"


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "{}"),
        ("fit", "l.csv", "--out", "{}"),
        ("demo", "--report", "{}"),
        ("reproduce", "exp1a", "--runs", "1", "--out", "{}"),
        ("serve", "token", "create", "x", "--data-dir", "{}"),
    ],
)
def test_a_folder_without_permission_is_one_line_and_exit_2(
    run, write, tmp_path, monkeypatch, words
):
    write("l.csv", GOOD)
    monkeypatch.chdir(tmp_path)
    stat = Path.stat

    def refused(path, **options):  # as for anybody but root
        if "closed" in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refused)
    code, out, err = run(*(word.format(tmp_path / "closed" / "x") for word in words))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "closed/x" in err
    assert "permission denied: choose a place that you may read and write" in err


@pytest.mark.parametrize(("file", "code"), [("l.csv", 0), ("missing.csv", 2)])
def test_a_closed_stderr_changes_nothing(run, write, tmp_path, monkeypatch, file, code):
    write("l.csv", GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stderr", None)
    done, out, _ = run("fit", file, "--model", "majority")
    assert done == code
    assert ("majority on" in out) == (code == 0)
    assert "no such file" not in out


def test_a_simulation_without_enough_memory_says_what_to_ask_for(refused, tmp_path, monkeypatch):
    def crowd(*, behavior, spammer_share, seed):
        raise MemoryError

    monkeypatch.setattr("annotruth.simulate.crowd", crowd)
    assert "not enough memory for such a crowd: ask for fewer items, annotators or" in refused(
        "simulate", "--out", tmp_path / "s"
    )


def test_a_closed_pipe_prints_no_traceback(write):
    command = f"{Path(sys.executable).parent / 'annotruth'} fit {write('l.csv', GOOD)} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_ctrl_c_is_one_line_and_exit_1(run, write, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("annotruth.api.fit", interrupted)
    code, out, err = run("fit", write("l.csv", GOOD), "--out", tmp_path / "o")
    assert (code, out, err) == (1, "", "annotruth: interrupted; no file was partly written\n")
    assert not (tmp_path / "o").exists()


INTERRUPTED_IMPORT = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "typer.main":
            exec("raise KeyboardInterrupt")

sys.meta_path.insert(0, Interrupt())
from annotruth.__main__ import main
main()
"""


def test_ctrl_c_while_the_command_line_is_imported_is_one_line_and_exit_1():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    expected = (1, "", "annotruth: interrupted; no file was partly written\n")
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_the_installed_command_starts_where_ctrl_c_is_handled():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"annotruth": "annotruth.__main__:main"}


def test_a_full_disk_is_one_line_and_exit_1(run, write, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annotruth.app.console.show_lines", full)
    code, _, err = run("fit", write("l.csv", GOOD))
    assert (code, err) == (1, "annotruth: cannot continue: [Errno 28] No space left on device\n")


def test_an_error_of_several_lines_is_one_line(run, write, monkeypatch):
    def fail(*_, **__):
        raise at.AnnotruthError("the first line:\n  the second line\n")

    monkeypatch.setattr("annotruth.api.fit", fail)
    code, _, err = run("fit", write("l.csv", GOOD))
    assert (code, err) == (2, "annotruth: the first line: the second line\n")


def test_without_a_command_the_help_is_printed(run):
    code, out, err = run()
    assert (code, err) == (2, "")
    assert "Usage: annotruth" in out
