"""Messages that arrive over HTTP: who may send them, and what becomes of them."""

import base64
import copy
import json
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from sqlalchemy import select
from starlette.testclient import TestClient
from tests.serve.conftest import add_connection

from annotruth.serve.config import ServeConfig
from annotruth.serve.hooks.message import new_secret, sign, sign_hex
from annotruth.serve.hooks.platforms import PLATFORMS
from annotruth.serve.hooks.router import make_hooks
from annotruth.serve.store.events import current_labels, last_seq
from annotruth.serve.store.projects import change_settings, create_project
from annotruth.serve.store.rows import find_one
from annotruth.serve.store.tables import PlatformConnection, gold
from annotruth.serve.web.guard import add_handlers
from annotruth.serve.web.parameters import ServeContext

SECRET = new_secret()


@pytest.fixture
def context(database_url, tmp_path):
    """The context of a web server."""
    opened = ServeContext.open(ServeConfig(database=database_url, data_dir=tmp_path / "data"))
    yield opened
    opened.close()


@pytest.fixture
def client(context):
    """A client of a server that has the hooks alone."""
    app = FastAPI()
    app.state.context = context
    add_handlers(app)
    app.include_router(make_hooks(context))
    with TestClient(app) as opened:
        yield opened


@pytest.fixture
def connect(context, now):
    """A function that adds a connection to a new project, and returns both."""

    def connect(kind="label-studio", project_kind="labels", **settings):
        with context.database.begin() as connection:
            project = create_project(connection, f"of-{kind}", project_kind, {}, now)
            return project, add_connection(connection, project.id, kind, settings, SECRET)

    return connect


@pytest.fixture
def labels(context):
    """A function that returns the current labels of a project."""

    def read(project):
        with context.database.connect() as connection:
            return [
                (each.source, each.item, each.annotator, each.label)
                for each in current_labels(connection, project.id)
            ]

    return read


def headers_of(kind, body):
    """Return the headers that authenticate a body."""
    if kind in ("argilla", "potato"):
        secret = SECRET if kind == "argilla" else "whsec_" + _base64(SECRET)
        return sign(secret, "msg_1", datetime.now(UTC), body)
    if kind == "cvat":
        return {"X-Signature-256": sign_hex(SECRET, body)}
    return {"X-Annotruth-Secret": SECRET}


def _base64(text):
    return base64.b64encode(text.encode()).decode()


def post(client, sender, content, headers=None):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    given = headers_of(sender.kind, body) if headers is None else headers
    return client.post(f"/hooks/{sender.id}", content=body, headers=given)


def test_messages_of_label_studio_become_labels(client, connect, labels, payload):
    project, sender = connect()
    for name, stored in (
        ("annotation_created", 1),
        ("annotation_created", 0),
        ("annotation_updated", 1),
        ("annotations_created", 2),
        ("annotations_deleted", 1),
    ):
        answer = post(client, sender, payload("label_studio", name))
        assert answer.status_code == 200
        assert answer.json()["stored"] == stored
    assert labels(project) == [
        (sender.source, "1", "1", "Positive"),
        (sender.source, "item-7", "1", "Positive"),
    ]


def test_messages_out_of_order(client, connect, labels, payload):
    project, sender = connect()
    post(client, sender, payload("label_studio", "annotation_updated"))
    post(client, sender, payload("label_studio", "annotation_created"))
    assert [label for *_, label in labels(project)] == ["Negative"]


def test_known_truths_of_label_studio(client, connect, context, labels, payload):
    project, sender = connect()
    post(client, sender, payload("label_studio", "annotation_created_for_item"))
    for _ in range(2):
        post(client, sender, payload("label_studio", "annotation_ground_truth"))
    assert labels(project) == []
    with context.database.connect() as connection:
        rows = connection.execute(select(gold)).all()
    assert [tuple(row) for row in rows] == [(project.id, "item-7", "Positive")]


