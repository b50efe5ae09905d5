"""Which item a person should label now, reserved for them for a while.

Items that no fit has seen come first, each up to the project's ``labels_per_item``; then those that
the advice asks labels for, the highest gain first. Labels that came in since the fit count, and so
do leases: what others were given and have not labelled yet. Of comparisons, pairs are given.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection

from annotruth.analyses.advice.pairs.advice import PairAdvice
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import events_since
from annotruth.serve.store.projects import (
    active_leases,
    items_with_content,
    lock_project,
    take_lease,
)
from annotruth.serve.store.rows import remove
from annotruth.serve.store.tables import Lease, Project, StoredEvent
from annotruth.serve.web.results import LoadedSnapshot, SnapshotCache

LABELS_PER_ITEM = 3
"""How many labels each item gets before it is fitted, unless the project says otherwise."""

_CONTENT_SECONDS = 5.0  # how often new items are looked for
_EVENTS_AT_ONCE = 10_000


class LabelTask(NamedTuple):
    """An item to label, or a pair to compare."""

    item: str
    other_item: str = ""

    @property
    def key(self) -> str:
        """What leases know it by; that of a pair is short, and the same for both sides."""
        if not self.other_item:
            return self.item
        first, second = sorted(self)
        content = f"{len(first)}:{first}{second}".encode()
        return f"pair:{hashlib.blake2b(content, digest_size=16).hexdigest()}"


@dataclass(eq=False)
class _Wanted:
    """A task and how many labels it should still get, not counting those since the snapshot."""

    task: LabelTask
    places: int


@dataclass(eq=False)
class _Queue:
    """The tasks of a project, and who did which since the snapshot."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int = -1
    seq: int = 0
    unseen: dict[str, _Wanted] = field(default_factory=dict)  # by no fit
    advised: dict[str, _Wanted] = field(default_factory=dict)
    done_by: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    annotations: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    content_read: float = 0.0

    def __iter__(self) -> Iterator[tuple[str, _Wanted]]:
        yield from self.unseen.items()
        yield from self.advised.items()

    def count(self, event: StoredEvent) -> None:
        """Count who did what by an event, which may edit or delete an annotation."""
        name = event.source, event.annotation
        if name in self.annotations:
            key, annotator = self.annotations.pop(name)
            self.done_by[key].discard(annotator)
        if not event.deleted:
            key = LabelTask(event.item, event.other_item).key
            self.annotations[name] = key, event.annotator
            self.done_by[key].add(event.annotator)

    def places(self, key: str) -> int:
        wanted = self.unseen.get(key) or self.advised.get(key)
        return 0 if wanted is None else wanted.places - len(self.done_by.get(key, ()))


class WorkQueue:
    """Gives people items to label."""

    def __init__(self, database: Database, snapshots: SnapshotCache, *, seconds: float) -> None:
        self._database = database
        self._snapshots = snapshots
        self.lease = timedelta(seconds=seconds)
        self._queues: defaultdict[int, _Queue] = defaultdict(_Queue)

    def next_task(self, project: Project, annotator: str, now: datetime) -> LabelTask | None:
        """Reserve a task for a person for a while; None if there is none that they have not done.

        Whoever asks again before their label comes in gets the same task, for longer.
        """
        loaded = self._snapshots.get(project.id)
        queue = self._queues[project.id]
        with queue.lock, self._database.begin() as connection:
            # Reading and reserving must be one step also for other processes.
            lock_project(connection, project.id)
            _refresh(queue, connection, project, loaded)
            done = _done_before(loaded, annotator)
            return self._take(queue, connection, project, done, annotator, now)

    def _take(
        self,
        queue: _Queue,
        connection: Connection,
        project: Project,
        done: set[str],
        annotator: str,
        now: datetime,
    ) -> LabelTask | None:
        leased: Counter[str] = Counter()
        own: list[str] = []
        for lease in active_leases(connection, project.id, now):
            if lease.annotator in queue.done_by.get(lease.item, ()):
                remove(connection, Lease, **lease._asdict())
            elif lease.annotator == annotator:
                own.append(lease.item)
            else:
                leased[lease.item] += 1
        candidates = [(key, wanted) for key, wanted in queue if key in own] if own else []
        for key, wanted in chain(candidates, queue):
            places = queue.places(key)
            if places <= leased[key] or key in done or annotator in queue.done_by.get(key, ()):
                continue
            expires = now + self.lease
            if take_lease(connection, project.id, key, annotator, now, expires, places=places):
                of = {"project": project.id, "annotator": annotator}
                for other in set(own) - {key}:  # what they can no longer use
                    remove(connection, Lease, item=other, **of)
                return wanted.task
        return None


