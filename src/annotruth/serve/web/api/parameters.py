"""Parameters that many endpoints have: who asks, the context, and ranges of numbers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request

from annotruth.serve.web.access import Access
from annotruth.serve.web.auth import require
from annotruth.serve.web.context import ServeContext, context_of
from annotruth.serve.web.schemas import Problem

PREFIX = "/api/v1"
"""What the paths of all endpoints begin with."""

_MAX_SEQ = 2**63 - 1  # of the columns of both databases that number events
_MAX_INTEGER = 2**31 - 1  # of all others


async def get_context(request: Request) -> ServeContext:
    """Return the context; a function that is not async would be run by another thread."""
    return context_of(request)


Context = Annotated[ServeContext, Depends(get_context)]
Reader = Annotated[Access, Depends(require("read"))]
Writer = Annotated[Access, Depends(require("write"))]
Admin = Annotated[Access, Depends(require("admin"))]
ServerAdmin = Annotated[Access, Depends(require("admin", all_projects=True))]

Since = Annotated[int, Query(ge=0, le=_MAX_SEQ)]
SinceVersion = Annotated[int, Query(alias="since", ge=0, le=_MAX_INTEGER)]
Start = Annotated[int, Query(alias="cursor", ge=0, le=_MAX_INTEGER)]
Number = Annotated[int, Path(ge=1, le=_MAX_INTEGER)]
Limit = Annotated[int, Query(ge=1, le=1000)]

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "The request cannot be read, or is no JSON.",
        401: "No valid token.",
        403: "The token has not the right, or is for another project.",
        404: "There is no such project, item or other thing.",
        409: "It exists already, or the project has labels where it needs comparisons.",
        413: "Too much at once.",
        415: "The content is not JSON.",
        422: "The content is wrong; the text says where.",
        429: "Too many requests; Retry-After says when to try again.",
        503: "The database cannot be reached; nothing was stored.",
    }.items()
}
"""The errors that every endpoint may answer with."""


def make_router(subject: str) -> APIRouter:
    """Return a router for the endpoints of a subject, with the errors that each may answer with."""
    return APIRouter(prefix=PREFIX, tags=[subject], responses=ERRORS)
