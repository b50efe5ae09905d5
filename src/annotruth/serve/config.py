"""`ServeConfig`: the settings of the service, passed to its processes by environment variables."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from annotruth.errors import InputError, check_path, shown

PREFIX = "ANNOTRUTH_SERVE_"
"""What the names of the service's environment variables begin with."""

MEGABYTE = 1 << 20

_BOOLS = dict.fromkeys(("1", "true", "yes", "on"), True)
_BOOLS |= dict.fromkeys(("0", "false", "no", "off", ""), False)


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """The settings of the service."""

    database: str = field(repr=False)  # it may have a password
    data_dir: Path  # the folder of snapshots
    host: str = "127.0.0.1"  # the address that the web server listens on
    port: int = 8377
    # The names by which clients reach the server. Requests with another Host header are refused.
    # If there are none: on a loopback address, the loopback names; elsewhere, any name.
    allowed_hosts: tuple[str, ...] = ()
    # Whether clients reach the server by HTTPS, through a proxy. Cookies are then sent by HTTPS
    # only.
    behind_tls: bool = False
    # Addresses of proxies whose `X-Forwarded-For` is believed; by default of none.
    trusted_proxies: tuple[str, ...] = ()
    # The largest request in bytes; a stream of JSON lines may be longer.
    max_body: int = 8 * MEGABYTE
    max_stream: int = 1024 * MEGABYTE  # the largest stream of JSON lines in bytes
    # How long a client may take to send a request, or the next part of a stream.
    body_seconds: float = 30.0
    # How many requests one token may make per second, on average.
    requests_per_second: float = 1000.0
    lease_seconds: float = 600.0  # how long an item is reserved for the person who was given it
    login_hours: float = 12.0  # how long a login lasts
    log_requests: bool = True  # whether the log has a line per request
    # Whether webhooks may be sent to private and loopback addresses.
    private_webhooks: bool = False

    def __post_init__(self) -> None:
        check_path(self.data_dir, "the folder of the service")
        for name, low, high in _LIMITS:
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} is {value}: give a number from {low:.15g} to {high:.15g}")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def to_environment(self) -> dict[str, str]:
        """Return the environment variables that hold these settings."""
        return {variable_of(each.name): _written(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ServeConfig:
        """Return the settings that environment variables hold; those not given have defaults."""
        given: dict[str, Any] = {}
        for each in fields(cls):
            variable = variable_of(each.name)
            if variable in environment:
                given[each.name] = _parsed(variable, environment[variable], str(each.type))
        for name in ("database", "data_dir"):
            if name not in given:
                raise InputError(f"{variable_of(name)} is not set: start with `annotruth serve`")
        return cls(**given)


_LIMITS = (
    ("port", 0, 65_535),
    ("max_body", 1024, 1024 * MEGABYTE),
    ("max_stream", 1024, 1024 * 1024 * MEGABYTE),
    ("body_seconds", 0.1, 3600.0),
    ("requests_per_second", 0.1, 1e9),
    ("lease_seconds", 1.0, 30 * 86_400.0),
    ("login_hours", 0.01, 24.0 * 366.0),
)


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is that of this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parsed(variable: str, text: str, kind: str) -> Any:
    try:
        return _PARSERS[kind](text)
    except (KeyError, ValueError):
        raise InputError(f"{variable} is {shown(text)}: give {_EXPECTED[kind]}") from None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "Path": Path,
    "int": int,
    "float": float,
    "bool": lambda text: _BOOLS[text.lower()],
    "tuple[str, ...]": lambda text: tuple(re.findall(r"[^,\s]+", text)),
}
_EXPECTED = {"int": "a whole number", "float": "a number", "bool": "1 or 0"}
