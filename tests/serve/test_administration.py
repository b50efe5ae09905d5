"""Changes by administrators: what is stored, and what the audit log says of it."""

from datetime import timedelta

import pytest

from annotruth.errors import InputError
from annotruth.serve.administration import Administration
from annotruth.serve.store.rows import latest
from annotruth.serve.store.tables import AuditEntry, PlatformConnection, Webhook


@pytest.fixture
def admin(database, project, now):  # the project first: SQLite has one writer at a time
    with database.begin() as connection:
        yield Administration(connection, "lead", now)


def actions(admin):
    return [each.action for each in latest(admin.connection, AuditEntry, limit=100)][::-1]


def test_every_change_is_in_the_audit_log(admin, project):
    admin.create_project("birds", "labels")
    admin.change_settings(project, {"cost_per_label": 0.5})
    token, _ = admin.create_token(project.id, "ci", "write", expires=None)
    assert admin.revoke_token(project.id, token.id)
    webhook = admin.add_webhook(project, "https://example.org", ["verdict"])
    assert admin.remove(project, Webhook, webhook.id)
    connected = admin.add_connection(project, "generic", {}, secret=None)
    assert admin.remove(project, PlatformConnection, connected.id)
    assert actions(admin) == [
        *("project created", "settings changed", "token created", "token revoked"),
        *("webhook added", "webhook removed", "connection added", "connection removed"),
    ]


def test_what_changes_nothing_is_not_in_the_audit_log(admin, project):
    other = admin.create_project("birds", "labels")
    token, _ = admin.create_token(other.id, "ci", "write", expires=None)
    before = actions(admin)
    assert admin.change_settings(project, dict(project.settings)) == project
    assert not admin.revoke_token(project.id, token.id)  # of another project
    assert not admin.remove(project, Webhook, 7)
    assert not admin.remove(project, PlatformConnection, 7)
    with pytest.raises(InputError, match="time in the future"):
        admin.create_token(project.id, "late", "read", admin.now - timedelta(days=1))
    assert actions(admin) == before
