"""Headers of every response that restrict what a browser does with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Scripts, styles and requests come from this server alone, and nothing inline runs."""

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

HeaderList: TypeAlias = list[tuple[bytes, bytes]]


def security_headers(*, behind_tls: bool) -> HeaderList:
    """Return the headers; behind TLS, browsers use HTTPS only from then on."""
    headers = dict(SECURITY_HEADERS)
    if behind_tls:
        headers["Strict-Transport-Security"] = "max-age=31536000"
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def with_defaults(headers: Iterable[tuple[bytes, bytes]], defaults: HeaderList) -> HeaderList:
    """Return the headers of a response, with those of the defaults that it does not have."""
    own = list(headers)
    given = {name.lower() for name, _ in own}
    return own + [pair for pair in defaults if pair[0] not in given]
