"""The addresses of the pages: each reads what its page shows, and renders it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from annotruth.errors import AnnotruthError
from annotruth.serve.pages import alerts as alert_pages
from annotruth.serve.pages import annotators as annotator_list
from annotruth.serve.pages import items as item_list
from annotruth.serve.pages import queue as queue_pages
from annotruth.serve.pages import ranking as ranking_pages
from annotruth.serve.pages import static
from annotruth.serve.pages.annotator import (
    AnnotatorData,
    annotator_page,
    label_query,
    shown_labels,
)
from annotruth.serve.pages.item import ItemData, content_sources, item_page
from annotruth.serve.pages.layout import PROJECTS, Frame, render
from annotruth.serve.pages.overview import MAX_HOURS_READ, OverviewData, overview_page
from annotruth.serve.pages.projects import ProjectRow, login_page, message_page, projects_page
from annotruth.serve.pages.queries import (
    TO_ACT_ON,
    activity_of,
    median_seconds,
    n_received,
    n_unseen,
    past_events,
    to_drop,
)
from annotruth.serve.pages.snapshot_tables import LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import ROWS_PER_PAGE
from annotruth.serve.store import alerts as alert_store
from annotruth.serve.store import audit as audit_store
from annotruth.serve.store import content as content_store
from annotruth.serve.store import leases as lease_store
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.events import current_labels, current_of_slots
from annotruth.serve.store.projects import list_projects
from annotruth.serve.store.snapshots import (
    annotator_history,
    get_worker_state,
    hourly_counts,
    latest_snapshot,
    snapshot_history,
)
from annotruth.serve.web.access import Access
from annotruth.serve.web.auth import require
from annotruth.serve.web.context import ServeContext, context_of
from annotruth.serve.web.security_headers import CONTENT_SECURITY_POLICY

_LOGGER = logging.getLogger(__name__)
_YEAR = 365 * 24 * 3600
_MAX_ALERTS = 8  # on the overview
_MAX_SNAPSHOTS = 1000  # that the charts of the overview are drawn from

Reader = Annotated[Access, Depends(require("read"))]


class PageRoute(APIRoute):
    """A route whose errors are pages: the form that logs in, or a message.

    Examples
    --------
    >>> APIRouter(route_class=PageRoute).route_class.__name__
    'PageRoute'
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def handle_with_pages(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException as error:
                if error.status_code == 401:
                    return HTMLResponse(login_page(), 401)
                frame, title = Frame(scope=""), f"Error {error.status_code}"
                page = message_page(frame, title, str(error.detail))
                return HTMLResponse(page, error.status_code, error.headers)
            except DatabaseUnavailableError as error:
                # The message names the server or the file, which visitors need not know.
                _LOGGER.warning("%s", error)
                text = f"{error.public_reason.capitalize()}: load this page again in a moment."
                return HTMLResponse(message_page(Frame(scope=""), "Error 503", text), 503)
            except AnnotruthError as error:
                return HTMLResponse(message_page(Frame(scope=""), "Not possible", str(error)), 422)

        return handle_with_pages


def make_read_router() -> APIRouter:
    """Return the routes of all pages that only show something."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    router.add_api_route("/", _home)
    router.add_api_route(f"{static.STATIC}/{{version}}/{{name}}", _static)
    router.add_api_route(PROJECTS, _projects)
    for path, endpoint in _PAGES.items():
        router.add_api_route(f"{PROJECTS}/{{project}}{path}", endpoint)
    return router


async def _home() -> Response:
    return RedirectResponse(PROJECTS, 303)


async def _static(version: str, name: str) -> Response:
    try:
        found = static.static_file(name)
    except KeyError:
        raise HTTPException(404, "there is no such file") from None
    if version != static.version_hash():  # of another version of the package
        raise HTTPException(404, "there is no such file: load the page again")
    headers = {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def frame_of(context: ServeContext, access: Access, tables: SnapshotTables | None = None) -> Frame:
    """Return what surrounds the pages of a visitor."""
    login, project = access.login, access.found_project
    csrf = "" if login is None else login.csrf_token
    if project is None:
        return Frame(csrf=csrf, scope=access.token.scope)
    with context.database.connect() as connection:
        n_alerts = n_unseen(connection, project.id)
    scale = tables.fit.data.scale if isinstance(tables, LabelTables) else None
    return Frame(
        csrf=csrf,
        project=project.name,
        kind=project.kind,
        scope=access.token.scope,
        n_alerts=n_alerts,
        colors=static.colors_name(scale),
    )


def _tables(context: ServeContext, access: Access) -> SnapshotTables | None:
    """Return the tables of a project's latest snapshot; None if there is none yet."""
    loaded = context.snapshots.get(access.project.id)
    if loaded is None:
        return None
    make: Any = RankTables if access.project.kind == "comparisons" else LabelTables
    tables: SnapshotTables = loaded.keep("tables", lambda: make(loaded.fit, loaded.advice))
    return tables


def _waiting(frame: Frame, title: str, tab: str) -> Response:
    content = '<section class="first"><p class="lead">There is no snapshot yet.</p></section>'
    return HTMLResponse(render(frame, title, content, tab=tab, live=True))


def _projects(request: Request, access: Reader) -> Response:
    context = context_of(request)
    with context.database.connect() as connection:
        rows = [
            ProjectRow(each, latest_snapshot(connection, each.id))
            for each in list_projects(connection)
            if access.token.allows("read", each.id)
        ]
    may_create = access.token.allows("admin", None) and access.token.project is None
    return HTMLResponse(projects_page(frame_of(context, access), rows, may_create=may_create))


def _overview(request: Request, access: Reader) -> Response:
    context, project = context_of(request), access.project
    with context.database.connect() as connection:
        snapshots = snapshot_history(connection, project.id, limit=_MAX_SNAPSHOTS)
        data = OverviewData(
            project=project,
            snapshots=snapshots,
            n_received=0 if snapshots else n_received(connection, project.id),
            per_hour=hourly_counts(connection, project.id, limit=MAX_HOURS_READ),
            state=get_worker_state(connection, project.id),
            alerts=alert_store.list_alerts(
                connection, project.id, seen=False, kinds=TO_ACT_ON, limit=_MAX_ALERTS
            ),
            to_drop=to_drop(connection, project.id),
        )
    return HTMLResponse(overview_page(frame_of(context, access), data))


def _annotators(request: Request, access: Reader) -> Response:
    context = context_of(request)
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    if tables is None:
        return _waiting(frame, "Annotators", "annotators")
    query = annotator_list.annotator_query(
        frame.address("annotators"), request.query_params, tables
    )
    rows, total = annotator_list.shown_annotators(tables, query)
    with context.database.connect() as connection:
        names = [row["annotator"] for row in rows]
        activity = activity_of(connection, access.project.id, names)
    page = annotator_list.annotators_page(frame, tables, query, (rows, total), activity)
    return HTMLResponse(page)


def _annotator(request: Request, access: Reader, id: str) -> Response:
    context, project = context_of(request), access.project
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    code = None if tables is None else tables.annotator_code(id)
    if tables is None or code is None:
        _refuse_unknown(context, project.id, annotator=id)
        return HTMLResponse(annotator_page(frame, AnnotatorData(annotator=id)))
    query = label_query(frame.address("annotator"), request.query_params, tables)
    rows, total = shown_labels(tables, code, query)
    with context.database.connect() as connection:
        slots = [(row["item"], id) for row in rows if "item" in row]
        data = AnnotatorData(
            annotator=id,
            tables=tables,
            history=annotator_history(connection, project.id, id),
            traits=content_store.get_traits(connection, project.id, id),
            seconds=median_seconds(connection, project.id, id),
            events={each.item: each for each in current_of_slots(connection, project.id, slots)},
        )
    return HTMLResponse(annotator_page(frame, data, query, (rows, total)))


def _items(request: Request, access: Reader) -> Response:
    context = context_of(request)
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    path = frame.address("items")
    if isinstance(tables, RankTables):
        query = ranking_pages.ranking_query(path, request.query_params)
        return HTMLResponse(ranking_pages.ranking_page(frame, tables, query))
    if tables is None:
        return _waiting(frame, "Ranking" if frame.is_ranking else "Items", "items")
    query = item_list.item_query(path, request.query_params, tables)
    return HTMLResponse(item_list.items_page(frame, tables, query))


def _item(request: Request, access: Reader, id: str) -> Response:
    context, project = context_of(request), access.project
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    with context.database.connect() as connection:
        content = content_store.get_content(connection, project.id, id)
        if tables is None or tables.item_code(id) is None:
            _refuse_unknown(context, project.id, item=id, known=content is not None)
        if frame.is_ranking:
            ranked = tables if isinstance(tables, RankTables) else None
            page = ranking_pages.ranked_item_page(frame, id, ranked, content)
        else:
            labels = current_labels(connection, project.id, item=id)
            now = datetime.now(UTC)
            held = lease_store.active_leases(connection, project.id, now, item=id)
            data = ItemData(
                item=id,
                tables=tables if isinstance(tables, LabelTables) else None,
                labels=labels,
                past=past_events(connection, project.id, id, labels),
                content=content,
                gold=content_store.get_gold(connection, project.id, id),
                leases=[lease.annotator for lease in held],
            )
            page = item_page(frame, data)
    return HTMLResponse(page, headers={"Content-Security-Policy": _policy(content)})


def _policy(content: Any) -> str:
    """Return the security policy of the page of an item, which may show pictures by URL."""
    allowed = content_sources(content)
    kept = [part for part in CONTENT_SECURITY_POLICY.split("; ") if part.split()[0] not in allowed]
    return "; ".join([*kept, *(f"{name} {values}" for name, values in allowed.items())])


def _refuse_unknown(
    context: ServeContext,
    project_id: int,
    *,
    item: str | None = None,
    annotator: str | None = None,
    known: bool = False,
) -> None:
    """Refuse an item or annotator that neither the snapshot nor the store knows."""
    if known:
        return
    with context.database.connect() as connection:
        found = "\0" not in (item or annotator or "") and current_labels(
            connection, project_id, item=item, annotator=annotator
        )
    if not found:
        raise HTTPException(404, f"there is no such {'item' if annotator is None else 'annotator'}")


def _queue(request: Request, access: Reader) -> Response:
    context = context_of(request)
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    if tables is None:
        return _waiting(frame, "Queue", "queue")
    query = queue_pages.queue_query(frame.address("queue"), request.query_params)
    now = datetime.now(UTC)
    with context.database.connect() as connection:
        leases = lease_store.active_leases(connection, access.project.id, now)
    return HTMLResponse(queue_pages.queue_page(frame, tables, query, leases, now))


def _alerts(request: Request, access: Reader) -> Response:
    context, project = context_of(request), access.project
    frame = frame_of(context, access)
    query = alert_pages.log_query(frame.address("alerts"), request.query_params)
    kinds, others = TO_ACT_ON, alert_pages.FINISHED
    if query.pick == alert_pages.FINISHED_PICK:
        kinds, others = others, kinds
    with context.database.connect() as connection:
        total = alert_store.count_alerts(connection, project.id, kinds)
        n_others = alert_store.count_alerts(connection, project.id, others)
        query = query.within(total)
        shown = alert_store.list_alerts(
            connection, project.id, limit=ROWS_PER_PAGE, offset=query.start, kinds=kinds
        )
    return HTMLResponse(alert_pages.alerts_page(frame, query, shown, total, n_others))


def _audit(request: Request, access: Annotated[Access, Depends(require("admin"))]) -> Response:
    context, project = context_of(request), access.project
    frame = frame_of(context, access)
    query = alert_pages.log_query(frame.address("audit"), request.query_params)
    with context.database.connect() as connection:
        total = audit_store.count_audit(connection, project.id)
        query = query.within(total)
        entries = audit_store.list_audit(
            connection, project.id, limit=ROWS_PER_PAGE, offset=query.start
        )
    return HTMLResponse(alert_pages.audit_page(frame, query, entries, total))


_PAGES: dict[str, Callable[..., Any]] = {
    "": _overview,
    "/annotators": _annotators,
    "/annotator": _annotator,
    "/items": _items,
    "/item": _item,
    "/queue": _queue,
    "/alerts": _alerts,
    "/audit": _audit,
}
