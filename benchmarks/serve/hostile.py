"""Hostile requests: none may be an internal error."""

from __future__ import annotations

import http.client
from collections import Counter
from typing import Any

from tests.serve.web.hostile import HostileRequest, hostile_request

from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.processes import DATABASES, Installation, installation, running


def hostile(*, requests: int = 2_000, seed: int = 0) -> list[PartTable]:
    """Send generated requests with a valid token, and count the statuses."""
    rows: list[Any] = []
    for kind in DATABASES:
        with installation(kind) as made, running(made.config, "web"):
            numbers = range(seed, seed + requests)
            statuses = Counter(_status(made, hostile_request(n)) for n in numbers)
        n_errors = sum(n for status, n in statuses.items() if status >= 500)
        shown = ", ".join(f"{status}: {n}" for status, n in sorted(statuses.items()))
        rows.append(((kind,), [str(requests), TargetFigure(n_errors, Target(high=0), 0), shown]))
    return [
        PartTable(
            "Hostile requests",
            "Sizes, encodings, SQL, HTML, paths, wrong types, numbers, depth, chunked bodies. "
            "0: the connection was closed before the body was sent.",
            ("database",),
            ("requests", "internal errors", "statuses"),
            rows,
        )
    ]


def _status(made: Installation, request: HostileRequest) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", made.config.port, timeout=60)
    headers = {**request.headers, "Authorization": f"Bearer {made.token}"}
    path = request.path.replace("/birds", f"/{made.project.name}")
    body = iter([request.body]) if request.chunked else request.body
    try:
        connection.request(request.method, path, body, headers, encode_chunked=request.chunked)
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 0
    finally:
        connection.close()