VOTE = {"left": "a", "right": "b", "annotator": "ann", "outcome": "tie"}
POTATO = ("annotation_created", "annotation_updated", "annotation_created_ticked")


@pytest.mark.parametrize(
    ("kind", "project_kind", "settings", "messages", "expected"),
    [
        ("label-studio", "comparisons", {}, ["pairwise"], [("first answer", "1", "left")]),
        ("generic", "comparisons", {}, [VOTE], [("a", "ann", "tie")]),
        (
            *("argilla", "labels", {"dataset": "reviews"}),
            ["response_created", "response_updated"],
            [("review-17", "1f5c6d5e-9a4e-4f6c-9c7b-0d6f5e2a1b06", "negative")],
        ),
        ("argilla", "labels", {}, ["response_created", "response_deleted"], []),
        (
            *("potato", "labels", {"question": "sentiment"}, POTATO),
            [("i1", "ann", "Negative"), ("i2", "ann", "Negative")],
        ),
    ],
)
def test_messages_of_platforms_become_labels(
    client, connect, labels, payload, kind, project_kind, settings, messages, expected
):
    project, sender = connect(kind, project_kind, **settings)
    for each in messages:
        content = payload(kind.replace("-", "_"), each) if isinstance(each, str) else each
        content = json.loads(content["body"]) if kind == "potato" else content
        assert post(client, sender, content).json()["stored"] == 1
    assert labels(project) == [(sender.source, *each) for each in expected]


@pytest.mark.parametrize("scheme", ["secret", "hex", "standard"])
def test_messages_of_any_sender(client, connect, labels, scheme):
    project, sender = connect("generic")
    content = [
        {"item": "a", "annotator": "ann", "label": 4, "submitted": "2026-01-01T00:00:00Z"},
        {"item": "b", "annotator": "ann", "label": "x", "event_id": "e7"},
    ]
    body = json.dumps(content).encode()
    headers = {
        "secret": {"X-Annotruth-Secret": SECRET},
        "hex": {"X-Signature-256": sign_hex(SECRET, body)},
        "standard": sign(SECRET, "m1", datetime.now(UTC), body),
    }[scheme]
    assert post(client, sender, body, headers).json() == {
        "stored": 2,
        "repeated": 0,
        "known": True,
    }
    assert post(client, sender, body, headers).json()["repeated"] == 2
    assert [label for *_, label in labels(project)] == ["4", "x"]


@pytest.mark.parametrize("kind", PLATFORMS)
def test_wrong_signatures_store_nothing(client, connect, context, kind):
    project, sender = connect(kind)
    body = json.dumps({"item": "a", "annotator": "ann", "label": "x"}).encode()
    good = headers_of(kind, body)
    bad = [{}, {name: value[:-2] + "xx" for name, value in good.items()}]
    bad += [dict.fromkeys(good, ""), {"X-Annotruth-Secret": SECRET[:-1]}]
    bad += [{"Authorization": f"Bearer {SECRET}"}, {name: "é".encode() for name in good}]
    texts = set()
    for headers in bad:
        answer = post(client, sender, body, headers)
        assert answer.status_code == 401
        texts.add(answer.text)
    unknown = client.post("/hooks/999999", content=body, headers=good)
    assert unknown.status_code == 401
    assert texts == {unknown.text}
    with context.database.connect() as connection:
        assert last_seq(connection, project.id) == 0
        assert find_one(connection, PlatformConnection, id=sender.id).last_contact is None


@pytest.mark.parametrize("number", ["0", "-1", "x", "1e3", "٣", "9" * 30, "1%00", "1 or 1=1"])
def test_numbers_that_are_none(client, number):
    assert client.post(f"/hooks/{number}", content=b"{}").status_code in (401, 404)


