"""When connections are polled, and what is done with what is found."""

from datetime import timedelta

import httpx2
import pytest
from tests.serve.conftest import add_connection
from tests.serve.hooks.label_studio_twin import SETTINGS, LabelStudioTwin

import annotruth as at
from annotruth.serve.hooks.label_studio import LabelStudio
from annotruth.serve.hooks.message import HookProject
from annotruth.serve.hooks.polling import (
    POLL_EVERY,
    PREDICT_EVERY,
    is_poll_due,
    poll_due,
)
from annotruth.serve.store.events import append_events, current_labels
from annotruth.serve.store.projects import add_snapshot, folder_name, keep_contact, snapshots_folder
from annotruth.serve.store.rows import find_one, remove
from annotruth.serve.store.tables import PlatformConnection, Snapshot


@pytest.fixture
def twin():
    return LabelStudioTwin()


@pytest.fixture
def linked(database, project):
    """A connection to Label Studio."""
    with database.begin() as connection:
        settings = {**SETTINGS, "predictions": True}
        return add_connection(connection, project.id, "label-studio", settings, "secret")


@pytest.fixture
def poll(database, tmp_path, twin, monkeypatch):
    """A function that polls what is due at a time."""
    monkeypatch.setattr("annotruth.serve.hooks.polling._REST", 0)  # however long it takes here

    def run(now, transport=None):
        transport = twin.transport() if transport is None else transport
        poll_due(database, tmp_path, now, transport=transport, sleep=lambda _: None)

    return run


@pytest.fixture
def labels(database, project):
    """A function that returns the current labels."""

    def current():
        with database.connect() as connection:
            return [(each.item, each.label) for each in current_labels(connection, project.id)]

    return current


def state(database, linked):
    with database.connect() as connection:
        return find_one(connection, PlatformConnection, id=linked.id)


def test_a_lost_webhook_is_found_by_the_next_poll(
    database, project, linked, poll, twin, labels, now
):
    came = twin.annotate(1, "Positive")
    events = (
        LabelStudio()
        .read(twin.webhook("ANNOTATION_CREATED", came), HookProject("labels", {}))
        .events
    )
    with database.begin() as connection:
        append_events(connection, project.id, linked.source, events, now)
    twin.annotate(2, "Negative")
    poll(now)
    assert labels() == [("1", "Positive"), ("2", "Negative")]
    assert state(database, linked).last_error == ""
    assert state(database, linked).last_contact == now
    del twin.tasks[1]
    poll(now + timedelta(minutes=1))  # not due
    assert len(labels()) == 2
    poll(now + POLL_EVERY)
    assert labels() == [("2", "Negative")]


def test_a_message_may_ask_for_a_poll(database, linked, poll, twin, labels, now):
    poll(now)
    twin.annotate(1, "Positive")
    later = now + timedelta(seconds=5)
    with database.begin() as connection:
        keep_contact(connection, linked.id, later, cursor={"requested": later.isoformat()})
    poll(later + timedelta(seconds=1))
    assert labels() == [("1", "Positive")]
    assert not is_poll_due(state(database, linked).cursor, later + timedelta(seconds=2))


def test_what_goes_wrong_is_kept(database, linked, poll, now):
    poll(now, httpx2.MockTransport(lambda _: httpx2.Response(500)))
    assert "answers 500: is it up" in state(database, linked).last_error
    poll(now + POLL_EVERY)
    assert state(database, linked).last_error == ""


def test_an_annotation_that_cannot_be_stored_leaves_the_others_alone(
    database, linked, poll, twin, labels, now
):
    twin.annotate(1, "Positive")
    twin.annotate(2, "Negative")
    twin.annotate(3, "n" * 600, ground_truth=True)
    twin.tasks[1]["data"]["annotruth_item"] = "x" * 600
    poll(now)
    assert labels() == [("2", "Negative")]
    error = state(database, linked).last_error
    assert "2 annotations could not be read, the first because: the item 'xxx" in error


