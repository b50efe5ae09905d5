"""Labels posted to many projects, beside a large one and open pages, and the memory it takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from annotruth.serve.store.projects import create_project
from annotruth.serve.store.rows import utc_now
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.ingestion import BATCH, LEAST, figures, post
from benchmarks.serve.latency import fill
from benchmarks.serve.processes import DATABASES, PROJECT, Installation, installation, running

_PROJECTS, _FOLLOWERS = 50, 200
_SAMPLE_SECONDS = 10.0


def load(*, seconds: float = 15.0, n_labels: int = 1_000_000, seed: int = 0) -> list[PartTable]:
    """Measure 50 projects with 200 followers, from nothing and beside a project of many labels."""
    rows: list[Any] = []
    curves: list[str] = []
    for kind in DATABASES:
        for n in sorted({0, n_labels}):
            with installation(kind) as made:
                names = _fill(made, n, seed)
                with running(made.config, "web") as web, running(made.config, "worker") as worker:
                    post(made, 4.0, BATCH, f"warm-{n}", projects=names)
                    with _followers(made) as heard, _memory(web.pid, worker.pid) as memory:
                        for batch in (BATCH, 1):
                            name = f"{n}-{batch}"
                            log = post(
                                made, seconds, batch, name, rate=LEAST[batch], projects=names
                            )
                            followers = TargetFigure(len(heard), Target(low=_FOLLOWERS), 0)
                            shown = [*figures(made, log, batch, paced=True), followers]
                            rows.append(((kind, f"{n:,}", str(batch)), shown))
                    curves.append(f"{kind}, {n:,} labels before: {_curve(memory)}")
    described = (
        f"Labels are posted at a rate to {_PROJECTS} projects in turn while the worker fits and "
        f"{_FOLLOWERS} connections follow one of them. Times count from when a request was due. "
        "Memory of the web server and the worker every "
        f"{_SAMPLE_SECONDS:.0f} s, in MB: {'; '.join(curves)}."
    )
    return [
        PartTable(
            "Many projects and followers",
            described,
            ("database", "labels before", "labels per request"),
            ("labels/s", "median ms", "p99 ms", "errors", "lost", "followers"),
            rows,
        )
    ]


def _fill(made: Installation, n_labels: int, seed: int) -> list[str]:
    """Create the projects, the first with labels; return their names."""
    names = [PROJECT, *(f"project-{number}" for number in range(1, _PROJECTS))]
    with made.database.begin() as connection:
        for name in names[1:]:
            create_project(connection, name, "labels", {}, utc_now())
    fill(made, n_labels, seed)
    return names


@contextmanager
def _followers(made: Installation) -> Iterator[set[int]]:
    """Follow the events of a project with many connections; yields those that heard something."""
    heard: set[int] = set()
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_follow(made, heard, stop)))
    thread.start()
    try:
        yield heard
    finally:
        stop.set()
        thread.join()


async def _follow(made: Installation, heard: set[int], stop: threading.Event) -> None:
    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.config.port)
        head = (
            f"GET /api/v1/projects/{PROJECT}/events HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {made.token}\r\n\r\n"
        )
        writer.write(head.encode())
        while line := await reader.readline():
            if line.startswith(b"event: change"):
                heard.add(number)

    tasks = [asyncio.create_task(one(number)) for number in range(_FOLLOWERS)]
    while not stop.is_set():
        await asyncio.sleep(0.2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _memory(*pids: int) -> Iterator[list[tuple[float, ...]]]:
    """Sample the memory of processes until the block ends, in MB."""
    samples: list[tuple[float, ...]] = []
    stop = threading.Event()

    def sample() -> None:
        while True:
            with suppress(OSError):
                samples.append(tuple(map(_resident, pids)))
            if stop.wait(_SAMPLE_SECONDS):
                return

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _curve(samples: list[tuple[float, ...]]) -> str:
    names = ("web", "worker")
    columns = zip(names, zip(*samples, strict=True), strict=True)
    return ", ".join(f"{name} {' '.join(f'{x:.0f}' for x in column)}" for name, column in columns)
