"""What administrators change, by a page, the API or the command line: stored, and in the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from annotruth.errors import InputError, shown
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import AUTO, MODELS
from annotruth.serve.hooks.signatures import new_secret
from annotruth.serve.store import projects, tokens
from annotruth.serve.store.maintenance import log
from annotruth.serve.store.rows import add, remove
from annotruth.serve.store.tables import (
    PlatformConnection,
    Project,
    ProjectKind,
    Scope,
    Token,
    Webhook,
)


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
        token, text = tokens.create_token(
            self.connection, name, scope, self.now, project_id=project_id, expires=expires
        )
        detail = {"token": token.id, "name": name, "scope": scope}
        self.log(project_id, "token created", detail)
        return token, text

    def revoke_token(self, project_id: int | None, token_id: str) -> bool:
        """Revoke a token of a project, or any; return whether it was valid."""
        own = {each.id for each in tokens.list_tokens(self.connection, project_id)}
        if token_id not in own or not tokens.revoke_token(self.connection, token_id, self.now):
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

    def remove_webhook(self, project: Project, number: int) -> bool:
        """Remove a webhook."""
        return self._remove(project, "webhook", Webhook, number)

    def remove_connection(self, project: Project, number: int) -> bool:
        """Remove a connection; its labels stay."""
        return self._remove(project, "connection", PlatformConnection, number)

    def _remove(self, project: Project, what: str, row: type[Any], number: int) -> bool:
        found = remove(self.connection, row, project=project.id, id=number)
        if found:
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
    """Refuse a model that projects of this kind do not have."""
    models = [*(MODELS if kind == "labels" else PAIR_MODELS), AUTO]
    model = settings.get("model")
    if model is not None and model not in models:
        raise InputError(f"unknown model {shown(model)}: choose one of {', '.join(models)}")
