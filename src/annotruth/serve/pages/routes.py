"""The addresses of the pages: each reads what its page shows, and renders it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from sqlalchemy import Connection, func, select
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from annotruth.errors import AnnotruthError
from annotruth.report.render import Text
from annotruth.serve.pages import details, lists, settings, static
from annotruth.serve.pages.lists import Activity
from annotruth.serve.pages.overview import (
    MAX_HOURS_READ,
    OverviewData,
    ProjectRow,
    login_page,
    message_page,
    overview_page,
    projects_page,
)
from annotruth.serve.pages.parts import PROJECTS, First, Frame, render
from annotruth.serve.pages.snapshot_tables import LabelTables, RankTables, SnapshotTables
from annotruth.serve.pages.table import ROWS_PER_PAGE
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.events import current_labels, current_of_slots
from annotruth.serve.store.projects import (
    active_leases,
    get_content,
    get_gold,
    get_traits,
    list_projects,
)
from annotruth.serve.store.rows import count, find
from annotruth.serve.store.snapshots import (
    annotator_history,
    get_worker_state,
    hourly_counts,
    latest_annotator_history,
    latest_snapshot,
    snapshot_history,
)
from annotruth.serve.store.tables import Alert, AuditEntry, StoredEvent, alert, audit, event
from annotruth.serve.web.auth import Access, require
from annotruth.serve.web.context import ServeContext, context_of
from annotruth.serve.web.guard import CONTENT_SECURITY_POLICY
from annotruth.serve.web.schemas import AlertKind

TO_ACT_ON: tuple[AlertKind, ...] = ("verdict", "agreement")
"""Which alerts ask for something."""

_RECENT = 100  # labels, for the speed of an annotator
_TREND_POINTS = 40
_MAX_PAST = 100
# An expression, so that SQLite does not read all events of a project in this order.
_LATEST_FIRST = -event.c.seq

_LOGGER = logging.getLogger(__name__)
_YEAR = 365 * 24 * 3600
_MAX_ALERTS = 8  # on the overview
_MAX_SNAPSHOTS = 1000  # that the charts of the overview are drawn from

Reader = Annotated[Access, Depends(require("read"))]


def activity_of(
    connection: Connection, project_id: int, annotators: Sequence[str]
) -> dict[str, Activity]:
    """Return the speed and the past reliability of some annotators."""
    found = {}
    for annotator in annotators:
        past = annotator_history(connection, project_id, annotator)[-_TREND_POINTS:]
        seconds = median_seconds(connection, project_id, annotator)
        found[annotator] = Activity(seconds, [each.reliability for each in past])
    return found


def median_seconds(connection: Connection, project_id: int, annotator: str) -> float | None:
    """Return the median time from start to submission of an annotator's latest labels."""
    latest = (
        select(event.c.started, event.c.submitted)
        .where(
            event.c.project == project_id,
            event.c.annotator == annotator,
            event.c.started.is_not(None),
            ~event.c.deleted,
        )
        .order_by(_LATEST_FIRST)
        .limit(_RECENT)
    )
    seconds = [(row.submitted - row.started).total_seconds() for row in connection.execute(latest)]
    return median(seconds) if seconds else None


def past_events(
    connection: Connection, project_id: int, item: str, current: Sequence[StoredEvent]
) -> list[StoredEvent]:
    """Return the events of an item that are not its current labels, the latest first."""
    query = select(event).where(event.c.project == project_id, event.c.item == item)
    latest = query.order_by(_LATEST_FIRST).limit(_MAX_PAST + len(current))
    kept = {each.seq for each in current}
    return [StoredEvent(*row) for row in connection.execute(latest) if row.seq not in kept][
        :_MAX_PAST
    ]


def n_received(connection: Connection, project_id: int) -> int:
    """Return how many events a project has received."""
    return connection.scalar(select(func.count()).where(event.c.project == project_id)) or 0


def to_drop(connection: Connection, project_id: int) -> list[str]:
    """Return the annotators whose last verdict is to drop them, by name."""
    latest = latest_annotator_history(connection, project_id)
    return sorted(name for name, row in latest.items() if row.verdict == "drop")


