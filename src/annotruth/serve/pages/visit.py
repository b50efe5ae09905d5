"""Who looks at which project, and the addresses of pages; their errors are pages too."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from annotruth.errors import AnnotruthError
from annotruth.serve.pages.frame import (
    PROJECTS,
    STATIC,
    Frame,
    colors_name,
    login_page,
    message_page,
    render,
    static_file,
    version_hash,
)
from annotruth.serve.pages.tables import LabelSnapshotTables, RankTables, SnapshotTables
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.rows import count, utc_now
from annotruth.serve.store.tables import Alert, Project, alert
from annotruth.serve.web.auth import Access
from annotruth.serve.web.parameters import Reader, ServeContext, context_of
from annotruth.serve.web.schemas import AlertKind

TO_ACT_ON: tuple[AlertKind, ...] = ("verdict", "agreement")
"""Which alerts ask for something."""

_LOGGER = logging.getLogger(__name__)
_YEAR = 365 * 24 * 3600


class PageRoute(APIRoute):
    """A route whose errors are pages: the form that logs in, or a message."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def handle_with_pages(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException as error:
                if error.status_code == 401:
                    return HTMLResponse(login_page(), 401)
                page = message_page(f"Error {error.status_code}", str(error.detail))
                return HTMLResponse(page, error.status_code, error.headers)
            except DatabaseUnavailableError as error:
                # The message names the server or the file, which visitors need not know.
                _LOGGER.warning("%s", error)
                text = f"{error.public_reason.capitalize()}: load this page again in a moment."
                return HTMLResponse(message_page("Error 503", text), 503)
            except AnnotruthError as error:
                return HTMLResponse(message_page("Not possible", str(error)), 422)

        return handle_with_pages


router = APIRouter(
    route_class=PageRoute, include_in_schema=False, default_response_class=HTMLResponse
)


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Who looks at which project, and what is known of it."""

    connection: Connection  # what it reads is of one moment
    frame: Frame
    project: Project
    now: datetime
    asked: Mapping[str, str]  # the query of the address
    tables: SnapshotTables | None = None  # those of the latest snapshot, if there is one

    @property
    def id(self) -> str:
        """The id of the item or annotator that is asked for."""
        if not self.asked.get("id") or "\0" in self.asked["id"]:
            raise HTTPException(404, "there is nothing without an id")
        return self.asked["id"]


def project_page(
    tab: str, *, with_tables: bool = True
) -> Callable[[Callable[[Visit], str | Response]], Any]:
    """Return what serves the pages that a function returns, under a project's address.

    Without tables, a page does not wait until the fit is loaded.
    """

    def add(show: Callable[[Visit], str | Response]) -> Callable[[Visit], str | Response]:
        @router.get(f"{PROJECTS}/{{project}}" + (f"/{tab}" if tab else ""), name=f"page_{tab}")
        def handle(request: Request, access: Reader) -> Response:
            context, project = context_of(request), access.project
            loaded = context.snapshots.get(project.id) if with_tables else None
            tables = None
            if loaded is not None:
                make: Any = RankTables if project.kind == "comparisons" else LabelSnapshotTables
                tables = loaded.keep("tables", lambda: make(loaded))
            frame = frame_of(context, access, tables)
            with context.database.connect() as connection:
                visit = Visit(
                    connection=connection,
                    frame=frame,
                    project=project,
                    now=utc_now(),
                    asked=request.query_params,
                    tables=tables,
                )
                page = show(visit)
            return page if isinstance(page, Response) else HTMLResponse(page)

        return show

    return add


def waiting_page(frame: Frame, title: str, tab: str) -> str:
    """Return the page where there is no snapshot yet."""
    text = "There is no snapshot yet."
    return render(frame, "frame.html", title, text=text, tab=tab, live=True)


def frame_of(context: ServeContext, access: Access, tables: SnapshotTables | None = None) -> Frame:
    """Return what surrounds the pages of a visitor."""
    login, project = access.login, access.found_project
    csrf = "" if login is None else login.csrf_token
    if project is None:
        return Frame(csrf=csrf, scope=access.token.scope)
    with context.database.connect() as connection:
        to_act_on = alert.c.kind.in_(TO_ACT_ON)
        n_alerts = count(connection, Alert, to_act_on, project=project.id, seen=False)
    scale = tables.fit.data.scale if isinstance(tables, LabelSnapshotTables) else None
    return Frame(
        csrf=csrf,
        project=project.name,
        kind=project.kind,
        scope=access.token.scope,
        n_alerts=n_alerts,
        colors=colors_name(scale),
    )


@router.get("/")
async def _home() -> Response:
    return RedirectResponse(PROJECTS, 303)


@router.get(f"{STATIC}/{{version}}/{{name}}")
async def _static(version: str, name: str) -> Response:
    try:
        found = static_file(name)
    except KeyError:
        raise HTTPException(404, "there is no such file") from None
    if version != version_hash():  # of another version of the package
        raise HTTPException(404, "there is no such file: load the page again")
    headers = {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
    return Response(found.content, media_type=found.media_type, headers=headers)
