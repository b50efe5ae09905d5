"""Projects: create, list, settings, and the state of each."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from annotruth.serve.store.events import last_seq
from annotruth.serve.store.projects import get_project, list_projects
from annotruth.serve.store.records import Project
from annotruth.serve.store.snapshots import get_worker_state, latest_snapshot
from annotruth.serve.web.api.parameters import Admin, Context, Reader, ServerAdmin, make_router
from annotruth.serve.web.bodies import documented, read_json
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.schemas import NewProject, ProjectInfo, ProjectSettings

router = make_router("projects")


@router.post("/projects", status_code=201, openapi_extra=documented(NewProject))
async def create(request: Request, context: Context, access: ServerAdmin) -> ProjectInfo:
    """Create a project."""
    sent = await read_json(request, NewProject)
    return await run_in_threadpool(_create, context, sent, access.actor)


def _create(context: ServeContext, sent: NewProject, actor: str) -> ProjectInfo:
    settings = {k: v for k, v in sent.settings.to_changes().items() if v is not None}
    with context.administer(actor) as admin:
        if get_project(admin.connection, sent.name) is not None:
            raise HTTPException(409, f"there is a project {sent.name} already: choose another name")
        return _info(admin.create_project(sent.name, sent.kind, settings))


@router.get("/projects")
def list_(context: Context, access: Reader) -> list[ProjectInfo]:
    """List the projects that the token is for."""
    with context.database.connect() as connection:
        projects = list_projects(connection)
    own = access.token.project
    return [_info(each) for each in projects if own is None or each.id == own]


@router.get("/projects/{project}")
def show(context: Context, access: Reader) -> dict[str, Any]:
    """Return a project: its settings, how many events it has, and its latest snapshot."""
    project = access.project
    with context.database.connect() as connection:
        snapshot = latest_snapshot(connection, project.id)
        state = get_worker_state(connection, project.id)
        last = last_seq(connection, project.id)
    return {
        **_info(project).model_dump(),
        "last_seq": last,
        "version": None if snapshot is None else snapshot.version,
        "summary": None if snapshot is None else snapshot.summary,
        "worker": {"last_seq": state.last_seq, "heartbeat": state.heartbeat, "error": state.error},
    }


@router.patch("/projects/{project}", openapi_extra=documented(ProjectSettings))
async def change(request: Request, context: Context, access: Admin) -> ProjectInfo:
    """Change some settings of a project; null removes one."""
    sent = await read_json(request, ProjectSettings)
    changed = await run_in_threadpool(_change, context, access.project, sent, access.actor)
    context.access.forget()
    return changed


def _change(
    context: ServeContext, project: Project, sent: ProjectSettings, actor: str
) -> ProjectInfo:
    with context.administer(actor) as admin:
        return _info(admin.change_settings(project, sent.to_changes()))


def _info(project: Project) -> ProjectInfo:
    return ProjectInfo(
        name=project.name, kind=project.kind, settings=project.settings, created=project.created
    )
