"""Files elsewhere: https, s3 and gs URLs, copied to a temporary file that is then read.

HTTP is read by Python's own client, and s3 and gs by Arrow's file systems, so that nothing further is
installed. They find credentials where the tools of these stores keep them.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import re
import socket
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn
from urllib.parse import SplitResult, quote, unquote, urlsplit

import pyarrow as pa

from annotruth.errors import InputError, OutputError, one_line, shorten, system_errors_reported
from annotruth.io.content import size_limit
from annotruth.io.decompress import refuse_size
from annotruth.observations.disk import format_size

_TIMEOUT = 30  # seconds without an answer
_READ_AT_ONCE = 1 << 20
_SCHEMES = ("https", "http", "s3", "gs")
_URL_MARKS = "%/:=&?~#+!$,;'@()*[]"  # which are not to be quoted once more
_CREDENTIALS = {
    "s3": "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "run `gcloud auth application-default login`, or write gs://anonymous@... for public files",
}
_REFUSALS = re.compile(
    "ACCESS_DENIED|AccessDenied|PERMISSION_DENIED|UNAUTHENTICATED|INVALID_ACCESS_KEY_ID"
    "|INVALID_CLIENT_TOKEN_ID|SIGNATURE|OAuth2 access token|HTTP status code: 40[13]"
)
_UNREACHABLE = re.compile("NETWORK_CONNECTION|REQUEST_TIMEOUT|CURL error|curlCode", re.IGNORECASE)


@contextmanager
def downloaded(url: str, *, max_size: str | int | None = None) -> Iterator[Path]:
    """Copy the file at a URL to a temporary one of the same name; return its path.

    The copy is complete, or an `InputError` is raised. It may have 500 MB, or ``max_size``.
    """
    parts = _split(url)
    name = PurePosixPath(unquote(parts.path)).name
    limit = size_limit(0, max_size, in_memory=False)
    with tempfile.TemporaryDirectory(prefix="annotruth-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, re.sub(r"[^\w.-]", "_", name)[-100:].lstrip(".") or "file")
        with path.open("xb") as file:
            if parts.scheme in ("http", "https"):
                _copy_http(url, file, limit)
            else:
                _copy_object(url, parts.scheme, file, limit)
        yield path


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"this is not a valid URL ({error}): check it") from None
    if parts.scheme not in _SCHEMES:
        raise InputError(
            f"{parts.scheme}:// is not read, only {', '.join(f'{each}://' for each in _SCHEMES)} and "
            "databases: download the file and pass its path"
        )
    if not parts.hostname:
        raise InputError("the URL names no host: check it")
    return parts


def _copy(read: Callable[[int], bytes], file: IO[bytes], limit: int) -> int:
    """Copy a stream to a file, and return its size; refuse more than ``limit``."""
    size = 0
    while part := read(_READ_AT_ONCE):
        size += len(part)
        _check_size(size, limit)
        with system_errors_reported(file.name):
            file.write(part)
    return size


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        refuse_size(f"the file has more than {format_size(limit)}", 4 * limit)


# HTTP.


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https; those to http only from and to this machine."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        to = urlsplit(newurl)
        try:
            if to.scheme not in ("http", "https") or (to.scheme == "http" and req.type != "http"):
                raise InputError(
                    f"the server redirects to {to.scheme}://, which is not followed: check the address"
                )
            _check_http(to)
        except InputError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_http(parts: SplitResult) -> None:
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise InputError(
            "http:// is not encrypted, so files are read so from this machine only: write https://, "
            "or download the file and pass its path"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _copy_http(url: str, file: IO[bytes], limit: int) -> None:
    parts = urlsplit(quote(url, safe=_URL_MARKS))
    _check_http(parts)
    user, at, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(
        parts._replace(netloc=host).geturl(), headers={"User-Agent": "annotruth"}
    )
    if at:  # not sent to where the server may redirect to
        login = base64.b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {login}")
    handlers: list[urllib.request.BaseHandler] = [_CheckedRedirects()]
    if parts.scheme == "http":
        handlers.append(urllib.request.ProxyHandler({}))  # no proxy between this machine and itself
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT) as answer:
            _copy_answer(answer, file, limit)
    except (InputError, OutputError):
        raise
    except urllib.error.HTTPError as error:
        error.close()
        _refuse_status(error.code, error.reason)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        _refuse_connection(error.reason if isinstance(error, urllib.error.URLError) else error)


def _copy_answer(answer: http.client.HTTPResponse, file: IO[bytes], limit: int) -> None:
    if answer.headers.get_content_type() == "text/html":
        raise InputError(
            "this is the address of a web page, not of a file: use the address of its download, on "
            "GitHub that of the button Raw"
        )
    expected = answer.length
    _check_size(expected or 0, limit)
    size = _copy(answer.read, file, limit)
    if expected is not None and size < expected:
        raise InputError(
            f"the connection ended after {size:,} of {expected:,} bytes: try again, or download the "
            "file and pass its path"
        )


def _refuse_status(code: int, reason: str) -> NoReturn:
    if code in (404, 410):
        raise InputError(f"the server has no such file ({code}): check the address")
    if code in (401, 403, 407):
        raise InputError(
            f"the server refuses access ({code}): check that you may read the file, write "
            "https://NAME:PASSWORD@..., or download it and pass its path"
        )
    if 300 <= code < 400:
        raise InputError(
            f"the server redirects too often, or not to https ({code}): check the address"
        )
    raise InputError(
        f"the server answers {code} {shorten(one_line(reason))}: try again later, or download the "
        "file and pass its path"
    )


def _refuse_connection(reason: object) -> NoReturn:
    if isinstance(reason, socket.gaierror):
        raise InputError("the host is not found: check the address and the network")
    if isinstance(reason, TimeoutError):
        raise InputError(f"the server does not answer within {_TIMEOUT} seconds: try again later")
    what = shorten(one_line(str(reason)) or type(reason).__name__, 120)
    raise InputError(f"the file cannot be fetched ({what}): check the address and the network")


# Objects in the stores of S3 and Google Cloud.


def _copy_object(url: str, scheme: str, file: IO[bytes], limit: int) -> None:
    from pyarrow.fs import FileSystem

    if scheme == "gs":  # by default, Arrow tries for 15 minutes
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={_TIMEOUT}"
    try:
        system, path = FileSystem.from_uri(url)
        with system.open_input_stream(path, compression=None) as stream:
            _copy(stream.read, file, limit)
    except OutputError:
        raise
    except FileNotFoundError:
        raise InputError("there is no such object in the bucket: check the names of both") from None
    except (pa.ArrowException, ImportError, OSError) as error:
        _refuse_object(scheme, error)


def _refuse_object(scheme: str, error: Exception) -> NoReturn:
    text = one_line(str(error))
    what = shorten(text, 160)
    if isinstance(error, PermissionError) or _REFUSALS.search(text):
        raise InputError(
            f"access is refused: check that you may read the file; {_CREDENTIALS[scheme]}"
        ) from None
    if _UNREACHABLE.search(text):
        raise InputError(
            f"the store cannot be reached ({what}): check the network and the region"
        ) from None
    raise InputError(f"the file cannot be fetched ({what}): check the address") from None
