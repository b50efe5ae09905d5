"""Messages of the logger `annotruth`."""

import logging
import subprocess
import sys

import annotruth as at

LABELS = [("a", "x", 1), ("a", "y", 2), ("b", "x", 1), ("b", "y", 1)]


def test_start_and_end_of_a_fit_are_logged(caplog):
    with caplog.at_level(logging.INFO, "annotruth"):
        fit = at.fit(LABELS, "gpm")
    start, end = [entry.getMessage() for entry in caplog.records]
    assert start.startswith("fitting gpm to 4 labels of 2 items by 2 annotators")
    assert end == f"gpm after {fit.n_iter} iterations: {fit.stop_reason}"
    assert {entry.name for entry in caplog.records} == {"annotruth.fitting"}


def test_iterations_are_logged_at_debug_and_reach_the_callback(caplog):
    steps = []
    with caplog.at_level(logging.DEBUG, "annotruth"):
        at.fit(LABELS, "gpm", progress=steps.append)
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG]
    assert len(logged) == len(steps) > 0
    assert logged[0].startswith("iteration 1: log-likelihood -")


def test_nothing_is_printed_unless_logging_is_configured():
    code = f"import annotruth; annotruth.fit({LABELS!r}, 'gpm')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_verbose_logs_to_stderr(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\n1,a,x\n1,b,y\n2,a,x\n")
    main = "from annotruth.app.cli import main; main()"
    command = [sys.executable, "-c", main, "--verbose", "fit", str(path), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    first, last = done.stderr.splitlines()
    assert first.startswith("annotruth: fitting robust-gpm to 3 labels")
    assert "iterations" in last
