"""The worker on PostgreSQL: the same results, and its lock."""

import pytest
from sqlalchemy import text
from tests.serve.worker.conftest import make_events

from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.projects import hourly_counts, latest_snapshot
from annotruth.serve.store.rows import metadata
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.worker.loop import only_worker


@pytest.fixture
def database(postgresql_tables):
    postgresql_tables.run(f"truncate {', '.join(metadata.tables)} restart identity", "test")
    opened = Database.open(postgresql_tables.url("test"))
    yield opened
    opened.dispose()


def test_fits_updates_edits_and_deletions(database, project, post, loop, now):
    events = make_events()
    post([each._replace(annotation=f"a{k}") for k, each in enumerate(events)], "platform")
    assert loop.step()
    post([events[0]._replace(annotation="a0", label="class 1")], "platform")
    post([LabelEvent(annotation="a1", deleted=True)], "platform")
    assert loop.step()
    with database.connect() as connection:
        row = latest_snapshot(connection, project.id)
        assert (row.version, row.n_labels) == (2, 119)
        assert hourly_counts(connection, project.id) == {now: 121}


def end_lock(database):
    """End the sessions that hold a lock."""
    with database.begin() as connection:
        connection.execute(
            text(
                "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' "
                "and pid <> pg_backend_pid()"
            )
        )


def test_the_lock_is_that_of_the_database(database, tmp_path):
    with only_worker(database, tmp_path / "one", lambda: False) as check:
        check()
        with only_worker(database, tmp_path / "two", lambda: True) as other:
            assert other is None
    with only_worker(database, tmp_path / "two", lambda: True) as other:
        assert other is not None


def work_without_lock(database, folder):
    with only_worker(database, folder, lambda: False) as check:
        end_lock(database)
        check()


def test_a_lost_lock_is_an_error_that_the_loop_waits_for(database, tmp_path):
    with pytest.raises(DatabaseUnavailableError):
        work_without_lock(database, tmp_path)
