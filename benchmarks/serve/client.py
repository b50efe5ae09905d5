"""A client that posts labels by connections that stay open: at a rate, or as fast as it is answered.

It runs in a process of its own: ``python -m benchmarks.serve.client PORT PROJECTS SECONDS CONNECTIONS
BATCH RATE NAME``, with the token on standard input and projects, posted to in turn, separated by commas; it prints one JSON object. RATE is in labels per
second, 0 for no limit. At a rate, the time of a request counts from when it was due, so that a
server that stops for a while does not look fast.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

N_ITEMS, N_ANNOTATORS, N_CATEGORIES = 20_000, 200, 5


@dataclass
class ClientLog:
    """What a client saw."""

    seconds: float = 0.0
    n_labels: int = 0
    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    acknowledged: list[str] = field(default_factory=list)  # the batches
    details: list[str] = field(default_factory=list)  # what errors said


@dataclass(frozen=True)
class Load:
    """How labels are posted."""

    port: int
    token: str
    projects: list[str]
    seconds: float
    connections: int
    batch: int
    rate: float
    name: str


async def post_labels(load: Load) -> ClientLog:
    """Post labels until the time is over."""
    log = ClientLog()
    start = time.perf_counter()
    end = start + load.seconds
    await asyncio.gather(*(_connection(load, n, end, log) for n in range(load.connections)))
    log.seconds = time.perf_counter() - start
    return log


async def _connection(load: Load, number: int, end: float, log: ClientLog) -> None:
    """Post one batch after the other; after a broken connection, a new one."""
    n_batch = 0
    reader = writer = None
    interval = load.connections * load.batch / load.rate if load.rate else 0.0
    due = time.perf_counter() + interval * number / load.connections
    while time.perf_counter() < end:
        name = f"{load.name}-{number}-{n_batch}"
        n_batch += 1
        if interval:
            await asyncio.sleep(due - time.perf_counter())
        start = due if interval else time.perf_counter()
        due += interval
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
            assert reader is not None
            writer.write(_request(load, name, n_batch * 7919 + number * 104_729))
            status, body = await _response(reader)
        except (OSError, asyncio.IncompleteReadError):
            log.statuses[0] += 1
            reader = writer = None
            await asyncio.sleep(0.05)
            continue
        log.statuses[status] += 1
        if status == 200:
            log.milliseconds.append(1e3 * (time.perf_counter() - start))
            log.n_labels += load.batch
            log.acknowledged.append(name)
        else:
            detail = body.decode("utf-8", "replace")
            if detail not in log.details:
                log.details.append(detail)
            await asyncio.sleep(0.05)
    if writer is not None:
        writer.close()


def _request(load: Load, name: str, first: int) -> bytes:
    labels = [
        {
            "item": f"item {(first + 31 * k) % N_ITEMS}",
            "annotator": f"annotator {(first // 3 + k) % N_ANNOTATORS}",
            "label": str((first + k) % N_CATEGORIES),
            "event_id": f"{name}-{k}",
        }
        for k in range(load.batch)
    ]
    project = load.projects[first % len(load.projects)]
    body = json.dumps(labels if load.batch > 1 else labels[0]).encode()
    head = (
        f"POST /api/v1/projects/{project}/labels HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {load.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in lines
        if line.lower().startswith(b"content-length:")
    )
    return int(lines[0].split(b" ")[1]), await reader.readexactly(length)


def main() -> None:
    port, projects, seconds, connections, batch, rate, name = sys.argv[1:]
    load = Load(
        int(port),
        sys.stdin.readline().strip(),
        projects.split(","),
        float(seconds),
        int(connections),
        int(batch),
        float(rate),
        name,
    )
    print(json.dumps(vars(asyncio.run(post_labels(load)))))


if __name__ == "__main__":
    main()
