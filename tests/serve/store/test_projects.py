"""Projects, what is known of items and annotators, tokens, leases, snapshots and alerts."""

from datetime import timedelta
from pathlib import Path

import pytest

import annotruth as at
from annotruth.serve.administration import create_token, find_token, list_tokens, revoke_token
from annotruth.serve.store.projects import (
    active_leases,
    add_alert,
    add_snapshot,
    all_gold,
    annotator_history,
    change_settings,
    create_project,
    due_deliveries,
    folder_name,
    get_content,
    get_gold,
    get_project,
    get_traits,
    get_worker_state,
    hourly_counts,
    items_with_content,
    last_deliveries,
    latest_annotator_history,
    latest_snapshot,
    list_projects,
    next_version,
    remove_old_snapshots,
    remove_orphans,
    set_content,
    set_gold,
    set_traits,
    snapshot_history,
    snapshots_folder,
    take_lease,
)
from annotruth.serve.store.rows import (
    add,
    add_all,
    change,
    count,
    find,
    find_one,
    latest,
    put,
    remove,
)
from annotruth.serve.store.tables import (
    Alert,
    AnnotatorHistory,
    Delivery,
    HourlyCount,
    Lease,
    Snapshot,
    Token,
    Webhook,
    WorkerState,
    alert,
)

HOUR = timedelta(hours=1)


def test_projects_are_created_listed_and_changed(database, project, now):
    with database.begin() as connection:
        pairs = create_project(connection, "pairs", "comparisons", {"model": "auto"}, now)
        changed = change_settings(connection, pairs.id, {"model": None, "cost_per_label": 0.9})
    assert changed == pairs._replace(settings={"cost_per_label": 0.9})
    with database.connect() as connection:
        assert list_projects(connection) == [project, changed]
        assert get_project(connection, "pairs") == changed
        assert get_project(connection, "other") is None
    for name, kind, message in [
        ("films", "labels", "there is a project 'films' already"),
        ("Films!", "labels", "lower-case letters"),
        ("", "labels", "1 to 60"),
        ("new", "votes", "unknown kind 'votes': choose labels, comparisons"),
    ]:
        with pytest.raises(at.InputError, match=message), database.begin() as connection:
            create_project(connection, name, kind, {}, now)


def test_tokens_are_found_by_their_text_while_valid(database, project, now):
    day = timedelta(days=1)
    with database.begin() as connection:
        token, text = create_token(connection, "ci", "write", now, project_id=project.id)
        _, short = create_token(connection, "guest", "read", now, expires=now + day)
        with pytest.raises(at.InputError, match="choose read, write, admin"):
            create_token(connection, "x", "root", now)
    with database.begin() as connection:
        assert find_token(connection, text, now) == token
        for wrong in ("", "at_", text[:-1], text + "x", text.replace("at_", "xx_"), "at_é_x"):
            assert find_token(connection, wrong, now) is None
        assert find_token(connection, f"at_{token.id}\0_x", now) is None
        assert find_token(connection, short, now + day / 2) is not None
        assert find_token(connection, short, now + day) is None
        change(connection, Token, {"last_used": now + day}, id=token.id)
        assert find_token(connection, text, now).last_used == now + day
        assert revoke_token(connection, token.id, now)
        assert not revoke_token(connection, token.id, now)
        assert find_token(connection, text, now) is None
        assert [each.name for each in list_tokens(connection, project.id)] == ["ci"]
        assert len(list_tokens(connection)) == 2
    assert token.allows("write", project.id)
    assert not token.allows("write", project.id + 1)
    assert not token.allows("read", None)


def test_secrets_of_tokens_are_not_stored(sqlite_database, now):
    with sqlite_database.begin() as connection:
        _, text = create_token(connection, "ci", "admin", now)
    sqlite_database.dispose()
    secret = text.split("_", 2)[2].encode()
    assert secret not in Path(sqlite_database.name).read_bytes()


