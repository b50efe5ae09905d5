"""Every endpoint with every token: who has not the right is refused, and learns nothing, and nobody else."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.serve.web.conftest import Server
from tests.waiting import MAX_SECONDS

from annotruth.serve.web.api_admin import OPEN_PATHS

SCOPES = ("read", "write", "admin")
SECRET = "snowy-owl"  # an item, an annotator and a label
# Pages ask for a login instead; platforms' messages are signed; scripts and styles show no data.
WITHOUT_TOKEN = ("/login", "/hooks/", "/static/")


class Endpoint(NamedTuple):
    """A method and a path, with the scope that it needs."""

    method: str
    path: str
    scope: str
    is_of_project: bool
    is_of_all: bool


class Answer(NamedTuple):
    """What somebody got, and what they should have got."""

    endpoint: Endpoint
    token: str
    status: int
    expected: str
    leaks: bool = False  # whether a refusal says what is stored, or whether a project exists

    @property
    def is_right(self) -> bool:
        """Whether both are the same, and a refusal says nothing."""
        if self.status == 303:  # a page: to the login, or after a change
            return self.expected != "403"
        found = {401: "401", 403: "403"}.get(self.status, "allowed")
        return self.status < 500 and found == self.expected and not self.leaks


def all_routes(routes: Any) -> Iterator[Any]:
    """Return all routes, those of included routers too."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from all_routes(route.original_router.routes)
        elif hasattr(route, "routes"):
            yield from all_routes(route.routes)
        else:
            yield route


def endpoints(server: Server) -> Iterator[Endpoint]:
    """Return every endpoint that needs a token, of the project "birds"."""
    for route in all_routes(server.app.routes):
        if route.path in (*OPEN_PATHS, "/") or route.path.startswith(WITHOUT_TOKEN):
            continue
        needs = [each.call for each in route.dependant.dependencies if hasattr(each.call, "scope")]
        if len(needs) != 1:
            raise AssertionError(f"{route.path} needs no scope, or several")
        names = dict.fromkeys(("item", "annotator", "token_id", "name", "version"), SECRET)
        path = route.path.replace(":path}", "}").format(project="birds", number=1, **names)
        path += "?annotator=ann" if path.endswith("/next") else ""
        for method in sorted(route.methods - {"HEAD"}):
            is_of_all = needs[0].__closure__ is not None and _closed(needs[0])["all_projects"]
            yield Endpoint(method, path, needs[0].scope, "{project}" in route.path, is_of_all)


def _closed(function: Any) -> dict[str, Any]:
    cells = (cell.cell_contents for cell in function.__closure__)
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def attack_matrix(server: Server) -> Iterator[Answer]:
    """Request every endpoint with every token, without one and with wrong ones."""
    good = server.tokens["admin"]
    label = {"item": SECRET, "annotator": SECRET, "label": SECRET}
    for path, sent in (("labels", label), ("items", {"item": SECRET, "content": {}})):
        if server.call("POST", f"/projects/birds/{path}", sent).status != 200:
            raise AssertionError("the secret is not stored")
    wrong = {
        "none": None,
        "empty": "",
        "unknown": "at_x_y",
        "almost": good[:-1] + ("A" if good[-1] != "A" else "B"),
    }
    for endpoint in endpoints(server):
        for name, text in wrong.items():
            yield _ask(server, endpoint, name, text, "401")
        # Those that would be allowed to remove something come last.
        for name, text in sorted(server.tokens.items(), key=lambda each: each[0] == "admin"):
            yield _ask(server, endpoint, name, text, _expected(endpoint, name))


def _ask(server: Server, endpoint: Endpoint, name: str, token: str | None, expected: str) -> Answer:
    """Request an endpoint; a token of another project also for one that does not exist."""
    status, said = _reply(server, endpoint.method, endpoint.path, token)
    leaks = SECRET.encode() in said
    if expected == "403" and not name.startswith("birds"):
        absent = endpoint.path.replace("/birds", "/geese")
        leaks |= _reply(server, endpoint.method, absent, token) != (status, said)
    return Answer(endpoint, name, status, expected, leaks)


def _expected(endpoint: Endpoint, name: str) -> str:
    """Return what the token of a name, such as birds-read, must get."""
    project, _, scope = name.rpartition("-")
    scope = {"reader": "read"}.get(scope, scope)
    if project and (endpoint.is_of_all or (endpoint.is_of_project and project != "birds")):
        return "403"
    return "allowed" if SCOPES.index(scope) >= SCOPES.index(endpoint.scope) else "403"


def _reply(server: Server, method: str, path: str, token: str | None) -> tuple[int, bytes]:
    """Return the status, and what a refusal says; a stream of events does not end."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=MAX_SECONDS)
    try:
        connection.request(method, path, b"{}", headers)
        response = connection.getresponse()
        return response.status, response.read() if response.status in (401, 403) else b""
    finally:
        connection.close()
