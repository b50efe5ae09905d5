"""Ingestion: many requests in one commit, each with its own reply."""

import asyncio
import threading

import pytest
from tests.waiting import MAX_SECONDS

from annotruth.errors import InputError
from annotruth.serve.store.database import Database, DatabaseUnavailableError
from annotruth.serve.store.events import current_labels
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.web.guard import UnavailableError
from annotruth.serve.web.ingest import Ingest, _failure


def label(n, item="film", **more):
    return LabelEvent(item, f"person {n}", "good", event_id=str(n), **more)


@pytest.fixture
def ingest(database):
    made = Ingest(database)
    made.start()
    yield made
    made.stop()


def append_all(ingest, project, batches, queued=None):
    """Append batches at once; return what each was answered with.

    ``queued`` is set as soon as every batch waits to be written, or was refused.
    """

    async def run():
        sent = [asyncio.ensure_future(ingest.append(project, "api", batch)) for batch in batches]
        await asyncio.sleep(0)  # each runs up to where it waits for the commit
        if queued is not None:
            queued.set()
        return await asyncio.gather(*sent, return_exceptions=True)

    return asyncio.run(run())


def test_requests_are_answered_for_themselves_when_committed_together(
    ingest, database, project, monkeypatch
):
    # The first commit waits for all requests, so that those it has not got are in the second.
    queued, begin, n_commits = threading.Event(), Database.begin, []

    def slow_begin(self):
        assert queued.wait(MAX_SECONDS)
        n_commits.append(1)
        return begin(self)

    monkeypatch.setattr(Database, "begin", slow_begin)
    batches = [[label(0)], [label(1), label(2)], [label(2), label(3)], [label(1)], [label(0)]]
    done = append_all(ingest, project, batches, queued)
    assert len(n_commits) <= 2
    assert [(each.n_new, each.n_repeated) for each in done] == [
        (1, 0),
        (2, 0),
        (1, 1),
        (0, 1),
        (0, 1),
    ]
    with database.connect() as connection:
        assert len(current_labels(connection, project.id)) == 4


def test_wrong_events_are_refused_and_others_stored(ingest, database, project):
    bad = [label(1), LabelEvent("film", "ann", "x" * 20_000)]
    first, second = append_all(ingest, project, [bad, [label(2)]])
    assert isinstance(first, InputError)
    assert second.n_new == 1
    with database.connect() as connection:
        assert [each.event_id for each in current_labels(connection, project.id)] == ["2"]


def test_an_error_in_one_request_of_a_commit_fails_only_that(ingest, database, project):
    gone = project._replace(id=999)  # no such project, which only the database can know

    async def run():
        return await asyncio.gather(
            ingest.append(project, "api", [label(1)]),
            ingest.append(gone, "api", [label(2)]),
            ingest.append(project, "api", [label(3)]),
            return_exceptions=True,
        )

    first, second, third = asyncio.run(run())
    assert (first.n_new, third.n_new) == (1, 1)
    assert isinstance(second, InputError)


def test_nothing_is_stored_while_the_database_is_away(ingest, project, monkeypatch):
    def fail(self):
        raise DatabaseUnavailableError("postgresql://ann@host/db: the server is away")

    monkeypatch.setattr(Database, "begin", fail)
    (reply,) = append_all(ingest, project, [[label(1)]])
    assert isinstance(reply, UnavailableError)
    assert str(reply) == "the database does not answer, and nothing was stored: try again"
    monkeypatch.undo()
    (reply,) = append_all(ingest, project, [[label(1)]])
    assert reply.n_new == 1


def test_what_waits_is_limited(ingest, project, monkeypatch):
    monkeypatch.setattr("annotruth.serve.web.ingest._MAX_WAITING", 3)
    queued, begin = threading.Event(), Database.begin

    def slow_begin(self):
        assert queued.wait(MAX_SECONDS)
        return begin(self)

    monkeypatch.setattr(Database, "begin", slow_begin)
    replies = append_all(ingest, project, [[label(n), label(n + 100)] for n in range(4)], queued)
    refused = [each for each in replies if isinstance(each, UnavailableError)]
    assert 2 <= len(refused) <= 3  # one batch waits, and perhaps one is being written
    assert all("too many labels" in str(each) for each in refused)


def test_what_waits_is_written_at_a_stop(database, project):
    ingest = Ingest(database)

    async def run():
        ingest.start()
        waiting = [
            asyncio.ensure_future(ingest.append(project, "api", [label(n)])) for n in range(9)
        ]
        await asyncio.sleep(0)
        await asyncio.to_thread(ingest.stop)
        with pytest.raises(UnavailableError):
            await ingest.append(project, "api", [label(99)])
        return await asyncio.gather(*waiting)

    assert sum(each.n_new for each in asyncio.run(run())) == 9


def test_a_full_disk_is_said():
    error = DatabaseUnavailableError("labels.db: database or disk is full; free some space")
    assert str(_failure(error)) == (
        "the disk of the database is full, and nothing was stored: try again"
    )
