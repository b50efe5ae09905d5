"""Runs the web server in a thread of the test's process."""

import threading
from collections.abc import Callable
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI
from tests.waiting import MAX_SECONDS, wait_until

from annotruth.serve.config import ServeConfig
from annotruth.serve.web.app import server_config


class StartedServer(NamedTuple):
    """The port that a server listens on, and a function that stops it."""

    port: int
    stop: Callable[[], None]


def start_in_thread(app: FastAPI, config: ServeConfig) -> StartedServer:
    """Start a server on the configuration's port, or on a free one if that is 0.

    After ``stop`` nothing of it runs any more: its log has a line for every request.
    """
    settings = server_config(app, config)
    settings.timeout_graceful_shutdown = 1
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), "the start of the web server")
    assert server.started, "the web server ended at its start"

    def stop() -> None:
        server.should_exit = True
        thread.join(MAX_SECONDS)
        assert not thread.is_alive(), "the web server does not stop"

    return StartedServer(server.servers[0].sockets[0].getsockname()[1], stop)
