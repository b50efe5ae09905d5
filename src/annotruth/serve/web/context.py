"""`ServeContext`: what the parts of the web server share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from annotruth.serve.administration import Administration
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.snapshots import snapshots_folder
from annotruth.serve.web.access import AccessControl
from annotruth.serve.web.ingest import Ingest
from annotruth.serve.web.live import Live
from annotruth.serve.web.metrics import ServeMetrics
from annotruth.serve.web.snapshot_cache import SnapshotCache
from annotruth.serve.web.work_queue import WorkQueue


@dataclass(frozen=True, eq=False)
class ServeContext:
    """What the parts of the web server share.

    Attributes
    ----------
    config
        The settings of the service.
    database
        The database, for what is read and written apart from labels.
    ingest
        Where labels go: ``await context.ingest.append(project, source, events)``.
    snapshots
        The latest fit and advice of each project.
    queue
        What people should label now.
    live
        Live events of projects.
    metrics
        Counters of requests and of ingestion.
    access
        Tokens, logins and projects, looked up with a short memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> config = ServeConfig(database="sqlite:///labels.db", data_dir=Path("data"))
    >>> context = ServeContext.open(config)
    >>> context.close()
    """

    config: ServeConfig
    database: Database
    ingest: Ingest
    snapshots: SnapshotCache
    queue: WorkQueue
    live: Live
    metrics: ServeMetrics
    access: AccessControl

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
