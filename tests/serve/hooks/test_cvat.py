"""CVAT: webhooks and its API, in the shapes that its SDK 2.80 documents."""

import copy
import json
from datetime import UTC, datetime

import httpx2
import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.cvat import Cvat, CvatProject, item_of_frame
from annotruth.serve.hooks.message import HookMessage, HookProject, SignatureError, sign_hex
from annotruth.serve.hooks.polling import reconcile
from annotruth.serve.store.events import (
    AnnotationState,
    annotation_states,
    append_events,
    current_labels,
)

LABELS = HookProject("labels", {})
SETTINGS = {"url": "https://cvat.example.org", "project": 3, "token": "personal"}


@pytest.fixture
def api(payload):
    """What CVAT returns, by path."""
    return copy.deepcopy(payload("cvat", "api"))


@pytest.fixture
def poll(api):
    """A function that polls CVAT."""

    def run(known=None):
        def answer(request):
            assert request.headers["Authorization"] == "Bearer personal"
            content = api.get(request.url.path)
            return httpx2.Response(404 if content is None else 200, json=content)

        project = HookProject("labels", SETTINGS)
        with Cvat().open(project, transport=httpx2.MockTransport(answer)) as state:
            return reconcile(state, known or {}, "labels")

    return run


def states(polled):
    return {event.annotation: AnnotationState(event.event_id, event.deleted) for event in polled}


def test_a_job_makes_a_poll_necessary(payload):
    assert Cvat().read(payload("cvat", "update_job"), LABELS).needs_poll
    assert not Cvat().read(payload("cvat", "ping"), LABELS).is_known
    for content in ([], {}, {"event": 1}):
        with pytest.raises(InputError):
            Cvat().read(content, LABELS)


def test_signatures(payload, received):
    body = json.dumps(payload("cvat", "update_job")).encode()
    headers = {"x-signature-256": sign_hex("secret", body)}
    Cvat().verify("secret", HookMessage(headers, body, received))
    for given in (headers, {}):
        with pytest.raises(SignatureError):
            Cvat().verify("another", HookMessage(given, body, received))


def test_tags_of_completed_jobs(poll):
    polled = poll()
    votes = [
        (event.annotation, event.item, event.annotator, event.label)
        for event in polled.events
        if not event.deleted
    ]
    assert votes == [
        ("11:0", "birds/a.jpg", "ann", "owl"),
        ("11:1", "birds/b.jpg", "ann", "crow + owl"),
        ("12:0", "birds/a.jpg", "bob", "crow"),
        ("12:2", "birds/c.jpg", "bob", "crow"),
    ]
    assert polled.gold == {"birds/c.jpg": "crow"}
    assert polled.events[0].submitted == datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
    assert polled.problem == ""


def test_nothing_new_the_second_time(poll, api):
    first = poll()
    assert poll(states(first.events)).events == []
    api["/api/jobs"]["results"][1]["updated_date"] = "2026-03-01T12:00:00Z"  # but the same tags
    assert poll(states(first.events)).events == []


def test_changes_and_deletions(poll, api):
    known = states(poll().events)
    api["/api/jobs/11/annotations"]["tags"][0]["label_id"] = 8
    api["/api/jobs"]["results"][1]["updated_date"] = "2026-03-01T12:00:00Z"
    del api["/api/jobs/12/annotations"]["tags"][1]
    polled = poll(known)
    assert [event.deleted for event in polled.events] == [False, True]
    assert [(event.annotation, event.label, event.deleted) for event in polled.events] == [
        ("11:0", "crow", False),
        ("12:2", "", True),
    ]


def test_a_label_that_returns_is_another_event(poll, api):
    first = poll()
    api["/api/jobs/11/annotations"]["tags"][0]["label_id"] = 8
    api["/api/jobs"]["results"][1]["updated_date"] = "2026-03-01T12:00:00Z"
    second = poll(states(first.events))
    api["/api/jobs/11/annotations"]["tags"][0]["label_id"] = 7
    api["/api/jobs"]["results"][1]["updated_date"] = "2026-03-01T13:00:00Z"
    third = poll(states(first.events) | states(second.events))
    assert third.events[0].label == "owl"
    assert third.events[0].event_id != first.events[0].event_id


def test_a_tag_can_be_removed_once_more(poll, api, database, project):
    tags = api["/api/jobs/11/annotations"]["tags"]
    tag = tags[0]
    n_current = []
    for hour, is_there in enumerate((True, False, True, False)):
        tags[0:1] = [tag] if is_there else [{**tag, "frame": 1}]
        received = datetime(2026, 3, 1, 12 + hour, 30, tzinfo=UTC)
        api["/api/jobs"]["results"][1]["updated_date"] = f"2026-03-01T{12 + hour}:00:00Z"
        with database.begin() as connection:
            known = annotation_states(connection, project.id, "cvat:1")
            events = poll(known).events
            append_events(connection, project.id, "cvat:1", events, received)
            n_current.append(len(current_labels(connection, project.id, items=["birds/a.jpg"])))
    assert n_current == [2, 1, 2, 1]


def test_a_job_that_is_gone_or_reopened(poll, api):
    known = states(poll().events)
    jobs = api["/api/jobs"]["results"]
    jobs[2]["state"] = "in progress"
    api["/api/jobs/12"] = jobs[2]
    assert poll(known).events == []  # its labels stay until it is completed again
    del api["/api/jobs/12"]
    del jobs[2]
    assert [event.annotation for event in poll(known).events] == ["12:0", "12:2"]


def test_a_job_of_nobody(poll, api):
    api["/api/jobs"]["results"][1]["assignee"] = None
    polled = poll()
    assert "2 annotations could not be read" in polled.problem
    assert "job 11 has no assignee" in polled.problem
    assert len(polled.events) == 3


def test_items_of_frames():
    job = {"id": 1, "task_id": 4, "start_frame": 10, "stop_frame": 12}
    files = [{"name": name} for name in "abc"]
    assert item_of_frame(job, {"frames": files}, 11) == "b"
    assert item_of_frame(job, {"frames": [{"name": "film.mp4"}]}, 11) == "film.mp4#11"
    assert item_of_frame(job, {"frames": None}, 11) == "4#11"
    assert item_of_frame(job, {"frames": files, "included_frames": [2, 5, 9]}, 5) == "b"
    with pytest.raises(InputError, match="frame 7 of job 1"):
        item_of_frame(job, {"frames": files}, 7)


def test_pages_and_old_tokens():
    pages = {
        "1": {"next": "https://cvat.example.org/api/jobs?page=2", "results": [{"id": 1}]},
        "2": {"next": None, "results": [{"id": 2}]},
    }

    def answer(request):
        assert request.headers["Authorization"] == f"Token {'0a' * 20}"
        assert request.url.params["project_id"] == "3"
        return httpx2.Response(200, json=pages[request.url.params["page"]])

    settings = {**SETTINGS, "token": "0a" * 20}
    with CvatProject(settings, transport=httpx2.MockTransport(answer)) as cvat:
        assert [job["id"] for job in cvat.jobs()] == [1, 2]
