"""Tokens, ``at_<id>_<secret>``, and logins of pages; only hashes of secrets are stored.

A login names the token that was used to log in; the token's scope, project and expiry are looked up
with it, so a revoked token ends its logins.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime
from typing import get_args

from sqlalchemy import Connection, delete, insert, select

from annotruth.errors import InputError, listed, shown
from annotruth.serve.store.rows import add_all, change, find, find_one
from annotruth.serve.store.tables import LoginRow, Scope, Token, login, token

_MAX_LENGTH = 200
_MAX_NAME = 200


def create_token(
    connection: Connection,
    name: str,
    scope: Scope,
    now: datetime,
    *,
    project_id: int | None = None,
    expires: datetime | None = None,
) -> tuple[Token, str]:
    """Create a token for a project, or for all; return it and its text, which is not kept."""
    check_token(name, scope)
    created = Token(secrets.token_hex(6), project_id, name, scope, now, expires)
    secret = secrets.token_urlsafe(32)
    connection.execute(insert(token).values(**created._asdict(), hash=_hash(secret)))
    return created, f"at_{created.id}_{secret}"


def check_token(name: str, scope: Scope) -> None:
    """Refuse a name that no token can have, and an unknown scope."""
    if scope not in get_args(Scope):
        raise InputError(f"unknown scope {shown(scope)}: choose {listed(get_args(Scope))}")
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise InputError(
            f"the token's name {shown(name)} must have 1 to {_MAX_NAME} characters, none of them a "
            "control character"
        )


def find_token(connection: Connection, text: str, now: datetime) -> Token | None:
    """Return the valid token of a text, or None if it is unknown, wrong, revoked or expired."""
    mark, _, rest = text[:_MAX_LENGTH].partition("_")
    token_id, _, secret = rest.partition("_")
    if mark != "at" or not rest.isascii() or "\0" in rest:
        return None
    known = connection.scalar(select(token.c.hash).where(token.c.id == token_id))
    # An unknown id is compared too, so that it takes as long as a wrong secret.
    is_right = hmac.compare_digest(_hash(secret), _hash("") if known is None else known)
    return get_token(connection, token_id, now) if is_right and known is not None else None


def token_id_of(text: str) -> str:
    """Return the id in the text of a token."""
    return text.split("_", 2)[1]


def get_token(connection: Connection, token_id: str, now: datetime) -> Token | None:
    """Return the valid token of an id, for somebody who has shown its secret before."""
    found = find_one(connection, Token, id=token_id)
    return found if found is not None and found.is_valid(now) else None


def revoke_token(connection: Connection, token_id: str, now: datetime) -> bool:
    """Revoke a token; return whether there was one that was not revoked yet."""
    return change(connection, Token, {"revoked": now}, id=token_id, revoked=None)


def list_tokens(connection: Connection, project_id: int | None = None) -> list[Token]:
    """Return the tokens of a project, or all, in the order of creation."""
    equal = {} if project_id is None else {"project": project_id}
    return find(connection, Token, order=[token.c.created, token.c.id], **equal)


def start_login(
    connection: Connection, secret: str, token_id: str, now: datetime, expires: datetime
) -> None:
    """Store a login, and remove those that have expired."""
    connection.execute(delete(login).where(login.c.expires <= now))
    add_all(connection, [LoginRow(_hash(secret), token_id, expires)])


def end_login(connection: Connection, secret: str) -> None:
    """End a login."""
    connection.execute(delete(login).where(login.c.hash == _hash(secret)))


def token_of_login(connection: Connection, secret: str, now: datetime) -> Token | None:
    """Return the valid token that somebody logged in with; None if there is no such login."""
    found = find_one(connection, LoginRow, hash=_hash(secret))
    if found is None or found.expires <= now:
        return None
    return get_token(connection, found.token, now)


def _hash(secret: str) -> str:
    # The secret has 256 random bits, so a slow hash would add nothing.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
