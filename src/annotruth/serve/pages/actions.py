"""What forms do: log in and out, create projects, mark alerts as seen, change settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from annotruth.errors import InputError
from annotruth.serve.administration import Administration
from annotruth.serve.hooks.platforms import parse_settings
from annotruth.serve.pages.overview import login_page
from annotruth.serve.pages.parts import PROJECTS, Frame
from annotruth.serve.pages.routes import PageRoute, Reader, frame_of
from annotruth.serve.pages.settings import ALERT_KINDS, SettingsData, settings_page
from annotruth.serve.store import alerts as alert_store
from annotruth.serve.store.columns import utc_now
from annotruth.serve.store.rows import change, find
from annotruth.serve.store.tables import Alert, PlatformConnection, Project, Webhook
from annotruth.serve.store.tokens import list_tokens
from annotruth.serve.web.auth import Access, check_same_origin, form_of, require
from annotruth.serve.web.context import ServeContext, context_of
from annotruth.serve.web.errors import message_of
from annotruth.serve.web.schemas import (
    NewConnection,
    NewProject,
    NewToken,
    NewWebhook,
    ProjectSettings,
)

_Secret = tuple[str, str]  # what it is of, and its text
_SETTINGS = tuple(ProjectSettings.model_fields)
_MAX_DAYS = 36_500

Writer = Annotated[Access, Depends(require("write"))]
Admin = Annotated[Access, Depends(require("admin"))]
AdminOfAll = Annotated[Access, Depends(require("admin", all_projects=True))]


def make_action_router() -> APIRouter:
    """Return the routes of all forms."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    router.add_api_route("/login", _show_login)
    router.add_api_route("/login", _log_in, methods=["POST"])
    router.add_api_route("/logout", _log_out, methods=["POST"])
    router.add_api_route(PROJECTS, _create_project, methods=["POST"])
    project = f"{PROJECTS}/{{project}}"
    router.add_api_route(f"{project}/alerts", _mark_alerts, methods=["POST"])
    router.add_api_route(f"{project}/settings", _show_settings)
    router.add_api_route(f"{project}/settings", _change_settings, methods=["POST"])
    return router


async def _show_login() -> Response:
    return HTMLResponse(login_page())


async def _log_in(request: Request) -> Response:
    context = context_of(request)
    check_same_origin(request)
    text = (await form_of(request)).get("token", "").strip()
    token = await run_in_threadpool(context.access.valid_token, text)
    if token is None:
        context.access.check_login_rate(request)
        return HTMLResponse(login_page(wrong=True), 401)
    response = RedirectResponse(PROJECTS, 303)
    context.access.give_cookie(response, await run_in_threadpool(context.access.log_in, token))
    return response


async def _log_out(request: Request, access: Reader) -> Response:
    response, control = RedirectResponse("/login", 303), context_of(request).access
    if access.login is not None:
        await run_in_threadpool(control.log_out, access.login)
    control.remove_cookie(response)
    return response


async def _create_project(request: Request, access: AdminOfAll) -> Response:
    fields, context = await form_of(request), context_of(request)
    wanted = _checked(NewProject, {name: fields.get(name, "") for name in ("name", "kind")})

    def create() -> None:
        with context.administer(access.actor) as admin:
            admin.create_project(wanted.name, wanted.kind)

    await run_in_threadpool(create)
    return RedirectResponse(Frame(project=wanted.name).address(), 303)


async def _mark_alerts(request: Request, access: Writer) -> Response:
    context = context_of(request)

    def mark() -> None:
        with context.database.begin() as connection:
            change(connection, Alert, {"seen": True}, project=access.project.id, seen=False)

    await run_in_threadpool(mark)
    return RedirectResponse(Frame(project=access.project.name).address("alerts"), 303)


class _Change(NamedTuple):
    """What a change of settings is made with, and what the form says."""

    admin: Administration
    project: Project
    fields: Mapping[str, str]


def _show_settings(request: Request, access: Reader) -> Response:
    context = context_of(request)
    return HTMLResponse(_settings(context, access))


def _settings(
    context: ServeContext, access: Access, *, secret: _Secret | None = None, notice: str = ""
) -> str:
    project = access.project
    with context.database.connect() as connection:
        is_admin = access.token.allows("admin", project.id)
        webhooks = find(connection, Webhook, project=project.id) if is_admin else []
        data = SettingsData(
            project=project,
            now=utc_now(),
            tokens=list_tokens(connection, project.id) if is_admin else (),
            webhooks=webhooks,
            last_deliveries=alert_store.last_deliveries(connection, webhooks),
            connections=find(connection, PlatformConnection, project=project.id)
            if is_admin
            else (),
            secret=secret,
            notice=notice,
        )
    return settings_page(frame_of(context, access), data)


async def _change_settings(request: Request, access: Admin) -> Response:
    context, fields = context_of(request), await form_of(request)
    change = _CHANGES.get(fields.get("do", ""))
    if change is None:
        raise HTTPException(400, "the form is out of date: load the page again and repeat")

    def make() -> _Secret | None:
        with context.administer(access.actor) as admin:
            return change(_Change(admin, access.project, fields))

    try:
        secret = await run_in_threadpool(make)
    except InputError as error:
        notice = str(error)
        page = await run_in_threadpool(lambda: _settings(context, access, notice=notice))
        return HTMLResponse(page, 422)
    context.access.forget()
    if secret is not None:  # it is shown once, and must not be in an address
        return HTMLResponse(
            await run_in_threadpool(lambda: _settings(context, access, secret=secret))
        )
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
    days = change.fields.get("days", "")
    expires = None
    if days:
        if not 1 <= _whole_number(days) <= _MAX_DAYS:
            raise InputError("unknown lifetime of the token: choose one of the list")
        expires = change.admin.now + timedelta(days=_whole_number(days))
    wanted = _checked(
        NewToken,
        {"name": change.fields.get("name", ""), "scope": change.fields.get("scope", ""), "expires": expires},
    )  # fmt: skip
    _, text = change.admin.create_token(change.project.id, wanted.name, wanted.scope, expires)
    return "new token", text


def _revoke_token(change: _Change) -> None:
    if not change.admin.revoke_token(change.project.id, change.fields.get("id", "")):
        raise InputError("there is no such token, or it is revoked already")


def _create_webhook(change: _Change) -> _Secret:
    kinds = [kind for kind in ALERT_KINDS if f"on_{kind}" in change.fields]
    wanted = _checked(NewWebhook, {"url": change.fields.get("url", ""), "kinds": kinds})
    made = change.admin.add_webhook(change.project, wanted.url, wanted.kinds)
    return "secret of the new webhook", made.secret


def _remove_webhook(change: _Change) -> None:
    change.admin.remove_webhook(change.project, _number(change))


def _create_connection(change: _Change) -> _Secret:
    kind = change.fields.get("kind", "")
    settings = parse_settings(kind, change.fields)
    secret = change.fields.get("secret", "").strip() or None
    wanted = _checked(NewConnection, {"kind": kind, "settings": settings, "secret": secret})
    made = change.admin.add_connection(change.project, wanted.kind, settings, wanted.secret)
    return f"secret of the new connection, /hooks/{made.id}", made.secret


def _remove_connection(change: _Change) -> None:
    change.admin.remove_connection(change.project, _number(change))


def _number(change: _Change) -> int:
    """Return the number of a webhook or connection that the form names."""
    number = _whole_number(change.fields.get("id", ""))
    if number < 0:
        raise InputError("the form is out of date: load the page again and repeat")
    return number


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
    "remove-webhook": _remove_webhook,
    "create-connection": _create_connection,
    "remove-connection": _remove_connection,
}