def test_gold_content_and_traits_are_set_and_replaced(database, project, now):
    with database.begin() as connection:
        set_gold(connection, project.id, {"film 1": "good", "film 2": "bad"})
        set_gold(connection, project.id, {"film 1": "bad", "film 2": None})
        set_gold(connection, project.id, {})
        assert all_gold(connection, project.id) == {"film 1": "bad"}
        assert get_gold(connection, project.id, "film 2") is None
        set_content(connection, project.id, {"b": {"text": "x"}}, now)
        set_content(connection, project.id, {"a": "y"}, now + HOUR)
        assert items_with_content(connection, project.id) == ["b", "a"]
        assert get_content(connection, project.id, "b") == {"text": "x"}
        assert get_content(connection, project.id, "c") is None
        set_traits(connection, project.id, {"ann": {"group": 1}})
        set_traits(connection, project.id, {"ann": {"group": 2}, "bob": {}})
        assert get_traits(connection, project.id, "ann") == {"group": 2}
        assert get_traits(connection, project.id, "cy") == {}
        for gold in ({" ": "good"}, {"film 1": "nan"}):
            with pytest.raises(at.InputError, match="counts as missing"):
                set_gold(connection, project.id, gold)
        for change in (
            lambda: set_gold(connection, project.id, {"a\0": "x"}),
            lambda: set_gold(connection, project.id, {"a": "\ud800"}),
            lambda: set_content(connection, project.id, {"a" * 600: 1}, now),
            lambda: set_traits(connection, project.id, {"\0": {}}),
        ):
            with pytest.raises(at.InputError):
                change()


def test_leases_are_taken_extended_released_and_expire(database, project, now):
    with database.begin() as connection:

        def take(annotator, time=now, places=1):
            return take_lease(
                connection, project.id, "film", annotator, time, time + HOUR, places=places
            )

        assert take("ann")
        assert not take("bob")
        assert take("bob", places=2)
        assert take("ann", now + HOUR / 2, places=2)
        assert [each.annotator for each in active_leases(connection, project.id, now)] == [
            "bob",
            "ann",
        ]
        assert len(active_leases(connection, project.id, now + HOUR)) == 1
        assert active_leases(connection, project.id, now, item="other") == []
        assert len(active_leases(connection, project.id, now, annotator="ann")) == 1
        assert take("cy", now + HOUR, places=2)  # bob's has expired, and is removed
        assert remove(connection, Lease, project=project.id, item="film", annotator="ann")
        assert not remove(connection, Lease, project=project.id, item="film", annotator="ann")
        assert [each.annotator for each in active_leases(connection, project.id, now)] == ["cy"]


def save(database, data_dir, project, now) -> Snapshot:
    """Add a snapshot with a folder, as the worker does."""
    with database.begin() as connection:
        version = next_version(connection, project.id)
        folder = folder_name(project.id, version)
        (snapshots_folder(data_dir) / folder).mkdir(parents=True)
        added = Snapshot(
            project.id, version, now, 10 * version, 5, "gpm", "refit", {"n": version}, folder
        )
        assert add_snapshot(connection, added, project)
        remove_old_snapshots(connection, data_dir, project.id)
    return added


def test_the_folders_of_the_last_two_snapshots_are_kept(database, project, now, tmp_path):
    with database.connect() as connection:
        assert latest_snapshot(connection, project.id) is None
    saved = [save(database, tmp_path, project, now) for _ in range(4)]
    orphan = snapshots_folder(tmp_path) / str(project.id) / "9"
    orphan.mkdir()
    with database.begin() as connection:
        remove_orphans(connection, tmp_path)
        assert latest_snapshot(connection, project.id) == saved[-1]
        found = snapshot_history(connection, project.id)
        assert found == [each._replace(folder="") for each in saved[:2]] + saved[2:]
        assert snapshot_history(connection, project.id, since=1, limit=2) == saved[2:]
    left = sorted(path.name for path in (snapshots_folder(tmp_path) / str(project.id)).iterdir())
    assert left == ["3", "4"]


def test_a_snapshot_from_before_an_erasure_is_not_added(database, project, now):
    added = Snapshot(project.id, 1, now, 1, 1, "gpm", "refit", {}, "1/1")
    with database.begin() as connection:
        assert not add_snapshot(connection, added, project._replace(erasures=-1))
        assert latest_snapshot(connection, project.id) is None
        assert add_snapshot(connection, added, get_project(connection, project.name))


