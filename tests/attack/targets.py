"""Running services to attack, on SQLite and on PostgreSQL."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgresql import postgresql_server
from tests.serve.web.conftest import Server, start_server

from annotruth.serve.store.database import Database

DATABASES = ("sqlite", "postgresql")


@contextmanager
def target(database: str) -> Iterator[Server]:
    """Start a web server with the projects and tokens of the tests, without limits on rates.

    Raises
    ------
    NoServerError
        If there is no PostgreSQL here.
    """
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        if database == "sqlite":
            with _server(f"sqlite:///{folder}/annotruth.db", Path(folder)) as server:
                yield server
            return
        with postgresql_server() as postgresql:
            postgresql.run("create database attack")
            with _server(postgresql.url("attack"), Path(folder)) as server:
                yield server


@contextmanager
def _server(url: str, folder: Path) -> Iterator[Server]:
    opened = Database.open(url)
    opened.upgrade()
    opened.dispose()
    server, stop = start_server(url, folder / "data", requests_per_second=1e6, log_requests=False)
    server.context.access._failures.wait = lambda key: 0.0  # type: ignore[method-assign]
    try:
        yield server
    finally:
        stop()