def n_unseen(connection: Connection, project_id: int) -> int:
    """Return how many alerts of a project that ask for something nobody has seen."""
    unseen = select(func.count()).where(
        alert.c.project == project_id, ~alert.c.seen, alert.c.kind.in_(TO_ACT_ON)
    )
    return connection.scalar(unseen) or 0


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
    wait = First([Text("There is no snapshot yet.", "lead")])
    return HTMLResponse(render(frame, title, wait, tab=tab, live=True))


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
            alerts=find(
                connection,
                Alert,
                alert.c.kind.in_(TO_ACT_ON),
                order=[alert.c.id.desc()],
                limit=_MAX_ALERTS,
                project=project.id,
                seen=False,
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
    query = lists.annotator_query(frame.address("annotators"), request.query_params, tables)
    rows, total = lists.shown_annotators(tables, query)
    with context.database.connect() as connection:
        names = [row["annotator"] for row in rows]
        activity = activity_of(connection, access.project.id, names)
    page = lists.annotators_page(frame, tables, query, (rows, total), activity)
    return HTMLResponse(page)


def _annotator(request: Request, access: Reader, id: str) -> Response:
    context, project = context_of(request), access.project
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    code = None if tables is None else tables.annotator_code(id)
    if tables is None or code is None:
        _refuse_unknown(context, project.id, annotator=id)
        return HTMLResponse(details.annotator_page(frame, details.AnnotatorData(annotator=id)))
    query = details.label_query(frame.address("annotator"), request.query_params, tables)
    rows, total = details.shown_labels(tables, code, query)
    with context.database.connect() as connection:
        slots = [(row["item"], id) for row in rows if "item" in row]
        data = details.AnnotatorData(
            annotator=id,
            tables=tables,
            history=annotator_history(connection, project.id, id),
            traits=get_traits(connection, project.id, id),
            seconds=median_seconds(connection, project.id, id),
            events={each.item: each for each in current_of_slots(connection, project.id, slots)},
        )
    return HTMLResponse(details.annotator_page(frame, data, query, (rows, total)))


def _items(request: Request, access: Reader) -> Response:
    context = context_of(request)
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    path = frame.address("items")
    if isinstance(tables, RankTables):
        query = lists.ranking_query(path, request.query_params)
        return HTMLResponse(lists.ranking_page(frame, tables, query))
    if tables is None:
        return _waiting(frame, "Ranking" if frame.is_ranking else "Items", "items")
    query = lists.item_query(path, request.query_params, tables)
    return HTMLResponse(lists.items_page(frame, tables, query))


def _item(request: Request, access: Reader, id: str) -> Response:
    context, project = context_of(request), access.project
    tables = _tables(context, access)
    frame = frame_of(context, access, tables)
    with context.database.connect() as connection:
        content = get_content(connection, project.id, id)
        if tables is None or tables.item_code(id) is None:
            _refuse_unknown(context, project.id, item=id, known=content is not None)
        if frame.is_ranking:
            ranked = tables if isinstance(tables, RankTables) else None
            page = details.ranked_item_page(frame, id, ranked, content)
        else:
            labels = current_labels(connection, project.id, item=id)
            now = datetime.now(UTC)
            held = active_leases(connection, project.id, now, item=id)
            data = details.ItemData(
                item=id,
                tables=tables if isinstance(tables, LabelTables) else None,
                labels=labels,
                past=past_events(connection, project.id, id, labels),
                content=content,
                gold=get_gold(connection, project.id, id),
                leases=[lease.annotator for lease in held],
            )
            page = details.item_page(frame, data)
    return HTMLResponse(page, headers={"Content-Security-Policy": _policy(content)})


def _policy(content: Any) -> str:
    """Return the security policy of the page of an item, which may show pictures by URL."""
    allowed = details.content_sources(content)
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
    query = lists.queue_query(frame.address("queue"), request.query_params)
    now = datetime.now(UTC)
    with context.database.connect() as connection:
        leases = active_leases(connection, access.project.id, now)
    return HTMLResponse(lists.queue_page(frame, tables, query, leases, now))


def _alerts(request: Request, access: Reader) -> Response:
    context, project = context_of(request), access.project
    frame = frame_of(context, access)
    query = settings.log_query(frame.address("alerts"), request.query_params)
    kinds, others = TO_ACT_ON, settings.FINISHED
    if query.pick == settings.FINISHED_PICK:
        kinds, others = others, kinds
    with context.database.connect() as connection:
        total = count(connection, Alert, alert.c.kind.in_(kinds), project=project.id)
        n_others = count(connection, Alert, alert.c.kind.in_(others), project=project.id)
        query = query.within(total)
        shown = find(
            connection,
            Alert,
            alert.c.kind.in_(kinds),
            order=[alert.c.id.desc()],
            limit=ROWS_PER_PAGE,
            offset=query.start,
            project=project.id,
        )
    return HTMLResponse(settings.alerts_page(frame, query, shown, total, n_others))


def _audit(request: Request, access: Annotated[Access, Depends(require("admin"))]) -> Response:
    context, project = context_of(request), access.project
    frame = frame_of(context, access)
    query = settings.log_query(frame.address("audit"), request.query_params)
    with context.database.connect() as connection:
        total = count(connection, AuditEntry, project=project.id)
        query = query.within(total)
        entries = find(
            connection,
            AuditEntry,
            order=[audit.c.seq.desc()],
            limit=ROWS_PER_PAGE,
            offset=query.start,
            project=project.id,
        )
    return HTMLResponse(settings.audit_page(frame, query, entries, total))


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
