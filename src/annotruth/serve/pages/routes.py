"""The addresses of the pages: each reads what its page shows, and renders it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from sqlalchemy import Connection, select
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from annotruth.errors import AnnotruthError
from annotruth.serve.pages import details, lists
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
from annotruth.serve.pages.lists import Activity
from annotruth.serve.pages.overview import MAX_HOURS_READ, overview_page, projects_page
from annotruth.serve.pages.tables import (
    ROWS_PER_PAGE,
    LabelSnapshotTables,
    RankTables,
    SnapshotTables,
    TableQuery,
)
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.events import current_labels
from annotruth.serve.store.projects import (
    active_leases,
    annotator_history,
    get_content,
    get_gold,
    get_traits,
    get_worker_state,
    hourly_counts,
    latest_annotator_history,
    latest_snapshot,
    list_projects,
    snapshot_history,
)
from annotruth.serve.store.rows import count, latest, rows_of
from annotruth.serve.store.tables import Alert, AuditEntry, StoredEvent, alert, event
from annotruth.serve.web.auth import Access
from annotruth.serve.web.guard import CONTENT_SECURITY_POLICY
from annotruth.serve.web.parameters import Admin, Reader, ServeContext, context_of
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


class Visit(NamedTuple):
    """Who looks at which project, and the tables of its latest snapshot, if there is one."""

    context: ServeContext
    frame: Frame
    tables: SnapshotTables | None
    project: int

    @classmethod
    def of(cls, request: Request, access: Access) -> Visit:
        """Return the visit of a request to a project's page."""
        context = context_of(request)
        loaded, tables = context.snapshots.get(access.project.id), None
        if loaded is not None:
            make: Any = RankTables if access.project.kind == "comparisons" else LabelSnapshotTables
            tables = loaded.keep("tables", lambda: make(loaded))
        return cls(context, frame_of(context, access, tables), tables, access.project.id)

    def waiting(self, title: str, tab: str) -> str:
        """Return the page where there is no snapshot yet."""
        said = {"text": "There is no snapshot yet.", "tab": tab, "live": True}
        return render(self.frame, "frame.html", title, **said)


def frame_of(context: ServeContext, access: Access, tables: SnapshotTables | None = None) -> Frame:
    """Return what surrounds the pages of a visitor."""
    login, project = access.login, access.found_project
    csrf = "" if login is None else login.csrf_token
    if project is None:
        return Frame(csrf=csrf, scope=access.token.scope)
    with context.database.connect() as connection:
        n_alerts = n_unseen(connection, project.id)
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


@router.get(PROJECTS)
def _projects(request: Request, access: Reader) -> str:
    context = context_of(request)
    with context.database.connect() as connection:
        rows = [
            (each, latest_snapshot(connection, each.id))
            for each in list_projects(connection)
            if access.token.allows("read", each.id)
        ]
    may_create = access.token.allows("admin", None) and access.token.project is None
    return projects_page(frame_of(context, access), rows, may_create=may_create)


@router.get(f"{PROJECTS}/{{project}}")
def _overview(request: Request, access: Reader) -> str:
    context, project = context_of(request), access.project
    with context.database.connect() as connection:
        snapshots = snapshot_history(connection, project.id, limit=_MAX_SNAPSHOTS)
        shown: dict[str, Any] = {
            "n_received": 0 if snapshots else count(connection, StoredEvent, project=project.id),
            "per_hour": hourly_counts(connection, project.id, limit=MAX_HOURS_READ),
            "state": get_worker_state(connection, project.id),
            "alerts": _latest_alerts(
                connection, project.id, TO_ACT_ON, limit=_MAX_ALERTS, seen=False
            ),
            "to_drop": to_drop(connection, project.id),
        }
    return overview_page(frame_of(context, access), project, snapshots, **shown)


@router.get(f"{PROJECTS}/{{project}}/annotators")
def _annotators(request: Request, access: Reader) -> str:
    visit = Visit.of(request, access)
    if visit.tables is None:
        return visit.waiting("Annotators", "annotators")
    with visit.context.database.connect() as connection:
        return lists.annotators_page(
            visit.frame,
            visit.tables,
            request.query_params,
            lambda names: activity_of(connection, visit.project, names),
        )


@router.get(f"{PROJECTS}/{{project}}/annotator")
def _annotator(request: Request, access: Reader, id: str) -> str:
    visit = Visit.of(request, access)
    with visit.context.database.connect() as connection:
        if visit.tables is None or visit.tables.annotator(id) is None:
            _refuse_unknown(connection, visit.project, "annotator", id)

        def events(items: Sequence[str]) -> dict[str, StoredEvent]:
            labels = current_labels(connection, visit.project, items=items, annotator=id)
            return {each.item: each for each in labels}

        return details.annotator_page(
            visit.frame,
            id,
            visit.tables,
            request.query_params,
            history=annotator_history(connection, visit.project, id),
            traits=get_traits(connection, visit.project, id),
            seconds=median_seconds(connection, visit.project, id),
            events=events,
        )


