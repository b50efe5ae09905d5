"""Alerts, webhooks and the audit log."""

from datetime import timedelta

import pytest

from annotruth.serve.pages.routes import TO_ACT_ON, n_unseen
from annotruth.serve.store.projects import (
    add_alert,
    create_project,
    due_deliveries,
    last_deliveries,
    note_attempt,
)
from annotruth.serve.store.rows import add, change, count, find, find_one, remove
from annotruth.serve.store.tables import (
    Alert,
    Delivery,
    Webhook,
    alert,
)


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
        note_attempt(connection, delivery, "waiting", next_attempt=now + minute, error="refused")
        assert due() == []
        (again,) = due(now + minute)
        assert (again.attempts, again.last_error) == (1, "refused")
        note_attempt(connection, again, "delivered")
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
        shown = find(connection, Alert, order=[alert.c.id.desc()], limit=2, offset=1)
        assert [each.subject for each in shown] == ["4", "3"]
        assert [each.subject for each in find(connection, Alert, seen=False)] == ["5"]
        assert count(connection, Alert, project=project.id) == 6
        assert count(connection, Alert, alert.c.kind.in_(["finished"]), project=project.id) == 5


def test_secrets_are_not_shown(add_webhook):
    made = add_webhook("finished")
    assert "whsec_x" not in f"{made} {made!r}"


def test_finished_items_are_not_among_what_asks_for_something(database, project, now):
    with database.begin() as connection:
        for number in range(20):
            detail = {"items": [f"i{number}"]}
            add_alert(connection, project.id, "finished", "", "done", detail, created=now)
        add_alert(connection, project.id, "verdict", "ann", "annotator ann: drop", {}, created=now)
        assert n_unseen(connection, project.id) == 1
        assert count(connection, Alert, alert.c.kind.in_(TO_ACT_ON), project=project.id) == 1
