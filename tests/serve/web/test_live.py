"""Live events of a project, and what happens while PostgreSQL is away."""

import http.client
import json
import threading
import time

from tests.serve.web.conftest import start_server
from tests.waiting import MAX_SECONDS, wait_until


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
    wait_until(lambda: live.n_listeners == 0 and live._tasks == {}, "the end of the stream")


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