def test_an_answer_of_another_form_does_not_stop_other_connections(
    database, project, linked, poll, twin, labels, now
):
    twin.annotate(1, "Positive")
    with database.begin() as connection:
        settings = {**SETTINGS, "url": "https://cvat.example.org"}
        other = add_connection(connection, project.id, "cvat", settings, "secret")
        remove(connection, PlatformConnection, project=project.id, id=linked.id)
        again = add_connection(connection, project.id, "label-studio", SETTINGS, "secret")

    def answer(request):
        if request.url.host != "cvat.example.org":
            return twin.answer(request)
        if request.url.path.endswith("/annotations"):
            return httpx2.Response(200, json={"tags": [{"label_id": 7}]})  # of no frame
        jobs = [{"id": 11, "name": "owl", "state": "completed"}]
        return httpx2.Response(200, json={"next": None, "results": jobs})

    poll(now, httpx2.MockTransport(answer))
    assert "was not understood (KeyError: 'frame')" in state(database, other).last_error
    assert state(database, other).cursor["polled"] == now.isoformat()  # not again at once
    assert labels() == [("1", "Positive")]
    assert state(database, again).last_error == ""


def test_what_is_due_is_polled_once(database, linked, twin, labels, tmp_path):
    twin.annotate(1, "Positive")
    poll_due(database, tmp_path, transport=twin.transport())
    assert labels() == [("1", "Positive")]
    n_requests = len(twin.requests)
    poll_due(database, tmp_path, transport=twin.transport())  # nothing is due
    assert len(twin.requests) == n_requests


def test_connections_without_an_address_are_not_polled(database, project, poll, twin, now):
    with database.begin() as connection:
        add_connection(connection, project.id, "label-studio", {"question": "x"}, "secret")
    poll(now)
    assert twin.requests == []


@pytest.fixture
def snapshot(database, project, tmp_path, now):
    """A function that publishes a fit of labels."""

    def publish(version, rows):
        folder = folder_name(project.id, version)
        fit = at.fit(rows, "majority")
        fit.save(snapshots_folder(tmp_path) / folder)
        added = Snapshot(project.id, version, now, 1, len(rows), "majority", "refit", {}, folder)
        with database.begin() as connection:
            add_snapshot(connection, added, project)

    return publish


def test_predictions_of_new_snapshots_go_back(database, linked, poll, twin, snapshot, now):
    poll(now)
    assert twin.tasks[1]["predictions"] == []
    snapshot(1, [("1", "ann", "Positive"), ("2", "ann", "Negative")])
    poll(now + timedelta(seconds=1))
    assert [len(task["predictions"]) for task in twin.tasks.values()] == [1, 1, 0]
    assert state(database, linked).cursor["predicted"] == 1
    snapshot(2, [("1", "ann", "Negative"), ("2", "ann", "Negative")])
    poll(now + timedelta(seconds=2))  # too early
    value = twin.tasks[1]["predictions"][0]["result"][0]["value"]
    assert value == {"choices": ["Positive"]}
    poll(now + timedelta(seconds=1) + PREDICT_EVERY)
    assert twin.tasks[1]["predictions"][0]["result"][0]["value"] == {"choices": ["Negative"]}
    twin.requests.clear()
    poll(now + timedelta(seconds=2) + PREDICT_EVERY)  # no new snapshot
    assert twin.requests == []


def test_slow_predictions_are_written_back_less_often(
    database, linked, poll, twin, snapshot, now, monkeypatch
):
    monkeypatch.setattr("annotruth.serve.hooks.polling._REST", 10**9)
    snapshot(1, [("1", "ann", "Positive"), ("2", "ann", "Negative")])
    poll(now)
    snapshot(2, [("1", "ann", "Negative"), ("2", "ann", "Negative")])
    poll(now + PREDICT_EVERY)
    assert state(database, linked).cursor["predicted"] == 1


def test_predictions_that_fail_are_reported_and_tried_again(
    database, linked, poll, twin, snapshot, now
):
    poll(now)
    snapshot(1, [("1", "ann", "Positive"), ("2", "ann", "unknown there")])
    poll(now, httpx2.MockTransport(lambda _: httpx2.Response(403)))
    assert "predictions: Label Studio refuses the token" in state(database, linked).last_error
    poll(now + PREDICT_EVERY)
    assert "1 refused" in state(database, linked).last_error
    assert len(twin.tasks[1]["predictions"]) == 1
