"""What administrators change, by a page, the API or the command line: stored, and in the audit log.

Tokens are ``at_<id>_<secret>``; of them, and of logins of pages, only hashes of secrets are stored. A login
names the token that was used to log in; the token's scope, project and expiry are looked up with it, so a
revoked token ends its logins.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from sqlalchemy import Connection, delete, insert, select

from annotruth.errors import InputError, listed, shown
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import AUTO, MODELS
from annotruth.serve.hooks.message import new_secret
from annotruth.serve.store import projects
from annotruth.serve.store.maintenance import log
from annotruth.serve.store.rows import add, add_all, change, find, find_one, remove, table_of
from annotruth.serve.store.tables import (
    LoginRow,
    PlatformConnection,
    Project,
    ProjectKind,
    Scope,
    Token,
    Webhook,
    login,
    token,
)

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


def get_token(connection: Connection, token_id: str, now: datetime) -> Token | None:
    """Return the valid token of an id, for somebody who has shown its secret before."""
    found = find_one(connection, Token, id=token_id)
    return found if found is not None and found.is_valid(now) else None


def revoke_token(connection: Connection, token_id: str, now: datetime) -> bool:
    """Revoke a token; return whether there was one that was not revoked yet."""
    return change(connection, Token, {"revoked": now}, id=token_id, revoked=None)


def list_tokens(connection: Connection, project_id: int | None = None) -> list[Token]:
    """Return the tokens of a project, or all, in the order of creation."""
    equal: dict[str, Any] = {} if project_id is None else {"project": project_id}
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


class Administration(NamedTuple):
    """Changes of one administrator in one transaction, each with an entry in the audit log.

    Methods that remove something return whether it was there.
    """

    connection: Connection
    actor: str
    now: datetime

    def create_project(
        self, name: str, kind: ProjectKind, settings: Mapping[str, Any] | None = None
    ) -> Project:
        """Create a project."""
        check_project(name, kind, settings or {})
        made = projects.create_project(self.connection, name, kind, settings or {}, self.now)
        self.log(made.id, "project created", {"name": name, "kind": kind})
        return made

    def change_settings(self, project: Project, wanted: Mapping[str, Any]) -> Project:
        """Change settings of a project; None removes one."""
        _check_model(project.kind, wanted)
        changes = {k: v for k, v in wanted.items() if v != project.settings.get(k)}
        if not changes:
            return project
        changed = projects.change_settings(self.connection, project.id, changes)
        self.log(project.id, "settings changed", changes)
        return changed

    def create_token(
        self, project_id: int | None, name: str, scope: Scope, expires: datetime | None
    ) -> tuple[Token, str]:
        """Create a token for a project, or for all; return it and its text."""
        if expires is not None and expires <= self.now:
            raise InputError("expires: give a time in the future")
        token, text = create_token(
            self.connection, name, scope, self.now, project_id=project_id, expires=expires
        )
        detail = {"token": token.id, "name": name, "scope": scope}
        self.log(project_id, "token created", detail)
        return token, text

    def revoke_token(self, project_id: int | None, token_id: str) -> bool:
        """Revoke a token of a project, or any; return whether it was valid."""
        own = {each.id for each in list_tokens(self.connection, project_id)}
        if token_id not in own or not revoke_token(self.connection, token_id, self.now):
            return False
        self.log(project_id, "token revoked", {"token": token_id})
        return True

    def add_webhook(self, project: Project, url: str, kinds: Sequence[str]) -> Webhook:
        """Send alerts of some kinds to an address, signed with a new secret."""
        values = {"project": project.id, "url": url, "kinds": list(kinds), "secret": new_secret()}
        made = add(self.connection, Webhook, **values)
        self.log(project.id, "webhook added", {"webhook": made.id, "kinds": list(kinds)})
        return made

    def add_connection(
        self, project: Project, kind: str, settings: dict[str, Any], secret: str | None
    ) -> PlatformConnection:
        """Connect a labelling tool, with a new secret if none is given."""
        values = {"kind": kind, "settings": settings, "secret": secret or new_secret()}
        made = add(self.connection, PlatformConnection, project=project.id, **values)
        self.log(project.id, "connection added", {"connection": made.id, "kind": kind})
        return made

    def remove(
        self, project: Project, row: type[Webhook | PlatformConnection], number: int
    ) -> bool:
        """Remove a webhook, or a connection, whose labels stay."""
        found = remove(self.connection, row, project=project.id, id=number)
        if found:
            what = table_of(row).name
            self.log(project.id, f"{what} removed", {what: number})
        return found

    def log(self, project_id: int | None, action: str, detail: Mapping[str, Any]) -> None:
        """Add an entry to the audit log; ``detail`` has no secrets."""
        log(self.connection, project_id, self.actor, action, detail, self.now)


def check_project(name: str, kind: ProjectKind, settings: Mapping[str, Any]) -> None:
    """Refuse a project that cannot be created, whatever projects there are."""
    projects.check_name(name)
    _check_model(kind, settings)


def _check_model(kind: ProjectKind, settings: Mapping[str, Any]) -> None:
    models = [*(MODELS if kind == "labels" else PAIR_MODELS), AUTO]
    model = settings.get("model")
    if model is not None and model not in models:
        raise InputError(f"unknown model {shown(model)}: choose one of {', '.join(models)}")
