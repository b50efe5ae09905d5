"""Results of the latest snapshot, and live events."""

import http.client
import json
import threading
import time

import pytest
from tests.serve.conftest import publish_fit
from tests.serve.web.conftest import start_server
from tests.waiting import MAX_SECONDS, wait_until

import annotruth as at
from annotruth.serve.store.projects import get_project
from annotruth.serve.store.rows import add_all, utc_now
from annotruth.serve.store.tables import AnnotatorHistory


@pytest.fixture
def fitted(sqlite_server):
    """A server whose project "birds" has labels and a snapshot of them."""
    made = at.simulate.crowd(n_items=25, n_annotators=6, labels_per_item=3, seed=3)
    fit = at.fit(made.labels, "majority")
    labels = [
        {name: str(row[name]) for name in ("item", "annotator", "label")}
        for row in fit.label_table().to_pylist()
    ]
    sqlite_server.call("POST", "/projects/birds/labels", labels)
    add_version(sqlite_server, fit, 1)
    return sqlite_server


def add_version(server, fit, version):
    context, now = server.context, utc_now()
    with context.database.begin() as connection:
        project = get_project(connection, "birds")
        figures = {"version": version, "summary": {"n_items": 25}}
        publish_fit(connection, project, context.config.data_dir, fit, now, **figures)
        history = AnnotatorHistory(project.id, "1", version, now, 9, 0.9, 0.8, 0.95, "", "keep")
        add_all(connection, [history])


def test_items_come_in_parts_and_sorted(fitted):
    first = fitted.call("GET", "/projects/birds/items?sort=gain&order=desc&limit=10").body
    assert (first["version"], first["total"], first["next"]) == (1, 25, 10)
    rest = fitted.call("GET", "/projects/birds/items?sort=gain&order=desc&limit=20&cursor=10").body
    assert rest["next"] is None
    gains = [row["gain"] for row in first["items"] + rest["items"]]
    assert gains == sorted(gains, reverse=True)
    assert len({row["item"] for row in first["items"] + rest["items"]}) == 25
    needs = fitted.call("GET", "/projects/birds/items?status=needs%20labels&limit=1000").body
    assert {row["status"] for row in needs["items"]} == {"needs labels"}
    assert 0 < needs["total"] == len(needs["items"]) <= 25


@pytest.mark.parametrize(
    "query", ["sort=nothing", "limit=0", "limit=1001", "cursor=-1", "order=up"]
)
def test_wrong_parameters_are_refused(fitted, query):
    assert fitted.call("GET", f"/projects/birds/items?{query}").status == 422


def test_one_item_and_one_annotator(fitted):
    item = fitted.call("GET", "/projects/birds/items/7").body
    assert item["result"]["n_labels"] == len(item["labels"]) == 3
    person = fitted.call("GET", "/projects/birds/annotators/1").body
    assert person["result"]["n_labels"] == len(person["labels"])
    assert [each["verdict"] for each in person["history"]] == ["keep"]
    assert fitted.call("GET", "/projects/birds/items/none").status == 404
    listed = fitted.call("GET", "/projects/birds/annotators?sort=n_labels").body
    assert listed["total"] == 6
    assert {"verdict", "ask", "reason"} <= listed["annotators"][0].keys()


def test_advice_and_snapshots(fitted):
    advice = fitted.call("GET", "/projects/birds/advice?limit=3").body
    assert (advice["version"], len(advice["assignments"])) == (1, 3)
    assert advice["counts"]["n_labels"] == 75
    (snapshot,) = fitted.call("GET", "/projects/birds/snapshots").body
    assert (snapshot["version"], snapshot["summary"]) == (1, {"n_items": 25})
    assert "folder" not in snapshot