def test_another_connections_secret_is_refused(client, context, connect, now):
    _, one = connect()
    with context.database.begin() as connection:
        project = create_project(connection, "another", "labels", {}, now)
        other = add_connection(connection, project.id, "label-studio", {}, new_secret())
    headers = {"X-Annotruth-Secret": SECRET}
    assert post(client, one, {"action": "PING"}, headers).status_code == 200
    assert post(client, other, {"action": "PING"}, headers).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[",
        b"null",
        b"[" * 100_000,
        b'{"action": "ANNOTATION_CREATED"}',
        b'{"action": "ANNOTATION_CREATED", "annotation": {"id": 1e999}}',
        b'{"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "a\\u0000b"}]}',
        b'{"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "' + b"a" * 600 + b'"}]}',
        b'{"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "\\ud800"}]}',
    ],
)
def test_malformed_messages(client, connect, context, body):
    project, sender = connect()
    answer = post(client, sender, body)
    assert answer.status_code == 400
    detail = answer.json()["detail"]
    assert detail
    assert "\n" not in detail
    with context.database.connect() as connection:
        assert last_seq(connection, project.id) == 0
        assert find_one(connection, PlatformConnection, id=sender.id).last_error


def test_an_error_is_kept_until_something_goes_well(client, connect, context, payload):
    _, sender = connect()

    def last():
        with context.database.connect() as connection:
            return find_one(connection, PlatformConnection, id=sender.id)

    post(client, sender, payload("label_studio", "taxonomy"))
    assert "several questions, tax, tone" in last().last_error
    assert last().last_contact is not None
    post(client, sender, payload("label_studio", "annotation_created"))
    assert last().last_error == ""


def test_long_errors_are_shortened(client, connect, context, payload):
    _, sender = connect()
    content = copy.deepcopy(payload("label_studio", "taxonomy"))
    content["annotation"]["result"][0]["from_name"] = "a " * 20_000
    assert len(post(client, sender, content).json()["detail"]) <= 500
    with context.database.connect() as connection:
        assert len(find_one(connection, PlatformConnection, id=sender.id).last_error) == 500


def test_labels_that_are_none_of_the_categories(client, connect, context, payload):
    project, sender = connect()
    with context.database.begin() as connection:
        change_settings(connection, project.id, {"categories": ["good", "bad"]})
    answer = post(client, sender, payload("label_studio", "annotation_created"))
    assert answer.status_code == 400
    assert "none of the project's categories" in answer.json()["detail"]


def test_unknown_actions_are_answered_and_counted(client, connect, context, payload):
    _, sender = connect()
    answer = post(client, sender, payload("label_studio", "tasks_created"))
    assert answer.status_code == 200
    assert answer.json() == {"stored": 0, "repeated": 0, "known": False}
    post(client, sender, {}, {})
    text = context.metrics.text().decode()
    assert 'annotruth_hook_messages_total{kind="label-studio",outcome="unknown"} 1.0' in text
    assert 'annotruth_hook_messages_total{kind="label-studio",outcome="refused"} 1.0' in text


@pytest.mark.parametrize(
    ("kind", "platform", "name"),
    [("label-studio", "label_studio", "tasks_deleted"), ("cvat", "cvat", "update_job")],
)
def test_messages_that_ask_for_a_poll(client, connect, context, payload, kind, platform, name):
    _, sender = connect(kind)
    assert post(client, sender, payload(platform, name)).status_code == 200
    with context.database.connect() as connection:
        assert "requested" in find_one(connection, PlatformConnection, id=sender.id).cursor


@pytest.fixture
def no_new_permits(monkeypatch):
    """Permits of refused senders are not filled up while a test runs, however long it takes."""
    monkeypatch.setattr("annotruth.serve.hooks.router._REFUSALS_PER_SECOND", 1e-6)


@pytest.mark.usefixtures("no_new_permits")  # before the client, which makes the limit
def test_guessing_is_slowed_down(client, connect):
    _, sender = connect()
    statuses = {post(client, sender, b"{}", {}).status_code for _ in range(60)}
    assert statuses == {401, 429}
    assert post(client, sender, {"action": "PING"}).status_code == 200
