"""What endpoints share: the context of the server, who asks, ranges of numbers, and bodies of JSON.

Bodies are read here and checked by pydantic, so `describe_api` adds them to FastAPI's description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.json_schema import models_json_schema

from annotruth.serve.administration import Administration
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import snapshots_folder
from annotruth.serve.store.rows import utc_now
from annotruth.serve.web.auth import Access, AccessControl, require
from annotruth.serve.web.guard import STREAM_TYPE, ServeMetrics
from annotruth.serve.web.ingest import MAX_BATCH, Ingest
from annotruth.serve.web.results import Live, SnapshotCache
from annotruth.serve.web.schemas import Problem
from annotruth.serve.web.work_queue import WorkQueue

PREFIX = "/api/v1"
"""What the paths of all endpoints begin with."""

_JSON_TYPE = "application/json"
_REFERENCE = "#/components/schemas/{model}"
_MAX_SEQ = 2**63 - 1  # of the columns of both databases that number events
MAX_INTEGER = 2**31 - 1
"""The largest number of all other columns."""

Sent = TypeVar("Sent", bound=BaseModel)
_DOCUMENTED: dict[type[BaseModel], None] = {}


@dataclass(frozen=True, eq=False)
class ServeContext:
    """What the parts of the web server share."""

    config: ServeConfig  # the settings of the service
    database: Database  # the database, for what is read and written apart from labels
    ingest: Ingest  # where labels go: `await context.ingest.append(project, source, events)`
    snapshots: SnapshotCache  # the latest fit and advice of each project
    queue: WorkQueue  # what people should label now
    live: Live  # live events of projects
    metrics: ServeMetrics  # counters of requests and of ingestion
    access: AccessControl  # tokens, logins and projects, looked up with a short memory

    @classmethod
    def open(cls, config: ServeConfig) -> ServeContext:
        """Open the database of a server, and start the thread that writes labels."""
        metrics = ServeMetrics()
        database = Database.open(config.database)
        snapshots = SnapshotCache(database, snapshots_folder(config.data_dir))
        context = cls(
            config,
            database,
            Ingest(database, metrics),
            snapshots,
            WorkQueue(database, snapshots, seconds=config.lease_seconds),
            Live(database, snapshots, metrics),
            metrics,
            AccessControl(config, database),
        )
        context.ingest.start()
        return context

    @contextmanager
    def administer(self, actor: str) -> Iterator[Administration]:
        """Return what changes projects, tokens and connections; the block is one transaction."""
        with self.database.begin() as connection:
            yield Administration(connection, actor, utc_now())

    def close(self) -> None:
        """Write what waits, and close the database."""
        self.live.stop()
        self.ingest.stop()
        self.snapshots.close()
        self.database.dispose()


def context_of(request: Request) -> ServeContext:
    """Return the context of the application that a request is for."""
    return cast(ServeContext, request.app.state.context)


async def get_context(request: Request) -> ServeContext:
    """Return the context; a function that is not async would be run by another thread."""
    return context_of(request)


Context = Annotated[ServeContext, Depends(get_context)]
Reader = Annotated[Access, Depends(require("read"))]
Writer = Annotated[Access, Depends(require("write"))]
Admin = Annotated[Access, Depends(require("admin"))]
ServerReader = Annotated[Access, Depends(require("read", all_projects=True))]
ServerAdmin = Annotated[Access, Depends(require("admin", all_projects=True))]

Since = Annotated[int, Query(ge=0, le=_MAX_SEQ)]
SinceVersion = Annotated[int, Query(alias="since", ge=0, le=MAX_INTEGER)]
Start = Annotated[int, Query(alias="cursor", ge=0, le=MAX_INTEGER)]
Number = Annotated[int, Path(ge=1, le=MAX_INTEGER)]
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


class _DocumentedRoute(APIRoute):
    """A route that documents the body which its dependency reads."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for each in self.dependant.dependencies:
            self.openapi_extra = getattr(each.call, "documentation", self.openapi_extra)


def make_router(subject: str) -> APIRouter:
    """Return a router for the endpoints of a subject, with the errors that each may answer with."""
    return APIRouter(prefix=PREFIX, tags=[subject], responses=ERRORS, route_class=_DocumentedRoute)


def json_body(model: type[BaseModel], *, or_list: bool = False) -> Any:
    """Return a dependency: the object of a request, or the list of its objects."""

    async def read(request: Request) -> Any:
        if or_list:
            return await read_list(request, model)
        _refuse_type(request)
        return model.model_validate_json(await request.body())

    read.documentation = documented(model, or_list=or_list)  # type: ignore[attr-defined]
    return Depends(read)


def media_type(request: Request) -> str:
    """Return the type of a request's body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_list(request: Request, model: type[Sent]) -> list[Sent]:
    """Return the object, or the list of objects, of a request."""
    _refuse_type(request)
    body = (await request.body()).strip()
    if not body.startswith(b"["):
        return [model.model_validate_json(body)]
    try:
        sent: list[Sent] = _list_of(model).validate_json(body)
    except ValidationError as error:
        if error.errors(include_context=False, include_input=False)[0]["type"] != "too_long":
            raise
        raise HTTPException(
            413, f"too many at once: send at most {MAX_BATCH:,} per request, or a stream of lines"
        ) from None
    return sent


@lru_cache
def _list_of(model: type[BaseModel]) -> TypeAdapter[Any]:
    """Return what checks a list; it stops at the first that is too many."""
    limited: Any = Annotated[list[model], Field(max_length=MAX_BATCH)]  # type: ignore[valid-type]
    return TypeAdapter(limited)


def _refuse_type(request: Request) -> None:
    if media_type(request) != _JSON_TYPE:
        raise HTTPException(415, f"send JSON, with the header Content-Type: {_JSON_TYPE}")


def documented(model: type[BaseModel], *, or_list: bool = False, lines: bool = False) -> Any:
    """Return what the description of the API says of a body: an object, a list, or JSON lines."""
    _DOCUMENTED[model] = None
    one = {"$ref": _REFERENCE.format(model=model.__name__)}
    several = {"oneOf": [one, {"type": "array", "items": one}]} if or_list else one
    content: dict[str, Any] = {_JSON_TYPE: {"schema": several}}
    if lines:
        content[STREAM_TYPE] = {"schema": one}
    return {"requestBody": {"required": True, "content": content}}


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description of an application; it is made once.

    FastAPI does not know the bodies that endpoints read themselves, the project of a path, which the
    check of the token reads, and that every request needs a token.
    """
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        models = [(model, "validation") for model in _DOCUMENTED]
        _, definitions = models_json_schema(models, ref_template=_REFERENCE)  # type: ignore[arg-type]
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {}).update(definitions["$defs"])
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                _add_path_parameters(operation, re.findall(r"{(\w+)}", path))
        app.openapi_schema = schema
    return app.openapi_schema


def _add_path_parameters(operation: dict[str, Any], names: list[str]) -> None:
    parameters = operation.setdefault("parameters", [])
    known = {each["name"] for each in parameters if each["in"] == "path"}
    text = {"type": "string", "minLength": 1}
    parameters[:0] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in names
        if name not in known
    ]
