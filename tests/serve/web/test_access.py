"""Who may do what; `tests.attack` requests every endpoint with every token."""

import pytest
from sqlalchemy import select
from tests.waiting import wait_until

from annotruth.serve.administration import create_token
from annotruth.serve.store.database import DatabaseUnavailableError
from annotruth.serve.store.rows import utc_now
from annotruth.serve.store.tables import login as login_table
from annotruth.serve.web.auth import Login

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_scopes_include_those_before(shared):
    label = {"item": "a", "annotator": "b", "label": "c"}
    for token, statuses in {
        "birds-read": (200, 403, 403),
        "birds-write": (200, 200, 403),
        "birds-admin": (200, 200, 200),
    }.items():
        calls = (
            shared.call("GET", "/projects/birds/labels", token=token),
            shared.call("POST", "/projects/birds/labels", label, token=token),
            shared.call("GET", "/projects/birds/tokens", token=token),
        )
        assert tuple(reply.status for reply in calls) == statuses


def test_expired_tokens_are_refused(shared):
    now = utc_now()
    with shared.context.database.begin() as connection:
        _, text = create_token(connection, "short", "read", now, expires=now)
    assert shared.call("GET", "/projects", token=text).status == 401


def test_failed_attempts_are_limited_per_address(sqlite_server, monkeypatch):
    monkeypatch.setattr(sqlite_server.context.access._failures, "_clock", lambda: 0.0)
    statuses = {sqlite_server.call("GET", "/projects", token="at_x_y").status for _ in range(60)}
    assert statuses == {401, 429}
    assert sqlite_server.call("GET", "/projects").status == 200


def test_tokens_have_a_rate_limit(serve_file):
    with serve_file(requests_per_second=1.0) as server:
        server.context.access._requests._clock = lambda: 0.0
        replies = [server.call("GET", "/projects", token="reader") for _ in range(4)]
        assert [reply.status for reply in replies] == [200, 200, 429, 429]
        assert replies[-1].headers["retry-after"] == "1"
        assert server.call("GET", "/projects", token="birds-read").status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((host, 400) for host in ("evil.example", "evil.example:80", "")),
        ("127.0.0.1.evil.example", 400),
        *((host, 200) for host in ("localhost", "LOCALHOST:1234", "[::1]:80", "127.0.0.1")),
    ],
)
def test_only_loopback_names_are_served_on_loopback(shared, host, status):
    token = {"Authorization": f"Bearer {shared.tokens['reader']}", "Host": host}
    for path in ("/healthz", "/api/v1/projects"):
        assert shared.send("GET", path, headers=token).status == status


def test_other_sites_may_not_read(shared):
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    reply = shared.send("OPTIONS", "/api/v1/projects/birds/labels", headers=origin)
    assert reply.status == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_every_response_has_security_headers(shared):
    for path in ("/", "/healthz", "/nothing", "/api/v1/projects"):
        headers = shared.send("GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"]
        assert "server" not in headers


def test_a_login_needs_its_csrf_token_to_change_something(shared):
    token = f"token={shared.tokens['birds-admin']}".encode()
    set_cookie = shared.send("POST", "/login", token, FORM).headers["set-cookie"]
    assert "HttpOnly" in set_cookie
    assert "SameSite=strict" in set_cookie
    cookie = {"Cookie": set_cookie.partition(";")[0], "Content-Type": "application/json"}
    label = b'{"item": "a", "annotator": "b", "label": "c"}'
    path = "/api/v1/projects/birds/labels"
    assert shared.send("GET", path, headers=cookie).status == 200
    assert shared.send("POST", path, label, cookie).status == 403
    wrong = {**cookie, "X-CSRF-Token": "x"}
    assert shared.send("POST", path, label, wrong).status == 403
    login = Login(set_cookie.partition(";")[0].partition("=")[2])
    right = {**cookie, "X-CSRF-Token": login.csrf_token}
    assert shared.send("POST", path, label, right).status == 200
    assert shared.send("GET", "/api/v1/projects/cats/labels", headers=cookie).status == 403


def test_a_login_that_was_ended_is_not_taken_any_more(server):
    path = "/api/v1/projects/birds/labels"

    def log_in():
        body = f"token={server.tokens['birds-read']}".encode()
        reply = server.send("POST", "/login", body, FORM)
        assert reply.status == 303
        return {"Cookie": reply.headers["set-cookie"].partition(";")[0]}

    one, other = log_in(), log_in()
    secret = one["Cookie"].partition("=")[2]
    csrf = f"csrf={Login(secret).csrf_token}".encode()
    for cookie in (one, other):
        assert server.send("GET", path, headers=cookie).status == 200
    assert server.send("POST", "/logout", csrf, {**one, **FORM}).status == 303
    assert server.send("GET", path, headers=one).status == 401
    assert server.send("GET", path, headers=other).status == 200
    with server.context.database.connect() as connection:
        (row,) = connection.execute(select(login_table)).all()
    assert secret not in row.hash


def test_a_login_ends_after_its_time(server, monkeypatch):
    monkeypatch.setattr(server.context.access, "_login_seconds", 0.0)
    reply = server.send("POST", "/login", f"token={server.tokens['birds-read']}".encode(), FORM)
    cookie = {"Cookie": reply.headers["set-cookie"].partition(";")[0]}
    assert server.send("GET", "/api/v1/projects/birds/labels", headers=cookie).status == 401


def test_the_log_has_no_tokens(shared, caplog):
    caplog.set_level("INFO")
    token = shared.tokens["admin"]
    shared.call("GET", f"/projects/logged-once?token={token}")
    shared.call("GET", "/projects/birds/items/logged%0A2026-01-01%20forged", token="birds-read")

    def lines():  # those of these two requests: earlier tests' lines may be written now
        written = [r.getMessage() for r in caplog.records if r.name == "annotruth.serve.access"]
        return sorted(line for line in written if "/logged" in line)

    wait_until(lambda: len(lines()) == 2, "lines that are written after the response was sent")
    item, project = lines()
    assert project.startswith("127.0.0.1 GET /api/v1/projects/logged-once 404 ")
    assert "\n" not in item
    assert token not in caplog.text
    assert token.split("_", 2)[2] not in caplog.text


def test_a_page_does_not_name_a_database_that_does_not_answer(sqlite_server, monkeypatch):
    def fail(connection):
        raise DatabaseUnavailableError("postgresql://secret.example.org: connection refused")

    monkeypatch.setattr("annotruth.serve.pages.overview.list_projects", fail)
    headers = {"Authorization": f"Bearer {sqlite_server.tokens['reader']}"}
    reply = sqlite_server.send("GET", "/projects", headers=headers)
    assert reply.status == 503
    assert "The database does not answer" in reply.body
    assert "secret.example.org" not in reply.body


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)])
def test_forwarded_addresses_count_only_from_named_proxies(serve_file, proxies):
    with serve_file(**({"trusted_proxies": proxies} if proxies else {})) as server:
        statuses = set()
        for number in range(150):
            forwarded = {"X-Forwarded-For": f"198.51.100.{number}", **FORM}
            statuses.add(server.send("POST", "/login", b"token=at_x_y", forwarded).status)
    assert statuses == ({401} if proxies else {401, 429})
