"""What is known of items and annotators: known truths, content and traits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from annotruth.serve.store.content import set_content, set_gold, set_traits
from annotruth.serve.store.schema import utc_now
from annotruth.serve.web.access import Access
from annotruth.serve.web.api.parameters import Context, Writer, make_router
from annotruth.serve.web.bodies import documented, read_list
from annotruth.serve.web.context import ServeContext
from annotruth.serve.web.ingest import MAX_BATCH
from annotruth.serve.web.schemas import NewContent, NewGold, NewTraits, Stored, refuse_duplicates

router = make_router("content")


@router.post("/projects/{project}/gold", openapi_extra=documented(NewGold, or_list=True))
async def post_gold(request: Request, context: Context, access: Writer) -> Stored:
    """Set the known truths of items; null removes one."""
    sent = await read_list(request, NewGold, MAX_BATCH)
    refuse_duplicates([each.item for each in sent], "item")
    labels = {each.item: each.label for each in sent}
    return await _store(context, access, "known truths set", set_gold, labels)


@router.post("/projects/{project}/annotators", openapi_extra=documented(NewTraits, or_list=True))
async def post_traits(request: Request, context: Context, access: Writer) -> Stored:
    """Set the traits of annotators."""
    sent = await read_list(request, NewTraits, MAX_BATCH)
    refuse_duplicates([each.annotator for each in sent], "annotator")
    traits = {each.annotator: each.traits for each in sent}
    return await _store(context, access, "traits set", set_traits, traits)


@router.post("/projects/{project}/items", openapi_extra=documented(NewContent, or_list=True))
async def post_items(request: Request, context: Context, access: Writer) -> Stored:
    """Set the content of items; items without labels are given out by ``next``."""
    sent = await read_list(request, NewContent, MAX_BATCH)
    refuse_duplicates([each.item for each in sent], "item")
    contents = {each.item: each.content for each in sent}

    def store(connection: Connection, project: int, values: Mapping[str, Any]) -> None:
        set_content(connection, project, values, utc_now())

    return await _store(context, access, "content set", store, contents)


async def _store(
    context: ServeContext,
    access: Access,
    action: str,
    store: Callable[[Connection, int, Mapping[str, Any]], None],
    values: Mapping[str, Any],
) -> Stored:
    """Store values by id, and note in the audit log how many."""

    def write() -> None:
        with context.administer(access.actor) as admin:
            store(admin.connection, access.project.id, values)
            admin.log(access.project.id, action, {"n": len(values)})

    await run_in_threadpool(write)
    return Stored(stored=len(values))
