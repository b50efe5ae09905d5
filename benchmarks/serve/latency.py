"""How long it takes until a label's effect is in a snapshot, in a project of many labels."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

import annotruth as at
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import append_events
from annotruth.serve.store.projects import create_project
from annotruth.serve.store.records import LabelEvent, Snapshot
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.snapshots import latest_snapshot, snapshots_folder
from benchmarks.honesty.options import PartTable

N_ANNOTATORS, PER_ITEM, N_CATEGORIES = 500, 10, 5
_ROWS_AT_ONCE = 50_000
_LIMIT = 10.0  # seconds
_TIMEOUT = 600.0


def latency(*, n_labels: int = 1_000_000, posts: int = 20, seed: int = 0) -> list[PartTable]:
    """Measure the time from posting a label to the snapshot, with one label after the other.

    Labels are posted at random moments, so that the worker may be in the middle of a fit.
    """
    with TemporaryDirectory() as folder:
        config = ServeConfig(
            database=f"sqlite:///{folder}/annotruth.db", data_dir=Path(folder) / "data"
        )
        database = Database.open(config.database)
        database.upgrade()
        with database.begin() as connection:
            project = create_project(connection, "large", "labels", {}, utc_now()).id
        started = time.perf_counter()
        for start in range(0, n_labels, _ROWS_AT_ONCE):
            events = make_events(n_labels, start, min(start + _ROWS_AT_ONCE, n_labels), seed)
            with database.begin() as connection:
                append_events(connection, project, "api", events, utc_now())
        filled = time.perf_counter() - started
        with worker_process(config):
            started = time.perf_counter()
            wait_for(database, project, 1)
            first = time.perf_counter() - started
            seconds = [_measure(database, config, project, k, seed) for k in range(posts)]
            busy = [_measure(database, config, project, k, seed, busy=True) for k in range(posts)]
        database.dispose()
    rows = [
        ["idle", f"{median(seconds):.1f}", _marked(max(seconds))],
        ["in the middle of a fit", f"{median(busy):.1f}", _marked(max(busy))],
    ]
    title = (
        f"Seconds until a label is in a snapshot, {n_labels:,} labels, {posts} labels each (target "
        f"{_LIMIT:.0f}); labels appended in {filled:.0f} s, first snapshot after {first:.0f} s"
    )
    return [PartTable(title, ["worker", "median", "maximum"], rows)]


def _marked(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds <= _LIMIT else f"**{seconds:.1f}**"


def _measure(
    database: Database,
    config: ServeConfig,
    project: int,
    number: int,
    seed: int,
    *,
    busy: bool = False,
) -> float:
    """Post a label and return the seconds until a snapshot that contains it can be loaded."""
    rng = random.Random(f"{seed}/{number}/{busy}")
    if busy:
        post(database, project, [_label(rng, "before")])
        time.sleep(rng.uniform(0.3, 2.5))
    new = _label(rng, f"new {number} {busy}")
    start = time.perf_counter()
    last = post(database, project, [new])
    row = wait_for(database, project, last)
    seconds = time.perf_counter() - start
    fit = at.load(snapshots_folder(config.data_dir) / row.folder)
    assert new.annotator in set(fit.data.annotators.to_pylist())
    wait_for(database, project, last)
    return seconds


def _label(rng: random.Random, annotator: str) -> LabelEvent:
    return LabelEvent(
        f"item {rng.randrange(1000)}", annotator, f"class {rng.randrange(N_CATEGORIES)}"
    )


def make_events(n_labels: int, start: int, stop: int, seed: int) -> list[LabelEvent]:
    """Return some of the labels of a simulated project, in the order of its items."""
    rng = np.random.default_rng([seed, start])
    accuracy = np.random.default_rng(seed).beta(8.0, 3.0, N_ANNOTATORS)
    item = np.arange(start, stop) // PER_ITEM
    first = rng.integers(N_ANNOTATORS, size=len(item)) if PER_ITEM == 1 else item * 7919
    annotator = (first + (np.arange(start, stop) % PER_ITEM) * 37) % N_ANNOTATORS
    truth = (item * 2654435761) % 2**32 % N_CATEGORIES
    right = rng.random(len(item)) < accuracy[annotator]
    label = np.where(right, truth, rng.integers(N_CATEGORIES, size=len(item)))
    columns = zip(item.tolist(), annotator.tolist(), label.tolist(), strict=True)
    return [LabelEvent(f"item {i}", f"annotator {a}", f"class {c}") for i, a, c in columns]


def post(database: Database, project: int, events: list[LabelEvent]) -> int:
    """Append events; return the number of the last one."""
    with database.begin() as connection:
        return append_events(connection, project, "api", events, utc_now()).last_seq


def wait_for(database: Database, project: int, seq: int) -> Snapshot:
    """Return the first snapshot that contains an event; wait for it."""
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline:
        with database.connect() as connection:
            row = latest_snapshot(connection, project)
        if row is not None and row.last_seq >= seq:
            return row
        time.sleep(0.02)
    raise TimeoutError(f"no snapshot with event {seq} after {_TIMEOUT:.0f} s")


@contextmanager
def worker_process(config: ServeConfig) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker until the block ends."""
    command = [sys.executable, "-m", "annotruth.serve.worker"]
    process = subprocess.Popen(command, env={**os.environ, **config.to_environment()})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
