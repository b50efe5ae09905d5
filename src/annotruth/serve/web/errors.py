"""Errors of requests: one JSON object with one line of text each, and never a traceback.

============ ===========================================================================
400          the request cannot be read
401, 403     no valid token; a token without the right
404          the project, item or other thing does not exist
409          it exists already
413, 415     too large; not JSON
422          the content is wrong: which field, and what is expected
429          too many requests; ``Retry-After`` says when to try again
503          the database or the queue cannot take it now; nothing was stored
============ ===========================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from annotruth.errors import AnnotruthError, InputError, one_line, printable, shorten
from annotruth.serve.store.database import DatabaseUnavailableError

_LOGGER = logging.getLogger(__name__)

_RETRY = {"Retry-After": "2"}
_MAX_DETAIL = 500


class UnavailableError(Exception):
    """The service cannot do this now: the database is away, or too much is waiting."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response of an error."""
    text = shorten(one_line(detail), _MAX_DETAIL)
    return JSONResponse({"detail": text}, status, dict(headers or {}))


def add_handlers(app: FastAPI) -> None:
    """Make an application answer every error with one JSON object."""
    for kind in (
        HTTPException,
        RequestValidationError,
        ValidationError,
        AnnotruthError,
        UnavailableError,
        ClientDisconnect,
    ):
        app.add_exception_handler(kind, _answer)


def message_of(error: ValidationError | RequestValidationError, place: str = "") -> str:
    """Return the first of pydantic's errors in one line: where, what, and how many more."""
    errors = errors_of(error)
    first = errors[0]
    path = ".".join(printable(str(part)) for part in first["loc"])
    where = ".".join(part for part in (place, path) if part)
    more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
    what = first["msg"].removeprefix("Value error, ")  # before the messages of our own checks
    return f"{where + ': ' if where else ''}{what}{more}"


def errors_of(error: ValidationError | RequestValidationError) -> Sequence[Mapping[str, Any]]:
    """Return pydantic's errors, without what was sent."""
    if isinstance(error, RequestValidationError):
        return error.errors()
    return error.errors(include_url=False, include_context=False, include_input=False)


async def _answer(_: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            return problem(error.status_code, str(error.detail), error.headers)
        case RequestValidationError():
            return problem(422, message_of(error))
        case ValidationError():
            is_json = errors_of(error)[0]["type"] != "json_invalid"
            return problem(422 if is_json else 400, message_of(error))
        case DatabaseUnavailableError():
            _LOGGER.warning("%s", error)
            return problem(503, f"{error.public_reason}: try again", _RETRY)
        case UnavailableError():
            return problem(503, str(error), _RETRY)
        case AnnotruthError():
            return problem(422 if isinstance(error, InputError) else 409, str(error))
        case _:
            return problem(400, "the request ended before its body was complete")
