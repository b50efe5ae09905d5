"""Databases with the tables of the service: a file of SQLite, and PostgreSQL."""

import shutil
from datetime import UTC, datetime

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("alembic")
pytest.importorskip("fastapi")

from annotruth.serve.store.database import Database
from annotruth.serve.store.events import last_seq
from annotruth.serve.store.projects import (
    add_snapshot,
    create_project,
    folder_name,
    next_version,
    snapshots_folder,
)
from annotruth.serve.store.rows import add, metadata
from annotruth.serve.store.tables import PlatformConnection, Snapshot, Webhook


def add_connection(connection, project, kind, settings, secret) -> PlatformConnection:
    """Connect a platform to a project, given by its number."""
    values = {"project": project, "kind": kind, "settings": settings, "secret": secret}
    return add(connection, PlatformConnection, **values)


def add_webhook(connection, project, url, kinds, secret) -> Webhook:
    """Send alerts of a project, given by its number, to an address."""
    values = {"project": project, "url": url, "kinds": kinds, "secret": secret}
    return add(connection, Webhook, **values)


def publish_fit(connection, project, data_dir, fit, now, **changes) -> Snapshot:
    """Save a fit as the next snapshot of a project, as the worker does."""
    version = next_version(connection, project.id)
    folder = folder_name(project.id, version)
    fit.save(snapshots_folder(data_dir) / folder)
    row = Snapshot(
        project=project.id,
        version=version,
        created=now,
        last_seq=last_seq(connection, project.id),
        n_labels=fit.data.n_labels,
        model=fit.model,
        kind="refit",
        summary={},
        folder=folder,
    )._replace(**changes)
    assert add_snapshot(connection, row, project)
    return row


@pytest.fixture(scope="session")
def now() -> datetime:
    """A fixed time."""
    return datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    """A file with empty tables, to be copied."""
    path = tmp_path_factory.mktemp("template") / "annotruth.db"
    database = Database.open(f"sqlite:///{path}")
    database.upgrade()
    database.dispose()
    return path


@pytest.fixture(scope="session")
def postgresql_tables(postgresql_server):
    """A PostgreSQL server with a database "test" that has the tables."""
    pytest.importorskip("psycopg")
    postgresql_server.run("create database test")
    database = Database.open(postgresql_server.url("test"))
    database.upgrade()
    database.dispose()
    return postgresql_server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path) -> str:
    """The URL of a database with empty tables, of either kind."""
    if request.param == "sqlite":
        path = tmp_path / "annotruth.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    server = request.getfixturevalue("postgresql_tables")
    server.run(f"truncate {', '.join(metadata.tables)} restart identity", "test")
    return server.url("test")


@pytest.fixture
def database(database_url):
    """An open database with empty tables, of either kind."""
    opened = Database.open(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def sqlite_database(sqlite_template, tmp_path):
    """An open file of SQLite with empty tables."""
    path = tmp_path / "annotruth.db"
    shutil.copy(sqlite_template, path)
    opened = Database.open(f"sqlite:///{path}")
    yield opened
    opened.dispose()


@pytest.fixture
def project(database, now):
    """A project of labels."""
    with database.begin() as connection:
        return create_project(connection, "films", "labels", {}, now)
