"""The settings of a project, and what forms do: log in and out, create projects, change settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from annotruth.errors import InputError
from annotruth.models.pairs.registry import PAIR_MODELS
from annotruth.models.registry import MODELS
from annotruth.report.render import Settings
from annotruth.serve.administration import Administration, list_tokens
from annotruth.serve.hooks.platforms import PLATFORMS, parse_settings
from annotruth.serve.pages.frame import PROJECTS, Frame, login_page, render
from annotruth.serve.pages.visit import frame_of, router
from annotruth.serve.store.projects import last_deliveries
from annotruth.serve.store.rows import change, find, utc_now
from annotruth.serve.store.tables import (
    Alert,
    PlatformConnection,
    Project,
    Webhook,
)
from annotruth.serve.web.auth import Access, check_same_origin, form_of
from annotruth.serve.web.guard import message_of
from annotruth.serve.web.parameters import (
    Admin,
    Reader,
    ServeContext,
    ServerAdmin,
    Writer,
    context_of,
)
from annotruth.serve.web.schemas import (
    NewConnection,
    NewProject,
    NewToken,
    NewWebhook,
    ProjectSettings,
)

ALERT_KINDS = {
    "verdict": "annotator's verdict changed",
    "finished": "items finished",
    "agreement": "agreement fell",
}
"""The kinds of alerts that a webhook can be sent on."""

_Secret = tuple[str, str]  # what it is of, and its text
_SETTINGS = tuple(ProjectSettings.model_fields)
_MAX_DAYS = 36_500

_OUT_OF_DATE = "the form is out of date: load the page again and repeat"

Form = Annotated[Mapping[str, str], Depends(form_of)]


@router.get("/login")
async def _show_login() -> Response:
    return HTMLResponse(login_page())


@router.post("/login")
def _log_in(request: Request, fields: Form) -> Response:
    control = context_of(request).access
    check_same_origin(request)
    token = control.valid_token(fields.get("token", "").strip())
    if token is None:
        control.check_login_rate(request)
        return HTMLResponse(login_page(wrong=True), 401)
    response = RedirectResponse(PROJECTS, 303)
    control.log_in(token, response)
    return response


@router.post("/logout")
def _log_out(request: Request, access: Reader) -> Response:
    response = RedirectResponse("/login", 303)
    context_of(request).access.log_out(access.login, response)
    return response


@router.post(PROJECTS)
def _create_project(request: Request, access: ServerAdmin, fields: Form) -> Response:
    wanted = _checked(NewProject, {name: fields.get(name, "") for name in ("name", "kind")})
    with context_of(request).administer(access.actor) as admin:
        admin.create_project(wanted.name, wanted.kind)
    return RedirectResponse(Frame(project=wanted.name).address(), 303)


@router.post(f"{PROJECTS}/{{project}}/alerts")
def _mark_alerts(request: Request, access: Writer) -> Response:
    with context_of(request).database.begin() as connection:
        change(connection, Alert, {"seen": True}, project=access.project.id, seen=False)
    return RedirectResponse(Frame(project=access.project.name).address("alerts"), 303)


class _Change(NamedTuple):
    """What a change of settings is made with, and what the form says."""

    admin: Administration
    project: Project
    fields: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return what a field says; empty if the form does not have it."""
        return self.fields.get(name, "")


@router.get(f"{PROJECTS}/{{project}}/settings")
def _show_settings(request: Request, access: Reader) -> Response:
    return HTMLResponse(_settings(context_of(request), access))


def _settings(
    context: ServeContext, access: Access, *, secret: _Secret | None = None, notice: str = ""
) -> str:
    """Return the page of settings; those who may not change them see them.

    ``secret`` is what was just created, and its text, which is shown once; ``notice`` is what is wrong
    with the last change.
    """
    project, frame = access.project, frame_of(context, access)
    shown: dict[str, Any] = {"tokens": [], "webhooks": [], "connections": []}
    shown["last_deliveries"] = {}
    if access.token.allows("admin", project.id):
        with context.database.connect() as connection:
            webhooks = find(connection, Webhook, project=project.id)
            shown = {
                "tokens": list_tokens(connection, project.id),
                "webhooks": webhooks,
                "last_deliveries": last_deliveries(connection, webhooks),
                "connections": find(connection, PlatformConnection, project=project.id),
            }
    models = {"": "default", "auto": "auto: chosen by held-out labels"}
    models |= {name: name for name in sorted(PAIR_MODELS if frame.is_ranking else MODELS)}
    known = project.settings
    return render(
        frame,
        "settings.html",
        "Settings",
        tab="settings",
        notice=notice,
        secret=secret,
        known=known,
        options=Settings({name.replace("_", " "): value for name, value in known.items()}),
        categories=known.get("categories") or (),
        models=models,
        now=utc_now(),
        alert_kinds=ALERT_KINDS,
        platforms={kind: platform.title for kind, platform in PLATFORMS.items()},
        **shown,
    )


