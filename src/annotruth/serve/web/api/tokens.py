"""Tokens of a project, and tokens for all projects."""

from __future__ import annotations

from fastapi import HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from annotruth.serve.store.audit import add_audit
from annotruth.serve.store.records import Token
from annotruth.serve.store.schema import utc_now
from annotruth.serve.store.tokens import create_token, list_tokens, revoke_token
from annotruth.serve.web.access import Access
from annotruth.serve.web.api.parameters import Admin, Context, ServerAdmin, make_router
from annotruth.serve.web.bodies import documented, read_json
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.schemas import CreatedToken, NewToken, TokenInfo

router = make_router("tokens")


@router.post("/projects/{project}/tokens", status_code=201, openapi_extra=documented(NewToken))
async def create(request: Request, context: Context, access: Admin) -> CreatedToken:
    """Create a token for the project; its text is in the answer, and nowhere else."""
    return await _create(request, context, access)


@router.get("/projects/{project}/tokens")
def list_(context: Context, access: Admin) -> list[TokenInfo]:
    """List the project's tokens, without their secrets."""
    return _list(context, access.project.id)


@router.delete("/projects/{project}/tokens/{token_id}", status_code=204)
def revoke(token_id: str, context: Context, access: Admin) -> Response:
    """Revoke a token of the project."""
    return _revoke(token_id, context, access)


@router.post("/tokens", status_code=201, openapi_extra=documented(NewToken))
async def create_for_all(request: Request, context: Context, access: ServerAdmin) -> CreatedToken:
    """Create a token for all projects."""
    return await _create(request, context, access)


@router.get("/tokens")
def list_all(context: Context, access: ServerAdmin) -> list[TokenInfo]:
    """List all tokens, without their secrets."""
    return _list(context, None)


@router.delete("/tokens/{token_id}", status_code=204)
def revoke_any(token_id: str, context: Context, access: ServerAdmin) -> Response:
    """Revoke any token."""
    return _revoke(token_id, context, access)


async def _create(request: Request, context: ServeContext, access: Access) -> CreatedToken:
    sent = await read_json(request, NewToken)
    return await run_in_threadpool(_store, context, sent, access)


def _store(context: ServeContext, sent: NewToken, access: Access) -> CreatedToken:
    now = utc_now()
    if sent.expires is not None and sent.expires <= now:
        raise HTTPException(422, "expires: give a time in the future")
    project_id = None if access.found_project is None else access.found_project.id
    with context.database.begin() as connection:
        token, text = create_token(
            connection, sent.name, sent.scope, now, project_id=project_id, expires=sent.expires
        )
        detail = {"token": token.id, "name": token.name, "scope": token.scope}
        add_audit(connection, project_id, access.actor, "token created", detail, now)
    return CreatedToken(**_info(token).model_dump(), token=text)


def _list(context: ServeContext, project_id: int | None) -> list[TokenInfo]:
    with context.database.connect() as connection:
        return [_info(each) for each in list_tokens(connection, project_id)]


def _revoke(token_id: str, context: ServeContext, access: Access) -> Response:
    now = utc_now()
    project_id = None if access.found_project is None else access.found_project.id
    with context.database.begin() as connection:
        ids = [each.id for each in list_tokens(connection, project_id)]
        if token_id not in ids:
            raise HTTPException(404, "there is no such token")
        revoke_token(connection, token_id, now)
        detail = {"token": token_id}
        add_audit(connection, project_id, access.actor, "token revoked", detail, now)
    context.access.forget()
    return Response(status_code=204)


def _info(token: Token) -> TokenInfo:
    return TokenInfo(
        id=token.id,
        name=token.name,
        scope=token.scope,
        created=token.created,
        expires=token.expires,
        revoked=token.revoked,
        last_used=token.last_used,
    )