@router.get(f"{PROJECTS}/{{project}}/items")
def _items(request: Request, access: Reader) -> str:
    visit = Visit.of(request, access)
    if visit.tables is None:
        return visit.waiting(visit.frame.items_title, "items")
    return lists.items_page(visit.frame, visit.tables, request.query_params)


@router.get(f"{PROJECTS}/{{project}}/item")
def _item(request: Request, access: Reader, id: str) -> Response:
    visit = Visit.of(request, access)
    with visit.context.database.connect() as connection:
        content = get_content(connection, visit.project, id)
        if content is None and (visit.tables is None or visit.tables.item(id) is None):
            _refuse_unknown(connection, visit.project, "item", id)
        if visit.frame.is_ranking:
            ranked = visit.tables if isinstance(visit.tables, RankTables) else None
            page = details.ranked_item_page(visit.frame, id, ranked, content)
        else:
            labels = current_labels(connection, visit.project, items=[id])
            leases = active_leases(connection, visit.project, datetime.now(UTC), item=id)
            page = details.item_page(
                visit.frame,
                id,
                visit.tables if isinstance(visit.tables, LabelSnapshotTables) else None,
                labels=labels,
                past=past_events(connection, visit.project, id, labels),
                content=content,
                gold=get_gold(connection, visit.project, id),
                leases=[lease.annotator for lease in leases],
            )
    return HTMLResponse(page, headers={"Content-Security-Policy": _policy(content)})


def _policy(content: Any) -> str:
    """Return the security policy of the page of an item, which may show pictures by URL."""
    allowed = details.content_sources(content)
    kept = [part for part in CONTENT_SECURITY_POLICY.split("; ") if part.split()[0] not in allowed]
    return "; ".join([*kept, *(f"{name} {values}" for name, values in allowed.items())])


def _refuse_unknown(connection: Connection, project_id: int, what: str, id_: str) -> None:
    """Refuse an item or annotator that the store does not know."""
    of: dict[str, Any] = {"annotator": id_} if what == "annotator" else {"items": [id_]}
    if "\0" in id_ or not current_labels(connection, project_id, **of):
        raise HTTPException(404, f"there is no such {what}")


@router.get(f"{PROJECTS}/{{project}}/queue")
def _queue(request: Request, access: Reader) -> str:
    visit, now = Visit.of(request, access), datetime.now(UTC)
    if visit.tables is None:
        return visit.waiting("Queue", "queue")
    with visit.context.database.connect() as connection:
        leases = active_leases(connection, visit.project, now)
    return lists.queue_page(visit.frame, visit.tables, request.query_params, leases, now)


@router.get(f"{PROJECTS}/{{project}}/alerts")
def _alerts(request: Request, access: Reader) -> str:
    context, project = context_of(request), access.project.id
    frame = frame_of(context, access)
    query = TableQuery.parse(frame.address("alerts"), request.query_params)
    kinds, others = TO_ACT_ON, (lists.FINISHED,)
    if query.pick == lists.FINISHED:
        kinds, others = others, kinds
    with context.database.connect() as connection:
        total, n_others = (
            count(connection, Alert, alert.c.kind.in_(each), project=project)
            for each in (kinds, others)
        )
        query = query.within(total)
        shown = _latest_alerts(connection, project, kinds, limit=ROWS_PER_PAGE, offset=query.start)
    return lists.alerts_page(frame, query, shown, total, n_others)


@router.get(f"{PROJECTS}/{{project}}/audit")
def _audit(request: Request, access: Admin) -> str:
    context, project = context_of(request), access.project.id
    frame = frame_of(context, access)
    query = TableQuery.parse(frame.address("audit"), request.query_params)
    with context.database.connect() as connection:
        total = count(connection, AuditEntry, project=project)
        query = query.within(total)
        part = {"limit": ROWS_PER_PAGE, "offset": query.start}
        entries = latest(connection, AuditEntry, project=project, **part)
    return lists.audit_page(frame, query, entries, total)


def _latest_alerts(
    connection: Connection, project_id: int, kinds: Sequence[AlertKind], **options: Any
) -> list[Alert]:
    of_kinds = alert.c.kind.in_(kinds)
    return latest(connection, Alert, of_kinds, project=project_id, **options)


def n_unseen(connection: Connection, project_id: int) -> int:
    """Return how many alerts of a project that ask for something nobody has seen."""
    return count(connection, Alert, alert.c.kind.in_(TO_ACT_ON), project=project_id, seen=False)


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
    of_annotator = (event.c.project == project_id) & (event.c.annotator == annotator)
    latest = (
        select(event.c.started, event.c.submitted)
        .where(of_annotator, event.c.started.is_not(None), ~event.c.deleted)
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
    found = rows_of(connection, StoredEvent, latest)
    return [each for each in found if each.seq not in kept][:_MAX_PAST]


def to_drop(connection: Connection, project_id: int) -> list[str]:
    """Return the annotators whose last verdict is to drop them, by name."""
    latest = latest_annotator_history(connection, project_id)
    return sorted(name for name, row in latest.items() if row.verdict == "drop")
