"""How fast labels are taken while the worker fits, and whether acknowledged labels are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, select

from annotruth.serve.store.tables import event
from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.processes import DATABASES, PROJECT, Installation, installation, running

BATCH = 100
_CONNECTIONS = {BATCH: 8, 1: 16}
LEAST = {BATCH: 5_000.0, 1: 500.0}  # labels per second
MOST_MILLISECONDS = 200.0
_WARM_UP_SECONDS = 4.0


def ingestion(*, seconds: float = 15.0) -> list[PartTable]:
    """Measure labels per second and the time of each request, with the worker at work."""
    rows: list[Any] = []
    for kind in DATABASES:
        with installation(kind) as made, ExitStack() as processes:
            web = processes.enter_context(running(made.config, "web"))
            processes.enter_context(running(made.config, "worker"))
            post(made, _WARM_UP_SECONDS, BATCH, "warm")  # gives the worker labels to fit
            for batch, paced in product((BATCH, 1), (False, True)):
                before = _processor_seconds(web)
                rate = LEAST[batch] if paced else 0.0
                log = post(made, seconds, batch, f"b{batch}-{paced}", rate=rate)
                busy = (_processor_seconds(web) - before) / log["seconds"]
                heads = (kind, str(batch), f"{rate:,.0f}" if paced else "any")
                rows.append((heads, [*figures(made, log, batch, paced=paced), f"{busy:.0%}"]))
    return [
        PartTable(
            "Ingestion",
            f"Requests by a client in a process of its own, by {_CONNECTIONS[BATCH]} (batches) and "
            f"{_CONNECTIONS[1]} (single labels) connections, each of which waits for the answer; at "
            "a rate, and as fast as it is answered. Times at a rate count from when a request was "
            "due. Lost: acknowledged labels that are not in the database, or twice. The last column "
            "is the share of one core that the web server used.",
            ("database", "labels per request", "labels/s asked for"),
            ("labels/s", "median ms", "p99 ms", "errors", "lost", "web server"),
            rows,
        )
    ]


def _processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return how long a process has run on processors."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures(
    made: Installation, log: dict[str, Any], batch: int, *, paced: bool
) -> list[TargetFigure]:
    """Return how fast labels were taken, by what a client saw, and how many were lost."""
    times = np.array(log["milliseconds"])
    # At a rate, the last requests are answered after the time is over.
    least = LEAST[batch] * (0.98 if paced else 1.0)
    n_errors = sum(n for status, n in log["statuses"].items() if status != "200")
    return [
        TargetFigure(log["n_labels"] / log["seconds"], Target(low=least), 0),
        TargetFigure(float(np.median(times)), digits=1),
        TargetFigure(float(np.quantile(times, 0.99)), Target(high=MOST_MILLISECONDS), 1),
        TargetFigure(n_errors, Target(high=0), 0),
        TargetFigure(n_lost(made, log, batch), Target(high=0), 0),
    ]


def post(
    made: Installation,
    seconds: float,
    batch: int,
    name: str,
    *,
    rate: float = 0.0,
    projects: Sequence[str] = (PROJECT,),
) -> dict[str, Any]:
    """Run a client that posts to projects in turn, and return what it saw."""
    words = (made.config.port, ",".join(projects), seconds, _CONNECTIONS[batch], batch, rate, name)
    command = [sys.executable, "-m", "benchmarks.serve.client", *map(str, words)]
    done = subprocess.run(
        command, input=made.token, stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    log: dict[str, Any] = json.loads(done.stdout)
    return log


def n_lost(made: Installation, log: dict[str, Any], batch: int) -> int:
    """Return how many acknowledged labels are not in the database exactly once."""
    query = select(event.c.event_id, func.count())
    with made.database.connect() as connection:
        stored: dict[str, int] = dict(
            connection.execute(query.group_by(event.c.event_id)).tuples().all()
        )
    ids = (f"{name}-{k}" for name in log["acknowledged"] for k in range(batch))
    return sum(stored.get(each, 0) != 1 for each in ids)
