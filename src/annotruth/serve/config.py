"""`ServeConfig`: the settings of the service, passed to its processes by environment variables."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.dataclasses import dataclass

from annotruth.errors import InputError, check_path, shown

PREFIX = "ANNOTRUTH_SERVE_"
"""What the names of the service's environment variables begin with."""

MEGABYTE = 1 << 20


def _names(value: Any) -> Any:
    return tuple(re.findall(r"[^,\s]+", value)) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """The settings of the service."""

    database: str = field(repr=False)  # it may have a password
    data_dir: Path  # the folder of snapshots
    host: str = "127.0.0.1"  # the address that the web server listens on
    port: Annotated[int, Field(ge=0, le=65_535)] = 8377
    # The names by which clients reach the server. Requests with another Host header are refused.
    # If there are none: on a loopback address, the loopback names; elsewhere, any name.
    allowed_hosts: Names = ()
    # Whether clients reach the server by HTTPS, through a proxy. Cookies are then sent by HTTPS
    # only.
    behind_tls: bool = False
    # Addresses of proxies whose `X-Forwarded-For` is believed; by default of none.
    trusted_proxies: Names = ()
    # The largest request in bytes; a stream of JSON lines may be longer.
    max_body: Annotated[int, Field(ge=1024, le=1024 * MEGABYTE)] = 8 * MEGABYTE
    max_stream: Annotated[int, Field(ge=1024, le=MEGABYTE * MEGABYTE)] = 1024 * MEGABYTE
    # How long a client may take to send a request, or the next part of a stream.
    body_seconds: Annotated[float, Field(ge=0.1, le=3600.0)] = 30.0
    # How many requests one token may make per second, on average.
    requests_per_second: Annotated[float, Field(ge=0.1, le=1e9)] = 1000.0
    # How long an item is reserved for the person who was given it.
    lease_seconds: Annotated[float, Field(ge=1.0, le=30 * 86_400.0)] = 600.0
    login_hours: Annotated[float, Field(ge=0.01, le=24.0 * 366.0)] = 12.0  # how long a login lasts
    log_requests: bool = True  # whether the log has a line per request
    # Whether webhooks may be sent to private and loopback addresses.
    private_webhooks: bool = False

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
        variables = {each.name: variable_of(each.name) for each in fields(cls)}
        given: dict[str, Any] = {
            name: environment[each] for name, each in variables.items() if environment.get(each)
        }
        for name in ("database", "data_dir"):
            if name not in given:
                raise InputError(f"{variables[name]} is not set: start with `annotruth serve`")
        check_path(Path(given["data_dir"]), "the folder of the service")
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name, message = str(first["loc"][0]), first["msg"].removeprefix("Input ")
            raise InputError(f"{name} is {shown(given[name])}: it {message}") from None


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