def _refresh(
    queue: _Queue, connection: Connection, project: Project, loaded: LoadedSnapshot | None
) -> None:
    """Bring the tasks up to date: a new snapshot, new items, new labels."""
    version = 0 if loaded is None else loaded.version
    if version != queue.version:
        queue.version = version
        queue.seq = 0 if loaded is None else loaded.row.last_seq
        queue.advised = {} if loaded is None else _advised(loaded)
        queue.unseen, queue.content_read = {}, 0.0
        queue.done_by.clear()
        queue.annotations.clear()
    fitted = {} if loaded is None else loaded.items.numbers
    places = int(project.settings.get("labels_per_item") or LABELS_PER_ITEM)
    if time.monotonic() - queue.content_read > _CONTENT_SECONDS or not queue.content_read:
        queue.content_read = time.monotonic()
        _add_unseen(
            queue, _tasks_of(project, items_with_content(connection, project.id)), places, fitted
        )
    while True:
        events = events_since(connection, project.id, queue.seq, _EVENTS_AT_ONCE)
        for event in events:
            if event.item and project.kind == "labels":
                _add_unseen(queue, [LabelTask(event.item)], places, fitted)
            queue.count(event)
        if events:
            queue.seq = events[-1].seq
        if len(events) < _EVENTS_AT_ONCE:
            return


def _add_unseen(
    queue: _Queue, tasks: Iterable[LabelTask], places: int, fitted: dict[str, int]
) -> None:
    for task in tasks:
        known = task.item in fitted and (not task.other_item or task.other_item in fitted)
        if not known:
            queue.unseen.setdefault(task.key, _Wanted(task, places))


def _tasks_of(project: Project, items: list[str]) -> Iterable[LabelTask]:
    """Return the first tasks of new items: each item, or neighbours in a ring of pairs."""
    if project.kind == "labels":
        return map(LabelTask, items)
    return (LabelTask(*pair) for pair in pairwise([*items, items[0]] if len(items) > 2 else items))


def _advised(loaded: LoadedSnapshot) -> dict[str, _Wanted]:
    """Return the tasks that the advice asks for, the highest gain first."""
    advice = loaded.advice
    if isinstance(advice, PairAdvice):
        wanted: dict[str, _Wanted] = {}
        table = advice.comparison_table()
        for left, right in zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True):
            task = LabelTask(str(left), str(right))
            wanted.setdefault(task.key, _Wanted(task, 0)).places += 1
        return wanted
    rows = np.flatnonzero(advice.add)
    rows = rows[np.argsort(-advice.of_items.gain[rows], kind="stable")]
    ids = loaded.items.table["item"].take(rows).to_pylist()
    return {
        str(item): _Wanted(LabelTask(str(item)), places)
        for item, places in zip(ids, advice.add[rows].tolist(), strict=True)
    }


def _done_before(loaded: LoadedSnapshot | None, annotator: str) -> set[str]:
    person = None if loaded is None else loaded.annotators.numbers.get(annotator)
    if loaded is None or person is None:
        return set()
    fit = loaded.fit
    if fit.kind == "comparisons":
        votes = slice(*fit.data.annotator_ptr[person : person + 2].tolist())
        sides = (
            fit.data.items.take(side[votes]).to_pylist() for side in (fit.data.left, fit.data.right)
        )
        return {LabelTask(str(a), str(b)).key for a, b in zip(*sides, strict=True)}
    labels = np.flatnonzero(fit.data.annotator == person)
    first_label = fit.data.cell_ptr[fit.data.item_ptr]
    items = np.searchsorted(first_label, labels, side="right") - 1
    return {str(each) for each in fit.data.items.take(items).to_pylist()}
