"""Alerts, webhooks and the audit log."""

from datetime import timedelta

from annotruth.serve.pages.queries import TO_ACT_ON, n_unseen
from annotruth.serve.store.alerts import (
    add_alert,
    add_webhook,
    count_alerts,
    due_deliveries,
    get_alert,
    get_webhook,
    last_deliveries,
    list_alerts,
    list_deliveries,
    list_webhooks,
    mark_seen,
    note_attempt,
    remove_webhook,
    set_webhook_active,
)
from annotruth.serve.store.audit import add_audit, count_audit, list_audit
from annotruth.serve.store.projects import create_project

URL = "https://example.org/hook"


def test_alerts_are_delivered_to_the_webhooks_for_their_kind(database, project, now):
    minute = timedelta(minutes=1)
    with database.begin() as connection:
        other = create_project(connection, "other", "labels", {}, now)
        chosen = add_webhook(connection, project.id, URL, ["finished"], "whsec_x")
        add_webhook(connection, project.id, URL, ["verdict"], "whsec_x")
        add_webhook(connection, other.id, URL, ["finished"], "whsec_x")
        off = add_webhook(connection, project.id, URL, ["finished"], "whsec_x")
        assert set_webhook_active(connection, project.id, off.id, False)
        assert not set_webhook_active(connection, other.id, chosen.id, False)
        alert = add_alert(
            connection, project.id, "finished", "film 1", "Film 1", {"n": 3}, created=now
        )
        assert get_alert(connection, alert.id) == alert
        assert get_webhook(connection, chosen.id) == chosen
        assert due_deliveries(connection, now - minute, limit_per_webhook=10) == []
        (delivery,) = due_deliveries(connection, now, limit_per_webhook=10)
        assert (delivery.webhook, delivery.alert) == (chosen.id, alert.id)
        note_attempt(connection, delivery, "waiting", next_attempt=now + minute, error="refused")
        assert due_deliveries(connection, now, limit_per_webhook=10) == []
        (again,) = due_deliveries(connection, now + minute, limit_per_webhook=10)
        assert (again.attempts, again.last_error) == (1, "refused")
        note_attempt(connection, again, "delivered")
        assert due_deliveries(connection, now + minute, limit_per_webhook=10) == []
        assert [each.status for each in list_deliveries(connection, chosen.id, 10)] == ["delivered"]
        last = last_deliveries(connection, list_webhooks(connection, project.id))
        assert {number: each.status for number, each in last.items()} == {chosen.id: "delivered"}
        assert not remove_webhook(connection, other.id, chosen.id)
        assert remove_webhook(connection, project.id, chosen.id)
        assert list_deliveries(connection, chosen.id, 10) == []
        assert len(list_webhooks(connection, project.id)) == 2


def test_the_latest_alerts_come_first(database, project, now):
    with database.begin() as connection:
        for number in range(5):
            add_alert(connection, project.id, "finished", str(number), "", {}, created=now)
        mark_seen(connection, project.id + 1)
        assert len(list_alerts(connection, project.id, limit=9, seen=False)) == 5
        mark_seen(connection, project.id)
        add_alert(connection, project.id, "finished", "5", "", {}, created=now)
        shown = list_alerts(connection, project.id, limit=2, offset=1)
        assert [each.subject for each in shown] == ["4", "3"]
        assert [
            each.subject for each in list_alerts(connection, project.id, limit=9, seen=False)
        ] == ["5"]
        kinds = ("verdict", "finished", "agreement")
        assert count_alerts(connection, project.id, kinds) == 6
        assert sum(count_alerts(connection, project.id, [each]) for each in kinds) == 6


def test_secrets_are_not_shown(database, project):
    with database.begin() as connection:
        made = add_webhook(connection, project.id, URL, ["finished"], "whsec_x")
    assert "whsec_x" not in f"{made} {made!r}"


def test_the_audit_log_is_read_from_its_end(database, project, now):
    with database.begin() as connection:
        for number in range(4):
            add_audit(connection, project.id, "ci", "settings changed", {"n": number}, now)
        add_audit(connection, None, "ci", "project created", {}, now)
        found = list_audit(connection, project.id, limit=2, offset=1)
        assert [each.detail["n"] for each in found] == [2, 1]
        assert list_audit(connection, limit=1)[0].project is None
        assert count_audit(connection, project.id) == 4


def test_finished_items_are_not_among_what_asks_for_something(database, project, now):
    with database.begin() as connection:
        for number in range(20):
            detail = {"items": [f"i{number}"]}
            add_alert(connection, project.id, "finished", "", "done", detail, created=now)
        add_alert(connection, project.id, "verdict", "ann", "annotator ann: drop", {}, created=now)
        assert n_unseen(connection, project.id) == 1
        assert count_alerts(connection, project.id, TO_ACT_ON) == 1
