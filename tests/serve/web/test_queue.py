"""What people should label now: leases, places, and the advice of a snapshot."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.serve.conftest import publish_fit

import annotruth as at
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import append_events
from annotruth.serve.store.projects import active_leases, create_project, set_content
from annotruth.serve.store.tables import LabelEvent
from annotruth.serve.web.results import SnapshotCache
from annotruth.serve.web.work_queue import WorkQueue

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = 600.0
LATER = NOW + timedelta(seconds=LEASE)


def make_project(database, *, kind="labels", items=(), **settings):
    with database.begin() as connection:
        project = create_project(connection, "films", kind, settings, NOW)
        set_content(connection, project.id, {item: {} for item in items}, NOW)
    return project


def queue_of(database, tmp_path) -> WorkQueue:
    return WorkQueue(database, SnapshotCache(database, tmp_path / "snapshots"), seconds=LEASE)


def give(database, project, item, annotator, label="good", **more):
    with database.begin() as connection:
        append_events(
            connection, project.id, "api", [LabelEvent(item, annotator, label, **more)], NOW
        )


def add_fit(database, project, tmp_path, fit):
    with database.begin() as connection:
        publish_fit(connection, project, tmp_path, fit, NOW)


def test_a_deleted_label_is_asked_for_again(sqlite_database, tmp_path):
    project = make_project(sqlite_database, items=["film 1"], labels_per_item=1)
    queue = queue_of(sqlite_database, tmp_path)
    for deletion in ({"item": "film 1", "annotator": "ann"}, {"annotation": "a1"}):
        named = {"annotation": deletion.get("annotation")}
        give(sqlite_database, project, "film 1", "ann", **named)
        assert queue.next_task(project, "bob", NOW) is None
        with sqlite_database.begin() as connection:
            event = LabelEvent(**deletion, deleted=True)
            append_events(connection, project.id, "api", [event], NOW)
        assert queue.next_task(project, "bob", NOW).item == "film 1"


def test_two_people_never_get_the_same_last_place(database_url, tmp_path):
    n_items, n_people, places = 5, 8, 2
    database = Database.open(database_url)
    items = [f"film {n}" for n in range(n_items)]
    project = make_project(database, items=items, labels_per_item=places)
    # One queue per thread, as in several processes: only the database is shared.
    queues = [queue_of(database, tmp_path) for _ in range(n_people)]

    def ask(n):
        given = queues[n].next_task(project, f"person {n}", NOW)
        if given is not None:
            give(database, project, given.item, f"person {n}")
        return None if given is None else given.item

    with ThreadPoolExecutor(n_people) as pool:
        found = [item for _ in range(3) for item in pool.map(ask, range(n_people))]
    counts = Counter(item for item in found if item is not None)
    assert counts == dict.fromkeys(items, places)
    assert found.count(None) == 3 * n_people - n_items * places
    database.dispose()


def test_a_person_gets_the_same_item_until_it_is_labelled(database, tmp_path):
    project = make_project(database, items=["a", "b"], labels_per_item=1)
    queue = queue_of(database, tmp_path)
    first = queue.next_task(project, "ann", NOW)
    again = queue.next_task(project, "ann", NOW + timedelta(seconds=10))
    assert first == again
    with database.connect() as connection:
        (lease,) = active_leases(connection, project.id, NOW)
    assert lease.expires == LATER + timedelta(seconds=10)
    give(database, project, first.item, "ann")
    assert queue.next_task(project, "ann", NOW).item != first.item
    give(database, project, "b", "ann")
    assert queue.next_task(project, "ann", NOW) is None


def test_expired_leases_return(database, tmp_path):
    project = make_project(database, items=["a"], labels_per_item=1)
    queue = queue_of(database, tmp_path)
    assert queue.next_task(project, "ann", NOW).item == "a"
    assert queue.next_task(project, "bob", LATER - timedelta(seconds=1)) is None
    assert queue.next_task(project, "bob", LATER).item == "a"
    assert queue.next_task(project, "ann", LATER) is None


def test_items_follow_the_advice_and_are_given_once_per_person(database, tmp_path):
    made = at.simulate.crowd(n_items=30, n_annotators=8, labels_per_item=3, seed=1)
    project = make_project(database)
    fit = at.fit(made.labels, "majority")
    rows = fit.label_table().to_pylist()
    with database.begin() as connection:
        events = [LabelEvent(str(r["item"]), str(r["annotator"]), str(r["label"])) for r in rows]
        append_events(connection, project.id, "api", events, NOW)
    add_fit(database, project, tmp_path, fit)
    advice = at.next_labels(fit)
    table = advice.item_table()
    add = dict(zip(map(str, table["item"].to_pylist()), table["add"].to_pylist(), strict=True))
    assert sum(add.values()) > 5
    queue = queue_of(database, tmp_path)
    person = str(rows[0]["annotator"])
    done = {str(r["item"]) for r in rows if str(r["annotator"]) == person}
    gains = dict(zip(map(str, table["item"].to_pylist()), table["gain"].to_pylist(), strict=True))
    wanted = sorted((i for i in add if add[i] and i not in done), key=lambda i: -gains[i])
    got = []
    while (given := queue.next_task(project, person, NOW)) is not None:
        got.append(given.item)
        give(database, project, given.item, person, label=str(rows[0]["label"]))
    assert got == wanted


@pytest.mark.parametrize("fitted", [False, True])
def test_pairs_are_given_once_per_person(sqlite_database, tmp_path, fitted):
    database = sqlite_database
    project = make_project(
        database, kind="comparisons", items=["item 0", "item 1", "x"], labels_per_item=1
    )
    if fitted:
        made = at.simulate.comparers(n_items=6, n_annotators=4, comparisons_per_annotator=6)
        add_fit(database, project, tmp_path, at.rank(made.comparisons, "bradley-terry"))
    queue = queue_of(database, tmp_path)
    pairs = []
    while (given := queue.next_task(project, "ann", NOW)) is not None:
        task = given
        pairs.append(frozenset(task))
        give(database, project, task.other_item, "ann", "left", other_item=task.item)
    assert len(pairs) == len(set(pairs)) > 2
    assert all(len(pair) == 2 for pair in pairs)


def test_the_endpoint_gives_content_and_advice(sqlite_server):
    content = {"item": "a", "content": {"text": "hello"}}
    sqlite_server.call("POST", "/projects/birds/items", content)
    reply = sqlite_server.call("GET", "/projects/birds/next?annotator=ann", token="birds-write")
    assert reply.status == 200
    assert (reply.body["item"], reply.body["content"]) == ("a", {"text": "hello"})
    assert reply.body["advice"] is None
    path = "/projects/birds/next?annotator=ann"
    assert sqlite_server.call("GET", path, token="birds-read").status == 403
    assert sqlite_server.call("GET", "/projects/birds/next").status == 422
    assert sqlite_server.call("GET", "/projects/birds/next?annotator=%00").status == 400
