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

_RETRY_SECONDS = "2"
_MAX_DETAIL = 500


class UnavailableError(Exception):
    """The service cannot do this now: the database is away, or too much is waiting.

    Examples
    --------
    >>> str(UnavailableError("the database does not answer"))
    'the database does not answer'
    """


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response of an error."""
    text = shorten(one_line(detail), _MAX_DETAIL)
    return JSONResponse({"detail": text}, status, dict(headers or {}))


def add_handlers(app: FastAPI) -> None:
    """Make an application answer every error with one JSON object."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(ValidationError, _content)
    app.add_exception_handler(InputError, _input)
    app.add_exception_handler(AnnotruthError, _result)
    app.add_exception_handler(UnavailableError, _unavailable)
    app.add_exception_handler(DatabaseUnavailableError, _database)
    app.add_exception_handler(ClientDisconnect, _gone)


def message_of(errors: Sequence[Mapping[str, Any]], place: str = "") -> str:
    """Return the first of pydantic's errors in one line: where, what, and how many more."""
    first = errors[0]
    path = ".".join(printable(str(part)) for part in first["loc"])
    where = ".".join(part for part in (place, path) if part)
    more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
    what = first["msg"].removeprefix("Value error, ")  # before the messages of our own checks
    return f"{where + ': ' if where else ''}{what}{more}"


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), error.headers)


async def _parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem(422, message_of(error.errors()))


async def _content(_: Request, error: Exception) -> Response:
    assert isinstance(error, ValidationError)
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    status = 400 if errors[0]["type"] == "json_invalid" else 422
    return problem(status, message_of(errors))


async def _input(_: Request, error: Exception) -> Response:
    return problem(422, str(error))


async def _result(_: Request, error: Exception) -> Response:
    return problem(409, str(error))


async def _unavailable(_: Request, error: Exception) -> Response:
    return problem(503, str(error), {"Retry-After": _RETRY_SECONDS})


async def _database(request: Request, error: Exception) -> Response:
    assert isinstance(error, DatabaseUnavailableError)
    _LOGGER.warning("%s", error)
    return await _unavailable(request, UnavailableError(f"{error.public_reason}: try again"))


async def _gone(_: Request, error: Exception) -> Response:
    return problem(400, "the request ended before its body was complete")
