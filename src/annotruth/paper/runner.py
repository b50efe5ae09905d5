"""Runs an experiment over its conditions and seeds, side by side, and remembers what is done.

A command that was interrupted goes on where it stopped, more runs only add to those there are,
and other settings start afresh.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from annotruth.engines.memory import usable_cores
from annotruth.errors import InputError
from annotruth.paper.base import Condition, Experiment, Record, Results, Settings
from annotruth.paper.journal import Journal, Task, fingerprint

Progress = Callable[[int, int], None]
"""Called with how many runs are done and how many there are."""

# Small enough that an interruption loses seconds, large enough that handing over costs little.
_RUNS_A_BATCH = 5


def generator(experiment: str, condition: Condition, run: int) -> np.random.Generator:
    """Make the random generator of a run.

    It derives from the experiment, the condition and the run's number alone, so it is the same
    in any order and on any number of processes.
    """
    text = json.dumps([experiment, dict(condition)], sort_keys=True)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.default_rng(np.random.SeedSequence([*map(int, words), run]))


def run_experiment(
    experiment: Experiment,
    settings: Settings,
    *,
    runs: int,
    folder: Path,
    data: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Run what is not yet done and return all runs, in the order of conditions and numbers.

    Parameters
    ----------
    experiment, settings
        What to run; the settings are complete.
    runs
        How often each condition is repeated; experiments without randomness run once.
    folder
        Where ``<experiment>/runs.jsonl`` is kept.
    data
        The folder of real labels.
    workers
        How many processes; 1 runs everything in this one. Default: one a core.
    progress
        Called at the start and after every run that came in.
    """
    if runs < 1:
        raise InputError(f"runs is {runs}: give a whole number of at least 1")
    conditions = experiment.conditions(settings)
    repeats = range(runs if experiment.repeats else 1)
    wanted = [Task(c, k) for c in range(len(conditions)) for k in repeats]
    journal = Journal(
        folder / experiment.name / "runs.jsonl", fingerprint(experiment, settings, data)
    )
    missing = [task for task in wanted if task not in journal.done]
    n_done = len(wanted) - len(missing)
    if progress is not None:
        progress(n_done, len(wanted))
    if missing:
        batches = [missing[at : at + _RUNS_A_BATCH] for at in range(0, len(missing), _RUNS_A_BATCH)]
        job = (experiment, settings, data)
        with journal.appending() as append:
            for task, results in _executed(job, batches, workers or usable_cores()):
                append(task, results)
                n_done += 1
                if progress is not None:
                    progress(n_done, len(wanted))
    return [Record(conditions[task.condition], task.run, journal.done[task]) for task in wanted]


_Job = tuple[Experiment, Settings, Path | None]


def _executed(
    job: _Job, batches: Sequence[Sequence[Task]], workers: int
) -> Iterator[tuple[Task, Results]]:
    """Run batches and yield each run as it comes."""
    if workers == 1 or len(batches) == 1:
        for batch in batches:
            for task in batch:
                yield task, _run(job, task)
        return
    # A fresh interpreter a process: forking one that has threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        min(workers, len(batches)), mp_context=context, initializer=_leave_interrupts_to_the_parent
    )
    try:
        for finished in as_completed([pool.submit(_run_batch, job, batch) for batch in batches]):
            yield from finished.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _run_batch(job: _Job, batch: Sequence[Task]) -> list[tuple[Task, Results]]:
    return [(task, _run(job, task)) for task in batch]


def _run(job: _Job, task: Task) -> Results:
    experiment, settings, data = job
    condition = experiment.conditions(settings)[task.condition]
    drawn = (experiment.name, condition)
    if experiment.drawn_as is not None:
        drawn = experiment.drawn_as(condition)
    rng = generator(*drawn, task.run)
    return experiment.run(condition, settings, rng, data)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
