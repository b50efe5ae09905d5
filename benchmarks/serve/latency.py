"""How long it takes until a label's effect is in a snapshot, in a project of many labels."""

from __future__ import annotations

import random
import time
from statistics import median

import numpy as np

import annotruth as at
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import append_events
from annotruth.serve.store.projects import latest_snapshot, snapshots_folder
from annotruth.serve.store.rows import utc_now
from annotruth.serve.store.tables import LabelEvent, Snapshot
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.processes import Installation, installation, running

N_ANNOTATORS, PER_ITEM, N_CATEGORIES = 500, 10, 5
_ROWS_AT_ONCE = 50_000
_TIMEOUT = 600.0


def latency(*, n_labels: int = 1_000_000, posts: int = 10, seed: int = 0) -> list[PartTable]:
    """Measure the time from posting a label to the snapshot, with one label after the other.

    Labels are posted when the worker is idle, and at random moments of a fit.
    """
    with installation("SQLite") as installed:
        database, project = installed.database, installed.project.id
        started = time.perf_counter()
        fill(installed, n_labels, seed)
        filled = time.perf_counter() - started
        with running(installed.config, "worker"):
            started = time.perf_counter()
            wait_for(database, project, 1)
            first = time.perf_counter() - started
            rows = [
                (name, [_measure(installed, k, seed, busy=busy) for k in range(posts)])
                for name, busy in (("idle", False), ("fits other labels", True))
            ]
    description = (
        f"{n_labels:,} labels were appended in {filled:.0f} s; the first snapshot came after "
        f"{first:.0f} s. Then {posts} labels each, one at a time."
    )
    table = [
        (
            [name],
            [TargetFigure(median(each), digits=1), TargetFigure(max(each), Target(high=10.0), 1)],
        )
        for name, each in rows
    ]
    title = "Seconds until a label is in a snapshot"
    return [PartTable(title, description, ("worker",), ("median", "maximum"), table)]


def _measure(installed: Installation, number: int, seed: int, *, busy: bool) -> float:
    """Post a label and return the seconds until a snapshot that contains it can be loaded."""
    database, project = installed.database, installed.project.id
    rng = random.Random(f"{seed}/{number}/{busy}")
    if busy:
        post(database, project, [_label(rng, f"before {number}")])
        time.sleep(rng.uniform(0.3, 2.5))
    new = _label(rng, f"new {number} {busy}")
    start = time.perf_counter()
    row = wait_for(database, project, post(database, project, [new]))
    seconds = time.perf_counter() - start
    fit = at.load(snapshots_folder(installed.config.data_dir) / row.folder)
    assert isinstance(fit, at.Fit)
    assert new.annotator in set(fit.data.annotators.to_pylist())
    return seconds


def _label(rng: random.Random, annotator: str) -> LabelEvent:
    return LabelEvent(
        f"item {rng.randrange(1000)}", annotator, f"class {rng.randrange(N_CATEGORIES)}"
    )


def make_events(start: int, stop: int, seed: int) -> list[LabelEvent]:
    """Return some of the labels of a simulated project, in the order of its items."""
    rng = np.random.default_rng([seed, start])
    accuracy = np.random.default_rng(seed).beta(8.0, 3.0, N_ANNOTATORS)
    number = np.arange(start, stop)
    item = number // PER_ITEM
    annotator = (item * 7919 + (number % PER_ITEM) * 37) % N_ANNOTATORS
    truth = item * 31 % N_CATEGORIES
    right = rng.random(len(item)) < accuracy[annotator]
    label = np.where(right, truth, rng.integers(N_CATEGORIES, size=len(item)))
    columns = zip(item.tolist(), annotator.tolist(), label.tolist(), strict=True)
    return [LabelEvent(f"item {i}", f"annotator {a}", f"class {c}") for i, a, c in columns]


def fill(installed: Installation, n_labels: int, seed: int) -> int:
    """Append labels of a simulated project; return the number of the last one."""
    last = 0
    for start in range(0, n_labels, _ROWS_AT_ONCE):
        events = make_events(start, min(start + _ROWS_AT_ONCE, n_labels), seed)
        last = post(installed.database, installed.project.id, events)
    return last


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
