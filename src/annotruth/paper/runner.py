"""Runs the conditions of an experiment in parallel and resumes from finished runs.

An interrupted command continues where it stopped, more runs add to the existing ones, and other
settings start over: the log of finished runs, one JSON line each, has a fingerprint of all they depend on.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotruth.errors import InputError, OutputError
from annotruth.io.atomic import atomic_write
from annotruth.kernels.arrays import usable_cores
from annotruth.paper.experiment import Condition, Experiment, ExperimentRun, Results, Settings


class RunId(NamedTuple):
    """A run of an experiment: the index of its condition and its number within it."""

    condition: int
    run: int


def fingerprint(experiment: Experiment, settings: Settings, data: Path | None) -> str:
    """Return a hash of everything that the result of a run depends on."""
    content: dict[str, Any] = {
        "experiment": experiment.name,
        "version": version("annotruth"),
        "settings": dict(settings),
        "conditions": [dict(condition) for condition in experiment.conditions(settings)],
        "models": list(experiment.models),
    }
    if experiment.required_files is not None and data is not None:
        content["data"] = [
            hashlib.sha256((data / path).read_bytes()).hexdigest()
            for path in experiment.required_files.paths
        ]
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class RunLog:
    """The finished runs in ``runs.jsonl``; runs with another fingerprint do not count."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint
        self.results: dict[RunId, Results] = {}
        lines: list[str] = []
        if path.is_file():
            # Bytes that are no text make their line invalid, like one that was cut short.
            lines = path.read_text("utf-8", errors="replace").splitlines(keepends=True)
        self._valid_lines = [line for line in lines if self._load(line)]
        self._has_invalid_lines = len(self._valid_lines) < len(lines)

    def append(self, run_id: RunId, results: Results) -> None:
        """Write a finished run to the file at once."""
        line = {"fingerprint": self._fingerprint, **run_id._asdict(), "results": results}
        try:
            self._drop_invalid_lines()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutputError(
                f"cannot write {self._path}: {reason}; choose another folder with --out"
            ) from error
        self.results[run_id] = results

    def _drop_invalid_lines(self) -> None:
        """Drop runs of other settings, and a last line that was cut short."""
        if self._has_invalid_lines:
            with atomic_write(self._path) as temporary:
                temporary.write_text("".join(self._valid_lines), "utf-8", newline="\n")
            self._has_invalid_lines = False

    def _load(self, line: str) -> bool:
        """Load a line; return whether it is a complete run with this fingerprint."""
        try:
            entry = json.loads(line)
            run_id = RunId(int(entry["condition"]), int(entry["run"]))
            if entry["fingerprint"] != self._fingerprint or not line.endswith("\n"):
                return False
            self.results[run_id] = entry["results"]
        except (ValueError, KeyError, TypeError):
            return False
        return True


Progress = Callable[[int, int], None]
"""Called with the number of finished runs and the number of all runs."""

# Small enough that an interruption loses seconds, large enough that hand-over costs little.
_RUNS_PER_BATCH = 5
_MAX_RUNS = 100_000


def make_generator(experiment: str, condition: Condition, run: int) -> np.random.Generator:
    """Return the random generator of a run.

    The seed derives from the experiment, the condition and the run's number alone, so results
    do not depend on the order or the number of processes.
    """
    text = json.dumps([experiment, dict(condition)], sort_keys=True)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.default_rng(np.random.SeedSequence([*map(int, words), run]))


def run_experiment(
    experiment: Experiment,
    settings: Settings,
    *,
    n_runs: int,
    folder: Path,
    data: Path | None = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> list[ExperimentRun]:
    """Run what is missing and return all runs, ordered by condition and number.

    There are ``n_runs`` per condition, one without randomness. ``folder`` is where
    ``<experiment>/runs.jsonl`` is kept, ``data`` that of real labels. ``n_workers`` processes, by default
    one per core, do the runs; 1 runs everything in this one.
    """
    check_runs(n_runs)
    conditions = experiment.conditions(settings)
    numbers = range(n_runs if experiment.is_random else 1)
    wanted = [RunId(condition, run) for condition in range(len(conditions)) for run in numbers]
    log = RunLog(folder / experiment.name / "runs.jsonl", fingerprint(experiment, settings, data))
    missing = [run_id for run_id in wanted if run_id not in log.results]
    report = progress or (lambda done, total: None)
    report(len(wanted) - len(missing), len(wanted))
    batches = [
        missing[start : start + _RUNS_PER_BATCH]
        for start in range(0, len(missing), _RUNS_PER_BATCH)
    ]
    job = (experiment, settings, data)
    finished = _run_batches(job, batches, n_workers or usable_cores())
    for n_done, (run_id, results) in enumerate(finished, start=len(wanted) - len(missing) + 1):
        log.append(run_id, results)
        report(n_done, len(wanted))
    return [
        ExperimentRun(conditions[run_id.condition], run_id.run, log.results[run_id])
        for run_id in wanted
    ]


def check_runs(n_runs: int) -> None:
    """Refuse a number of runs that is not from 1 to `_MAX_RUNS`."""
    if not 1 <= n_runs <= _MAX_RUNS:
        raise InputError(
            f"the number of runs (`--runs`) is {n_runs}: give a whole number from 1 to {_MAX_RUNS:,}"
        )


_Job = tuple[Experiment, Settings, Path | None]


def _run_batches(
    job: _Job, batches: Sequence[Sequence[RunId]], n_workers: int
) -> Iterator[tuple[RunId, Results]]:
    """Run batches and yield each run as it finishes."""
    if n_workers == 1 or len(batches) <= 1:
        for batch in batches:
            for run_id in batch:
                yield run_id, _run(job, run_id)
        return
    # A fresh interpreter per process: forking one that has threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        min(n_workers, len(batches)), mp_context=context, initializer=_leave_signals_to_parent
    )
    try:
        for finished in as_completed([pool.submit(_run_batch, job, batch) for batch in batches]):
            yield from finished.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _run_batch(job: _Job, batch: Sequence[RunId]) -> list[tuple[RunId, Results]]:
    return [(run_id, _run(job, run_id)) for run_id in batch]


def _run(job: _Job, run_id: RunId) -> Results:
    experiment, settings, data = job
    condition = experiment.conditions(settings)[run_id.condition]
    rng = make_generator(experiment.name, condition, run_id.run)
    return experiment.run(condition, settings, rng, data)


def _leave_signals_to_parent() -> None:
    """Ignore interrupts, and end when the parent process is gone, however it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)  # the executor's queue would wait for its next batch for ever

    threading.Thread(target=end_with_parent, daemon=True).start()
