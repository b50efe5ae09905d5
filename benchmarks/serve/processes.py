"""The service's processes for measurements: a database, the web server, the worker."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.postgresql import PostgresqlServer, postgresql_server

from annotruth.serve.administration import create_token
from annotruth.serve.config import ServeConfig
from annotruth.serve.start import serve_commands
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import create_project
from annotruth.serve.store.rows import utc_now
from annotruth.serve.store.tables import Project

PROJECT = "measured"
DATABASES = ("SQLite", "PostgreSQL")
_START_SECONDS = 60.0


class Installation(NamedTuple):
    """A database with a project, and how to reach it."""

    config: ServeConfig
    database: Database
    project: Project
    token: str
    server: PostgresqlServer | None


@contextmanager
def installation(kind: str) -> Iterator[Installation]:
    """Make an empty database in a temporary folder, with a project and a token."""
    is_sqlite = kind == "SQLite"
    server_context: Any = nullcontext() if is_sqlite else postgresql_server(fsync=True)
    with TemporaryDirectory() as folder, server_context as server:
        if server is not None:
            server.run("create database measured")
        url = f"sqlite:///{folder}/annotruth.db" if server is None else server.url("measured")
        config = ServeConfig(
            database=url, data_dir=Path(folder) / "data", port=_free_port(), requests_per_second=1e6
        )
        database = Database.open(url)
        database.upgrade()
        with database.begin() as connection:
            project = create_project(connection, PROJECT, "labels", {}, utc_now())
            _, token = create_token(connection, "measurement", "admin", utc_now())
        try:
            yield Installation(config, database, project, token, server)
        finally:
            database.dispose()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(config: ServeConfig, part: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of the service, "web" or "worker", until the block ends."""
    log = config.data_dir / f"{part}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = serve_commands()["web server" if part == "web" else part]
    environment = {**os.environ, **config.to_environment()}
    with log.open("ab") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    try:
        if part == "web":
            _wait_for_web(config, process, log)
        yield process
    finally:
        process.terminate()
        process.wait()


def _wait_for_web(config: ServeConfig, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{config.port}/healthz", timeout=5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the web server did not start: {log.read_text()[-2000:]}")
