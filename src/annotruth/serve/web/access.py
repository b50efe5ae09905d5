"""Tokens, logins and projects, looked up with a short memory; and how often they may be used."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.logins import end_login, start_login, token_of_login
from annotruth.serve.store.projects import get_project
from annotruth.serve.store.records import Project, Token
from annotruth.serve.store.tokens import find_token, mark_used
from annotruth.serve.web.limits import RateLimit, too_many
from annotruth.serve.web.logins import Login, LoginCookies

_SECONDS_KEPT = 5.0  # a token that another process revokes is valid for so long at most
_MOST_KEPT = 2_000
_USED_EVERY = timedelta(minutes=1)
_FAILURES_PER_SECOND, _FAILURES_AT_ONCE = 5.0, 50.0

Value = TypeVar("Value")


class Access(NamedTuple):
    """Who makes a request, and for which project.

    Attributes
    ----------
    token
        The token, of the header or of the login.
    found_project
        The project of the path, if there is one.
    login
        The login, if the request has no token in its header.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> token = Token("3f", None, "ci", "write", datetime(2026, 1, 1, tzinfo=UTC))
    >>> Access(token, None, None).actor
    'token 3f (ci)'
    """

    token: Token
    found_project: Project | None
    login: Login | None

    @property
    def project(self) -> Project:
        """The project of the path."""
        assert self.found_project is not None, "the path has no {project}"
        return self.found_project

    @property
    def actor(self) -> str:
        """How the audit log names who did something."""
        return f"token {self.token.id} ({self.token.name})"


class _Memory(Generic[Value]):
    """Values by key that are forgotten after some seconds."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[float, Value]] = OrderedDict()

    def get(self, key: str) -> Value | None:
        found = self._values.get(key)
        return found[1] if found and time.monotonic() < found[0] else None

    def put(self, key: str, value: Value) -> None:
        self._values.pop(key, None)
        self._values[key] = (time.monotonic() + _SECONDS_KEPT, value)
        if len(self._values) > _MOST_KEPT:
            self._values.popitem(last=False)

    def clear(self) -> None:
        self._values.clear()


class AccessControl:
    """Looks up tokens, logins and projects, and limits the rate of requests.

    Examples
    --------
    >>> from pathlib import Path
    >>> config = ServeConfig(database="sqlite:///labels.db", data_dir=Path("."))
    >>> database = Database.open(config.database)
    >>> access = AccessControl(config, database)
    >>> database.dispose()
    """

    def __init__(self, config: ServeConfig, database: Database) -> None:
        rate = config.requests_per_second
        self._database = database
        self._cookies = LoginCookies(behind_tls=config.behind_tls)
        self._login_seconds = 3600.0 * config.login_hours
        self._tokens: _Memory[Token] = _Memory()
        self._projects: _Memory[Project] = _Memory()
        self._marked: dict[str, datetime] = {}
        self._requests = RateLimit(per_second=rate, burst=2.0 * rate)
        self._failures = RateLimit(per_second=_FAILURES_PER_SECOND, burst=_FAILURES_AT_ONCE)

    def forget(self) -> None:
        """Forget tokens and projects, so that changes have an effect at once."""
        self._tokens.clear()
        self._projects.clear()

    async def identify(self, request: Request) -> tuple[Token, Login | None]:
        """Return the token of a request, and its login if that is how it came.

        A header is taken before a cookie. Raise status 401 if there is neither or it is not valid.
        """
        header = request.headers.get("authorization")
        login = self._cookies.get(request) if header is None else None
        key = _key_of(header, login)
        token = None if key is None else self._tokens.get(key)
        if token is None and key is not None:
            token = await run_in_threadpool(self._look_up, header, login)
            if token is not None:
                self._tokens.put(key, token)
        if token is None or not token.is_valid(datetime.now(UTC)):
            raise self._refusal(request)
        if wait := self._requests.wait(token.id):
            raise too_many(wait)
        return token, login

    async def project(self, name: str) -> Project | None:
        """Return the project of a name, or None."""
        found = self._projects.get(name)
        if found is None:
            found = await run_in_threadpool(self._look_up_project, name)
            if found is not None:
                self._projects.put(name, found)
        return found

    def valid_token(self, text: str) -> Token | None:
        """Return the token of a text that somebody logs in with, if it is valid."""
        return self._look_up(f"Bearer {text}", None)

    def check_login_rate(self, request: Request) -> None:
        """Refuse a login from an address that has failed too often."""
        if wait := self._failures.wait(_address(request)):
            raise too_many(wait)

    def log_in(self, token: Token) -> Login:
        """Start a login."""
        login, now = Login.new(), datetime.now(UTC)
        expires = now + timedelta(seconds=self._login_seconds)
        with self._database.begin() as connection:
            start_login(connection, login.secret, token.id, now, expires)
        return login

    def log_out(self, login: Login) -> None:
        """End a login: its cookie is not taken any more."""
        with self._database.begin() as connection:
            end_login(connection, login.secret)
        self._tokens.clear()

    def give_cookie(self, response: Response, login: Login) -> None:
        """Give a login to a browser."""
        self._cookies.set(response, login, self._login_seconds)

    def remove_cookie(self, response: Response) -> None:
        """Remove the cookie of a login."""
        self._cookies.remove(response)

    def _look_up(self, header: str | None, login: Login | None) -> Token | None:
        now = datetime.now(UTC)
        with self._database.connect() as connection:
            if login is not None:
                token = token_of_login(connection, login.secret, now)
            else:
                scheme, _, text = (header or "").partition(" ")
                bearer = scheme.lower() == "bearer"
                token = find_token(connection, text.strip(), now) if bearer else None
        if token is not None:
            self._mark_used(token, now)
        return token

    def _mark_used(self, token: Token, now: datetime) -> None:
        before = self._marked.get(token.id)
        if before is None or now - before > _USED_EVERY:
            self._marked[token.id] = now
            with self._database.begin() as connection:
                mark_used(connection, token.id, now)

    def _look_up_project(self, name: str) -> Project | None:
        if "\0" in name:
            return None
        with self._database.connect() as connection:
            return get_project(connection, name)

    def _refusal(self, request: Request) -> HTTPException:
        if wait := self._failures.wait(_address(request)):
            return too_many(wait)
        return HTTPException(
            401,
            "a valid token is needed: send the header Authorization: Bearer at_...",
            {"WWW-Authenticate": "Bearer"},
        )


def _key_of(header: str | None, login: Login | None) -> str | None:
    """Return what a token is remembered by: a hash, so that memory holds no secret."""
    if login is not None:
        return f"login {login.csrf_token}"
    return None if header is None else hashlib.sha256(header.encode("latin-1")).hexdigest()


def _address(request: Request) -> str:
    return "-" if request.client is None else request.client.host
