"""Kill the web server and the worker again and again while labels are posted: nothing is lost."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import select

import annotruth as at
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.projects import latest_snapshot, snapshots_folder
from annotruth.serve.store.tables import event
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.processes import PROJECT, Installation, installation

N_ITEMS, N_ANNOTATORS, N_CATEGORIES = 400, 40, 4
_BATCH = 10
_CLIENTS = 2
_TIMEOUT = 300.0
_KILL_AFTER = 120.0  # seconds, if the process does nothing
_SUPERVISE = (
    "import os; from annotruth.serve.start import serve_commands, supervise; "
    "raise SystemExit(supervise(serve_commands(), os.environ))"
)


class CrashResult(NamedTuple):
    """What was left after the kills."""

    n_sent: int
    n_acknowledged: int
    n_stored: int
    n_lost: int  # acknowledged and not stored
    n_twice: int  # stored more than once
    n_snapshots: int
    difference: float  # between the last snapshot and a fit of the events


def crashes(*, kills: int = 100, seed: int = 0) -> list[PartTable]:
    """Kill processes under load, with SQLite and PostgreSQL."""
    none = Target(high=0.0)
    rows = []
    for kind, n_kills in (("SQLite", kills - kills // 2), ("PostgreSQL", kills // 2)):
        with installation(kind) as installed:
            result = crash(installed, kills=n_kills, seed=seed)
        figures: list[TargetFigure | str] = [
            *(TargetFigure(each, digits=0) for each in (n_kills, *result[:3])),
            TargetFigure(result.n_lost, none, 0),
            TargetFigure(result.n_twice, none, 0),
            TargetFigure(result.n_snapshots, digits=0),
            TargetFigure(result.difference, Target(high=1e-6), 1, "e"),
        ]
        rows.append(([kind], figures))
    heads = ("kills", "sent", "acknowledged", "stored", "lost", "twice", "snapshots", "difference")
    description = "The difference is that of the last snapshot from a fit of all events."
    title = "Processes killed while labels are posted"
    return [PartTable(title, description, ("database",), heads, rows)]


def crash(installed: Installation, *, kills: int, seed: int = 0) -> CrashResult:
    """Post labels, kill processes meanwhile, and compare what is stored with what was sent."""
    stop = threading.Event()
    clients = [Client(installed, f"{seed}-{k}", stop) for k in range(_CLIENTS)]
    with supervisor(installed.config) as process:
        for client in clients:
            client.thread.start()
        _wait_for_progress(installed, "worker", _TIMEOUT)  # the first fit may compile the kernels
        rng = random.Random(seed)
        for number in range(kills):
            kill(installed, process.pid, "worker" if number % 2 else "web", rng)
        stop.set()
        for client in clients:
            client.thread.join()
        difference, n_snapshots = _compare(installed, clients)
    sent = {each for client in clients for each in client.sent}
    acknowledged = {each for client in clients for each in client.acknowledged}
    with installed.database.connect() as connection:
        stored = list(connection.scalars(select(event.c.event_id)))
    assert set(stored) <= sent
    return CrashResult(
        len(sent),
        len(acknowledged),
        len(stored),
        len(acknowledged - set(stored)),
        len(stored) - len(set(stored)),
        n_snapshots,
        difference,
    )


class Client:
    """Posts batches in a thread; sends a batch that was not acknowledged again."""

    def __init__(self, installed: Installation, name: str, stop: threading.Event) -> None:
        self._installed, self._name, self._stop = installed, name, stop
        self._rng = random.Random(name)
        self.sent: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            batch = [self._label() for _ in range(_BATCH)]
            self.sent |= {each["event_id"]: each for each in batch}
            while not self._post(batch):  # also after the end: the server comes back
                time.sleep(0.05)
            self.acknowledged += [each["event_id"] for each in batch]
            time.sleep(0.02)

    def _label(self) -> dict[str, Any]:
        item, annotator = self._rng.randrange(N_ITEMS), self._rng.randrange(N_ANNOTATORS)
        is_right = self._rng.random() < 0.5 + annotator / N_ANNOTATORS / 2
        label = item % N_CATEGORIES if is_right else self._rng.randrange(N_CATEGORIES)
        return {
            "item": f"item {item}",
            "annotator": f"annotator {annotator}",
            "label": f"class {label}",
            "event_id": f"{self._name}-{len(self.sent)}-{uuid.uuid4().hex}",
        }

    def _post(self, batch: list[dict[str, Any]]) -> bool:
        config = self._installed.config
        connection = http.client.HTTPConnection(config.host, config.port, timeout=30.0)
        headers = {
            "Authorization": f"Bearer {self._installed.token}",
            "Content-Type": "application/json",
        }
        try:
            path = f"/api/v1/projects/{PROJECT}/labels"
            connection.request("POST", path, json.dumps(batch), headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if response.status >= 500:
            return False
        if response.status >= 300:
            raise AssertionError(content)
        counts = json.loads(content)
        return bool(counts["accepted"] + counts["repeated"] == len(batch))


@contextmanager
def supervisor(config: ServeConfig) -> Iterator[subprocess.Popen[bytes]]:
    """Run the supervisor, which starts the web server and the worker, until the block ends."""
    log = config.data_dir / "supervisor.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **config.to_environment()}
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISE], env=environment, stdout=file, stderr=file
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def kill(installed: Installation, supervisor_pid: int, part: str, rng: random.Random) -> None:
    """Kill the web server or the worker at a random moment after it has done some work."""
    pid = _wait_for_child(supervisor_pid, part)
    _wait_for_progress(installed, part, _KILL_AFTER)
    time.sleep(rng.uniform(0.0, 0.5))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    while _children(supervisor_pid).get(part) == pid:
        time.sleep(0.01)


def _wait_for_progress(installed: Installation, part: str, seconds: float) -> None:
    before = _progress(installed, part)
    deadline = time.monotonic() + seconds
    while _progress(installed, part) == before and time.monotonic() < deadline:
        time.sleep(0.01)


def _progress(installed: Installation, part: str) -> int:
    """Return a number that grows with the work of a process: the last event, or the last version."""
    with installed.database.connect() as connection:
        if part == "web":
            query = select(event.c.seq).order_by(event.c.seq.desc()).limit(1)
            return connection.scalar(query) or 0
        row = latest_snapshot(connection, installed.project.id)
        return 0 if row is None else row.version


def _wait_for_child(supervisor_pid: int, part: str) -> int:
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline:
        if part in (found := _children(supervisor_pid)):
            return found[part]
        time.sleep(0.02)
    raise TimeoutError(f"the supervisor did not start the {part}")


def _children(supervisor_pid: int) -> dict[str, int]:
    """Return the process ids of the web server and the worker, where they live."""
    found = {}
    with suppress(OSError):
        children = Path(f"/proc/{supervisor_pid}/task/{supervisor_pid}/children").read_text()
        for pid in children.split():
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
                _, _, part = command.rpartition("annotruth.serve.")  # the module, <part>.<file>
                found[part.partition(".")[0]] = int(pid)
    return found


def _compare(installed: Installation, clients: list[Client]) -> tuple[float, int]:
    """Return the largest difference of the last snapshot from a fit of the events."""
    database, project = installed.database, installed.project.id
    with database.connect() as connection:
        events = connection.execute(select(event.c.seq, event.c.event_id)).all()
    deadline = time.monotonic() + _TIMEOUT
    last = max(seq for seq, _ in events)
    row = None
    while row is None or row.last_seq < last:
        if time.monotonic() > deadline:
            raise TimeoutError("no snapshot of all events")
        time.sleep(0.1)
        with database.connect() as connection:
            row = latest_snapshot(connection, project)
    sent = {name: label for client in clients for name, label in client.sent.items()}
    current: dict[tuple[str, str], str] = {}
    for _, name in sorted(tuple(each) for each in events):
        label = sent[name]
        slot = label["item"], label["annotator"]
        current.pop(slot, None)  # an edit comes last
        current[slot] = label["label"]
    expected = at.fit([(*slot, label) for slot, label in current.items()])
    found = at.load(snapshots_folder(installed.config.data_dir) / row.folder)
    assert isinstance(found, at.Fit)
    return _difference(expected, found), row.version


def _difference(expected: at.Fit, found: at.Fit) -> float:
    """Return the largest difference of probabilities and reliabilities, matched by ids."""
    tables = [
        (fit.item_table().sort_by("item"), fit.annotator_table()) for fit in (expected, found)
    ]
    (items, people), (found_items, found_people) = tables
    people, found_people = (each.sort_by("annotator") for each in (people, found_people))
    assert items["item"].equals(found_items["item"])
    assert items["n_labels"].equals(found_items["n_labels"])
    assert people["annotator"].equals(found_people["annotator"])
    pairs = [
        (items[name], found_items[name]) for name in items.column_names if name.startswith("p_")
    ]
    pairs.append((people["reliability"], found_people["reliability"]))
    return max(float(np.abs(a.to_numpy() - b.to_numpy()).max()) for a, b in pairs)
