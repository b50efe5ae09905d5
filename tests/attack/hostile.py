"""Hostile requests, generated from a seed: the same number makes the same request."""

import json
import random
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

TEXTS = (
    "",
    "a" * 513,
    "\0",
    "a\0b",
    "\ud800",
    "\u202egpj.exe",
    "😀" * 300,
    "'; DROP TABLE event; --",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%s%s%s%n",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "=cmd|' /C calc'!A0",
    "\r\nSet-Cookie: x=1",
    "NaN",
    "null",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**4000,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    {"a": {"b": {"c": [1, 2, {"d": None}]}}},
    *TEXTS,
)
RAW_BODIES = (
    b"",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"[" + b"1," * 50_000 + b"1]",
    b'{"item": "a", "item": "b", "annotator": "c", "label": "d"}',
    b'{"item": NaN, "annotator": Infinity, "label": -Infinity}',
    b'{"item": 1e99999, "annotator": 1, "label": 1}',
    b'{"item": ' + b"9" * 5000 + b', "annotator": 1, "label": 1}',
    b'{"item": "\\ud800", "annotator": "a", "label": "b"}',
    b'{"item": "a\\u0000", "annotator": "a", "label": "b"}',
    "{'item': 1}".encode("utf-16"),
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    b"a=1&b=2",
    b"{}\n{}\n\n\n[]\n",
    b"x" * 70_000,
)
TYPES = (
    "application/json",
    "application/json; charset=utf-16",
    "application/x-ndjson",
    "text/plain",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "application/json, text/html",
    "",
)
FIELDS = (
    *("item", "annotator", "label", "event_id", "annotation", "started", "submitted", "deleted"),
    *("left", "right", "outcome", "name", "kind", "settings", "model", "scale", "categories"),
    *("labels_per_item", "content", "traits", "scope", "expires", "url", "kinds", "__proto__"),
)
TIMES = ("2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "24:61", 1e300, -1)
ENDPOINTS = (
    ("GET POST", "/projects"),
    ("GET PATCH", "/projects/birds"),
    ("GET POST", "/projects/birds/labels"),
    ("POST POST", "/projects/birds/labels"),
    ("GET POST", "/projects/films/comparisons"),
    ("POST", "/projects/birds/gold"),
    ("GET POST", "/projects/birds/annotators"),
    ("GET POST", "/projects/birds/items"),
    ("GET", "/projects/birds/items/{}"),
    ("GET", "/projects/birds/annotators/{}"),
    ("GET POST", "/projects/{}/labels"),
    ("GET", "/projects/birds/advice"),
    ("GET", "/projects/birds/snapshots"),
    ("GET", "/projects/birds/alerts"),
    ("POST", "/projects/birds/alerts/seen"),
    ("GET", "/projects/birds/next"),
    ("GET POST", "/projects/birds/tokens"),
    ("DELETE", "/projects/birds/tokens/{}"),
    ("DELETE", "/projects/birds/tokens/{}"),
    ("GET POST", "/projects/birds/webhooks"),
    ("DELETE", "/projects/birds/webhooks/{}"),
    ("GET", "/projects/birds/audit"),
    ("GET POST", "/projects/birds/connections"),
    ("DELETE", "/projects/birds/connections/{}"),
    ("GET", "/{}"),
)
PAGES = (
    ("GET", "/"),
    ("GET POST", "/projects"),
    ("GET", "/projects/birds"),
    ("GET", "/projects/{}"),
    ("GET", "/projects/birds/annotators"),
    ("GET", "/projects/birds/annotator"),
    ("GET", "/projects/birds/items"),
    ("GET", "/projects/birds/item"),
    ("GET", "/projects/films/items"),
    ("GET", "/projects/birds/queue"),
    ("GET POST", "/projects/birds/alerts"),
    ("GET", "/projects/birds/audit"),
    ("GET POST POST", "/projects/birds/settings"),
    ("GET POST", "/login"),
    ("GET", "/static/{}/serve.css"),
)
PARAMETERS = (
    *("id", "page", "tab", "action", "q"),
    *("since", "limit", "cursor", "sort", "order", "status", "verdict", "annotator", "x"),
)


class HostileRequest(NamedTuple):
    """A request to send with a valid token."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    chunked: bool


def hostile_request(number: int) -> HostileRequest:
    """Return the request of a number."""
    random_ = random.Random(number)
    is_page = random_.random() < 0.25
    methods, path = random_.choice(PAGES if is_page else ENDPOINTS)
    if "{}" in path:
        path = path.format(quote(_text(random_), safe=random_.choice(("", "/", "%/"))))
    if random_.random() < 0.5:
        pairs = (
            f"{random_.choice(PARAMETERS)}={quote(str(_value(random_))[:2000], errors='replace')}"
            for _ in range(random_.randint(1, 3))
        )
        path += "?" + "&".join(pairs)
    prefix = "" if is_page else "/hooks/1" if random_.random() < 0.03 else "/api/v1"
    odd = random_.random() < 0.05
    method = random_.choice(("PUT", "HEAD", "OPTIONS", "GET") if odd else methods.split())
    kind = random_.choice(TYPES) if random_.random() < 0.3 else "application/json"
    body = random_.choice(RAW_BODIES) if random_.random() < 0.3 else _json_body(random_)
    if is_page and random_.random() < 0.7:
        kind, body = "application/x-www-form-urlencoded", _form_body(random_)
    headers = {"Content-Type": kind} if kind else {}
    if random_.random() < 0.05:
        headers["X-Forwarded-For"] = _text(random_).encode("ascii", "ignore").decode()[:100].strip()
        headers["X-Forwarded-For"] = (
            headers["X-Forwarded-For"].replace("\r\n", "").replace("\0", "")
        )
    return HostileRequest(method, prefix + path, headers, body, random_.random() < 0.2)


def _text(random_: random.Random) -> str:
    return random_.choice(TEXTS).replace("\ud800", "\ufffd")


def _value(random_: random.Random) -> object:
    value = random_.choice(VALUES)
    return str(value)[:100] if isinstance(value, int) and value > 2**64 else value


def _json_body(random_: random.Random) -> bytes:
    sent = [_object(random_) for _ in range(random_.choice((1, 1, 1, 2, 20)))]
    body = json.dumps(sent[0] if len(sent) == 1 else sent)
    return body.replace(json.dumps("\ud800"), '"\\ud800"').encode()


def _form_body(random_: random.Random) -> bytes:
    names = (*FIELDS, *PARAMETERS, "token", "csrf", "on_verdict")
    pairs = {random_.choice(names): str(_value(random_))[:5000] for _ in range(4)}
    pairs["do"] = random_.choice(("save", "create-token", "create-webhook", "revoke-token", "x"))
    return urlencode(pairs, errors="replace").encode()


def _object(random_: random.Random) -> object:
    if random_.random() < 0.1:
        return _value(random_)
    made: dict[str, Any] = (
        {"item": "a", "annotator": "b", "label": "c"} if random_.random() < 0.6 else {}
    )
    for _ in range(random_.randint(1, 4)):
        field = random_.choice(FIELDS)
        is_time = field in ("started", "submitted", "expires") and random_.random() < 0.7
        made[field] = random_.choice(TIMES) if is_time else random_.choice(VALUES[:6] + VALUES[7:])
    return made
