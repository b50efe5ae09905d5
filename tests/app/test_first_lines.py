"""What commands print first: the report's verdict, whom and what to act on, what to type next."""

import os
import re
import subprocess
import sys
import time

import pytest

from annotruth.app import console
from annotruth.models.em import Progress, ProgressReporter

SCRIPT = "from annotruth.app.cli import main; main()"


def test_fit_begins_with_the_verdict_of_the_report(run, crowd, tmp_path):
    report = tmp_path / "report.html"
    labels, truth = crowd / "labels.csv", crowd / "truth.csv"
    for more in ((), ("--truth", truth)):
        code, out, err = run("fit", labels, "--report", report, "--force", *more)
        assert (code, err) == (0, "")
        first, *lines = out[: out.index("\n\n")].splitlines()
        found = re.fullmatch(r"Can these labels be trusted\? (.+?)\. (.+)", first)
        page = report.read_text()
        assert re.search(rf"Can these labels be trusted\?<(.|\n){{,200}}>{found[1]}\.<", page)
        assert found[2] in page
        assert [line.partition("? ")[0] for line in lines if line[0] not in " N"] == [
            "Whom to act on",
            "Which items to relabel",
        ]
        step = lines[-1].removeprefix("Next: annotruth ")
        assert step.startswith(f"next {labels} ")
        step = step.replace("assignments.csv", f"{tmp_path}/next.csv")
        assert run(*step.split(), "--quiet", "--force") == (0, "", "")
        assert out.index("robust-gpm on ") > out.index("Next: ")


def test_rank_and_update_begin_with_the_verdict(run, crowd, tmp_path, write):
    votes = ["left,right,annotator,winner"]
    votes += [f"{x},{y},p{n},{min(x, y)}" for n in range(5) for x in "pqr" for y in "pqr" if x != y]
    out = run("rank", write("votes.csv", "\n".join(votes)))[1]
    assert out.startswith("Can this ranking be trusted? ")
    assert re.search(r"\nWho is first\? .*: p", out)
    assert "\nWhom to act on? " in out
    fit = tmp_path / "fit"
    run("fit", crowd / "labels.csv", "--save", fit)
    out = run("update", fit, crowd / "labels.csv")[1]
    assert out.startswith("Can these labels be trusted? ")
    assert f"\nNext: annotruth next {fit} " in out
    assert out.index("Next: ") < out.index("\nnew: 0 labels") < out.index("robust-gpm on ")


def test_numbers_of_the_computation_are_for_verbose(run, crowd):
    short, long = (run("fit", crowd / "labels.csv", *more)[1] for more in ((), ("--verbose",)))
    for pattern in (
        r"(?m)^converged after \d+ iterations",
        r"(?m)^log-likelihood -",
        r"\d seconds",
    ):
        assert not re.search(pattern, short)
        assert re.search(pattern, long)
    assert set(short.splitlines()) <= set(long.splitlines())
    stopped = run("fit", crowd / "labels.csv", "--model", "gpm", "--set", "max_iter=1")[1]
    assert "\nNOT converged after 1 iteration" in stopped


def test_hostile_names_are_printed_as_escapes(run, write):
    rows = [f"{e},\x1b[31mann{s},{1 + e % 2 * (s < 5)}" for e in range(40) for s in range(6)]
    out = run("fit", write("labels.csv", "\n".join(["item,annotator,label", *rows])))[1]
    assert "\x1b" not in out
    assert r"\x1b[31mann" in out


def test_the_verdict_is_colored_on_terminals_only(crowd):
    pty = pytest.importorskip("pty")
    for more, colored in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        master, terminal = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, "fit", crowd / "labels.csv"],
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            env=environment | more,
            check=True,
        )
        os.close(terminal)
        shown = os.read(master, 65536).decode()
        os.close(master)
        assert done.returncode == 0
        assert bool(re.search(r"trusted\? \x1b\[3[123]m[^\x1b]+\x1b\[0m\.", shown)) == colored
        assert ("\x1b" in shown) == colored


@pytest.mark.parametrize(
    ("words", "shown"), [((), True), (("--quiet",), False), (("--json",), False)]
)
def test_slow_commands_say_what_they_do_without_a_terminal(monkeypatch, run, crowd, words, shown):
    monkeypatch.setenv("ANNOTRUTH_PROGRESS_SECONDS", "0")
    code, out, err = run("fit", crowd / "labels.csv", *words)
    assert code == 0
    assert "s so far" not in out
    assert bool(err) == shown
    if shown:
        assert re.fullmatch(r"(annotruth: .+, \d+ s so far\n)+", err)


def test_lines_of_progress_are_rare_and_name_the_iteration(monkeypatch, capsys):
    monkeypatch.setenv("ANNOTRUTH_PROGRESS_SECONDS", "0.1")
    monkeypatch.setattr(console, "_BETWEEN_LINES", 0.2)
    with console.progress_line(quiet=False) as reporter:
        assert type(reporter) is ProgressReporter
        reporter.start("fitting gpm")
        reporter(Progress(12, 1000, -1.0, 0.1))
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("annotruth: fitting gpm: iteration 12 of at most 1,000, ")
    assert len(lines) <= 3


def test_a_wrong_number_of_seconds_is_refused(monkeypatch, refused, crowd):
    monkeypatch.setenv("ANNOTRUTH_PROGRESS_SECONDS", "soon")
    assert "ANNOTRUTH_PROGRESS_SECONDS is 'soon': give a number" in refused(
        "fit", crowd / "labels.csv"
    )
