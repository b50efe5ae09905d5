"""Opening, transactions, migrations, and one line for everything that goes wrong."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from tests.postgresql import PASSWORD
from tests.waiting import MAX_SECONDS

import annotruth as at
from annotruth.serve.store import database as module
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import append_events, current_labels, last_seq
from annotruth.serve.store.projects import create_project, get_project, list_projects
from annotruth.serve.store.rows import metadata
from annotruth.serve.store.tables import LabelEvent

OLD_SCHEMA = Path(__file__).parent / "schema_0001.sql"


def refused(open_or_use, kind=at.InputError) -> str:
    """Return the one line that refuses something."""
    with pytest.raises(kind) as caught:
        open_or_use()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    assert caught.value.__cause__ in (None, caught.value)
    return message


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "nonsense",
            "'nonsense' is not the URL of a database: give sqlite:///FILE or postgresql://",
        ),
        ("mysql://ann:secret@host/db", "databases of 'mysql' are not supported: give sqlite:///"),
        ("sqlite://", "names no file: give sqlite:///FILE"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite://host/file.db", "names no file"),
        ("sqlite:///file.db?mode=ro", "names no file"),
        ("sqlite:////dev/null/x.db", "/dev/null/x.db: Not a directory: choose a file in a folder"),
        ("sqlite:////nowhere/x.db", "/nowhere/x.db: No such file or directory: choose a file in"),
        ("postgresql://ann:secret@127.0.0.1:1/x", "connection refused"),
        ("postgresql://ann:secret@no.such.host.invalid/x", "try again when it can be reached"),
    ],
)
def test_urls_that_lead_nowhere(url, message):
    said = refused(lambda: Database.open(url, wait=0))
    assert message.lower() in said.lower()
    assert "secret" not in said


def test_files_that_are_no_databases_of_the_service(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\n" * 100)
    assert "file is not a database: choose another file" in refused(
        lambda: Database.open(f"sqlite:///{path}")
    )
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("create table project (x)")
    database = Database.open(f"sqlite:///{other}")
    assert "there are tables of another program (project): give annotruth" in refused(
        database.upgrade
    )
    database.dispose()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("drop table token", "tables are missing (token): restore a backup"),
        (
            "insert into alembic_version values ('0000')",
            "of a newer version of annotruth (schema 0000, 0002): install that version",
        ),
    ],
)
def test_damaged_tables_are_refused(sqlite_template, tmp_path, damage, message):
    path = tmp_path / "annotruth.db"
    shutil.copy(sqlite_template, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    database = Database.open(f"sqlite:///{path}")
    for use in (database.check_schema, database.upgrade):
        assert message in refused(use)
    database.dispose()


def test_the_file_is_for_its_owner_only(tmp_path):
    database = Database.open(f"sqlite:///{tmp_path / 'a #%.db'}")
    database.upgrade()
    database.dispose()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"a #%.db": 0o600}


def test_a_full_disk_a_read_only_file_and_a_lock(sqlite_database, now, monkeypatch):
    def fill(pragma):
        with sqlite_database.begin() as connection:
            connection.exec_driver_sql(pragma)
            project = create_project(connection, "films", "labels", {}, now)
            events = [LabelEvent(f"{n}", "ann", "x" * 1000) for n in range(500)]
            append_events(connection, project.id, "api", events, now)

    for pragma, message in [
        ("pragma max_page_count = 60", "database or disk is full; free some space"),
        ("pragma query_only = on", "readonly database; choose a file and a folder that you"),
    ]:
        said = refused(lambda pragma=pragma: fill(pragma), DatabaseUnavailableError)
        assert message in said
        sqlite_database.dispose()  # the pragma is of the connection
    with sqlite_database.connect() as connection:
        assert list_projects(connection) == []

    monkeypatch.setattr(module, "_SECONDS_FOR_LOCK", 0)
    impatient = Database.open(f"sqlite:///{sqlite_database.name}")
    with sqlite_database.begin():
        message = refused(lambda: impatient.begin().__enter__(), DatabaseUnavailableError)
    assert "database is locked; another program holds it: try again" in message
    impatient.dispose()


@contextmanager
def another_user():
    """Have the rights of a user who owns nothing; the superuser may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_to(sqlite_template):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(sqlite_template, folder / "there.db")
        (folder / "there.db").chmod(0o666)
        folder.chmod(0o555)

        def create():
            with Database.open(f"sqlite:///{folder / 'there.db'}").begin() as connection:
                connection.execute(text("delete from project"))

        with another_user():
            message = refused(create, DatabaseUnavailableError)
            assert "choose a file and a folder that you may write to" in message
            message = refused(
                lambda: Database.open(f"sqlite:///{folder / 'new.db'}"), DatabaseUnavailableError
            )
            assert "new.db: Permission denied: choose a file in a folder" in message
        folder.chmod(0o755)


