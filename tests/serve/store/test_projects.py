"""Projects, tokens and snapshots."""

from datetime import timedelta
from pathlib import Path

import pytest

import annotruth as at
from annotruth.serve.administration import create_token, find_token, list_tokens, revoke_token
from annotruth.serve.store.projects import (
    change_settings,
    create_project,
    get_project,
    list_projects,
)
from annotruth.serve.store.rows import change
from annotruth.serve.store.tables import Token


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
