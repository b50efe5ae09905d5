"""How fast the store appends events and reads current labels, on both databases."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from annotruth.serve.store.events import (
    current_labels,
    current_of_slots,
    current_table,
    events_since,
)
from annotruth.serve.store.tables import LabelEvent
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.latency import make_events, post
from benchmarks.serve.processes import Installation, installation

BATCH = 1_000
_ROWS_AT_ONCE = 50_000
_TARGETS = {"SQLite": Target(low=20_000), "PostgreSQL": Target(low=5_000)}


class _Seconds(NamedTuple):
    """What something took, by the clock and of this process's processor time."""

    wall: float
    processor: float


def store(*, n_labels: int = 1_000_000, seed: int = 0) -> list[PartTable]:
    """Measure appends in batches, and reads of one project."""
    rows = []
    for kind, target in _TARGETS.items():
        with installation(kind) as installed:
            append = _append(installed, n_labels, seed)
            table, item, slots = _read(installed)
        figures = [
            TargetFigure(n_labels / append.wall, target, 0),
            TargetFigure(n_labels / append.processor, digits=0),
            TargetFigure(table.wall, Target(high=10.0), 1),
            TargetFigure(table.processor, digits=1),
            TargetFigure(1000 * item.wall, digits=0),
            TargetFigure(1000 * slots.wall, digits=0),
        ]
        rows.append(([kind], figures))
    description = (
        f"{n_labels:,} labels, appended in transactions of {BATCH:,} that reach the disk; then all "
        "current labels as a table, those of one item, and those of 1,000 slots. Processor time is "
        "that of the client, without PostgreSQL's server."
    )
    columns = (
        *("appended per s", "appended per s of processor time"),
        *("table, s", "table, s of processor time", "item, ms", "1,000 slots, ms"),
    )
    return [PartTable("The store", description, ("database",), columns, rows)]


def _append(installed: Installation, n_labels: int, seed: int) -> _Seconds:
    spent = [
        _measure(partial(_post_batches, installed, make_events(start, stop, seed)))
        for start in range(0, n_labels, _ROWS_AT_ONCE)
        for stop in [min(start + _ROWS_AT_ONCE, n_labels)]
    ]
    walls, processor = zip(*spent, strict=True)
    return _Seconds(sum(walls), sum(processor))


def _post_batches(installed: Installation, events: list[LabelEvent]) -> None:
    for start in range(0, len(events), BATCH):
        post(installed.database, installed.project.id, events[start : start + BATCH])


def _read(installed: Installation) -> tuple[_Seconds, _Seconds, _Seconds]:
    project = installed.project.id
    with installed.database.connect() as connection:
        slots = [each.slot for each in events_since(connection, project, 0, 1_000)]
        item = slots[0][0]
        return (
            _measure(lambda: current_table(connection, project)),
            _measure(lambda: current_labels(connection, project, item=item)),
            _measure(lambda: current_of_slots(connection, project, slots)),
        )


def _measure(call: Callable[[], object]) -> _Seconds:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return _Seconds(time.perf_counter() - wall, time.process_time() - processor)
