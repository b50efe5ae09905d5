"""The progress line: what a terminal shows on stderr, and that nothing else shows anything."""

import io
import os
import re
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty")

MAIN = "from annotruth.app.cli import main; main()"
COLOR, MOVE = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]")
OUTPUTS = ("--out", "TMP/tables", "--report", "TMP/report.html", "--save", "TMP/fit")
FORBIDDEN = ("of at most", "change", "inf", "nan", "log-likelihood")


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "labels [red].csv"
    rows = [f"{e},{s},{1 + (e * s) % 3}\n" for e in range(12) for s in range(5)]
    path.write_text("item,annotator,label\n" + "".join(rows))
    return path


@pytest.fixture
def on_terminal():
    """Run a command whose stderr is a terminal; returns stdout and what the terminal showed."""

    def run(*words, environment=None):
        master, terminal = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=terminal,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"} | (environment or {}),
        )
        os.close(terminal)
        shown = io.BytesIO()
        try:
            while block := os.read(master, 65536):
                shown.write(block)
        except OSError:  # Linux reports the end of a terminal as an error
            pass
        os.close(master)
        out = process.stdout.read().decode()
        process.stdout.close()
        assert process.wait() == 0, shown.getvalue()
        return out, shown.getvalue().decode()

    return run


def test_compare_names_every_model_and_shows_a_bar(on_terminal, labels, tmp_path):
    page = tmp_path / "page.html"
    out, shown = on_terminal("compare", labels, "--models", "gpm,majority", "--report", page)
    lines = MOVE.split(COLOR.sub("", shown))
    for stage in (
        "reading labels [red].csv",
        "comparing: majority, 1 of 2",
        "comparing: gpm, 2 of 2",
        "fitting to all labels: majority, 1 of 2",
        "writing report",
    ):
        assert any(stage in line for line in lines), (stage, lines)
    assert any("comparing: gpm" in line and "━" in line for line in lines)
    assert not any(word in line for line in lines for word in FORBIDDEN)
    assert re.search(r"0:00:0\d", shown)
    assert "comparing" not in out


def test_quiet_and_json_show_nothing(on_terminal, labels):
    for option in ("--quiet", "--json"):
        _, shown = on_terminal("compare", labels, "--models", "majority", option)
        assert shown == ""


def test_names_of_files_cannot_move_the_cursor():
    from annotruth.app.progress import TerminalLine

    line = TerminalLine()
    line.start("reading a\x1b[2J\nb.csv")
    assert line.text == r"reading a\x1b[2J b.csv"


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        (
            ("fit", "LABELS", "--model", "gpm", *OUTPUTS),
            (
                *("reading labels [red].csv", "fitting gpm", "writing tables", "writing report"),
                "saving the fit",
            ),
        ),
        (("next", "LABELS", "--model", "gpm"), ("fitting gpm", "computing what labels gain")),
    ],
)
def test_commands_name_their_stages(on_terminal, labels, tmp_path, words, stages):
    words = [word.replace("LABELS", str(labels)).replace("TMP", str(tmp_path)) for word in words]
    out, shown = on_terminal(*words)
    shown = COLOR.sub("", shown)
    places = [shown.index(stage) for stage in ("starting", *stages)]
    assert places == sorted(places)
    assert not any(word in shown for word in FORBIDDEN)
    assert "gpm on 60 labels" in out
