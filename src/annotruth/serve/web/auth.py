"""Who may do what: tokens in the Authorization header, or a login's cookie.

An endpoint states the scope it needs: ``access: Annotated[Access, Depends(require("write"))]``. If
its path has a ``{project}``, the token must be for that project or for all. A token of another
project is refused in the same words whether the project exists or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from annotruth.serve.store.records import Scope
from annotruth.serve.web.access import Access
from annotruth.serve.web.context import context_of
from annotruth.serve.web.logins import Login

CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
"""The header, or the field of a form, that requests of a login must have to change something."""

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_FORM_TYPE = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1_000


def require(scope: Scope, *, all_projects: bool = False) -> Callable[[Request], Awaitable[Access]]:
    """Return a dependency that lets requests through whose token has a scope.

    Parameters
    ----------
    scope
        "read", "write" or "admin", each of which includes those before.
    all_projects
        Whether the token must be for all projects.
    """

    async def check(request: Request) -> Access:
        access = context_of(request).access
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
    if not login.is_csrf_token(given):
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