@router.post(f"{PROJECTS}/{{project}}/settings")
def _change_settings(request: Request, access: Admin, fields: Form) -> Response:
    context, change = context_of(request), _CHANGES.get(fields.get("do", ""))
    if change is None:
        raise HTTPException(400, _OUT_OF_DATE)
    try:
        with context.administer(access.actor) as admin:
            secret = change(_Change(admin, access.project, fields))
    except InputError as error:
        return HTMLResponse(_settings(context, access, notice=str(error)), 422)
    context.access.forget()
    if secret is not None:  # it is shown once, and must not be in an address
        return HTMLResponse(_settings(context, access, secret=secret))
    return RedirectResponse(Frame(project=access.project.name).address("settings"), 303)


def _save(change: _Change) -> None:
    given: dict[str, Any] = {name: change.fields.get(name, "").strip() for name in _SETTINGS}
    known = change.project.settings.get("categories") or []
    given["categories"] = _categories(change.fields.get("categories", ""), known)
    filled = {name: value for name, value in given.items() if value}
    checked = _checked(ProjectSettings, filled).model_dump(mode="json", exclude_none=True)
    shown = [name for name in _SETTINGS if name in change.fields]
    change.admin.change_settings(change.project, {name: checked.get(name) for name in shown})


def _categories(text: str, known: Sequence[str]) -> list[str]:
    """Return the lines of a text without spaces around them; those that are known as they are."""
    text = text.replace("\r\n", "\n")
    if text == "\n".join(known):  # a category may have several lines
        return list(known)
    return [line if line in known else line.strip() for line in text.split("\n") if line.strip()]


def _create_token(change: _Change) -> _Secret:
    days, expires = change.text("days"), None
    if days:
        if not 1 <= _whole_number(days) <= _MAX_DAYS:
            raise InputError("unknown lifetime of the token: choose one of the list")
        expires = change.admin.now + timedelta(days=_whole_number(days))
    given = {"name": change.text("name"), "scope": change.text("scope"), "expires": expires}
    wanted = _checked(NewToken, given)
    _, text = change.admin.create_token(change.project.id, wanted.name, wanted.scope, expires)
    return "new token", text


def _revoke_token(change: _Change) -> None:
    if not change.admin.revoke_token(change.project.id, change.text("id")):
        raise InputError("there is no such token, or it is revoked already")


def _remove(change: _Change, row: type[Webhook | PlatformConnection]) -> None:
    number = _whole_number(change.text("id"))
    if number < 0:
        raise InputError(_OUT_OF_DATE)
    change.admin.remove(change.project, row, number)


def _create_webhook(change: _Change) -> _Secret:
    kinds = [kind for kind in ALERT_KINDS if f"on_{kind}" in change.fields]
    wanted = _checked(NewWebhook, {"url": change.text("url"), "kinds": kinds})
    made = change.admin.add_webhook(change.project, wanted.url, wanted.kinds)
    return "secret of the new webhook", made.secret


def _create_connection(change: _Change) -> _Secret:
    kind, secret = change.text("kind"), change.text("secret").strip() or None
    settings = parse_settings(kind, change.fields)
    wanted = _checked(NewConnection, {"kind": kind, "settings": settings, "secret": secret})
    made = change.admin.add_connection(change.project, wanted.kind, settings, wanted.secret)
    return f"secret of the new connection, /hooks/{made.id}", made.secret


def _whole_number(text: str) -> int:
    """Return a number of up to nine digits, -1 for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else -1


def _checked(model: Any, values: dict[str, Any]) -> Any:
    """Return what a form says, checked as the API does; raises InputError with one line."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(message_of(error)) from None


_CHANGES: dict[str, Callable[[_Change], _Secret | None]] = {
    "save": _save,
    "create-token": _create_token,
    "revoke-token": _revoke_token,
    "create-webhook": _create_webhook,
    "remove-webhook": lambda change: _remove(change, Webhook),
    "create-connection": _create_connection,
    "remove-connection": lambda change: _remove(change, PlatformConnection),
}
