"""Tokens: ``at_<id>_<secret>``; only a hash of the secret is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import Connection, Row, insert, select, update

from annotruth.errors import InputError, listed, shown
from annotruth.serve.store.records import Scope, Token
from annotruth.serve.store.schema import token

_MAX_LENGTH = 200
_MAX_NAME = 200
_COLUMNS = [token.c[name] for name in Token._fields]


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
    query = select(token.c.hash, *_COLUMNS).where(token.c.id == token_id)
    row = connection.execute(query).one_or_none()
    # An unknown id is compared too, so that it takes as long as a wrong secret.
    if not hmac.compare_digest(_hash(secret), row.hash if row else _hash("")) or row is None:
        return None
    found = _token(row)
    return found if found.is_valid(now) else None


def token_id_of(text: str) -> str:
    """Return the id in the text of a token."""
    return text.split("_", 2)[1]


def get_token(connection: Connection, token_id: str, now: datetime) -> Token | None:
    """Return the valid token of an id, for somebody who has shown its secret before."""
    row = connection.execute(select(*_COLUMNS).where(token.c.id == token_id)).one_or_none()
    found = None if row is None else _token(row)
    return found if found is not None and found.is_valid(now) else None


def mark_used(connection: Connection, token_id: str, now: datetime) -> None:
    """Store when a token was last used."""
    connection.execute(update(token).where(token.c.id == token_id).values(last_used=now))


def revoke_token(connection: Connection, token_id: str, now: datetime) -> bool:
    """Revoke a token; return whether there was one that was not revoked yet."""
    valid = (token.c.id == token_id) & token.c.revoked.is_(None)
    return connection.execute(update(token).where(valid).values(revoked=now)).rowcount > 0


def list_tokens(connection: Connection, project_id: int | None = None) -> list[Token]:
    """Return the tokens of a project, or all, in the order of creation."""
    query = select(*_COLUMNS).order_by(token.c.created, token.c.id)
    if project_id is not None:
        query = query.where(token.c.project == project_id)
    return [_token(row) for row in connection.execute(query)]


def _hash(secret: str) -> str:
    # The secret has 256 random bits, so a slow hash would add nothing.
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Row[Any]) -> Token:
    return Token(**{name: getattr(row, name) for name in Token._fields})