def test_a_version_is_announced_when_its_results_are_served(fitted):
    def served():
        return fitted.call("GET", "/projects/birds/items?limit=1").body["version"]

    assert served() == 1
    connection = http.client.HTTPConnection("127.0.0.1", fitted.port, timeout=MAX_SECONDS)
    token = {"Authorization": f"Bearer {fitted.tokens['birds-read']}"}
    connection.request("GET", "/api/v1/projects/birds/events", headers=token)
    response = connection.getresponse()
    assert next_event(response)["version"] == 1
    add_version(fitted, fitted.context.snapshots.get(1).fit, 2)
    assert next_event(response) == {"version": 2}
    assert served() == 2
    connection.close()
    response.close()


def test_without_a_snapshot_there_are_no_results(sqlite_server):
    for path in ("items", "annotators", "advice"):
        assert sqlite_server.call("GET", f"/projects/birds/{path}").body["version"] is None


def test_open_pages_learn_of_new_labels(sqlite_server):
    connection = http.client.HTTPConnection("127.0.0.1", sqlite_server.port, timeout=MAX_SECONDS)
    token = {"Authorization": f"Bearer {sqlite_server.tokens['birds-read']}"}
    connection.request("GET", "/api/v1/projects/birds/events", headers=token)
    response = connection.getresponse()
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert next_event(response) == {"last_seq": 0, "version": 0, "alert": 0}
    assert sqlite_server.context.live.n_listeners == 1
    label = {"item": "a", "annotator": "b", "label": "c"}
    last = sqlite_server.call("POST", "/projects/birds/labels", label).body["last_seq"]
    assert next_event(response) == {"last_seq": last}
    connection.close()
    response.close()
    sqlite_server.call("POST", "/projects/birds/labels", label)
    live = sqlite_server.context.live
    wait_until(lambda: live.n_listeners == 0, "the end of the stream")


def test_too_many_listeners_get_503(sqlite_server, monkeypatch):
    monkeypatch.setattr("annotruth.serve.web.results.MAX_LISTENERS", 0)
    reply = sqlite_server.call("GET", "/projects/birds/events")
    assert (reply.status, reply.headers["retry-after"]) == (503, "2")
    assert reply.body == {"detail": "too many pages listen already: try again later"}


def next_event(response):
    lines = []
    while line := response.readline().strip():
        lines.append(line)
    assert lines[0] == b"event: change"
    return json.loads(lines[1].removeprefix(b"data: "))


def test_no_acknowledged_label_is_lost_when_postgresql_stops(postgresql_tables, tmp_path):
    from annotruth.serve.store.events import current_labels
    from annotruth.serve.store.rows import metadata

    postgresql_tables.run(f"truncate {', '.join(metadata.tables)} restart identity", "test")
    server, stop = start_server(postgresql_tables.url("test"), tmp_path / "data")
    acknowledged, refused, ended = [], [], threading.Event()

    def post():
        n = 0
        while not ended.is_set():
            n += 1
            label = {"item": f"i{n}", "annotator": "ann", "label": "x", "event_id": str(n)}
            reply = server.call("POST", "/projects/birds/labels", label)
            if reply.status == 200:
                acknowledged.append(str(n))
            else:
                refused.append(reply)
                time.sleep(0.02)

    client = threading.Thread(target=post)
    client.start()
    try:
        wait_until(lambda: len(acknowledged) > 5, "labels that are stored")
        postgresql_tables.stop()
        wait_until(lambda: len(refused) > 3, "labels that are refused")
    finally:
        postgresql_tables.start()
    before = len(acknowledged)
    wait_until(lambda: len(acknowledged) > before + 5, "labels that are stored again")
    ended.set()
    client.join()
    assert {reply.status for reply in refused} == {503}
    assert {reply.headers["retry-after"] for reply in refused} == {"2"}
    details = {reply.body["detail"] for reply in refused}
    assert all(detail.startswith("the database does not answer") for detail in details)
    with server.context.database.connect() as connection:
        stored = [each.event_id for each in current_labels(connection, 1)]
    assert len(stored) == len(set(stored))
    assert set(acknowledged) <= set(stored)
    stop()
