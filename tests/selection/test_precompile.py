"""Kernels compiled by a second process."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from annotruth.observations import Labels
from annotruth.selection import precompile

LABELS = Labels.of([("a", "ann", "x"), ("a", "bob", "y"), ("b", "ann", "z")], scale="nominal")


def compile_something() -> None:
    assert numba.njit(lambda x: x + 1)(1) == 2


@pytest.fixture
def started(monkeypatch):
    """Processes that were started, all of which only wait."""
    processes, arguments = [], []

    def start(given):
        arguments.append(given)
        processes.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return processes[-1]

    monkeypatch.setattr(precompile, "_start", start)
    monkeypatch.setattr(precompile, "usable_cores", lambda: 2)
    yield processes, arguments
    for process in processes:
        process.kill()
        process.wait()


def test_the_first_compilation_starts_one_process_which_ends_with_the_block(started):
    processes, arguments = started
    with precompile.compiling_in_parallel(["gpm", "glad"], LABELS):
        compile_something()
        compile_something()
        assert [process.poll() for process in processes] == [None]
    assert processes[0].poll() is not None
    assert arguments == [["nominal", "3", "3", "glad", "gpm"]]  # the last model first


def test_the_second_process_first_compiles_what_follows_the_default_model():
    models = ["robust-gpm", "majority", "gpm", "dawid-skene", "one-coin", "bwa", "glad"]
    early = ["one-coin", "gpm", "dawid-skene", "bwa"]
    assert precompile.second_order(models) == [*early, "glad", "majority", "robust-gpm"]
    assert precompile.second_order(models[1:]) == models[:0:-1]
    assert precompile.second_order(["robust-gpm", "gpm", "bwa"]) == ["gpm", "bwa", "robust-gpm"]


def test_nothing_is_started_without_a_compilation_or_for_one_model(started):
    with precompile.compiling_in_parallel(["gpm", "glad"], LABELS):
        pass
    with precompile.compiling_in_parallel(["gpm"], LABELS):
        compile_something()
    assert started == ([], [])


def test_a_process_that_cannot_be_started_is_no_error(monkeypatch):
    def fail(arguments):
        raise OSError("no more processes")

    monkeypatch.setattr(precompile, "_start", fail)
    monkeypatch.setattr(precompile, "usable_cores", lambda: 2)
    with precompile.compiling_in_parallel(["gpm", "glad"], LABELS):
        compile_something()


@pytest.mark.parametrize("n_labels", [100, 1_000_000])
def test_the_process_fills_the_cache(tmp_path, monkeypatch, n_labels):
    source = Path(precompile.__file__).parents[2]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    )
    process = precompile._start(["nominal", "3", str(n_labels), "bwa"])
    assert process.wait(timeout=120) == 0
    assert list(tmp_path.rglob("bwa.step-*.nbi"))
    # What a fit runs once is compiled for many labels only.
    assert bool(list(tmp_path.rglob("bwa.distribution-*.nbi"))) == (n_labels > 100)
