"""Logins of pages: each is a row until it ends; only a hash of its secret is stored.

A login names the token that was used to log in; the token's scope, project and expiry are looked up
with it, so a revoked token ends its logins.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from annotruth.serve.store.records import Token
from annotruth.serve.store.schema import login
from annotruth.serve.store.tokens import get_token


def start_login(
    connection: Connection, secret: str, token_id: str, now: datetime, expires: datetime
) -> None:
    """Store a login, and remove those that have expired."""
    connection.execute(delete(login).where(login.c.expires <= now))
    connection.execute(insert(login).values(hash=_hash(secret), token=token_id, expires=expires))


def end_login(connection: Connection, secret: str) -> None:
    """End a login."""
    connection.execute(delete(login).where(login.c.hash == _hash(secret)))


def token_of_login(connection: Connection, secret: str, now: datetime) -> Token | None:
    """Return the valid token that somebody logged in with; None if there is no such login."""
    query = select(login.c.token).where(login.c.hash == _hash(secret), login.c.expires > now)
    token_id = connection.scalar(query)
    return None if token_id is None else get_token(connection, token_id, now)


def _hash(secret: str) -> str:
    # The secret has 256 random bits, so a slow hash would add nothing.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
