"""Outgoing requests: addresses that they may be sent to, and the API of a platform.

A host's addresses are looked up once and checked, and the connection goes to a checked address. So a
name cannot stand for a public address when it is checked and for a private one afterwards.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

import httpx2

from annotruth.errors import AnnotruthError, InputError, hide_credentials, shorten

PORTS = {"http": 80, "https": 443}
"""The schemes of URLs that messages are sent to, and their ports."""

_MAX_URL = 2_000
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # the last 32 bits are an IPv4 address
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is assigned to the public internet
# Some versions of Python take these for public: documentation, protocols, relays of 6to4.
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("3fff::/20", "192.0.0.0/24", "192.88.99.0/24")))

_WAITS = (1.0, 4.0, 15.0)  # seconds before each further attempt
_BUSY = (408, 425, 429, 500, 502, 503, 504)
_MAX_ANSWER = 256 << 20
_MAX_DETAIL = 200


class PrivateAddressError(AnnotruthError):
    """A host is in a private network, which the settings do not allow."""


def check_url(url: str) -> SplitResult:
    """Return the parts of a URL that messages can be sent to; refuse others."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        parts = urlsplit("")
    is_plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= _MAX_URL
    if not is_plain or parts.scheme not in PORTS or not parts.hostname or parts.username:
        raise InputError(
            f"{hide_credentials(shorten(url))!r} is not a URL for messages: give one like "
            "https://example.org/hook, without a user name or password"
        )
    return parts


def allowed_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return the addresses of a host; refuse one with a private address among them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not allow_private and not all(map(is_public, addresses)):
        raise PrivateAddressError(
            f"{host} is a private address, which the settings do not allow: start with "
            "ANNOTRUTH_SERVE_PRIVATE_WEBHOOKS=true, if it may be reached"
        )
    return addresses


def is_public(address: str) -> bool:
    """Return whether an address is of the public internet; IPv6 may have an IPv4 address in it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        translated = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped
        if translated is not None:
            return is_public(str(translated))
        inner = ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip not in _UNICAST or not (inner is None or is_public(str(inner))):
            return False
    return ip.is_global and not ip.is_multicast and not any(ip in each for each in _NOT_PUBLIC)


class PlatformError(AnnotruthError):
    """A platform does not answer, or refuses a request."""


def token_auth(header: str) -> httpx2.Auth:
    """Return the authentication by a token that does not change, such as ``Token 0123``."""

    def add(request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = header
        return request

    return httpx2.FunctionAuth(add)


class CheckedTransport(httpx2.BaseTransport):
    """Sends requests to addresses that were looked up and checked."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._inner = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first address of its host; the host's certificate is verified."""
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            addresses = allowed_addresses(url.host, port, allow_private=self._allow_private)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(str(error), request=request) from None
        request.url = url.copy_with(host=addresses[0])
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class PlatformClient:
    """Sends requests to a platform's API and returns its JSON; ``title`` names it in messages."""

    def __init__(
        self,
        title: str,
        url: str,
        auth: httpx2.Auth,
        *,
        transport: httpx2.BaseTransport | None = None,
        allow_private: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.title = title
        self._url = checked_url(url)
        self._sleep = sleep
        # Redirects are not followed: they could lead the token elsewhere.
        transport = transport or CheckedTransport(allow_private=allow_private)
        self._http = httpx2.Client(
            base_url=self._url, auth=auth, timeout=60.0, transport=transport, trust_env=False
        )

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, **parameters: Any) -> Any:
        """Return what a path has."""
        return self._json(self._sent("GET", path, params=parameters))

    def exists(self, path: str) -> bool:
        """Return whether a path exists."""
        return self._sent("GET", path, allowed=(404,)).status_code != 404

    def post(self, path: str, content: Any) -> Any:
        """Send content to a path and return the answer."""
        return self._json(self._sent("POST", path, json=content))

    def patch(self, path: str, content: Any) -> Any:
        """Change something and return it."""
        return self._json(self._sent("PATCH", path, json=content))

    def delete(self, path: str) -> None:
        """Delete something; it may be gone already."""
        self._sent("DELETE", path, allowed=(404,))

    def _sent(
        self, method: str, path: str, *, allowed: tuple[int, ...] = (), **content: Any
    ) -> httpx2.Response:
        """Return the response of a request, which is repeated while the platform is busy."""
        for wait in (*_WAITS, None):
            try:
                response = self._request(method, path, **content)
                if response.status_code not in _BUSY:
                    return self._accepted(response, allowed)
                problem = f"answers {response.status_code}"
            except httpx2.TransportError as error:
                problem = f"does not answer ({type(error).__name__})"
            if wait is not None:
                self._sleep(wait)
        raise PlatformError(f"{self.title} at {hide_credentials(self._url)} {problem}: is it up?")

    def _request(self, method: str, path: str, **content: Any) -> httpx2.Response:
        """Return a response with its content, unless that is too large."""
        with self._http.stream(method, path, **content) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if size > _MAX_ANSWER:
                    raise PlatformError(f"the answer of {self.title} is too large: {path}")
                parts.append(part)
        return httpx2.Response(
            response.status_code, content=b"".join(parts), request=response.request
        )

    def _accepted(self, response: httpx2.Response, allowed: tuple[int, ...]) -> httpx2.Response:
        status = response.status_code
        if status in allowed or 200 <= status < 300:
            return response
        if status in (401, 403):
            raise PlatformError(
                f"{self.title} refuses the token ({status}): give the connection a valid one"
            )
        if 300 <= status < 400:
            raise PlatformError(
                f"{self.title} redirects ({status}): give the connection its final address, such as "
                "https instead of http"
            )
        path, detail = response.request.url.path, _detail(response)
        raise PlatformError(f"{self.title} refuses {path} ({status}): {detail}")

    def _json(self, response: httpx2.Response) -> Any:
        try:
            return json.loads(response.content)
        except (ValueError, RecursionError):
            raise PlatformError(
                f"what {self.title} answers at {response.request.url.path} is not JSON: is the "
                "address of the connection right?"
            ) from None


def checked_url(url: Any) -> str:
    """Return the address of a platform without a slash at its end; refuse what is none."""
    text = str(url)
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_good = is_good and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good or parts.query or parts.fragment or parts.username is not None:
        raise InputError(
            f"{hide_credentials(shorten(text))!r} is not the address of a platform: write it as "
            "https://labels.example.org"
        )
    return text.rstrip("/")


def _detail(response: httpx2.Response) -> str:
    try:
        content = json.loads(response.content)
    except (ValueError, RecursionError):
        return "no details"
    if isinstance(content, dict):
        content = content.get("validation_errors") or content.get("detail") or content
    return shorten(str(content), _MAX_DETAIL)
