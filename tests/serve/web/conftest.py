"""A web server of the service, listening on a port of this machine, and clients of it."""

import http.client
import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi import FastAPI
from tests.serve.web_server import start_in_thread
from tests.waiting import MAX_SECONDS

from annotruth.serve.administration import create_token
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.projects import create_project
from annotruth.serve.store.rows import utc_now
from annotruth.serve.web.app import make_app
from annotruth.serve.web.parameters import ServeContext


class Reply(NamedTuple):
    """A response."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Server:
    """A running server with the projects "birds", "cats" (labels) and "films" (comparisons)."""

    port: int
    app: FastAPI
    tokens: dict[str, str]

    @property
    def context(self) -> ServeContext:
        return self.app.state.context

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=MAX_SECONDS)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        if found.get("content-type", "").startswith("application/json"):
            return Reply(response.status, json.loads(content), found)
        return Reply(response.status, content.decode("utf-8", "replace"), found)

    def call(self, method: str, path: str, body: Any = None, token: str = "admin") -> Reply:
        """Call the API with one of the tokens, by name, or with a text."""
        headers = {}
        if token:
            headers["Authorization"] = f"Bearer {self.tokens.get(token, token)}"
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        return self.send(method, f"/api/v1{path}", content, headers)

    def stream(self, path: str, lines: list[str], token: str = "admin") -> Reply:
        headers = {
            "Authorization": f"Bearer {self.tokens[token]}",
            "Content-Type": "application/x-ndjson",
        }
        return self.send("POST", f"/api/v1{path}", "\n".join(lines).encode(), headers)


def start_server(url: str, folder: Path, **settings: Any) -> tuple[Server, Callable[[], None]]:
    """Start a server with projects and tokens; return it and a function that stops it."""
    config = ServeConfig(database=url, data_dir=folder, port=0, **settings)
    app = make_app(config)
    tokens = make_tokens(app.state.context)
    started = start_in_thread(app, config)
    return Server(started.port, app, tokens), started.stop


def make_tokens(context: ServeContext) -> dict[str, str]:
    now = utc_now()
    made = {}
    with context.database.begin() as connection:
        birds = create_project(connection, "birds", "labels", {}, now)
        create_project(connection, "films", "comparisons", {}, now)
        cats = create_project(connection, "cats", "labels", {"categories": ["yes", "no"]}, now)
        for name, scope, project in (
            ("admin", "admin", None),
            ("reader", "read", None),
            ("birds-read", "read", birds.id),
            ("birds-write", "write", birds.id),
            ("birds-admin", "admin", birds.id),
            ("cats-admin", "admin", cats.id),
        ):
            _, made[name] = create_token(connection, name, scope, now, project_id=project)
    return made


@pytest.fixture
def server(database_url, tmp_path):
    """A server on a SQLite file, and on PostgreSQL."""
    running, stop = start_server(database_url, tmp_path / "data")
    yield running
    stop()


@pytest.fixture(scope="session")
def serve_file(sqlite_template, tmp_path_factory):
    """A context manager: a server on a new SQLite file, with settings."""

    @contextmanager
    def serve(**settings):
        folder = tmp_path_factory.mktemp("server")
        path = folder / "annotruth.db"
        path.write_bytes(sqlite_template.read_bytes())
        running, stop = start_server(f"sqlite:///{path}", folder / "data", **settings)
        try:
            yield running
        finally:
            stop()

    return serve


@pytest.fixture
def sqlite_server(serve_file):
    """A server on a SQLite file."""
    with serve_file() as running:
        yield running


@pytest.fixture(scope="module")
def shared(serve_file):
    """A server for all tests of a file."""
    with serve_file() as running:
        yield running
