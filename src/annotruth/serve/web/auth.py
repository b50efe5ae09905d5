"""Who may do what: tokens in the Authorization header, or a login's cookie.

An endpoint states the scope it needs: ``access: Annotated[Access, Depends(require("write"))]``. If
its path has a ``{project}``, the token must be for that project or for all. A token of another
project is refused in the same words whether the project exists or not. Tokens, logins and projects are
looked up with a short memory. A login that was ended is not taken any more, whoever has its cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from annotruth.serve.administration import end_login, find_token, start_login, token_of_login
from annotruth.serve.config import ServeConfig
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import get_project
from annotruth.serve.store.rows import change
from annotruth.serve.store.tables import Project, Scope, Token
from annotruth.serve.web.guard import RateLimit, too_many

_SECONDS_KEPT = 5.0  # a token that another process revokes is valid for so long at most
_MOST_KEPT = 2_000
_USED_EVERY = timedelta(minutes=1)
_FAILURES_PER_SECOND, _FAILURES_AT_ONCE = 5.0, 50.0
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
"""The header, or the field of a form, that requests of a login must have to change something."""

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_FORM_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1_000

Value = TypeVar("Value")


class Login(NamedTuple):
    """A login, valid or not; the cookie holds its secret, which is random text."""

    secret: str

    @property
    def csrf_token(self) -> str:
        """The text that every form of this login must send back."""
        return hashlib.sha256(f"csrf.{self.secret}".encode("utf-8", "surrogatepass")).hexdigest()


class Access(NamedTuple):
    """Who makes a request, and for which project, if its path has one.

    ``login`` is None if the token is in the header.
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
    """Looks up tokens, logins and projects, and limits the rate of requests."""

    def __init__(self, config: ServeConfig, database: Database) -> None:
        rate = config.requests_per_second
        self._database = database
        # Browsers accept the prefix only with Secure and without a domain.
        self.cookie = "__Host-annotruth" if config.behind_tls else "annotruth"
        self._login_seconds = 3600.0 * config.login_hours
        self._cookie_options: Any = {
            "path": "/",
            "secure": config.behind_tls,
            "httponly": True,
            "samesite": "strict",
        }
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
        secret = request.cookies.get(self.cookie) if header is None else None
        login = None if secret is None else Login(secret)
        key = None  # a hash, so that memory holds no secret
        if login is not None:
            key = f"login {login.csrf_token}"
        elif header is not None:
            key = hashlib.sha256(header.encode("latin-1")).hexdigest()
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

        def look_up() -> Project | None:
            with self._database.connect() as connection:
                return get_project(connection, name)

        found = self._projects.get(name)
        if found is None and "\0" not in name:
            found = await run_in_threadpool(look_up)
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

    def log_in(self, token: Token, response: Response) -> None:
        """Start a login, and give its cookie to the browser."""
        login, now = Login(secrets.token_urlsafe(32)), datetime.now(UTC)
        expires = now + timedelta(seconds=self._login_seconds)
        with self._database.begin() as connection:
            start_login(connection, login.secret, token.id, now, expires)
        seconds = int(self._login_seconds)
        response.set_cookie(self.cookie, login.secret, max_age=seconds, **self._cookie_options)

    def log_out(self, login: Login | None, response: Response) -> None:
        """End a login: its cookie is removed, and not taken any more."""
        if login is not None:
            with self._database.begin() as connection:
                end_login(connection, login.secret)
            self._tokens.clear()
        response.delete_cookie(self.cookie, **self._cookie_options)

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
            before = self._marked.get(token.id)
            if before is None or now - before > _USED_EVERY:
                self._marked[token.id] = now
                with self._database.begin() as connection:
                    change(connection, Token, {"last_used": now}, id=token.id)
        return token

    def _refusal(self, request: Request) -> HTTPException:
        if wait := self._failures.wait(_address(request)):
            return too_many(wait)
        return HTTPException(
            401,
            "a valid token is needed: send the header Authorization: Bearer at_...",
            {"WWW-Authenticate": "Bearer"},
        )


def _address(request: Request) -> str:
    return "-" if request.client is None else request.client.host


def require(scope: Scope, *, all_projects: bool = False) -> Callable[[Request], Awaitable[Access]]:
    """Return a dependency that lets requests through whose token has a scope.

    Each of "read", "write" and "admin" includes those before.
    """

    async def check(request: Request) -> Access:
        access: AccessControl = request.app.state.context.access
        token, login = await access.identify(request)
        name = request.path_params.get("project")
        project = None if name is None else await access.project(name)
        own = token.project
        elsewhere = name is not None and (project is None or project.id != own)
        if own is not None and (all_projects or elsewhere):
            raise HTTPException(403, "this token is not for this project, or not for all projects")
        if not token.allows(scope, own):
            raise HTTPException(403, f"this token may not do this: it needs the scope {scope}")
        if name is not None and project is None:
            raise HTTPException(404, "there is no such project")
        if login is not None and request.method not in _SAFE_METHODS:
            await check_csrf(request, login)
        return Access(token, project, login)

    check.scope = scope  # type: ignore[attr-defined]  # for the documentation and its test
    return check


async def check_csrf(request: Request, login: Login) -> None:
    """Refuse a request of a login that does not come from one of its own pages."""
    given = request.headers.get(CSRF_HEADER)
    if given is None:
        given = (await form_of(request)).get(CSRF_FIELD, "")
    text = given.encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(text, login.csrf_token.encode()):
        raise HTTPException(403, "the form is out of date: load the page again and repeat")


def check_same_origin(request: Request) -> None:
    """Refuse a form that a page of another site sent, as far as the browser says so.

    For forms before the login, which have no login to bind a token to.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    same = origin is None or origin.partition("://")[2] == host
    if site not in ("same-origin", "none") or not same:
        raise HTTPException(403, "the form was sent by a page of another site")


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; of several with one name, the last; none of another type."""
    kept: dict[str, str] | None = getattr(request.state, "form", None)
    if kept is None:
        kept = {}
        if request.headers.get("content-type", "").partition(";")[0].strip() == _FORM_TYPE:
            body = (await request.body()).decode("utf-8", "replace")
            try:
                pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
            except ValueError:
                raise HTTPException(400, "the form has too many fields") from None
            kept = dict(pairs)
        request.state.form = kept
    return kept
