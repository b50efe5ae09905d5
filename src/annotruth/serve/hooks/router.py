"""The addresses that platforms send their messages to: ``/hooks/{number of the connection}``.

An unknown connection, a missing and a wrong signature are refused in the same words (401). A message
that cannot be read is answered with 400 and kept as the connection's last error; one that is not
about labels is answered with 200 and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from prometheus_client import Counter
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from annotruth.errors import InputError
from annotruth.serve.hooks.message import HookEvents, HookMessage, HookProject, SignatureError
from annotruth.serve.hooks.platforms import PLATFORMS
from annotruth.serve.hooks.polling import REQUESTED
from annotruth.serve.store.projects import keep_contact, list_projects, set_gold
from annotruth.serve.store.rows import find_one, utc_now
from annotruth.serve.store.tables import PlatformConnection, Project
from annotruth.serve.web.guard import RateLimit, too_many
from annotruth.serve.web.parameters import ERRORS, ServeContext

_CONTACT_EVERY = timedelta(minutes=1)
_REFUSALS_PER_SECOND, _REFUSALS_AT_ONCE = 5.0, 50.0
_MAX_NUMBER = 9  # digits of a connection's number


class Received(NamedTuple):
    """What became of a message."""

    stored: int = 0
    repeated: int = 0
    known: bool = True


def make_hooks(context: ServeContext) -> APIRouter:
    """Return the routes that platforms send their messages to."""
    router, receiver = APIRouter(tags=["hooks"], responses=ERRORS), HookReceiver(context)

    @router.post(
        "/hooks/{number}",
        summary="Receive a message of a labelling tool",
        openapi_extra={"security": []},  # messages are signed
    )
    async def receive(number: str, request: Request) -> dict[str, Any]:
        address = "" if request.client is None else request.client.host
        headers = {name.lower(): value for name, value in request.headers.items()}
        message = HookMessage(headers, await request.body(), utc_now())
        return (await receiver.receive(number, message, address))._asdict()

    return router


class HookReceiver:
    """Verifies messages, and hands their labels to the same ingestion as the API's."""

    def __init__(self, context: ServeContext) -> None:
        self._context = context
        self._refusals = RateLimit(per_second=_REFUSALS_PER_SECOND, burst=_REFUSALS_AT_ONCE)
        self._contacts: dict[int, tuple[datetime, str]] = {}
        self._messages = Counter(
            "annotruth_hook_messages",
            "Messages of labelling tools: stored, unknown, malformed or refused.",
            ("kind", "outcome"),
            registry=context.metrics.registry,
        )

    async def receive(self, number: str, message: HookMessage, address: str) -> Received:
        """Return what became of a message to a connection.

        Raise status 401 if there is no such connection or the signature is wrong, and 400 if the
        message cannot be read; then nothing is stored.
        """
        found = await run_in_threadpool(self._find, number)
        if found is None:
            raise self._refusal("any", address)
        sender, project = found
        try:
            PLATFORMS[sender.kind].verify(sender.secret, message)
            said = _read(sender, project, message)
            appended = await self._store(sender, project, said)
        except SignatureError:
            raise self._refusal(sender.kind, address) from None
        except InputError as error:
            self._messages.labels(sender.kind, "malformed").inc()
            await self._keep(sender, message.received, error=str(error))
            raise HTTPException(400, str(error)) from None
        self._messages.labels(sender.kind, "stored" if said.is_known else "unknown").inc()
        await self._keep(sender, message.received, needs_poll=said.needs_poll)
        return appended

    def _refusal(self, kind: str, address: str) -> HTTPException:
        self._messages.labels(kind, "refused").inc()
        if seconds := self._refusals.wait(address):
            return too_many(seconds)
        return HTTPException(401, "there is no such connection, or the signature is wrong")

    def _find(self, number: str) -> tuple[PlatformConnection, Project] | None:
        if not (number.isascii() and number.isdigit() and len(number) <= _MAX_NUMBER):
            return None
        with self._context.database.connect() as connection:
            sender = find_one(connection, PlatformConnection, id=int(number))
            if sender is None:
                return None
            projects = {each.id: each for each in list_projects(connection)}
        return sender, projects[sender.project]

    async def _store(
        self, sender: PlatformConnection, project: Project, said: HookEvents
    ) -> Received:
        if said.gold:
            await self._write(lambda connection: set_gold(connection, project.id, said.gold))
        if not said.events:
            return Received(known=said.is_known)
        appended = await self._context.ingest.append(project, sender.source, said.events)
        return Received(appended.n_new, appended.n_repeated)

    async def _keep(
        self,
        sender: PlatformConnection,
        now: datetime,
        *,
        error: str = "",
        needs_poll: bool = False,
    ) -> None:
        """Store the time of the contact and its error, but not with every message."""
        last, last_error = self._contacts.get(sender.id, (None, sender.last_error))
        is_recent = last is not None and now - last < _CONTACT_EVERY
        if is_recent and error == last_error and not needs_poll:
            return
        self._contacts[sender.id] = now, error
        cursor = {REQUESTED: now.isoformat()} if needs_poll else {}
        await self._write(
            lambda connection: keep_contact(connection, sender.id, now, error=error, cursor=cursor)
        )

    async def _write(self, write: Callable[[Connection], None]) -> None:
        def run() -> None:
            with self._context.database.begin() as connection:
                write(connection)

        await run_in_threadpool(run)


def _read(sender: PlatformConnection, project: Project, message: HookMessage) -> HookEvents:
    try:
        payload = json.loads(message.body)
    except (ValueError, RecursionError):
        raise InputError("the message is not JSON") from None
    hook_project = HookProject(project.kind, sender.settings)
    return PLATFORMS[sender.kind].read(payload, hook_project)
