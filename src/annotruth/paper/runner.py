"""Runs the conditions of an experiment in parallel."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from annotruth.errors import InputError, option
from annotruth.kernels.arrays import usable_cores
from annotruth.paper.experiment import Condition, Experiment, ExperimentRun, Settings

Progress = Callable[[int, int], None]
"""Called with the number of finished runs and the number of all runs."""

_RUNS_PER_BATCH = 5  # so that hand-over to processes costs little
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
    data: Path | None = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> list[ExperimentRun]:
    """Return all runs, ordered by condition and number.

    There are ``n_runs`` per condition, one without randomness. ``data`` is the folder of real labels.
    ``n_workers`` processes, by default one per core, do the runs; 1 runs everything in this one.
    """
    check_runs(n_runs)
    numbers = range(n_runs if experiment.is_random else 1)
    wanted = [*product(range(len(experiment.conditions(settings))), numbers)]
    run = partial(_run, experiment, settings, data)
    report = progress or (lambda done, total: None)
    report(0, len(wanted))
    runs = []

    def collect(one: ExperimentRun) -> None:
        runs.append(one)
        report(len(runs), len(wanted))

    n_workers = min(n_workers or usable_cores(), -(-len(wanted) // _RUNS_PER_BATCH))
    if n_workers == 1:
        for each in wanted:
            collect(run(each))
        return runs
    # A fresh interpreter per process: forking one that has threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_workers, mp_context=context, initializer=_leave_signals_to_parent)
    try:
        for one in pool.map(run, wanted, chunksize=_RUNS_PER_BATCH):
            collect(one)
    finally:
        pool.shutdown(cancel_futures=True)
    return runs


def check_runs(n_runs: int) -> None:
    """Refuse a number of runs that is not from 1 to `_MAX_RUNS`."""
    if not 1 <= n_runs <= _MAX_RUNS:
        raise InputError(
            f"{option('runs')} is {n_runs}: give a whole number from 1 to {_MAX_RUNS:,}"
        )


def _run(
    experiment: Experiment, settings: Settings, data: Path | None, which: tuple[int, int]
) -> ExperimentRun:
    """Run the condition of an index with the number of a run."""
    place, number = which
    condition = experiment.conditions(settings)[place]
    rng = make_generator(experiment.name, condition, number)
    return ExperimentRun(condition, number, experiment.run(condition, settings, rng, data))


def _leave_signals_to_parent() -> None:
    """Ignore interrupts, and end when the parent process is gone, however it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)  # the executor's queue would wait for its next batch for ever

    threading.Thread(target=end_with_parent, daemon=True).start()