def test_a_server_that_refuses_is_not_asked_again(postgresql_tables):
    server = postgresql_tables
    wrong = server.url("test").replace("se%2F", "no%2F")
    assert "check the user and the password" in refused(lambda: Database.open(wrong, wait=60))
    missing = server.url("nowhere")
    said = refused(lambda: Database.open(missing, wait=60))
    assert 'database "nowhere" does not exist; create it first' in said
    assert PASSWORD not in said


def test_a_server_that_stops_and_starts(postgresql_tables):
    server = postgresql_tables
    database = Database.open(server.url("test"))

    def read():
        with database.connect() as connection:
            return list_projects(connection)

    read()
    server.stop()
    try:
        said = refused(read, DatabaseUnavailableError)
        assert said.endswith("try again when it can be reached")
        starting = threading.Timer(0.5, server.start)
        starting.start()
        later = Database.open(server.url("test"), wait=MAX_SECONDS)
        later.dispose()
        starting.join()
    finally:
        if not (server.folder / "data" / "postmaster.pid").exists():
            server.start()
    read()
    database.dispose()


def test_reads_of_one_block_are_of_one_moment(database, project, now):
    with database.connect() as reader:
        assert last_seq(reader, project.id) == 0
        with database.begin() as writer:
            append_events(writer, project.id, "api", [LabelEvent("a", "ann", "x")], now)
        assert last_seq(reader, project.id) == 0
    with database.connect() as reader:
        assert last_seq(reader, project.id) == 1


def test_events_are_numbered_in_the_order_of_commits(database, project, now):
    def append(connection, item):
        event = LabelEvent(item, "ann", "x")
        return append_events(connection, project.id, "api", [event], now).last_seq

    later = []

    def append_later():
        with database.begin() as connection:
            later.append(append(connection, "b"))

    with database.begin() as connection:
        first = append(connection, "a")
        thread = threading.Thread(target=append_later)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()  # waits for the commit
    thread.join()
    assert later[0] > first


def test_text_that_cannot_be_stored_is_refused(database, project):
    with database.connect() as connection:
        for bad in ("a\0", "\ud800"):
            refused(lambda bad=bad: get_project(connection, bad))
            refused(lambda bad=bad: current_labels(connection, project.id, items=[bad]))
        assert get_project(connection, project.name) == project


def differences(connection):
    """Return how the tables differ from those of the classes of rows."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return compare_metadata(context, metadata)


def test_new_databases_have_the_tables(database):
    with database.connect() as connection:
        assert differences(connection) == []
        if database.is_sqlite:
            created = connection.scalar(text("select sql from sqlite_master where name = 'event'"))
            assert "AUTOINCREMENT" in created


def test_a_file_of_the_first_schema_is_upgraded(tmp_path):
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD_SCHEMA.read_text())
    database = Database.open(f"sqlite:///{path}")
    database.upgrade()
    assert database.schema_state() == "current"
    with database.connect() as connection:
        assert differences(connection) == []
        project = get_project(connection, "films")
        found = [(*each.slot, each.label) for each in current_labels(connection, project.id)]
    database.dispose()
    assert found == [("film 1", "bob", "bad"), ("film 1", "ann", "bad")]


NEXT_REVISION = """
import sqlalchemy as sa
from alembic import op
revision = "next"
down_revision = {head!r}
def upgrade():
    op.add_column("project", sa.Column("note", sa.Text()))
"""
UPGRADE = """
import sys
from pathlib import Path
from annotruth.serve.store import database
if sys.argv[2]:
    database._MIGRATIONS = Path(sys.argv[2])
opened = database.Database.open(sys.argv[1])
opened.upgrade()
print(opened.schema_state())
opened.dispose()
"""


def upgrade_at_once(url, folder=""):
    """Upgrade in two processes at once; return what each printed."""
    command = [sys.executable, "-c", UPGRADE, url, str(folder)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    return [process.communicate(timeout=MAX_SECONDS) for process in running]


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
        return
    server = request.getfixturevalue("postgresql_tables")
    server.run("create database empty")
    yield server.url("empty")
    server.run("drop database empty")


def test_processes_that_upgrade_at_once(empty_url, tmp_path, monkeypatch):
    assert upgrade_at_once(empty_url) == [("current\n", "")] * 2
    head = Database.open(empty_url)
    folder = tmp_path / "migrations"
    shutil.copytree(module._MIGRATIONS, folder)
    revision = NEXT_REVISION.format(head="0002")
    (folder / "versions" / "rev_next.py").write_text(revision)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_MIGRATIONS", folder)
        assert head.schema_state() == "old"
        assert "run `annotruth serve upgrade`" in refused(head.check_schema)
    assert upgrade_at_once(empty_url, folder) == [("current\n", "")] * 2
    # This version does not know that revision.
    for use in (head.upgrade, head.check_schema):
        assert "of a newer version of annotruth (schema next): install that" in refused(use)
    head.dispose()
