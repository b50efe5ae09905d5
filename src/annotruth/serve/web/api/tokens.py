"""Tokens of a project, and tokens for all projects."""

from __future__ import annotations

from fastapi import HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from annotruth.serve.store.records import Token
from annotruth.serve.store.tokens import list_tokens
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
    with context.administer(access.actor) as admin:
        token, text = admin.create_token(_project_id(access), sent.name, sent.scope, sent.expires)
    return CreatedToken(**_info(token).model_dump(), token=text)


def _list(context: ServeContext, project_id: int | None) -> list[TokenInfo]:
    with context.database.connect() as connection:
        return [_info(each) for each in list_tokens(connection, project_id)]


def _revoke(token_id: str, context: ServeContext, access: Access) -> Response:
    with context.administer(access.actor) as admin:
        if not admin.revoke_token(_project_id(access), token_id):
            raise HTTPException(404, "there is no such token, or it is revoked already")
    context.access.forget()
    return Response(status_code=204)


def _project_id(access: Access) -> int | None:
    """Return the project of a request; None if it is about all."""
    return None if access.found_project is None else access.found_project.id


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