def test_histories_are_kept_by_annotator_and_hour(database, project, now):
    row = AnnotatorHistory(project.id, "ann", 1, now, 5, 0.9, 0.8, None, "serious", "keep")
    rows = [row, row._replace(annotator="bob"), row._replace(version=3, verdict="drop")]
    with database.begin() as connection:
        add_all(connection, [])
        add_all(connection, rows)
        assert annotator_history(connection, project.id, "ann") == [rows[0], rows[2]]
        assert annotator_history(connection, project.id) == rows
        assert latest_annotator_history(connection, project.id) == {"ann": rows[2], "bob": rows[1]}
        for counts in ({now: 3, now + HOUR: 1}, {now + HOUR: 2}):
            put(connection, [HourlyCount(project.id, hour, n) for hour, n in counts.items()])
        assert hourly_counts(connection, project.id) == {now: 3, now + HOUR: 2}
        assert hourly_counts(connection, project.id, now + HOUR) == {now + HOUR: 2}
        assert hourly_counts(connection, project.id, limit=1) == {now + HOUR: 2}
        assert get_worker_state(connection, project.id) == WorkerState(project.id)
        for state in (
            WorkerState(project.id, 7, now),
            WorkerState(project.id, 9, now, "too few labels"),
        ):
            put(connection, [state])
            assert get_worker_state(connection, project.id) == state


@pytest.fixture
def add_webhook(database, project):
    """A function that adds a webhook to the project, or to another one."""

    def add_webhook(kind, to=None, **more):
        values = {"url": "https://example.org/hook", "kinds": [kind], "secret": "whsec_x", **more}
        with database.begin() as connection:
            return add(connection, Webhook, project=(to or project).id, **values)

    return add_webhook


def test_alerts_are_delivered_to_the_webhooks_for_their_kind(database, project, add_webhook, now):
    minute = timedelta(minutes=1)
    with database.begin() as connection:
        other = create_project(connection, "other", "labels", {}, now)
    chosen = add_webhook("finished")
    add_webhook("verdict")
    add_webhook("finished", to=other)
    add_webhook("finished", active=False)
    with database.begin() as connection:

        def due(time=now):
            return due_deliveries(connection, time, limit_per_webhook=10)

        alert = add_alert(
            connection, project.id, "finished", "film 1", "Film 1", {"n": 3}, created=now
        )
        assert find_one(connection, Alert, id=alert.id) == alert
        assert due(now - minute) == []
        (delivery,) = due()
        assert (delivery.webhook, delivery.alert) == (chosen.id, alert.id)
        change(connection, Delivery, {"next_attempt": now + minute}, id=delivery.id)
        assert due() == []
        assert [each.id for each in due(now + minute)] == [delivery.id]
        change(connection, Delivery, {"status": "delivered"}, id=delivery.id)
        assert due(now + minute) == []
        last = last_deliveries(connection, find(connection, Webhook, project=project.id))
        assert {number: each.status for number, each in last.items()} == {chosen.id: "delivered"}
        assert not remove(connection, Webhook, project=other.id, id=chosen.id)
        assert remove(connection, Webhook, project=project.id, id=chosen.id)
        assert find(connection, Delivery, webhook=chosen.id) == []
        assert len(find(connection, Webhook, project=project.id)) == 2


def test_rows_are_found_in_an_order_a_page_at_a_time_counted_and_changed(database, project, now):
    with database.begin() as connection:
        for number in range(5):
            add_alert(connection, project.id, "finished", str(number), "", {}, created=now)
        assert not change(connection, Alert, {"seen": True}, project=project.id + 1)
        assert change(connection, Alert, {"seen": True}, project=project.id, seen=False)
        assert not change(connection, Alert, {"seen": True}, project=project.id, seen=False)
        add_alert(connection, project.id, "verdict", "5", "", {}, created=now)
        shown = latest(connection, Alert, limit=2, offset=1)
        assert [each.subject for each in shown] == ["4", "3"]
        assert [each.subject for each in find(connection, Alert, seen=False)] == ["5"]
        assert count(connection, Alert, project=project.id) == 6
        assert count(connection, Alert, alert.c.kind.in_(["finished"]), project=project.id) == 5


def test_secrets_are_not_shown(add_webhook):
    made = add_webhook("finished")
    assert "whsec_x" not in f"{made} {made!r}"
