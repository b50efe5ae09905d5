"""`ServeContext`: what the parts of the web server share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from annotruth.serve.administration import Administration
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.columns import utc_now
from annotruth.serve.store.database import Database
from annotruth.serve.store.snapshots import snapshots_folder
from annotruth.serve.web.auth import AccessControl
from annotruth.serve.web.guard import ServeMetrics
from annotruth.serve.web.ingest import Ingest
from annotruth.serve.web.live import Live
from annotruth.serve.web.results import SnapshotCache
from annotruth.serve.web.work_queue import WorkQueue


@dataclass(frozen=True, eq=False)
class ServeContext:
    """What the parts of the web server share."""

    config: ServeConfig  # the settings of the service
    database: Database  # the database, for what is read and written apart from labels
    ingest: Ingest  # where labels go: `await context.ingest.append(project, source, events)`
    snapshots: SnapshotCache  # the latest fit and advice of each project
    queue: WorkQueue  # what people should label now
    live: Live  # live events of projects
    metrics: ServeMetrics  # counters of requests and of ingestion
    access: AccessControl  # tokens, logins and projects, looked up with a short memory

    @classmethod
    def open(cls, config: ServeConfig) -> ServeContext:
        """Open the database of a server, and start the thread that writes labels."""
        metrics = ServeMetrics()
        database = Database.open(config.database)
        snapshots = SnapshotCache(database, snapshots_folder(config.data_dir))
        context = cls(
            config,
            database,
            Ingest(database, metrics),
            snapshots,
            WorkQueue(database, snapshots, seconds=config.lease_seconds),
            Live(database, snapshots, metrics),
            metrics,
            AccessControl(config, database),
        )
        context.ingest.start()
        return context

    @contextmanager
    def administer(self, actor: str) -> Iterator[Administration]:
        """Return what changes projects, tokens and connections; the block is one transaction."""
        with self.database.begin() as connection:
            yield Administration(connection, actor, utc_now())

    def close(self) -> None:
        """Write what waits, and close the database."""
        self.live.stop()
        self.ingest.stop()
        self.snapshots.close()
        self.database.dispose()


def context_of(request: Request) -> ServeContext:
    """Return the context of the application that a request is for."""
    return cast(ServeContext, request.app.state.context)
