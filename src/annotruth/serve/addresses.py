"""Addresses that requests may be sent to: not those of private networks, unless that is allowed.

A host's addresses are looked up once and checked, and the connection goes to a checked address. So a
name cannot stand for a public address when it is checked and for a private one afterwards.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from annotruth.errors import AnnotruthError, InputError, hide_credentials, shorten

PORTS = {"http": 80, "https": 443}
"""The schemes of URLs that messages are sent to, and their ports."""

_MAX_URL = 2_000
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # the last 32 bits are an IPv4 address
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is assigned to the public internet
# Some versions of Python take these for public: documentation, protocols, relays of 6to4.
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("3fff::/20", "192.0.0.0/24", "192.88.99.0/24")))


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
