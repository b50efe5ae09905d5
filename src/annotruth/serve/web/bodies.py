"""Bodies of requests: JSON that is checked by a pydantic model, and how the API documents it."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, TypeVar

from fastapi import HTTPException, Request
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from annotruth.serve.web.limits import STREAM_TYPE

JSON_TYPE = "application/json"

REFERENCE = "#/components/schemas/{model}"
"""How the description of the API refers to a model."""

Sent = TypeVar("Sent", bound=BaseModel)
_DOCUMENTED: list[type[BaseModel]] = []


def media_type(request: Request) -> str:
    """Return the type of a request's body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json(request: Request, model: type[Sent]) -> Sent:
    """Return the one object of a request."""
    _refuse_type(request)
    return model.model_validate_json(await request.body())


async def read_list(request: Request, model: type[Sent], most: int) -> list[Sent]:
    """Return the object, or the list of objects, of a request."""
    _refuse_type(request)
    body = (await request.body()).strip()
    if not body.startswith(b"["):
        return [model.model_validate_json(body)]
    try:
        sent: list[Sent] = _list_of(model, most).validate_json(body)
    except ValidationError as error:
        if error.errors(include_context=False, include_input=False)[0]["type"] != "too_long":
            raise
        raise HTTPException(
            413, f"too many at once: send at most {most:,} per request, or a stream of lines"
        ) from None
    return sent


@lru_cache
def _list_of(model: type[BaseModel], most: int) -> TypeAdapter[Any]:
    """Return what checks a list; it stops at the first that is too many."""
    limited: Any = Annotated[list[model], Field(max_length=most)]  # type: ignore[valid-type]
    return TypeAdapter(limited)


def _refuse_type(request: Request) -> None:
    if media_type(request) != JSON_TYPE:
        raise HTTPException(415, f"send JSON, with the header Content-Type: {JSON_TYPE}")


def documented_models() -> list[type[BaseModel]]:
    """Return the models of all bodies, each once."""
    return list(dict.fromkeys(_DOCUMENTED))


def documented(model: type[BaseModel], *, or_list: bool = False, lines: bool = False) -> Any:
    """Return what the description of the API says of a body.

    Parameters
    ----------
    model
        What an object of the body is.
    or_list
        Whether a list of them is accepted too.
    lines
        Whether a stream of JSON lines is accepted too.
    """
    _DOCUMENTED.append(model)
    one = {"$ref": REFERENCE.format(model=model.__name__)}
    several = {"oneOf": [one, {"type": "array", "items": one}]} if or_list else one
    content: dict[str, Any] = {JSON_TYPE: {"schema": several}}
    if lines:
        content[STREAM_TYPE] = {"schema": one}
    return {"requestBody": {"required": True, "content": content}}
